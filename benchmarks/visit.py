"""Measure a visit to the page of a run: `python -m benchmarks.visit runs/demo/explorer.html [--sentences 200]`.

Measured in headless Chromium: the sizes of the module and of the page; the first visit, from its navigation until the
story's first scene is painted; a hover, until the frame after it; and the memory of JavaScript after each fifth of the
sentences, which are the run's own test sentences, each translated and drawn, after a forced garbage collection.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.command import as_command
from benchmarks.explorer import FLAGS, HOVER
from glassformer.corpus.tasks import english_french
from glassformer.watch.explorer.module import explorer_module

FIRST_SCENE = """
  const look = () => {
    if (!document.querySelector(".gf-story-picture bdi")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.painted = performance.now())));
  };
  look();
"""
READY = "() => glassformer.ready.then(() => new Promise((done) => setTimeout(done, 300)))"


def first_visit(browser: Any, page: Path) -> float:
    """Return the milliseconds until the story's first scene is painted in a browser that has never seen the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.add_init_script(FIRST_SCENE)
    tab.goto(page.as_uri())
    tab.evaluate(READY)
    painted: float = tab.evaluate("painted")
    context.close()
    return painted


def heap(session: Any) -> float:
    """Return the megabytes that JavaScript still uses after a garbage collection, with its arrays of numbers."""
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"] + usage["backingStorageSize"]) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--visits", type=int, default=9)
    options = parser.parse_args()
    page = options.page.resolve()
    splits = english_french(1, train=0, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=options.sentences).splits
    sentences = [example.source for example in splits["test"]]
    print(f"module {len(explorer_module().encode()):,} B, page {page.stat().st_size / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        painted = sorted(first_visit(browser, page) for _ in range(options.visits))
        print(f"the story's first scene, ms: {painted[0]:.0f}, {painted[len(painted) // 2]:.0f}, {painted[-1]:.0f}")
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(f"{page.as_uri()}#new")  # an address with a state opens no story
        tab.evaluate(READY)
        frames = tab.evaluate(HOVER)["frame"]
        print(f"hover, ms: median {sorted(frames)[len(frames) // 2]:.1f}, worst {max(frames):.1f}")
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
