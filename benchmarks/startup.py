"""Measure the start-up time of commands and the loading time of a model: `python -m benchmarks.startup [--run RUN]`.

Each measurement is a new process. The processes take turns, so noise of the machine affects all processes equally. With
--run, two more processes are timed: the translation of one line from start to end, and loading the run's model. If the
peers are installed (`make bench-peers`), importing each peer is timed as well.

Writes results/startup.json.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.command import as_command
from benchmarks.peers.install import python_of
from benchmarks.results import described, machine, read, spread, table, write
from glassformer.bundle import Bundle

NAME = "startup"
ROUNDS = 15
SUBCOMMANDS = ("train", "translate", "evaluate", "prepare", "estimate", "check", "trace", "explore", "recipes")
PEERS = {
    "hugging_face": "from transformers import MarianMTModel",
    "ctranslate2": "import ctranslate2",
}
LOADING = "import torch, glassformer; glassformer.Translator.load({run!r})"
IMPORTS = "import torch, glassformer.model.transformer, safetensors.torch, glassformer.translator, sentencepiece"
"""The imports for loading a model; the time of these imports is subtracted from the loading time."""


def commands(run: Path | None) -> dict[str, tuple[list[str], str]]:
    """Return the timed processes by name, each with its standard input."""
    python = sys.executable
    found = {
        "empty interpreter": [python, "-c", "pass"],
        "import glassformer": [python, "-c", "import glassformer"],
        "glassformer --help": [python, "-m", "glassformer", "--help"],
    }
    for name in SUBCOMMANDS:
        found[f"glassformer {name} --help"] = [python, "-m", "glassformer", name, "--help"]
    found["import torch"] = [python, "-c", "import torch"]
    for peer, statement in PEERS.items():
        if python_of(peer).exists():
            found[f"{peer}: {statement}"] = [str(python_of(peer)), "-c", statement]
    timed = {name: (command, "") for name, command in found.items()}
    if run:
        timed["imports for loading a model"] = ([python, "-c", IMPORTS], "")
        timed["loading a model, imports included"] = ([python, "-c", LOADING.format(run=str(run))], "")
        timed["echo LINE | glassformer translate RUN"] = ([python, "-m", "glassformer", "translate", str(run)], "a b\n")
    return timed


def seconds(command: list[str], given: str) -> float:
    """Return the seconds of a process from start to end.

    Raises:
        CalledProcessError: the process failed; the error holds its stderr.
    """
    begun = time.perf_counter()
    subprocess.run(command, check=True, input=given, text=True, capture_output=True)
    return time.perf_counter() - begun


def measure(timed: Mapping[str, tuple[list[str], str]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each process by round, without the first round, which fills the disk cache."""
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for number in range(rounds + 1):
        for name, (command, given) in timed.items():
            took = seconds(command, given)
            if number:
                taken[name].append(took)
    return taken


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    taken = {name: spread([1000 * one for one in some]) for name, some in figures["seconds"].items()}
    empty = taken["empty interpreter"].median
    rows = [[name, f"{some.text()} ms", f"{some.median - empty:+.0f} ms"] for name, some in taken.items()]
    loading = ""
    if "loading a model, imports included" in taken:
        beyond = taken["loading a model, imports included"].median - taken["imports for loading a model"].median
        loading = f"\nLoading the model takes {beyond:.0f} ms after its imports.\n"
    whole = table(["", "start to end", "beyond an empty interpreter"], rows)
    return (
        "## Start-up\n\nThis section measures the time of a new process from start to end, for commands of glassformer "
        "and imports of its peers. The second column subtracts the time of an empty Python interpreter.\n\n"
        f"`{figures['command']}`, {figures['day']}: medians (quartiles).\n\n"
        f"{whole}{loading}\n{described(figures['machine'])}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a trained run, such as runs/demo")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.run:
        Bundle.load(given.run)  # reports a damaged run before anything is measured
    of = machine()
    write(NAME, {"seconds": measure(commands(given.run), given.rounds)}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
