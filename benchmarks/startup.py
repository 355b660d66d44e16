"""How long a command takes before it does anything, and loading a model: `python -m benchmarks.startup [--run RUN]`.

Each line is a fresh process; they take turns, so that the machine's noise hits all alike. With a run, a translation of
one line is timed from start to end, and loading the run's model, which starts where `import torch` ends. Where the
peers are installed (`make bench-peers`), importing them is timed beside ours.

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
"""What loading a model imports: time beyond it is the loading itself."""


def commands(run: Path | None) -> dict[str, tuple[list[str], str]]:
    """Return what is timed, by name: the process and what it reads."""
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
        timed["what loading a model imports"] = ([python, "-c", IMPORTS], "")
        timed["loading a model, imports included"] = ([python, "-c", LOADING.format(run=str(run))], "")
        timed["echo LINE | glassformer translate RUN"] = ([python, "-m", "glassformer", "translate", str(run)], "a b\n")
    return timed


def seconds(command: list[str], given: str) -> float:
    """Return how long a process takes from start to end.

    Raises:
        CalledProcessError: it failed; the message has its last words.
    """
    begun = time.perf_counter()
    subprocess.run(command, check=True, input=given, text=True, capture_output=True)
    return time.perf_counter() - begun


def measure(timed: Mapping[str, tuple[list[str], str]], rounds: int) -> dict[str, list[float]]:
    """Return the times of each; the first round, which fills the disk's cache, is not kept."""
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for number in range(rounds + 1):
        for name, (command, given) in timed.items():
            took = seconds(command, given)
            if number:
                taken[name].append(took)
    return taken


def markdown(figures: dict[str, Any]) -> str:
    """Return the table."""
    taken = {name: spread([1000 * one for one in some]) for name, some in figures["seconds"].items()}
    empty = taken["empty interpreter"].median
    rows = [[name, f"{some.text()} ms", f"{some.median - empty:+.0f} ms"] for name, some in taken.items()]
    loading = ""
    if "loading a model, imports included" in taken:
        beyond = taken["loading a model, imports included"].median - taken["what loading a model imports"].median
        loading = f"\nLoading the model takes {beyond:.0f} ms beyond its imports.\n"
    whole = table(["", "from start to end", "added"], rows)
    return (
        f"## Start-up\n\n`{figures['command']}`, {figures['day']}: medians (quartiles), and what is added to an "
        f"empty interpreter.\n\n{whole}{loading}\n{described(figures['machine'])}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a trained run, such as runs/demo")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.run:
        Bundle.load(given.run)  # says at once what is wrong with it
    of = machine()
    write(NAME, {"seconds": measure(commands(given.run), given.rounds)}, of)
    print(markdown(read(NAME)))


if __name__ == "__main__":
    as_command(main)
