"""Compare the speed of decoding with the peers': `python -m benchmarks.decoding --data DIR` (Multi30k's files).

First, a glassformer model is trained for some minutes, unless --run names a run whose positions are in halves. The
weights are converted to each peer's format. All peers translate the same lines of test_2016 from text to text with the
same tokenizer: greedily and with a beam of 5, in batches of 64 sentences and one sentence at a time. The peers take
turns. Their outputs are compared with glassformer's outputs in float32 and scored by sacrebleu.

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
from benchmarks.results import (
    RESULTS,
    Spread,
    bars,
    described,
    failures,
    figure,
    leaders,
    machine,
    number,
    read,
    save,
    spread,
    table,
    write,
)
from benchmarks.work import TEST, WORK, bleu, lines
from glassformer.bundle import WEIGHTS, Bundle, read_weights
from glassformer.model.config import ModelConfig
from glassformer.system.machine import cores

NAME = "decoding"
RECIPE = "multi30k-de-en"
SIZES = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "dropout")
"""Names of sizes that are the same in `Task` and in ModelConfig."""
REFERENCE = (
    *(f"model.{name}={getattr(Task(), name)}" for name in SIZES),
    *("model.norm=post", "model.positions=halves"),
    *("training.optimiser=adam", "training.learning_rate=1.5e-3", "training.batch_tokens=1500"),
)
"""Settings of the reference model, which replace the recipe's settings: every peer supports this model."""
CELLS = {
    "64, greedy": {"batch_size": 64, "beam_size": 1},
    "1, greedy": {"batch_size": 1, "beam_size": 1},
    "64, beam 5": {"batch_size": 64, "beam_size": 5},
    "1, beam 5": {"batch_size": 1, "beam_size": 5},
}
"""Batch size and beam size of each cell."""
WARM = {64: 1000, 1: 8}
"""Number of sentences that are translated before a measurement, by batch size."""
RIVAL = Entry(peer="hugging_face")


def entries() -> list[Entry]:
    """Return the entries: glassformer in every precision and number of processes, Hugging Face's Marian, CTranslate2.

    CTranslate2 appears twice: called directly, and as an engine of glassformer.
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
    """Write what the peers need: the sizes, weights and tokenizer of a glassformer run, and the test set.

    Raises:
        SystemExit: the peers do not support this model.
    """
    bundle = Bundle.load(run)
    config = bundle.model_config
    check_model(config, run)
    task = Task(vocabulary=config.target_vocab_size, **{name: getattr(config, name) for name in SIZES})
    write_task(task, folder)
    write_weights({name: weight.numpy() for name, weight in read_weights(run / WEIGHTS).items()}, folder)
    bundle.source_tokenizer.save(folder / TOKENIZER)
    shutil.rmtree(folder / RUN, ignore_errors=True)
    shutil.copytree(run, folder / RUN, ignore=shutil.ignore_patterns("checkpoints", "prepared", "snapshots"))
    texts, references = (lines(data, f"test_2016_flickr.{language}") for language in RECIPE.split("-")[1:])
    (folder / TEST).write_text(json.dumps({"texts": texts, "references": references}, ensure_ascii=False))


def check_model(config: ModelConfig, run: Path) -> None:
    """Check that every peer can build this model of a run.

    Raises:
        SystemExit: the model has a setting that not every peer supports.
    """
    needed: dict[str, Any] = {"norm": "post", "positions": "halves", "activation": "relu"}
    needed |= {"tie_embeddings": True, "tie_output": True}
    for name, value in needed.items():
        if getattr(config, name) != value:
            raise SystemExit(f"{run} has model.{name} = {getattr(config, name)!r}: the peers need {value!r}")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options that choose the model."""
    parser.add_argument("--run", type=Path, help="a trained run of ours [default: train one]")
    parser.add_argument(
        "--minutes", type=float, default=9.0, help="minutes for which the model is trained [default: %(default)g]"
    )
    parser.add_argument("--work", type=Path, default=WORK, help="folder for the shared work [default: %(default)s]")


def trained(given: argparse.Namespace) -> Path:
    """Return the run that the options name; train it first, or resume its training, if necessary."""
    if given.run:
        return Bundle.load(given.run).folder
    run: Path = given.work / NAME / "trained"
    settings = (*REFERENCE, f"run.directory={run}", f"training.minutes={given.minutes}")
    options = [word for setting in settings for word in ("--set", setting)]
    make({run.name: ["train", RECIPE, "--data", str(given.data), *options]}, run.parent)
    return run


def measure(work: Path, chosen: Sequence[Entry], rounds: int, sentences: Mapping[str, int]) -> dict[str, Any]:
    """Return the figures of each cell. Each cell uses new processes, so that their memory peaks are separate."""
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
    """Return, for each entry, its BLEU and the percentage of its outputs that equal the first entry's outputs."""
    first = next(iter(outputs.values()), ())
    return {
        name: {
            "bleu": bleu(texts, references),
            "equal": 100 * sum(one == other for one, other in zip(texts, first, strict=True)) / max(len(texts), 1),
        }
        for name, texts in outputs.items()
    }


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown, with a table for each cell."""
    speeds = {cell: {name: speed(found, name) for name in found["answers"]} for cell, found in figures["cells"].items()}
    won = sum(
        not max(some, key=lambda name: some[name].median, default="ours").startswith("ours") for some in speeds.values()
    )
    parts = [
        "## Decoding\n\nEvery toolkit translates the same German sentences into English, from text to text, with the "
        f"same trained weights and tokenizer. A peer is the fastest in {won} of {len(speeds)} tables.\n\n"
        f"`{figures['command']}`, {figures['day']}: medians (quartiles). In the tables with batches of 64 sentences, "
        "glassformer chooses its own batch size. The rival, with which every entry is compared, is Hugging Face's "
        "`generate` with default settings. *Equal texts* is the share of outputs that equal glassformer's outputs in "
        "float32."
    ]
    for cell, found in figures["cells"].items():
        head = ["", "sentences/s", "ratio to rival", "BLEU", "equal texts", "peak memory"]
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
            f"### Batch size {cell} ({number(found['sentences'])} sentences)\n\n"
            f"{leaders(speeds[cell], 'sentences/s')}\n\n{table(head, rows)}"
            f"{failures(found['failed'])}"
        )
    return "\n\n".join([*parts, f"{described(figures['machine'])}.\n"])


def speed(found: dict[str, Any], name: str) -> Spread:
    """Return the sentences per second of a peer in a cell."""
    return spread([found["sentences"] / answer["seconds"] for answer in found["answers"][name]])


def against(found: dict[str, Any], name: str) -> list[float]:
    """Return, for each round, the ratio of a peer's speed to the speed of RIVAL."""
    theirs = found["answers"].get(RIVAL.name, [])
    return [one["seconds"] / mine["seconds"] for one, mine in zip(theirs, found["answers"][name], strict=False)]


def plot(figures: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Draw a chart of the speeds for each cell."""
    made, axes = figure(14.0, 3.8, columns=len(CELLS))
    for axis, (cell, found) in zip(axes, figures["cells"].items(), strict=True):
        bars(axis, {name: speed(found, name) for name in found["answers"]}, "sentences per second")
        axis.set_title(cell)
    return save(made, NAME, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    add_run(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--sentences", type=int, default=1000, help="test sentences in batches of 64 [default: %(default)s]"
    )
    parser.add_argument(
        "--one-by-one", type=int, default=200, help="test sentences one at a time [default: %(default)s]"
    )
    given = parser.parse_args()
    of, work = machine(), given.work / NAME
    make_work(work, trained(given), given.data)
    sentences = {cell: given.sentences if how["batch_size"] > 1 else given.one_by_one for cell, how in CELLS.items()}
    write(NAME, measure(work, entries(), given.rounds, sentences), of)
    plot(read(NAME))
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
