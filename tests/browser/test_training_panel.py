"""The playback of the training on the page: the loss curve, and each checkpoint's output."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from browser.waiting import open_panel
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.packing import as_base64, dequantised, pack, quantised
from glassformer.watch.explorer.payload import payload, rounded

SENTENCE = "the black cat sleeps ."
SEEDS = {8: 27, 64: 34, 512: 28}
CURVE = {
    "loss": [[step, 5 / step**0.3] for step in range(1, 1001, 7)],
    "validation": [[step, 6 / step**0.3] for step in range(200, 1001, 200)],
}


def checkpoints(make_translator: Any) -> dict[str, Any]:
    """Return the part of a payload for the playback of a training: three more random models, and a loss curve."""
    kept = []
    for step, seed in SEEDS.items():
        weights = (weight.detach().numpy() for weight in rounded(make_translator(seed=seed).model).parameters())
        parts = [part for weight in weights for part in quantised(weight)]
        kept.append({"step": step, "data": as_base64(parts), "loss": 0.25})
    return {"checkpoints": kept, "left_out": [16, 32], "curve": CURVE, "step": 1000}


def translation(make_translator: Any, seed: int, *, shrunk: bool = True) -> str:
    """Return Python's translation of the sentence with a checkpoint's weights: as in the page, or as from the host."""
    translator = make_translator(seed=seed)
    translator.model.load_state_dict(rounded(translator.model).state_dict())
    for weight in translator.model.parameters() if shrunk else ():
        weight.data = torch.from_numpy(dequantised(quantised(weight.detach().numpy())))
    [result] = translator.translate([SENTENCE])
    text: str = result.text
    return text


def played(page: Any) -> Any:
    return open_panel(page, "training")


def rows(page: Any) -> list[list[str]]:
    """Return the table of visited checkpoints."""
    table: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll(".gf-visited tbody tr")].map(
          (row) => [...row.children].map((cell) => cell.textContent))"""
    )
    return table


def until(page: Any, condition: str) -> None:
    """Wait until an expression about the app is true."""
    page.evaluate(
        f"""async () => {{
          const app = glassformer.app, end = Date.now() + 8000;
          while (!({condition})) {{
            if (Date.now() > end) throw new Error("still not true");
            await new Promise(requestAnimationFrame);
          }}
        }}"""
    )


@pytest.fixture
def window(new_window):
    """Return a window for one test: an installed clock stays in its window."""
    window = new_window()
    yield window
    window.close()


@pytest.fixture
def stopped(make_translator, explore, page):
    """Return a page with a paused clock: its timers fire only in `clock.run_for`."""
    page.clock.install()
    played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
    return page


def test_each_checkpoint_gives_its_own_output(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    slider = page.get_by_role("slider", name="Checkpoint")
    slider.focus()
    for step in [512, 64, 8]:
        page.keyboard.press("ArrowLeft")
        until(page, f"app.changes.checkpoint === {step} && app.result.current !== app.result.reference")
        page.get_by_role("row", name=f"step {step}").wait_for()
    expected = [translation(make_translator, seed) for seed in SEEDS.values()]
    assert [row[:2] for row in rows(page)][:3] == [
        [f"step {step}", text] for step, text in zip(SEEDS, expected, strict=True)
    ]
    assert rows(page)[3][:2] == ["final", page.evaluate("glassformer.app.result.reference.text")]
    assert len({row[1] for row in rows(page)}) == 4
    assert slider.get_attribute("aria-valuetext") == "step 8"


def test_the_last_checkpoint_is_the_runs_own_model(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    slider = page.get_by_role("slider", name="Checkpoint")
    slider.press("Home")
    until(page, "app.changes.checkpoint === 8 && app.result.firstDifference === 'source.embedding'")
    slider.press("End")
    until(page, "app.changes.checkpoint === null && !app.changed")


def test_a_new_sentence_starts_a_new_table(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    page.get_by_role("slider", name="Checkpoint").press("Home")
    page.get_by_role("row", name="step 8").wait_for()
    page.evaluate("glassformer.app.open('a dog sees the cat')")
    assert [row[0] for row in rows(page)] == ["final"]


def test_playing_goes_through_all_checkpoints_and_stops(stopped):
    panel = stopped.locator(".gf-training")
    panel.get_by_role("button", name="▶ Play").click()
    for step in SEEDS:
        stopped.clock.run_for(1200)
        panel.get_by_role("row", name=f"step {step} ").wait_for()
    stopped.clock.run_for(1200)
    panel.get_by_role("button", name="▶ Play").wait_for()
    assert stopped.evaluate("glassformer.app.changes.checkpoint") is None
    assert [row[0] for row in rows(stopped)] == ["step 8", "step 64", "step 512", "final"]


@pytest.mark.parametrize(
    "ending", ["pause", *(pytest.param(one, marks=pytest.mark.long) for one in ("other panel", "close"))]
)
def test_playing_can_be_stopped(stopped, ending):
    panel = stopped.locator(".gf-training")
    panel.get_by_role("button", name="▶ Play").click()
    stopped.clock.run_for(1)
    panel.get_by_role("row", name="step 8 ").wait_for()
    stopped.evaluate("globalThis.kept = glassformer.app")
    if ending == "pause":
        panel.get_by_role("button", name="Pause").click()
    elif ending == "other panel":
        open_panel(stopped, "beam")
    else:
        stopped.evaluate("glassformer.close()")
    stopped.clock.run_for(10_000)
    assert stopped.evaluate("kept.changes.checkpoint") == 8


def test_nothing_plays_before_the_reader_presses_play(stopped):
    stopped.clock.run_for(10_000)
    assert stopped.evaluate("glassformer.app.changes.checkpoint") is None


def test_the_curve_has_named_axes_and_a_cursor(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    picture = page.get_by_role("img", name="Curve of the loss; at step 1000: training 0.6")
    assert picture.locator("text").all_text_contents() == [
        *["0", "2", "4", "6"], *["1", "10", "100", "1000"], "step", "loss (nats per word)",
    ]  # fmt: skip
    at = "Number(document.querySelector('.gf-cursor').getAttribute('x1'))"
    last = page.evaluate(at)
    page.get_by_role("slider", name="Checkpoint").press("Home")
    page.get_by_role("img", name="Curve of the loss; at step 8: ").wait_for()
    first = page.evaluate(at)
    page.get_by_role("button", name="Logarithmic steps").click()
    assert page.evaluate(at) < first < last


def test_kept_weights_are_marked_on_the_curve_and_not_on_the_axis(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    page.locator(".gf-kept").first.wait_for()
    marks = page.evaluate("""[...document.querySelectorAll(".gf-kept")].map((one) =>
      [one.getAttribute("cx"), one.getAttribute("cy")].map(Number))""")
    curve = page.locator(".gf-loss").get_attribute("points")
    across, heights = np.array([pair.split(",") for pair in curve.split()], float).T
    assert len(marks) == len(SEEDS)
    for x, y in marks:
        assert y == pytest.approx(np.interp(x, across, heights), abs=0.1)  # points have one decimal
    page.get_by_text("weights that the page has").wait_for()


def test_weights_from_before_the_first_loss_have_no_mark_beside_the_curve(make_translator, explore):
    late = {**CURVE, "loss": [one for one in CURVE["loss"] if one[0] >= 50]}
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator) | {"curve": late}))
    page.locator(".gf-kept").first.wait_for()
    assert page.locator(".gf-kept").count() == len(SEEDS) - 1
    page.get_by_role("slider", name="Checkpoint").press("Home")
    page.get_by_role("img", name="Curve of the loss; at step 8: ").wait_for()
    assert page.locator(".gf-cursor").count() == 1


def test_the_floor_of_the_smoothed_loss_is_that_of_pytorch(make_translator, explore):
    translator = make_translator()
    page = played(explore(translator, SENTENCE, label_smoothing=0.1, **checkpoints(make_translator)))
    size = translator.model.config.target_vocab_size
    target = torch.full((size,), 0.1 / size, dtype=torch.float64)
    target[0] += 0.9
    floor = torch.nn.functional.cross_entropy(target.log()[None], target[None]).item()
    note = page.get_by_text("The training's target is smoothed").text_content()
    assert f"{target[0]:.3f} for the right word" in note
    assert f"cannot fall below {floor:.2f}," in note


def test_steps_that_did_not_fit_are_named(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, **checkpoints(make_translator)))
    page.get_by_text("did not fit into the page: 16, 32.").wait_for()
    page.get_by_text("translation by up to 0.250").wait_for()


def test_a_panel_without_checkpoints_says_how_to_get_them(make_translator, explore):
    page = played(explore(make_translator(), SENTENCE, curve=CURVE))
    told = page.get_by_text("--html FILE --snapshots 3").text_content()
    assert told.count(". ") == 1  # two short sentences; the second one ends in the setting below it
    assert len(told) < 150
    assert told.endswith("if the training kept them:")
    page.get_by_role("img", name="Curve of the loss").wait_for()
    assert page.locator(".gf-training").get_by_role("slider").count() == 0


def test_weights_outside_the_page_are_fetched_when_chosen(page, tmp_path, make_translator):
    (tmp_path / "blank.html").write_text("<!doctype html><title>t</title>")
    page.goto((tmp_path / "blank.html").as_uri())
    more = checkpoints(make_translator)
    models = {step: rounded(make_translator(seed=seed).model) for step, seed in SEEDS.items()}
    kept = {step: pack(dict(model.named_parameters()), "float16")["data"] for step, model in models.items()}
    data = (
        payload(make_translator(), SENTENCE) | more | {"checkpoints": [{"step": step, "data": None} for step in kept]}
    )
    page.evaluate(
        """async ([code, text, kept]) => {
          const { mount } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
          globalThis.asked = [];
          const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
          const request = async (message) => {
            asked.push(message);
            return { message: {}, buffers: [bytes(kept[message.step])] };
          };
          await mount(document.body, JSON.parse(text), { request }).ready;
        }""",
        [explorer_module(), json.dumps(data), kept],
    )
    played(page).get_by_role("slider", name="Checkpoint").press("Home")
    page.get_by_role("row", name="step 8 ").wait_for()
    assert page.evaluate("asked") == [{"kind": "checkpoint", "step": 8}]
    assert rows(page)[0][1] == translation(make_translator, SEEDS[8], shrunk=False)


def test_weights_that_cannot_be_fetched_are_an_error_message(make_translator, explore):
    more = checkpoints(make_translator) | {"checkpoints": [{"step": 8, "data": None}]}
    page = played(explore(make_translator(), SENTENCE, **more))
    page.get_by_role("slider", name="Checkpoint").press("Home")
    page.get_by_role("alert").get_by_text("need Python").wait_for()
    assert page.evaluate("glassformer.app.changed") is False
    assert page.get_by_role("slider", name="Checkpoint").input_value() == "1"


def test_two_checkpoints_stand_on_one_figure(make_translator, explore):
    page = explore(
        make_translator(seed=SEEDS[512]), SENTENCE, start="figure", fragment="chapter=0", **checkpoints(make_translator)
    )
    page.locator(".gfs-knot").wait_for(state="attached")
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="Compare with").click()
    page.get_by_label("Weights of the second translation").select_option(label="step 8")
    second = page.locator(".gfs-second-text")
    second.wait_for(state="attached")
    shown = page.evaluate("glassformer.app.result.current.text")
    assert shown == translation(make_translator, SEEDS[512], shrunk=False)
    text = second.text_content().partition("):")[2].strip()
    assert text == f"{translation(make_translator, SEEDS[8])} end".strip()
    page.get_by_label("Weights of the second translation").select_option(label="same weights")
    second.wait_for(state="detached")
