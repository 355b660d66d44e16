"""Compare the default recipe with Hugging Face's Marian: `python -m benchmarks.recipe CORPUS --data DIR`.

glassformer is trained by `glassformer train translation` with the corpus's files and no other setting. Marian is
trained for as many minutes on the same pairs, with the reference model's sizes (`peers/task.py`) and the learning rate
of `benchmarks.quality`. Marian's weights are chosen by the scores on the validation set; glassformer chooses its
weights by pairs that it holds out of the training pairs. Each entry is scored once on the test set, with the chosen
weights.

On a machine with several cores, both entries may be trained at the same time, each on its own core:
`taskset -c 0 python -m benchmarks.recipe CORPUS --data DIR --only ours`, and core 1 for the other entry.

Writes results/recipe.json.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.peers.task import Task
from benchmarks.processes import Entry, Process
from benchmarks.quality import BEAM, PEAK_RATES, SIDE_BY_SIDE, endless_batches, rate
from benchmarks.results import command, described, machine, read, table, write
from benchmarks.work import WORK, write_pairs
from glassformer.corpus.files import opened
from glassformer.corpus.readers import Corpus
from glassformer.evaluation.items import Items, default_metrics, read_items
from glassformer.evaluation.metrics import METRICS
from glassformer.jobs.evaluation import score_outputs
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.system.machine import cores
from glassformer.text.normalisation import normalise
from glassformer.translator import Translator

NAME, OURS = "recipe", "ours"
RIVAL = Entry(peer="hugging_face", precision="bf16", keeping=True)
"""The peer that glassformer is compared with, in its fastest form."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """A corpus: the one or two files of each split, and the vocabulary size for the rival."""

    train: tuple[str, ...]
    dev: tuple[str, ...]
    test: tuple[str, ...]
    pieces: int

    def items(self, data: Path, split: str) -> Items:
        """Return the sources of a split with their references."""
        names = [str(data / name) for name in getattr(self, split)]
        return read_items(Corpus.of(*names))


CORPORA = {
    "tatoeba-de-en": Files(
        train=("deu-eng.train.deu.gz", "deu-eng.train.eng.gz"),
        dev=("deu-eng.dev.deu.gz", "deu-eng.dev.eng.gz"),
        test=("deu-eng.test.deu.gz", "deu-eng.test.eng.gz"),
        pieces=8000,
    ),
    "ar2en": Files(train=("train.tsv.gz",), dev=("eval.tsv.gz",), test=("test.tsv.gz",), pieces=128),
}


def train_ours(files: Files, data: Path, folder: Path) -> dict[str, Any]:
    """Train glassformer with the recipe; return the scores of the run's weights, and the minutes of training."""
    shutil.rmtree(folder, ignore_errors=True)
    sides = dict(zip(("source", "target"), files.train, strict=False))
    settings = [f"data.{side}={name}" for side, name in sides.items()]
    options = [word for one in (*settings, f"run.directory={folder}") for word in ("--set", one)]
    arguments = [sys.executable, "-m", "glassformer", "train", "translation", "--data", str(data), *options]
    subprocess.run(arguments, check=True, env={**os.environ, "OMP_NUM_THREADS": str(cores())})
    seconds = max(line.get("seconds", 0.0) for line in read_log(folder / METRICS_FILE))
    translator = Translator.load(folder)
    scores = {}
    for split in ("dev", "test"):
        items = files.items(data, split)
        outputs = [one.text for one in translator.translate(items.sources, guards=False, log_probs=False)]
        scores[split] = scored(outputs, items)
    settings = ["translation", *(f"--set {one}" for one in settings)]
    return {"minutes": seconds / 60, "settings": " ".join(settings), **scores}


def train_rival(files: Files, data: Path, folder: Path, minutes: float, points: int) -> dict[str, Any]:
    """Train Marian; return the scores of the weights, from `points` points in time, that validate best."""
    task = make_task(files, data, folder)
    dev, test = (files.items(data, split) for split in ("dev", "test"))
    spent, step, due, best = 0.0, 0, 1, dict[str, Any]()
    with Process(RIVAL, folder) as process:

        def outputs(items: Items) -> list[str]:
            asked = {"texts": items.sources, "beam_size": BEAM, "batch_size": SIDE_BY_SIDE}
            found: list[str] = process.ask("translate", **asked)["texts"]
            return found

        for number in endless_batches(process, folder):
            step += 1
            peak = rate(PEAK_RATES[RIVAL.peer], step, spent / (60 * minutes))
            spent += process.ask("update", batch=number, rate=peak)["seconds"]
            if spent >= due * 60 * minutes / points:
                due += 1
                found = scored(outputs(dev), dev)
                print(f"{spent / 60:.1f} minutes, {step} updates: {found}", flush=True)
                if not best or better(found, best["dev"]):
                    best = {"minutes": spent / 60, "step": step, "dev": found, "outputs": outputs(test)}
            if spent >= 60 * minutes:
                break
    settings = f"{task.encoder_layers} + {task.decoder_layers} layers of width {task.d_model}"
    best["test"] = scored(best.pop("outputs"), test)
    return {**best, "settings": settings, "minutes": spent / 60}


def make_task(files: Files, data: Path, folder: Path) -> Task:
    """Write the rival's tokenizer and training pairs into a folder; return its task."""
    shutil.rmtree(folder, ignore_errors=True)
    task = replace(Task(), vocabulary=files.pieces, batch_tokens=1500)
    return write_pairs(folder, task, *training_sides(files, data))


def training_sides(files: Files, data: Path) -> tuple[list[str], list[str]]:
    """Return the sources and targets of the training pairs, normalised."""
    sides: list[Sequence[str]] = []
    for name in files.train:
        with opened(str(data / name)) as file:
            lines = file.read().decode("utf-8").split("\n")[:-1]
        sides += [lines] if len(files.train) > 1 else zip(*(line.split("\t")[:2] for line in lines), strict=True)
    source, target = ([normalise(line) for line in side] for side in sides)
    return source, target


def scored(outputs: Sequence[str], items: Items) -> dict[str, float]:
    """Return the scores by the metrics that suit the corpus; the first metric chooses among weights."""
    found = score_outputs(outputs, items.references, default_metrics(items))
    return {one.name: one.value for one in found}


def better(one: dict[str, float], other: dict[str, float]) -> bool:
    """Return whether the scores `one` are better than the scores `other`, by the first metric."""
    name = next(iter(one))
    up = next(metric.higher_is_better for metric in METRICS.values() if metric.name == name)
    return one[name] > other[name] if up else one[name] < other[name]


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown, with a table for each corpus."""
    parts = [
        "## The default recipe\n\nThis section compares the recipe `translation`, which chooses all sizes from the "
        "corpus, with Hugging Face's Marian. Both were trained for the same number of minutes on the same pairs, each "
        "on one core. Marian's weights and the settings of our recipe were chosen by the score on the validation set "
        "(dev). The weights of our model were chosen on pairs held out of the training pairs. The test set was scored "
        "once for each row.\n"
    ]
    for corpus, found in figures["corpora"].items():
        entries = found["entries"]
        names = list(next(iter(entries.values()))["test"])
        head = ["", "minutes", *(f"{split} {name}" for split in ("dev", "test") for name in names)]
        rows = [
            [
                f"{name} ({entry['settings']})",
                f"{entry['minutes']:.0f}",
                *(f"{value:.2f}" for split in ("dev", "test") for value in entry[split].values()),
            ]
            for name, entry in entries.items()
        ]
        commands = "".join(f"- `{one}`\n" for one in found["commands"])
        parts.append(
            f"### {corpus}, {found['day']}\n\n{commands}\n{table(head, rows)}\n{described(found['machine'])}.\n"
        )
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpus's files")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for runs and work [default: %(default)s]")
    parser.add_argument("--minutes", type=float, default=60.0, help="the rival's minutes [default: the recipe's 60]")
    parser.add_argument("--points", type=int, default=20, help="weights of the rival to choose among")
    parser.add_argument("--only", choices=[OURS, RIVAL.name], help="train only this entry; keep the other one")
    given = parser.parse_args()
    of, files, work = machine(), CORPORA[given.corpus], given.work / NAME / given.corpus
    for name in (OURS, RIVAL.name):
        if given.only in (None, name):
            entry = (
                train_ours(files, given.data, work / OURS)
                if name == OURS
                else train_rival(files, given.data, work / "rival", given.minutes, given.points)
            )
            keep(given.corpus, name, entry, of)
    print(markdown(read(NAME)))


def keep(corpus: str, name: str, entry: dict[str, Any], of: dict[str, Any]) -> None:
    """Add an entry's figures to the file of results; the other entries do not change."""
    corpora = read(NAME).get("corpora", {})
    found = corpora.setdefault(corpus, {"commands": [], "entries": {}})
    found["commands"] = list(dict.fromkeys([*found["commands"], command()]))
    found |= {"machine": of, "day": time.strftime("%Y-%m-%d")}
    found["entries"][name] = entry
    write(NAME, {"corpora": corpora}, of)


if __name__ == "__main__":
    as_command(main)
