"""Check that each sentence of the explorer's page is true: `python -m benchmarks.truth RUN [--sentences 200]`.

Three models have a page each: RUN, which is the demo; a pre-norm model of pieces of words (unigram); and the state
dict of a `torch.nn.Transformer`, imported by `glassformer import`. The second and the third model are trained for some
minutes, or read from the folder that `--models` names, where they are kept.

For each test sentence of the demo's task, headless Chromium shows the page in states that a reader can reach: as the
sentence opens; at random words, boxes, heads and layers; with a forced word, a turned row, and a head that is off; with
opened boxes, a chosen number, and a segment; with a planted mistake, and with the weights of a snapshot; in one of the
chapters 2 to 7. Every tenth sentence is also shown while a row of each attention is held, in the first chapter, before
and after a beam is turned, and in the panel "Why?". In each state, the sentences are read as text, and PyTorch checks
what the sentences claim.

A long run can be split: first `--sentences 60`, later `--skip 60`.

Writes results/truth.json after every 10 sentences of a model: the number of claims by template and model, and each
false sentence with its address.
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.browser import FLAGS, chromium
from benchmarks.command import as_command
from benchmarks.results import RESULTS, machine, table, write
from benchmarks.truth.models import imported, pieces
from benchmarks.truth.visit import Tally, Visit, opened
from glassformer.corpus.tasks import english_french
from glassformer.translator import Translator

BLOCK = 10
"""Number of sentences per model before the next model's turn, so that a stopped run has results for all models."""


def figures(tally: Tally, seconds: float) -> dict[str, Any]:
    """Return the figures of one model."""
    return {
        "sentences": tally.sentences,
        "seconds": round(seconds),
        "states": tally.states,
        "claims": dict(sorted(tally.claims.items())),
        "false": tally.false,
    }


def summary(models: dict[str, dict[str, Any]]) -> str:
    """Return a table of the claims by template and model, and the false sentences."""
    keys = sorted({key for one in models.values() for key in one["claims"]})
    rows = [[f"`{key}`", *(str(one["claims"].get(key, 0)) for one in models.values())] for key in keys]
    false = {name: Counter(wrong["key"] for wrong in one["false"]) for name, one in models.items()}
    totals = [
        ["all claims", *(str(sum(one["claims"].values())) for one in models.values())],
        ["false", *(str(sum(wrong.values())) for wrong in false.values())],
        *([what, *(str(one[what]) for one in models.values())] for what in ("sentences", "states", "seconds")),
    ]
    wrong = "".join(
        f"\n{name}: {one['text'] or one['key']}: {one['why']} ({one['address']})\n"
        for name, model in models.items()
        for one in model["false"][:20]
    )
    return table(["template", *models], [*rows, *totals]) + wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0, help="number of sentences that are left out at the beginning")
    parser.add_argument("--alone", action="store_true", help="check RUN alone, without the two models that are trained")
    parser.add_argument("--models", type=Path, help="folder of the models that are trained here")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of truth.json")
    options = parser.parse_args()
    splits = english_french(1, train=0, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=options.sentences).splits
    sentences = [example.source for example in splits["test"]]
    before, visits, seconds = machine(), dict[str, Visit](), defaultdict[str, float](float)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        folder = options.models or Path(temporary)
        others = {} if options.alone else {"pieces": pieces(folder), "imported": imported(folder)}
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for name, run in {options.run.name: options.run, **others}.items():
            page = Path(temporary) / f"{name}.html"
            visits[name] = opened(browser.new_page(), Translator.load(run), page, sentences[0])
        for start in range(options.skip, len(sentences), BLOCK):
            for name, visit in visits.items():
                begun = time.perf_counter()
                visit.sentences(sentences[start : start + BLOCK], seed=start // BLOCK)
                seconds[name] += time.perf_counter() - begun
                models = {name: figures(one.tally, seconds[name]) for name, one in visits.items()}
                write("truth", {"first": options.skip, "models": models}, before, options.output)
        browser.close()
    print(summary(models))


if __name__ == "__main__":
    as_command(main)
