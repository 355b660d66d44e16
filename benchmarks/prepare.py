"""Compare the speed of preparing a corpus with sentencepiece alone: `python -m benchmarks.prepare`.

"sentencepiece" encodes the lines of each side as one list, or in parts of 2 048 lines, which is faster. "encode_all" is
glassformer's tokenizer on the same parts, and "encode" also packs the ids into arrays. "prepare" reads the files, drops
pairs, normalises, encodes, and writes shards to the disk. All methods take turns. On one core, CPU time is measured, so
the load of the machine has little effect; on all cores, wall-clock time is measured.

--pairs N measures a large corpus instead: N generated pairs are prepared by one process and by two processes, which
must write the same bytes. Then a model is trained for 100 steps. The resident memory of all processes together is read
ten times per second. Writes results/prepare.json.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks import results
from benchmarks.command import as_command
from benchmarks.doctor import generate
from glassformer.corpus.encoding import AT_ONCE, encode
from glassformer.jobs.preparation import prepare
from glassformer.jobs.prepared.reading import Prepared
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.system.files import hash_of_folder
from glassformer.text.subwords import SentencePieceTokenizer

ROUNDS = 5
PAIRS = {1: 200_000, 0: 1_000_000}
"""Number of pairs on one core (1) and on all cores (0)."""
CONFIG = """
[data]
source = "source"
target = "target"
valid_lines = 1000
[cleaning]
duplicates = "keep"
[tokenizer]
kind = "{kind}"
vocab_size = 16000
[model]
preset = "small"
[training]
steps = 100
batch_tokens = 1500
validate_every = 0
checkpoint_every = 100
"""


def configuration(folder: Path, *overrides: str, kind: str = "unigram") -> Configuration:
    (folder / f"{kind}.toml").write_text(CONFIG.format(kind=kind))
    return load(folder / f"{kind}.toml", [f"run.directory={folder / f'run-{kind}'}", *overrides], data=folder)


def without_shards(prepared: Prepared) -> None:
    for path in prepared.folder.glob("train-*"):
        path.unlink()


def compare(folder: Path, kind: str, workers: int) -> None:
    """Print the speed of each method in pairs per second, for one tokenizer kind.

    `workers`: 1 = one core, 0 = all cores.
    """
    settings = configuration(folder, f"cleaning.workers={workers}", kind=kind)
    prepared = prepare(settings)
    tokenizer, longest = prepared.source_tokenizer, settings.data.max_length
    assert isinstance(tokenizer, SentencePieceTokenizer)
    sides = [(folder / name).read_text(encoding="utf-8").split("\n")[:-1] for name in ("source", "target")]
    clock = time.process_time if workers else time.perf_counter
    pairs, threads = len(sides[0]), workers or os.cpu_count()
    starts = range(0, pairs, AT_ONCE)
    parts = [(sides[0][first : first + AT_ONCE], sides[1][first : first + AT_ONCE]) for first in starts]

    def each(work: Callable[[Any], object], *some: object) -> None:
        for one in some:
            work(one)

    sentencepiece = partial(tokenizer._processor.encode, num_threads=threads)
    ways: dict[str, Callable[[], object]] = {
        "sentencepiece, one list": partial(each, sentencepiece, *sides),
        "sentencepiece, parts": partial(each, sentencepiece, *chain.from_iterable(parts)),
    }
    if workers:
        ways["encode_all"] = partial(each, tokenizer.encode_all, *chain.from_iterable(parts))
        ways["encode"] = partial(each, lambda part: encode(part, tokenizer, tokenizer, longest), *parts)
    ways["prepare"] = partial(prepare, settings)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        without_shards(prepared)
        for name, way in ways.items():
            began = clock()
            way()
            times[name].append(clock() - began)
    first = median(times["sentencepiece, one list"])
    print(f"{kind}, {'one core' if workers else f'{os.cpu_count()} cores'}", flush=True)
    for name, some in times.items():
        took = median(some)
        print(f"  {name:25}{pairs / took:>12,.0f} pairs/s {100 * first / took:>6.0f} %", flush=True)


class Memory(threading.Thread):
    """A thread that records the peak resident memory of a process and its descendants until the process ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process, self.peak = psutil.Process(pid), 0

    def run(self) -> None:
        while self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE:
            total = 0
            try:
                for process in (self.process, *self.process.children(recursive=True)):
                    total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            self.peak = max(self.peak, total)
            time.sleep(0.1)


def measured(*arguments: str) -> dict[str, float]:
    """Run a glassformer command; return its seconds, its peak memory in bytes, and its exit status."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "glassformer", *arguments])
    memory = Memory(process.pid)
    memory.start()
    process.wait()
    memory.join()
    return {"seconds": time.perf_counter() - began, "peak": memory.peak, "status": process.returncode}


def tell(name: str, found: dict[str, float]) -> None:
    """Print the result of `measured`."""
    took, peak, status = found["seconds"], found["peak"] / 1e9, found["status"]
    print(f"{name}: {took:,.0f} s, {peak:.2f} GB at most, status {status}", flush=True)


def large(folder: Path, pairs: int, rounds: int) -> None:
    """Prepare a large corpus with one process and with two, in turns; compare the bytes; train on the result."""
    machine = results.machine()
    generate(folder, pairs)
    size = sum((folder / name).stat().st_size for name in ("source", "target"))
    print(f"{pairs:,} pairs, {size / 1e9:.2f} GB", flush=True)
    configuration(folder)
    runs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    hashes = set[str]()

    def arguments(workers: int, command: str) -> list[str]:
        run = folder / f"run-{workers}"
        settings = (f"run.directory={run}", f"cleaning.workers={workers}", "cleaning.duplicates=drop")
        chosen = (word for setting in settings for word in ("--set", setting))
        return [command, str(folder / "unigram.toml"), "--data", str(folder), *chosen]

    for _ in range(rounds):
        for workers, found in runs.items():
            shutil.rmtree(folder / f"run-{workers}", ignore_errors=True)
            found.append(measured(*arguments(workers, "prepare")))
            tell(f"prepare, {workers} processes", found[-1])
            hashes.add(hash_of_folder(folder / f"run-{workers}" / "prepared"))
    ratios = [one["seconds"] / two["seconds"] for one, two in zip(*runs.values(), strict=True)]
    again = measured(*arguments(2, "prepare"))
    trained = measured(*arguments(2, "train"))
    tell("prepare again", again)
    tell("100 steps", trained)
    print(f"two processes are {median(ratios):.2f} times as fast; folders with different bytes: {len(hashes) - 1}")
    figures = {"pairs": pairs, "bytes": size, "ratios": ratios, "different_folders": len(hashes) - 1}
    processes = {str(workers): some for workers, some in runs.items()}
    results.write("prepare", {**figures, "processes": processes, "again": again, "train": trained}, machine)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, metavar="N", help="prepare N generated pairs and train on them instead")
    parser.add_argument("--rounds", type=int, default=1, help="with --pairs: prepare so often with each number")
    parser.add_argument("--folder", type=Path, help="folder for the files [default: the system's temporary folder]")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        if options.pairs:
            large(folder, options.pairs, options.rounds)
            return
        for workers, pairs in PAIRS.items():
            here = folder / str(workers)
            here.mkdir()
            generate(here, pairs)
            for kind in ("unigram", "bpe"):
                compare(here, kind, workers)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    as_command(main)
