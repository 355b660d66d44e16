"""Functions that open boxes of the stage, and read the numbers in opened boxes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from browser.waiting import settled
from traces import python_trace, rounded

SENTENCE = "the big black dog sees a cat ."
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
DESK = 1440, 900
SHOW = """([looks, heads]) => {
  const { app } = glassformer;
  app.show({ ...looks, heads: { ...app.state.heads, ...heads } });
}"""
SMALL = """[...document.querySelectorAll(".gf-zoom *")].filter((one) =>
  one.textContent.trim() && parseFloat(getComputedStyle(one).fontSize) < 12).map((one) => one.outerHTML)"""
READ = """(slider) => {
  const press = (key) => slider.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  slider.focus();
  return Array.from({ length: Number(slider.ariaValueMax) + 1 }, (_, at) => {
    press(at ? "ArrowRight" : "Home");
    if (Number(slider.ariaValueNow) !== at) throw new Error(`at ${slider.ariaValueNow} instead of ${at}`);
    return slider.ariaValueText;
  });
}"""
"""A script that reads a row of numbers as a reader of its slider does, with the keyboard."""
STILL = """async () => {
  const running = () => document.getAnimations().filter((one) => one.playState === "running");
  while (running().length) await Promise.allSettled(running().map((one) => one.finished)); // or until it is cancelled
}"""


def open_box(
    page: Any, looks: Mapping[str, Any], changes: Mapping[str, Any], heads: Mapping[str, Any] | None = None
) -> Any:
    """Open a box in a window of 1440 × 900 under the reader's changes, and return the page once nothing moves."""
    size = dict(zip(("width", "height"), DESK, strict=True))
    if page.viewport_size != size:
        page.set_viewport_size(size)
    if changes:
        page.evaluate("(changes) => glassformer.set(changes)", changes)
    page.evaluate(SHOW, [looks, heads or {}])
    page.locator(".gf-zoom h2").wait_for()
    settled(page)
    page.evaluate(STILL)
    return page


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("–∞", "-inf").removeprefix("< "))


def trace_of(page: Any, translator: Any) -> dict[str, np.ndarray]:
    """Return what PyTorch computes for the page's sentence and translation."""
    ids = page.evaluate("(({sourceIds, targetIds}) => [sourceIds, targetIds])(glassformer.app.result.current)")
    return {name: value.numpy() for name, value in python_trace(rounded(translator.model), *ids).items()}


def value(page: Any, name: str) -> np.ndarray:
    """Return a point of the page's own trace, which other tests compare with PyTorch's."""
    shape, data = page.evaluate(
        "async (name) => { const v = await glassformer.value(name); return [v.shape, [...v.data]] }", name
    )
    return np.array(data, np.float32).reshape(shape)


def notes(page: Any) -> list[str]:
    texts: list[str] = page.locator(".gfz-note").all_inner_texts()
    return texts


def strip(page: Any, stop: str) -> np.ndarray:
    """Return the numbers of a row, from the texts of its slider."""
    texts = page.locator(f".gfz-room [data-stop='{stop}']").evaluate(READ)
    return np.array([number(text.partition(": ")[2]) for text in texts])


def shown(token: str) -> str:
    """Return a token as the stage displays it."""
    return {"<bos>": "start", "<eos>": "end"}.get(token, token.replace("▁", "").strip() or "␣")
