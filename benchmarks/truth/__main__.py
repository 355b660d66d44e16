"""Check that each sentence of the explorer's page is true: `python -m benchmarks.truth RUN [--sentences 200]`.

Three models have a page each: RUN, which is the demo; a pre-norm model of pieces of words (unigram); and the state
dict of a `torch.nn.Transformer`, imported by `glassformer import`. The last two are trained here for some minutes, or
come from the folder that `--models` names, where they are kept.

For each test sentence of the demo's task, headless Chromium shows the page in states that a reader can reach: as the
sentence opens; at random words, boxes, heads and layers; with a forced word, a turned row, and a head that is off; with
an opened attention; each tenth sentence also in the first chapter, before and after a beam is turned, and in the panel
"Why?". The sentences are read there as text, and PyTorch computes what they claim.

Writes results/truth.json: the number of claims by template and model, and each false sentence with its address.
"""

import argparse
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.command import as_command
from benchmarks.explorer import FLAGS
from benchmarks.results import RESULTS, machine, table, write
from benchmarks.truth.models import imported, pieces
from benchmarks.truth.visit import Tally, visited
from glassformer.corpus.tasks import english_french
from glassformer.translator import Translator


def measured(tab: Any, run: Path, sentences: list[str], folder: Path) -> dict[str, Any]:
    """Return the figures of one model."""
    begun = time.perf_counter()
    tally: Tally = visited(tab, Translator.load(run), folder / "page.html", sentences)
    return {
        "sentences": len(sentences),
        "seconds": round(time.perf_counter() - begun),
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
    parser.add_argument("--models", type=Path, help="folder of the models that are trained here")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of truth.json")
    options = parser.parse_args()
    splits = english_french(1, train=0, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=options.sentences).splits
    sentences = [example.source for example in splits["test"]]
    before, found = machine(), {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        folder = options.models or Path(temporary)
        runs = {"demo": options.run, "pieces": pieces(folder), "imported": imported(folder)}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, run in runs.items():
            found[name] = measured(browser.new_page(), run, sentences, Path(temporary))
            write("truth", {"models": found}, before, options.output)
        browser.close()
    print(summary(found))


if __name__ == "__main__":
    as_command(main)
