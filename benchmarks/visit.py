"""Measure a visit to the page of a run: `python -m benchmarks.visit runs/demo/explorer.html [--sentences 200]`.

In headless Chromium, this benchmark measures:

- the sizes of the module and of the page;
- the first visit, from navigation until the first chapter is painted;
- a hover, until the next frame;
- the main thread's work in each frame of Play, and while boxes of each kind open and close;
- an attention row that is turned by dragging its handle: from each move until the next word is drawn, and until the
  words after it are drawn;
- the memory of JavaScript, after a garbage collection, after each fifth of the sentences. The sentences are the run's
  own test sentences; each is translated and drawn.
"""

import argparse
import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.browser import FLAGS, chromium
from benchmarks.command import as_command
from benchmarks.explorer import HOVER
from glassformer.corpus.tasks import english_french
from glassformer.watch.explorer.module import explorer_module

FIRST_SCENE = """
  const look = () => {
    if (!document.querySelector(".gf-ray-pill")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.painted = performance.now())));
  };
  look();
"""
FRAMES = """(duration) => new Promise((done) => {
  const end = performance.now() + duration;
  let count = 0;
  const step = () => (performance.now() < end ? (count++, requestAnimationFrame(step)) : done(count));
  requestAnimationFrame(step);
})"""
BOXES = (
    "decoder.layers.1.cross_attention",
    "decoder.layers.1.feed_forward",
    "decoder.layers.1.feed_forward.add",
    "decoder.softmax",
    "encoder.embedding",
)
OPEN = "(box) => glassformer.app.show({ zoom: box && { box, key: null }, panel: 'calculation' })"
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
FAMILIES = {
    "cross": "decoder.cross_attention",
    "decoder": "decoder.self_attention",
    "encoder": "encoder.self_attention",
}
"""The attentions whose handles are dragged, each with its box."""
FRAME, TASK = "Commit", "RunTask"
"""The names of the end of a frame and of a thread's task in Chromium's traces."""
DRAGGED = """() => {
  const waiting = new Map(), times = (globalThis.times = { row: [], words: [] });
  const groups = { row: ".gfs-g-softmax", words: ".gfs-g-words" };
  window.addEventListener("pointermove", ({ timeStamp }) => {
    for (const name of Object.keys(groups)) waiting.set(name, timeStamp);
  }, true);
  for (const [name, group] of Object.entries(groups))
    new MutationObserver(() => {
      if (waiting.has(name)) times[name].push(performance.now() - waiting.get(name));
      waiting.delete(name);
    }).observe(document.querySelector(group), { childList: true });
}"""
"""A script that records the milliseconds from each pointer event until the page has drawn the effect."""
READY = "() => glassformer.ready.then(() => new Promise((done) => setTimeout(done, 300)))"


def first_visit(browser: Any, page: Path) -> float:
    """Return the milliseconds until the first chapter is painted in a browser that has never seen the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.add_init_script(FIRST_SCENE)
    tab.goto(page.as_uri())
    tab.evaluate(READY)
    painted: float = tab.evaluate("painted")
    context.close()
    return painted


def percentiles(values: Sequence[float]) -> str:
    """Return the median, the 95th percentile and the largest of some values."""
    ordered = sorted(values)
    median, most = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95))
    return f"median {median:.1f}, p95 {most:.1f}, worst {ordered[-1]:.1f}"


def heap(session: Any) -> float:
    """Return the megabytes that JavaScript uses after a garbage collection, including arrays of numbers."""
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"] + usage["backingStorageSize"]) / 1e6


def frames_of_play(browser: Any, page: Path, seconds: float) -> tuple[list[float], float]:
    """Return the main thread's own work in each frame during Play, in ms, and the number of frames per second."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(f"{page.as_uri()}#chapter=0")
    tab.evaluate(READY)
    tab.get_by_role("button", name="Play").click()
    browser.start_tracing(page=tab, categories=CATEGORIES)
    frames: float = tab.evaluate(FRAMES, 1000 * seconds)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    tab.close()
    return work_between_frames(events), frames / seconds


def frames_of_zooms(browser: Any, page: Path, rounds: int) -> dict[str, list[float]]:
    """Return the main thread's own work in each frame while a box opens and closes again, in ms, by the box's name."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(f"{page.as_uri()}#chapter=0")
    tab.evaluate(READY)
    work: dict[str, list[float]] = {}
    for box in BOXES:
        browser.start_tracing(page=tab, categories=CATEGORIES)
        for _ in range(rounds):
            for shown in (box, None):
                tab.evaluate(OPEN, shown)
                tab.evaluate(FRAMES, 600)
        work[box] = work_between_frames(json.loads(browser.stop_tracing())["traceEvents"])
    tab.close()
    return work


def work_between_frames(events: Sequence[dict[str, Any]]) -> list[float]:
    """Return the milliseconds of the main thread's own time in each frame, from the events of a trace.

    The time is processor time, so other programs on the machine do not lengthen it.
    """
    begun = [event for event in events if event["name"] == FRAME]
    thread = {(event["pid"], event["tid"]) for event in begun}
    starts = sorted(event["ts"] for event in begun)
    work = [0.0] * len(starts)
    for event in events:
        if event["name"] == TASK and (event["pid"], event["tid"]) in thread and event["ts"] >= starts[0]:
            work[bisect_right(starts, event["ts"]) - 1] += event.get("tdur", 0) / 1000
    return work[:-1]


def drags(browser: Any, page: Path, family: str, moves: int) -> dict[str, list[float]]:
    """Return the milliseconds from each move of a handle until the next word is drawn, and until later words are."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(f"{page.as_uri()}#chapter=0")
    tab.evaluate(READY)
    dot, box = (
        tab.locator(one).bounding_box()
        for one in (
            f".gfs-handle[data-family={family}] .gfs-dot",
            f'.gfs-box[data-box="{FAMILIES[family]}"]',
        )
    )
    start = [dot[axis] + dot[size] / 2 for axis, size in (("x", "width"), ("y", "height"))]
    axis, size = ("y", "height") if family == "cross" else ("x", "width")
    tab.mouse.move(*start)
    tab.mouse.down()
    tab.evaluate(DRAGGED)
    for at in range(moves):
        place = box[axis] + box[size] * (0.15 + 0.6 * (at * 0.618 % 1))
        tab.mouse.move(*((start[0], place) if family == "cross" else (place, start[1])))
        tab.wait_for_timeout(400)
    found: dict[str, list[float]] = tab.evaluate("times")
    tab.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--visits", type=int, default=9)
    parser.add_argument("--play", type=float, default=20, help="seconds of Play")
    parser.add_argument("--zooms", type=int, default=5, help="times that each box opens")
    parser.add_argument("--moves", type=int, default=100, help="moves of each handle")
    options = parser.parse_args()
    page = options.page.resolve()
    splits = english_french(1, train=0, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=options.sentences).splits
    sentences = [example.source for example in splits["test"]]
    print(f"module {len(explorer_module().encode()):,} B, page {page.stat().st_size / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        painted = sorted(first_visit(browser, page) for _ in range(options.visits))
        print(f"the first chapter, ms: {painted[0]:.0f}, {painted[len(painted) // 2]:.0f}, {painted[-1]:.0f}")
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(f"{page.as_uri()}#chapter=0")
        tab.evaluate(READY)
        for name, times in tab.evaluate(HOVER).items():
            print(f"hover, until the {name}, ms: {percentiles(times)}")
        work, rate = frames_of_play(browser, page, options.play)
        print(f"Play, {options.play:.0f} s: {rate:.0f} frames per second; work in a frame, ms: {percentiles(work)}")
        for box, work in frames_of_zooms(browser, page, options.zooms).items():
            print(f"{box} opens and closes: work in a frame, ms: {percentiles(work)}")
        for family in FAMILIES:
            for name, times in drags(browser, page, family, options.moves).items():
                print(f"turned {family}, until the {name}, ms, {len(times)} moves: {percentiles(times)}")
        session = tab.context.new_cdp_session(tab)
        heaps = [heap(session)]
        every = -(-len(sentences) // 10)
        for begin in range(0, len(sentences), every):
            for sentence in sentences[begin : begin + every]:
                tab.evaluate("async (sentence) => { await glassformer.app.open(sentence); }", sentence)
                tab.evaluate("() => new Promise(requestAnimationFrame)")
            heaps.append(heap(session))
        print(f"memory after each {every} sentences, MB:", *(f"{one:.1f}" for one in heaps))
        browser.close()


if __name__ == "__main__":
    as_command(main)
