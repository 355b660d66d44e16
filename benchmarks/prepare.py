"""Compare the speed of preparing a corpus with sentencepiece alone: `python -m benchmarks.prepare`.

"sentencepiece" encodes the lines of each side as one list, or in parts of 2 048, which is faster. "encode_all" is our
tokenizer on the same parts, and "encode" also packs the ids into arrays. "prepare" reads the files, drops pairs,
normalises, encodes, and writes shards to the disk. All of them take turns. On one core, processor time is measured, so
the load of the machine counts little; on all cores, the clock is read.

--pairs N measures a large corpus instead: N generated pairs are prepared, and a model is trained for 100 steps. The
resident memory of all processes together is read ten times a second.
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

from benchmarks.command import as_command
from benchmarks.doctor import generate
from glassformer.corpus.encoding import PART, encode
from glassformer.jobs.preparation import Prepared, prepare
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
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
    parts = [(sides[0][first : first + PART], sides[1][first : first + PART]) for first in range(0, pairs, PART)]

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
    """Records the peak of the resident memory of a process and its descendants until it ends."""

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


def large(folder: Path, pairs: int) -> None:
    began = time.perf_counter()
    generate(folder, pairs)
    size = sum((folder / name).stat().st_size for name in ("source", "target"))
    print(f"{pairs:,} pairs, {size / 1e9:.2f} GB, generated in {time.perf_counter() - began:,.0f} s", flush=True)
    configuration(folder)
    arguments = (str(folder / "unigram.toml"), "--data", str(folder), "--set", f"run.directory={folder / 'run'}")
    for name, command in (("prepare", "prepare"), ("prepare again", "prepare"), ("100 steps", "train")):
        tell(name, measured(command, *arguments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, metavar="N", help="prepare N generated pairs and train on them instead")
    parser.add_argument("--folder", type=Path, help="folder for the files [default: the system's temporary folder]")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        if options.pairs:
            large(folder, options.pairs)
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
