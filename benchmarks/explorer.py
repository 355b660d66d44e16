"""Measure the explorer with long sentences and many heads: `python -m benchmarks.explorer [--tokens 128]`.

A random model of 6 + 6 layers and 8 heads reads 128 tokens and writes 128 tokens. In headless Chromium, this benchmark
measures: the time from opening the file until everything is computed and drawn; after the pointer moves over a word of
the figure, the time until all highlights are laid out, and until the next frame; the number of nodes in the figure; the
times of the forward pass and of the search; and, after a row of attention is turned by hand, the times to compute this
row and the words after it. `--page` measures a different page.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright

import glassformer as gf
from benchmarks.browser import FLAGS, chromium
from benchmarks.command import as_command
from glassformer.bundle import Bundle
from glassformer.recipes.toml import from_dict, model_config
from glassformer.text.tokenizer import train_tokenizers
from glassformer.translator import Translator
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import page_html

HOVER = """async () => {
  const times = { handler: [], frame: [] };
  const frame = () => new Promise(requestAnimationFrame);
  const words = document.querySelectorAll(".gfs-figure-svg .gfs-word");
  for (let at = 0; at < 150; at++) {
    await frame();
    const begun = performance.now();
    words[(at * 7) % words.length].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    document.body.getBoundingClientRect(); // styles and places are computed now
    times.handler.push(performance.now() - begun);
    await frame();
    times.frame.push(performance.now() - begun);
  }
  return times;
}"""
TURNS = """async () => {
  const { app } = glassformer, { sourceIds, hypothesis } = app.result.reference;
  const { heads, decoder_layers: layers } = app.config;
  const turning = await app.engine.turning({ sourceIds, ids: hypothesis.ids }), times = { row: [], words: [] };
  const attention = `decoder.layers.${layers - 1}.cross_attention`;
  for (let at = 0; at < 200; at++) {
    const query = Math.floor(hypothesis.ids.length / 2), width = sourceIds.length, look = (at * 7.3) % (width - 1);
    const weights = Array.from({ length: width }, (_, word) => Math.max(0, 1 - Math.abs(word - look)));
    const turned = [{ attention, head: at % heads, query, weights }];
    const begun = performance.now();
    await turning.row(turned);
    times.row.push(performance.now() - begun);
    await turning.after(turned);
    times.words.push(performance.now() - begun);
  }
  return times;
}"""
PASSES = """async () => {
  const { app } = glassformer, { sourceIds, targetIds } = app.result.current;
  const begun = performance.now();
  await app.engine.trace({ sourceIds, targetIds });
  const traced = performance.now();
  await app.engine.search({ sourceIds, beamSize: 1 });
  const nodes = document.querySelectorAll(".gfs-figure-svg *").length;
  return { forward: traced - begun, greedy: performance.now() - traced, nodes };
}"""


def translator(folder: Path, tokens: int) -> Translator:
    """Return a random model of 6 + 6 layers with 8 heads, and a vocabulary of `tokens` words."""
    words = [f"w{number}" for number in range(tokens)]
    sizes: dict[str, Any] = {"d_model": 64, "heads": 8, "d_ff": 128, "encoder_layers": 6, "decoder_layers": 6}
    sizes |= {"positions": "learned", "max_length": tokens}  # learned positions limit the output to this length
    configuration = from_dict(
        {
            "data": {"source": "a.tsv", "max_length": tokens},
            "tokenizer": {"kind": "words"},
            "model": sizes,
            "decoding": {"beam_size": 1},
        }
    )
    tokenizers = train_tokenizers([" ".join(words)], [" ".join(words)], configuration.tokenizer)
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, *map(len, tokenizers)),
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
    )
    torch.manual_seed(1)
    return Translator(bundle, gf.Transformer(bundle.model_config).eval())


def random_page(folder: Path, tokens: int) -> Path:
    """Return a new page of a random model that reads `tokens` tokens."""
    page = folder / "page.html"
    sentence = " ".join(f"w{number}" for number in range(tokens - 1))
    page.write_text(page_html(payload(translator(folder / "run", tokens), sentence)))
    return page


def measure(browser: Any, page: Path) -> dict[str, float]:
    """Return the figures of one visit to the page."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    begun = time.perf_counter()
    tab.goto(f"{page.as_uri()}#chapter=0")
    tab.evaluate("() => glassformer.ready.then(() => new Promise(requestAnimationFrame))")
    loaded = 1000 * (time.perf_counter() - begun)
    hover, turns, passes = (tab.evaluate(script) for script in (HOVER, TURNS, PASSES))
    tokens = tab.evaluate("glassformer.app.result.current.targetTokens.length")
    tab.close()
    times = {f"hover {name}": all for name, all in hover.items()} | {
        f"turned {name}": all for name, all in turns.items()
    }
    return {"load": loaded, **passes, "target tokens": tokens} | {
        f"{name} {which}": sorted(all)[int(share * (len(all) - 1))]
        for name, all in times.items()
        for which, share in (("median", 0.5), ("p95", 0.95), ("worst", 1))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--page", type=Path, help="measure this page of `glassformer explore --html`")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    page = options.page.resolve() if options.page else random_page(folder, options.tokens)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        visits = [measure(browser, page) for _ in range(options.visits)]
        version = browser.version
        browser.close()
    shutil.rmtree(folder)
    print(f"Chromium {version}, {options.page or f'{options.tokens} source tokens'}, {options.visits} visits")
    print("milliseconds: least, median, most")
    for name in visits[0]:
        values = sorted(visit[name] for visit in visits)
        print(f"{name:22s}" + "".join(f"{value:9.1f}" for value in (values[0], values[len(values) // 2], values[-1])))
    print(json.dumps(visits[0]))


if __name__ == "__main__":
    as_command(main)
