"""Compare `glassformer translate` with CTranslate2's own package: `python -m benchmarks.engines --data DIR`.

The model is the same as in `benchmarks.decoding`, unless --run names a run. All entries translate the same lines from
text to text, with the same tokenizer and the same exported model:

- direct: CTranslate2's package, all lines in one call, tokenized by the tokenizer's own library, with the fastest batch
  size on this machine;
- translator: `Translator.stream`, which the command calls;
- torch: `Translator` with the engine torch, only with --torch;
- direct, a process: the same call as in "direct", but in a new process (`benchmarks.direct`);
- command: `glassformer translate` in a new process.

The start-up time of a process (the median of some runs on one line) is subtracted. The times of both new processes
still include the first use of memory and the compilation of kernels; the time of "direct" does not. The entries take
turns in a rotating order, so noise of the machine affects all entries equally.

Writes results/engines.json.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import as_command
from benchmarks.decoding import add_run, compared, trained
from benchmarks.direct import Way, direct
from benchmarks.results import Spread, described, machine, number, read, spread, table, write
from glassformer.bundle import Bundle
from glassformer.corpus.readers import read_lines
from glassformer.decoding.options import EngineName, Quantization
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.translator import Translator

NAME = "engines"
SINGLE = 200
"""Number of lines that are translated one at a time."""
STARTS = 5
"""Number of start-up times measured per round: a single measurement would be too noisy to subtract."""
READY = 64
"""Number of lines that each entry translates before the clock starts, because loading and compiling happen once."""
BEAM_SIZES = (1, 5)
BATCHES = (16, 32, 48, 64)
"""Batch sizes that are tried when CTranslate2 is called directly; only the fastest batch size counts."""
DIRECT, DIRECT_PROCESS, TRANSLATOR, COMMAND, TORCH = "direct", "direct, a process", "translator", "command", "torch"
PROCESSES = (DIRECT_PROCESS, COMMAND)


def through_translator(folder: Path, beam_size: int, engine: EngineName) -> Way:
    translator = Translator.load(folder, engine=engine)

    def translate(lines: list[str]) -> list[str]:
        return [one.text for one in translator.stream(lines, beam_size=beam_size, log_probs=False)]

    return translate


def through_process(*arguments: object) -> Way:
    """Return a function that translates with a Python module that reads lines and prints one line for each line."""
    command = [sys.executable, "-m", *map(str, arguments)]

    def translate(lines: list[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(command, input=text, capture_output=True, check=True, encoding="utf-8")
        return done.stdout.splitlines()

    return translate


def one_by_one(way: Way) -> Way:
    return lambda lines: [text for line in lines[:SINGLE] for text in way([line])]


def seconds(way: Way, lines: list[str]) -> tuple[float, list[str]]:
    begun = time.perf_counter()
    texts = way(lines)
    return time.perf_counter() - begun, texts


def start_of(way: Way, lines: list[str]) -> float:
    return median(seconds(way, lines[:1])[0] for _ in range(STARTS))


def measure(
    ways: Mapping[str, Way], lines: list[str], references: Sequence[str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Return, for each way to translate, its sentences per second by round, and BLEU and equality of its outputs."""
    names = list(ways)
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    outputs: dict[str, list[str]] = {}
    for way in ways.values():
        way(lines[:READY])
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = start_of(ways[name], lines) if name in PROCESSES else 0.0
            whole, outputs[name] = seconds(ways[name], lines)
            speeds[name].append(len(outputs[name]) / (whole - start))
    return {"speeds": speeds, "scores": compared(outputs, references[: len(outputs[names[0]])])}


def fastest_direct(folder: Path, beam_size: int, lines: list[str]) -> tuple[int, Way]:
    """Return the fastest batch size (each size is measured twice) and a function that translates with this size."""
    ways = {batch: direct(folder, beam_size, batch) for batch in BATCHES}
    taken = {batch: min(seconds(way, lines)[0] for _ in range(2)) for batch, way in ways.items()}
    batch = min(taken, key=taken.__getitem__)
    return batch, ways[batch]


def measured(
    run: Path, folder: Path, lines: list[str], references: Sequence[str], how: argparse.Namespace
) -> dict[str, Any]:
    """Return the figures for each beam size, for all lines at once and for one line at a time."""
    cells = {}
    for beam_size in how.beam_size or BEAM_SIZES:
        print(f"beam {beam_size}, {how.rounds} rounds", file=sys.stderr)
        batch, itself = fastest_direct(folder, beam_size, lines)
        within: dict[str, Way] = {
            DIRECT: itself,
            TRANSLATOR: through_translator(folder, beam_size, "ctranslate2"),
        }
        if how.torch:
            within[TORCH] = through_translator(run, beam_size, "torch")
        options = (folder, "--beam-size", beam_size)
        processes = {
            DIRECT_PROCESS: through_process("benchmarks.direct", *options, "--batch", batch),
            COMMAND: through_process("glassformer", "translate", *options),
        }
        singly = {name: one_by_one(way) for name, way in within.items()}
        found = measure({**within, **processes}, lines, references, how.rounds)
        cells[f"beam {beam_size}, all lines (batch size {batch})"] = found
        cells[f"beam {beam_size}, one at a time"] = measure(singly, lines, references, how.rounds)
    return cells


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    parts = [
        "## CTranslate2 as an engine\n\nThis section measures how much of CTranslate2's speed remains when glassformer "
        f"uses CTranslate2 as its engine. {_remaining(figures['cells'])}\n\n*direct* is CTranslate2's own package "
        "with its fastest batch size, in a process that has translated before, and *direct, a process* is this package "
        "in a new process. *translator* is glassformer's `Translator` in Python, and *command* is `glassformer "
        "translate`, a new process. *Equal texts* is the share of outputs that equal the outputs of *direct*.\n\n"
        f"`{figures['command']}`, {figures['day']}: {number(figures['sentences'])} lines from text to text, "
        f"{figures['quantization']}, medians (quartiles) of {figures['rounds']} rounds. The time to start a process is "
        "subtracted."
    ]
    head = ["", "sentences/s", "ratio to direct", "ratio to direct, a process", "BLEU", "equal texts"]
    for title, cell in figures["cells"].items():
        rows = []
        for name, speeds in cell["speeds"].items():
            score = cell["scores"][name]
            against = [_ratios(cell["speeds"], name, DIRECT)]
            against.append(_ratios(cell["speeds"], name, DIRECT_PROCESS) if name == COMMAND else "")
            rows.append([name, spread(speeds).text(), *against, f"{score['bleu']:.2f}", f"{score['equal']:.1f} %"])
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n{table(head, rows)}")
    return "\n\n".join([*parts, f"{described(figures['machine'])}.\n"])


def _remaining(cells: Mapping[str, Any]) -> str:
    """Return sentences about the lowest and the highest median ratio of glassformer's speed to CTranslate2's speed."""
    texts = []
    for name, base in ((TRANSLATOR, DIRECT), (COMMAND, DIRECT_PROCESS)):
        found = [_ratio(cell["speeds"], name, base).median for cell in cells.values() if name in cell["speeds"]]
        if found:
            least, most = f"{min(found):.2f}", f"{max(found):.2f}"
            share = least if least == most else f"{least} to {most}"
            texts.append(f"*{name}* reaches {share} of the speed of *{base}*.")
    return " ".join(texts)


def _ratios(speeds: Mapping[str, Sequence[float]], name: str, base: str) -> str:
    return _ratio(speeds, name, base).text(2)


def _ratio(speeds: Mapping[str, Sequence[float]], name: str, base: str) -> Spread:
    return spread([one / other for one, other in zip(speeds[name], speeds[base], strict=True)])


@contextmanager
def exported(run: Path, quantization: Quantization) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(Bundle.load(run), Path(folder) / "model", quantization)
        yield Path(folder) / "model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_run(parser)
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    parser.add_argument("--lines", default="test_2016_flickr.de.gz", help="source file in it [default: %(default)s]")
    parser.add_argument(
        "--references", default="test_2016_flickr.en.gz", help="reference file in it [default: %(default)s]"
    )
    parser.add_argument("--quantization", default="int8")
    parser.add_argument("--beam-size", type=int, action="append", help="beam size; may be repeated [default: 1 and 5]")
    parser.add_argument("--limit", type=int, metavar="N", help="translate only the first N lines")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--torch", action="store_true", help="measure the engine torch as well")
    given = parser.parse_args()
    lines, references = (read_lines(given.data / name)[: given.limit] for name in (given.lines, given.references))
    of, run = machine(), trained(given)
    with exported(run, given.quantization) as folder:
        cells = measured(run, folder, lines, references, given)
    what = {"quantization": given.quantization, "sentences": len(lines), "rounds": given.rounds}
    write(NAME, {**what, "cells": cells}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
