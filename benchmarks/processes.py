"""Peers as processes that take turns: a machine's drift hits all alike, and one that dies is reported, not hidden."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers.install import ENVIRONMENTS, python_of
from glassformer.machine import cores

ROOT = Path(__file__).resolve().parents[1]
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_TOP_PAD_": str(64 << 20)}
"""The allocator setting, as glibc reads it at the start of a process: what `keep_memory` sets in ours."""
TAIL = 400
"""Characters of a dead peer's last words that are reported."""


class PeerError(Exception):
    """A peer could not do what it was asked, or has died; the message has its last words."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a table: a peer, and how it is run."""

    peer: str
    """Its adapter in `benchmarks/peers`."""
    precision: str = "fp32"
    keeping: bool = False
    """Whether the allocator keeps what is freed; ours always does."""
    threads: int = field(default_factory=cores)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the adapter's `make`."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        options = [f"{name}={value}" for name, value in self.options.items() if name != "path"]
        return ", ".join([self.peer, self.precision, *options, *(["allocator kept"] if self.keeping else [])])

    @property
    def environment(self) -> Path:
        """The interpreter that runs it: ours is this one; what is not a package shares torch.nn.Transformer's."""
        if self.peer == "ours":
            return Path(sys.executable)
        path = python_of(self.peer if self.peer in ENVIRONMENTS else "torch_nn")
        return path if path.exists() or self.peer != "torch_nn" else Path(sys.executable)

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with its name."""
        return {"name": self.name, **asdict(self)}


class Process:
    """A peer's process: a context in which it answers."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry, self.folder = entry, folder

    def __enter__(self) -> "Process":
        """Start it and wait until it is ready.

        Raises:
            PeerError: it is not installed, or could not begin.
        """
        entry = self.entry
        if not entry.environment.exists():
            raise PeerError(f"{entry.peer} is not installed (no {entry.environment}): make bench-peers, or set PEERS")
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        options = ["--precision", entry.precision, "--options", json.dumps(dict(entry.options))]
        command = [str(entry.environment), "-m", "benchmarks.peers.worker", entry.peer, str(self.folder), *options]
        paths = [str(ROOT), *([str(ROOT / "src")] if entry.peer == "ours" else [])]
        settings = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(entry.threads)}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **settings, **(KEEPING if entry.keeping else {})},
        )
        self.peak = 0
        try:
            self.ready = self._answer()
        except PeerError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            if pipe:
                with suppress(BrokenPipeError):  # what was not yet flushed has nowhere to go
                    pipe.close()

    def ask(self, do: str, **question: Any) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            PeerError: it could not do that, or has died.
        """
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps({"do": do, **question}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(self._last_words()) from None
        answer = self._answer()
        self.peak = max(self.peak, peak_memory(self.process.pid))
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.entry.name}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        status = self.process.wait()
        self.errors.seek(0)
        return f"{self.entry.name} ended with status {status}: {self.errors.read()[-TAIL:].strip()}"


def peak_memory(pid: int) -> int:
    """Return the most resident memory that a process and those below it had, each at its own peak; 0 if unknown.

    In bytes. What several of them have of one file, such as PyTorch's code, lies in memory once and is counted once.
    """
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        texts = [Path(f"/proc/{process.pid}/status").read_text() for process in family]
        files = [_shared(process) for process in family]
    except (psutil.Error, OSError):
        return 0
    peaks = [1024 * int(line.split()[1]) for text in texts for line in text.splitlines() if line.startswith("VmHWM")]
    each = [[shared.get(path, 0) for shared in files] for path in set().union(*files)]
    return sum(peaks) - sum(sum(sizes) - max(sizes) for sizes in each)


def _shared(process: psutil.Process) -> dict[str, int]:
    """Return how many bytes of each file a process shares with others."""
    maps = process.memory_maps(grouped=True)
    return {one.path: one.shared_clean + one.shared_dirty for one in maps if one.path.startswith("/")}


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return the names in the order of this round: each round begins with the next one."""
    begin = number % max(len(names), 1)
    return [*names[begin:], *names[:begin]]


def sittings(entries: Sequence[Entry], together: int) -> list[list[Entry]]:
    """Return who runs side by side, for not all have room; the first, whom all are compared with, sits in each."""
    first, others = entries[0], entries[1:]
    groups = [others[begin : begin + together - 1] for begin in range(0, len(others), together - 1)]
    return [[first, *group] for group in groups] or [[first]]


@dataclass
class Turns:
    """What came of a sitting."""

    answers: dict[str, list[dict[str, Any]]]
    """By name, one answer for each round."""
    ready: dict[str, dict[str, Any]]
    """What each said when it was ready: versions, and how long it took."""
    peaks: dict[str, int]
    """Each one's most resident memory, in bytes."""
    failed: dict[str, str]
    """Who could not begin or go on, and why; answers from before are not kept."""


def take_turns(
    entries: Sequence[Entry],
    folder: Path,
    questions: Sequence[Mapping[str, Any]],
    *,
    warm: int = 0,
    on_round: Callable[[int], object] = lambda _: None,
) -> Turns:
    """Ask all the same questions, one after another: each round one question to each, in an order that rotates.

    The answers to the first `warm` of them are not kept.
    """
    turns = Turns({}, {}, {}, {})
    with ExitStack() as stack:
        alive = dict(_started(entries, folder, stack, turns))
        for number, question in enumerate(questions):
            on_round(number)
            for name in rotated(list(alive), number):
                try:
                    answer = alive[name].ask(**question)
                except PeerError as error:
                    turns.failed[name] = str(error)
                    turns.answers.pop(name)
                    alive.pop(name).__exit__()
                    continue
                turns.peaks[name] = alive[name].peak
                if number >= warm:
                    turns.answers[name].append(answer)
    return turns


def _started(entries: Sequence[Entry], folder: Path, stack: ExitStack, turns: Turns) -> Iterator[tuple[str, Process]]:
    """Start all; yield those that are ready."""
    for entry in entries:
        try:
            process = stack.enter_context(Process(entry, folder))
        except PeerError as error:
            turns.failed[entry.name] = str(error)
            continue
        turns.ready[entry.name], turns.answers[entry.name] = process.ready, []
        yield entry.name, process
