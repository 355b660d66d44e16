"""Measure shortlists: `python -m benchmarks.shortlist RUN … --data DIR` (Multi30k's files).

The RUNs are finished runs, such as multi30k-de-en with a vocabulary of 16 000 or 32 000. Each run translates the same
lines without a shortlist and with shortlists of several sizes, on one core: greedily and with a beam of 5, with
CTranslate2 in int8 and with PyTorch in float32. The sizes take turns. CPU time is measured, because other work of the
machine affects it less.

Writes results/shortlist.json.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.command import as_command
from benchmarks.decoding import compared
from benchmarks.results import described, machine, number, read, spread, table, write
from glassformer.bundle import Bundle
from glassformer.corpus.readers import read_lines
from glassformer.decoding.options import EngineName, Quantization
from glassformer.evaluation.significance import compare_texts
from glassformer.jobs.shortlists import keep_shortlist_of
from glassformer.translator import Translator

NAME = "shortlist"
SIZES = (200, 500, 1000, 2000)
BEAM_SIZES = (1, 5)
ENGINES: dict[EngineName, Quantization] = {"ctranslate2": "int8", "torch": "float32"}
READY = 32
"""Number of lines that each entry translates before the clock starts."""


def measure(
    run: Path, engine: EngineName, beam_size: int, lines: Sequence[str], references: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Return, for each size of shortlist, its CPU seconds by round, and its BLEU. Size 0 is the whole vocabulary."""
    sizes = [size for size in (0, *SIZES) if size < len(Bundle.load(run).target_tokenizer)]
    how: dict[str, Any] = {"engine": engine, "quantization": ENGINES[engine], "workers": 1, "device": "cpu"}
    translators = {size: Translator.load(run, settings={"shortlist": size}, **how) for size in sizes}
    options: dict[str, Any] = {"beam_size": beam_size, "log_probs": False, "guards": False}
    seconds: dict[str, list[float]] = {str(size): [] for size in sizes}
    outputs: dict[str, list[str]] = {}
    for translator in translators.values():
        translator.translate(lines[:READY], **options)
    for turn in range(rounds):
        for size in sizes[turn % len(sizes) :] + sizes[: turn % len(sizes)]:
            begun = time.process_time()
            found = list(translators[size].stream(lines, **options))
            seconds[str(size)].append(time.process_time() - begun)
            outputs[str(size)] = [one.text for one in found]
    ordered = {name: outputs[name] for name in seconds}
    changes: dict[str, list[float]] = {}
    for name in ordered.keys() - {"0"}:
        [change] = compare_texts(ordered["0"], ordered[name], references, metrics=["bleu"])
        changes[name] = [change.difference, change.low, change.high]
    return {"seconds": seconds, "scores": compared(ordered, references), "changes": changes, "lines": len(lines)}


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    parts = [
        "## Shortlists\n\nWith `decoding.shortlist = N`, a search chooses only among the N most frequent target tokens "
        "and the 20 target tokens that each source token suggests. This section measures how much time shortlists save "
        "with large vocabularies, and how much BLEU they cost.\n\n*Speed* divides the CPU time without a shortlist by "
        "the CPU time with the shortlist, in the same round. *Change* is the BLEU with the shortlist "
        "minus the BLEU without the shortlist, with a 95 % interval by paired bootstrap. "
        "*Equal texts* is the share of outputs that are the same with and without the shortlist.\n\n"
        f"`{figures['command']}`, {figures['day']}: medians (quartiles) of {figures['rounds']} rounds, one core."
    ]
    head = ["shortlist", "ms of CPU per sentence", "speed", "BLEU", "change", "equal texts"]
    for title, cell in figures["cells"].items():
        rows = []
        for size, seconds in cell["seconds"].items():
            ratios = [one / other for one, other in zip(cell["seconds"]["0"], seconds, strict=True)]
            each, score = [1000 * one / cell["lines"] for one in seconds], cell["scores"][size]
            name = number(int(size)) if size != "0" else "none"
            figures_of = [
                spread(each).text(2),
                spread(ratios).text(2),
                f"{score['bleu']:.2f}",
                "{:+.2f} ({:+.2f} to {:+.2f})".format(*cell["changes"][size]) if size != "0" else "",
                f"{score['equal']:.1f} %",
            ]
            rows.append([name, *figures_of])
        parts.append(f"### {title}, {number(cell['lines'])} lines\n\n{table(head, rows)}")
    return "\n\n".join([*parts, f"{described(figures['machine'])}.\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--data", type=Path, required=True, help="folder of Multi30k's files")
    parser.add_argument("--lines", default="val.de.gz", help="source file [default: %(default)s]")
    parser.add_argument("--references", default="val.en.gz", help="reference file [default: %(default)s]")
    parser.add_argument("--limit", type=int, metavar="N", help="translate only the first N lines")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines, references = (read_lines(given.data / name)[: given.limit] for name in (given.lines, given.references))
    of, cells = machine(), {}
    for run in given.runs:
        keep_shortlist_of(run, {"shortlist": max(SIZES)})
        vocabulary = f"{number(len(Bundle.load(run).target_tokenizer))} tokens"
        for engine in ENGINES:
            for beam_size in BEAM_SIZES:
                title = f"{vocabulary}, {engine}, beam {beam_size}"
                print(title, file=sys.stderr)
                cells[title] = measure(run, engine, beam_size, lines, references, given.rounds)
    write(NAME, {"rounds": given.rounds, "cells": cells}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
