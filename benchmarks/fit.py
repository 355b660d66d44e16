"""Predict the loss of held-back runs from smaller runs: `python -m benchmarks.fit --data DIR [--runs DIR]`.

For Multi30k and CMUdict, `glassformer estimate --fit` fits the validation losses of eight and of five small models, and
predicts the loss of a larger model, which is then trained and compared. A small model has at most a quarter of the
parameters, without embeddings, and sees at most as many tokens.

Each run is trained to its end: the learning rate rises for a tenth of its steps and falls along a cosine to 0 at the
last one. The recipes' models are made narrower, batches smaller, and Multi30k's vocabulary and dropout lower, so that a
run takes minutes of one core. A run sees each pair about once, or fewer than all pairs.

DIR has a folder per corpus, as in benchmarks/README.md. Finished runs in --runs are not trained again. About an
hour of a core. Writes results/fit.json.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.command import as_command, make
from benchmarks.results import described, machine, read, table, write
from glassformer.bench.estimate import estimate
from glassformer.bench.loss import FittedRun, LossEstimate, estimate_loss
from glassformer.bench.sample import read_sample
from glassformer.jobs import METRICS_FILE, read_log
from glassformer.recipes.toml import load

GOAL = 0.05
"""Difference between the predicted and the reached loss that is allowed, in nats."""
RECIPES = {"multi30k": "multi30k-de-en", "cmudict": "cmudict"}
OWN = {"multi30k": (("tokenizer.vocab_size", 2000), ("model.dropout", 0.1)), "cmudict": ()}
"""Settings that differ from the recipe for the sake of short runs."""
RATIO = {"multi30k": 2, "cmudict": 4}
"""d_ff / d_model, as in the recipe."""
Shape = tuple[int, int, int, int]
"""d_model, encoder layers, decoder layers, steps."""
HELD_BACK: dict[str, Shape] = {"multi30k": (128, 4, 4, 2000), "cmudict": (64, 3, 3, 800)}
SMALL: dict[str, tuple[Shape, ...]] = {
    "multi30k": (
        *((64, 4, 4, 2000), (48, 4, 4, 2000), (32, 4, 4, 2000), (64, 4, 2, 1500), (64, 2, 4, 1500)),
        *((64, 4, 4, 1000), (32, 4, 4, 1000), (64, 4, 4, 500)),
    ),
    "cmudict": ((32, 3, 3, 800), (24, 2, 2, 800), (32, 3, 1, 600), (32, 1, 3, 600), (32, 3, 3, 600)),
}


def settings(corpus: str, shape: Shape, runs: Path) -> list[str]:
    """Return the settings of a run that differ from the recipe."""
    d_model, encoder, decoder, steps = shape
    values = {
        "training.steps": steps,
        "training.minutes": 0,
        "training.warmup": steps // 10,
        "training.workers": 1,
        "training.batch_tokens": 1024,
        "training.ema": 0,
        "training.metric": "none",
        "training.best_by": "loss",
        "training.validate_every": steps // 2,
        "training.checkpoint_every": 100,
        "training.keep_checkpoints": 1,
        "training.log_every": 10,
        "data.prepared": f"{runs / corpus / 'prepared'}",
        "run.directory": f"{folder_of(corpus, shape, runs)}",
        "model.d_model": d_model,
        "model.d_ff": RATIO[corpus] * d_model,
        "model.encoder_layers": encoder,
        "model.decoder_layers": decoder,
        **dict(OWN[corpus]),
    }
    return [f"{name}={json.dumps(value)}" for name, value in values.items()]


def folder_of(corpus: str, shape: Shape, runs: Path) -> Path:
    """Return the folder of a run."""
    return runs / corpus / "-".join(map(str, shape))


def compared(corpus: str, data: Path, runs: Path) -> dict[str, Any]:
    """Return the prediction for the held-back run and its loss; train what is not yet trained."""
    arguments = {}
    for shape in (*SMALL[corpus], HELD_BACK[corpus]):
        chosen = [part for setting in settings(corpus, shape, runs) for part in ("--set", setting)]
        name = str(folder_of(corpus, shape, runs).relative_to(runs))
        arguments[name] = ["train", RECIPES[corpus], "--data", str(data / corpus), *chosen]
    make(arguments, runs)
    wanted = load(RECIPES[corpus], settings(corpus, HELD_BACK[corpus], runs), data / corpus)
    whole = estimate(read_sample(wanted), seconds=2)
    small = [folder_of(corpus, shape, runs) for shape in SMALL[corpus]]
    made = estimate_loss(whole, small)
    log = read_log(folder_of(corpus, HELD_BACK[corpus], runs) / METRICS_FILE)
    reached = min(line["loss"] for line in log if line["type"] == "validation")
    return {
        "held back": "-".join(map(str, HELD_BACK[corpus])),
        "reached": reached,
        "difference": made.prediction.loss - reached,
        "in the interval": made.prediction.low <= reached <= made.prediction.high,
        **_figures(made),
    }


def _figures(made: LossEstimate) -> dict[str, Any]:
    figures = asdict(made)
    figures["runs"] = [_named(run) for run in made.runs]
    return figures


def _named(run: FittedRun) -> dict[str, Any]:
    return {**asdict(run), "folder": Path(run.folder).name}


def text(found: dict[str, dict[str, Any]]) -> str:
    """Return a table of predictions and losses."""
    rows = []
    for corpus, of in found.items():
        guess = of["prediction"]
        interval = f"{guess['low']:.2f}–{guess['high']:.2f}{'' if of['in the interval'] else ' (missed)'}"
        losses = [f"{run['loss']:.2f}" for run in of["runs"]]
        rows.append(
            [
                corpus,
                ", ".join(losses),
                f"{guess['loss']:.3f} ({interval})",
                f"{of['reached']:.3f}",
                f"{of['difference']:+.3f}",
            ]
        )
    head = ["corpus", "losses of the small runs", "predicted (90 % interval)", "reached", "difference"]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--runs", type=Path, help="folder of the runs, which are kept")
    given = parser.parse_args()
    of = machine()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="glassformer-fit-") as temporary:
        runs = given.runs or Path(temporary)
        found = {corpus: compared(corpus, given.data, runs) for corpus in RECIPES}
    write("fit", {"goal": GOAL, "corpora": found}, of)
    figures = read("fit")
    print(f"`{figures['command']}`, {figures['day']}:\n\n{text(figures['corpora'])}")
    print(f"{described(figures['machine'])}.")
    if any(abs(one["difference"]) > GOAL or not one["in the interval"] for one in found.values()):
        sys.exit(f"a prediction is off by more than {GOAL} nats, or outside its interval")


if __name__ == "__main__":
    as_command(main)
