"""Measure the served explorer of a large model: `python -m benchmarks.served [--visits 5]`.

The model is random and has the size of OPUS-MT: 6 + 6 layers, d_model 512, 8 heads, d_ff 2048, one vocabulary of 60 000
tokens, and two sentencepiece models of 32 000 pieces, most of which are made up. The model's outputs hardly ever end,
so `decoding.extra_length` ends them after 20 tokens. In headless Chromium, this benchmark measures the time: from the
request of the page until the first picture, and until everything is computed; from a hover until the next frame; from a
click on a number until its arithmetic is shown; from the ablation of a head until the result of a new search with beam
4 is drawn.
"""

import argparse
import shutil
import tempfile
import threading
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright
from sentencepiece import SentencePieceTrainer

import glassformer as gf
from benchmarks.browser import FLAGS, chromium
from benchmarks.command import as_command
from benchmarks.explorer import HOVER
from glassformer.bundle import Bundle
from glassformer.corpus.tasks import english_french
from glassformer.recipes.toml import from_dict, model_config
from glassformer.system.protobuf import field
from glassformer.text.marian import MarianTokenizer
from glassformer.text.subword_model import NORMAL, read_subword_model
from glassformer.text.vocabulary import SPECIALS
from glassformer.translator import Translator
from glassformer.watch.explorer.server import serve

TOKENS, PIECES = 60_000, 32_000
SENTENCE = "the big black cat sees a dog and sleeps ."
SIZES: dict[str, Any] = {"d_model": 512, "heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6}
SIZES |= {"tie_embeddings": True, "output_bias": True, "activation": "silu", "positions": "halves"}

FIRST = """() => new Promise((done) => {
  const look = () => {
    if (document.querySelector(".gfs-figure-svg .gfs-word")) requestAnimationFrame(() => done(performance.now()));
    else setTimeout(look, 10);
  };
  look();
})"""
READY = "() => glassformer.ready.then(() => new Promise(requestAnimationFrame)).then(() => performance.now())"
ABLATION = """async (head) => {
  const { app } = glassformer;
  const begun = performance.now();
  await app.set({ ablated: { "encoder.layers.3.self_attention": [head] } });
  await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done, 0));
  const drawn = performance.now() - begun;
  await app.reset();
  return drawn;
}"""
CLICK = """async ([name, ...index]) => {
  const { app } = glassformer;
  const begun = performance.now();
  const panel = document.querySelector(".gfz-about");
  const shown = new Promise((done) => {
    const observer = new MutationObserver(() => {
      if (!panel.textContent.includes(index.at(-1))) return;
      observer.disconnect();
      done(null);
    });
    observer.observe(panel, { childList: true, subtree: true });
  });
  app.select({ name, index });
  await shown;
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
CLICKS: tuple[tuple[Any, ...], ...] = (
    ("log_probs", 5, 41_234),
    ("logits", 3, 777),
    ("encoder.layers.2.self_attention.weights", 3, 4, 7),
    ("decoder.layers.5.feed_forward.hidden", 6, 1023),
    ("decoder.layers.4.cross_attention.scores", 2, 9, 8),
    ("encoder.layers.5.feed_forward.normed", 6, 301),
)


def translator(folder: Path) -> Translator:
    """Return a random model of the size of OPUS-MT, whose sentencepiece model knows the grammar's words."""
    corpus = english_french(1, train=1_500, valid=0, test=0, unseen=0, pairs=0, senses=0, longer=0)
    lines = [text for example in corpus.splits["train"] for text in (example.source, example.target)]
    model = BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=600,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    trained = model.getvalue()
    pieces = [piece for piece, (_, type) in read_subword_model(trained).pieces.items() if type == NORMAL]
    made_up = [f"▁piece{number}" for number in range(TOKENS - len(SPECIALS) - len(pieces))]
    padded = trained + b"".join(field(1, field(1, one) + field(2, -20.0)) for one in made_up[: PIECES - len(pieces)])
    source, target = (MarianTokenizer(padded, [*SPECIALS, *pieces, *made_up]) for _ in range(2))
    configuration = from_dict(
        {
            "data": {"source": "a.tsv"},
            "tokenizer": {"kind": "marian"},
            "model": SIZES,
            "decoding": {"beam_size": 4, "extra_length": 3},
        }
    )
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, TOKENS, TOKENS),
        source_tokenizer=source,
        target_tokenizer=target,
    )
    torch.manual_seed(1)
    return Translator(bundle, gf.Transformer(bundle.model_config).eval())


def measure(browser: Any, url: str) -> dict[str, float]:
    """Return the figures of one visit to the page, in milliseconds."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(url, wait_until="commit")
    figures = {"first picture": tab.evaluate(FIRST), "all is computed": tab.evaluate(READY)}
    hover = tab.evaluate(HOVER)
    figures |= {"hover, median": sorted(hover["frame"])[len(hover["frame"]) // 2], "hover, worst": max(hover["frame"])}
    figures |= {f"click on {name}": tab.evaluate(CLICK, [name, *index]) for name, *index in CLICKS}
    figures |= {f"ablation of head {head}": tab.evaluate(ABLATION, head) for head in range(3)}
    lengths = tab.evaluate(
        "(({ sourceIds, targetIds }) => [sourceIds.length, targetIds.length])(glassformer.app.result.current)"
    )
    tab.close()
    return figures | {"source tokens": lengths[0], "target tokens": lengths[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    made = translator(folder)
    parameters = sum(parameter.numel() for parameter in made.model.parameters())
    built = time.perf_counter()
    server = serve(made, SENTENCE, 0)
    print(f"{parameters / 1e6:.0f} million parameters, {torch.get_num_threads()} threads of PyTorch")
    print(f"a page of {len(server.page) / 1e6:.1f} MB; before it is served: {time.perf_counter() - built:.1f} s")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        visits = [measure(browser, f"{server.url}#chapter=0") for _ in range(options.visits)]
        version = browser.version
        browser.close()
    server.shutdown()
    shutil.rmtree(folder)
    print(f"Chromium {version}, {options.visits} visits; milliseconds: least, median, most")
    for name in visits[0]:
        values = sorted(visit[name] for visit in visits)
        print(f"{name:55s}" + "".join(f"{value:9.1f}" for value in (values[0], values[len(values) // 2], values[-1])))


if __name__ == "__main__":
    as_command(main)
