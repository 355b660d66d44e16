"""How fast decoding is, beside the peers': `python -m benchmarks.decoding --data DIR` (Multi30k's files).

A model of ours is trained for some minutes first (or --run names one, whose positions are in halves), and its weights
are converted to each peer's format. All translate the same lines of test_2016, from text to text with the same
tokenizer: greedy and by a beam of 5, at most 64 sentences side by side and one at a time. They take turns. Texts are
compared with those of ours in fp32, and scored by sacrebleu.

Writes results/decoding.json and .png.
"""

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.command import as_command, make
from benchmarks.peers.ours import RUN
from benchmarks.peers.task import TOKENIZER, Task, write_task, write_weights
from benchmarks.processes import Entry, take_turns
from benchmarks.results import Spread, bars, described, failures, figure, machine, read, save, spread, table, write
from benchmarks.work import TEST, WORK, bleu, lines
from glassformer.bundle import WEIGHTS, Bundle, read_weights
from glassformer.machine import cores
from glassformer.model.config import ModelConfig

NAME = "decoding"
RECIPE = "multi30k-de-en"
SIZES = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "dropout")
"""What a task and our model call alike."""
REFERENCE = (
    *(f"model.{name}={getattr(Task(), name)}" for name in SIZES),
    *("model.norm=post", "model.positions=halves"),
    *("training.optimiser=adam", "training.learning_rate=1.5e-3", "training.batch_tokens=1500"),
)
"""The reference model, instead of the recipe's: positions and norm as every peer has them."""
CELLS = {
    "64, greedy": {"batch_size": 64, "beam_size": 1},
    "1, greedy": {"batch_size": 1, "beam_size": 1},
    "64, beam 5": {"batch_size": 64, "beam_size": 5},
    "1, beam 5": {"batch_size": 1, "beam_size": 5},
}
"""Sentences side by side, and the search."""
WARM = {64: 1000, 1: 8}
"""Sentences that are translated before a measurement, by how many stand side by side."""
RIVAL = Entry(peer="hugging_face")


def entries() -> list[Entry]:
    """Return ours in every precision with one process and several, Hugging Face's Marian, and CTranslate2 likewise.

    CTranslate2 is there twice: called directly, and as the engine of ours.
    """
    ours = [
        Entry(peer="ours", precision=precision, options={"workers": workers})
        for precision in ("fp32", "bf16", "int8")
        for workers in (1, cores())
    ]
    ours += [
        Entry(peer="ours", precision=precision, options={"workers": cores(), "engine": "ctranslate2"})
        for precision in ("fp32", "int8")
    ]
    shapes = ({"inter": 1, "intra": cores()}, {"inter": cores(), "intra": 1})
    return [
        *ours,
        RIVAL,
        Entry(peer="hugging_face", keeping=True),
        *(
            Entry(peer="ctranslate2", precision=precision, options=shape)
            for precision in ("fp32", "int8")
            for shape in shapes
        ),
    ]


def make_work(folder: Path, run: Path, data: Path) -> None:
    """Write what the peers need of a run of ours: its sizes, weights and tokenizer; and the test set.

    Raises:
        SystemExit: the peers have no such model.
    """
    bundle = Bundle.load(run)
    config = bundle.model_config
    _check(config, run)
    task = Task(vocabulary=config.target_vocab_size, **{name: getattr(config, name) for name in SIZES})
    write_task(task, folder)
    write_weights({name: weight.numpy() for name, weight in read_weights(run / WEIGHTS).items()}, folder)
    bundle.source_tokenizer.save(folder / TOKENIZER)
    shutil.rmtree(folder / RUN, ignore_errors=True)
    shutil.copytree(run, folder / RUN, ignore=shutil.ignore_patterns("checkpoints", "prepared", "snapshots"))
    texts, references = (lines(data, f"test_2016_flickr.{language}") for language in RECIPE.split("-")[1:])
    (folder / TEST).write_text(json.dumps({"texts": texts, "references": references}, ensure_ascii=False))


def _check(config: ModelConfig, run: Path) -> None:
    needed: dict[str, Any] = {"norm": "post", "positions": "halves", "activation": "relu"}
    needed |= {"tie_embeddings": True, "tie_output": True}
    for name, value in needed.items():
        if getattr(config, name) != value:
            raise SystemExit(f"{run} has model.{name} = {getattr(config, name)!r}: the peers need {value!r}")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which model decodes."""
    parser.add_argument("--run", type=Path, help="a trained run of ours; one is trained unless given")
    parser.add_argument("--minutes", type=float, default=9.0, help="how long it is trained")
    parser.add_argument("--work", type=Path, default=WORK, help="where the work is written")


def trained(given: argparse.Namespace) -> Path:
    """Return the run of these options, trained unless that is done; what was stopped goes on."""
    if given.run:
        return Bundle.load(given.run).folder
    run: Path = given.work / NAME / "trained"
    settings = (*REFERENCE, f"run.directory={run}", f"training.minutes={given.minutes}")
    options = [word for setting in settings for word in ("--set", setting)]
    make({run.name: ["train", RECIPE, "--data", str(given.data), *options]}, run.parent)
    return run


def measure(work: Path, chosen: Sequence[Entry], rounds: int, sentences: Mapping[str, int]) -> dict[str, Any]:
    """Return the figures of each cell; each has fresh processes, so that memory is its own."""
    test = json.loads((work / TEST).read_text())
    cells = {}
    for cell, how in CELLS.items():
        texts = test["texts"][: sentences[cell]]
        print(f"{cell}: {len(texts)} sentences, {rounds} rounds", flush=True)
        questions = [{"do": "translate", "texts": texts[: WARM[how["batch_size"]]], **how}]
        questions += [{"do": "translate", "texts": texts, **how}] * rounds
        turns = take_turns(chosen, work, questions, warm=1)
        for name, why in turns.failed.items():
            print(f"  {name}: {why}", flush=True)
        outputs = {name: answers[-1].pop("texts") for name, answers in turns.answers.items()}
        for answer in (answer for answers in turns.answers.values() for answer in answers):
            answer.pop("texts", None)
        scores = compared(outputs, test["references"][: len(texts)])
        cells[cell] = {"sentences": len(texts), **asdict(turns), "scores": scores}
    return {"entries": [entry.as_json() for entry in chosen], "cells": cells}


def compared(outputs: Mapping[str, Sequence[str]], references: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return for each its BLEU, and the share of its texts that are those of the first one, in %."""
    first = next(iter(outputs.values()), ())
    return {
        name: {
            "bleu": bleu(texts, references),
            "equal": 100 * sum(one == other for one, other in zip(texts, first, strict=True)) / max(len(texts), 1),
        }
        for name, texts in outputs.items()
    }


def markdown(figures: dict[str, Any]) -> str:
    """Return the tables, one a cell."""
    parts = [
        f"## Decoding\n\n`{figures['command']}`, {figures['day']}. Text to text with the same weights and tokenizer, "
        "medians (quartiles). Ours cuts batches itself unless it is given one sentence at a time. The rival is Hugging "
        "Face's `generate` as it comes. Equal texts: with the first of the entries (ours in fp32, unless it failed)."
    ]
    for cell, found in figures["cells"].items():
        head = ["", "sentences/s", "of the rival", "BLEU", "equal texts", "peak memory"]
        rows = [
            [
                name,
                speed(found, name).text(),
                spread(ratios).text(2) if (ratios := against(found, name)) else "",
                f"{found['scores'][name]['bleu']:.2f}",
                f"{found['scores'][name]['equal']:.1f} %",
                f"{found['peaks'][name] / 1e6:.0f} MB",
            ]
            for name in sorted(found["answers"], key=lambda name: -speed(found, name).median)
        ]
        parts.append(
            f"### Sentences side by side: {cell} ({found['sentences']} sentences)\n\n{table(head, rows)}"
            f"{failures(found['failed'])}"
        )
    return "\n\n".join([*parts, f"{described(figures['machine'])}.\n"])


def speed(found: dict[str, Any], name: str) -> Spread:
    """Return the sentences per second of a peer in a cell."""
    return spread([found["sentences"] / answer["seconds"] for answer in found["answers"][name]])


def against(found: dict[str, Any], name: str) -> list[float]:
    """Return how many times as fast as the rival a peer was, round by round."""
    theirs = found["answers"].get(RIVAL.name, [])
    return [one["seconds"] / mine["seconds"] for one, mine in zip(theirs, found["answers"][name], strict=False)]


def plot(figures: dict[str, Any]) -> Path:
    """Draw the speeds, a chart for each cell."""
    made, axes = figure(14.0, 3.8, columns=len(CELLS))
    for axis, (cell, found) in zip(axes, figures["cells"].items(), strict=True):
        bars(axis, {name: speed(found, name) for name in found["answers"]}, "sentences per second")
        axis.set_title(cell)
    return save(made, NAME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    add_run(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="of the test set, with 64 side by side")
    parser.add_argument("--one-by-one", type=int, default=200, help="of the test set, with one at a time")
    given = parser.parse_args()
    of, work = machine(), given.work / NAME
    make_work(work, trained(given), given.data)
    sentences = {cell: given.sentences if how["batch_size"] > 1 else given.one_by_one for cell, how in CELLS.items()}
    write(NAME, measure(work, entries(), given.rounds, sentences), of)
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
