"""Run peers as processes in turns, so that a drift of the machine affects all peers, and report peers that die."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from benchmarks.peers.install import ENVIRONMENTS, python_of
from glassformer.system.machine import cores

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
OWN = "ours", "configured"
"""The adapters that run glassformer."""
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_TOP_PAD_": str(64 << 20)}
"""The allocator setting of `keep_memory`, as environment variables that glibc reads when a process starts."""
TAIL = 400
"""Number of characters reported from the end of a dead peer's stderr."""


class PeerError(Exception):
    """A peer failed or died; the message has its error."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of a table: a peer with its settings."""

    peer: str
    """The name of the peer's adapter in `benchmarks/peers`."""
    precision: str = "fp32"
    keeping: bool = False
    """Whether the allocator keeps freed memory; in glassformer, the allocator always does."""
    threads: int = field(default_factory=cores)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the adapter's `make`."""
    checkout: Path = ROOT
    """The checkout of glassformer to run; the adapter always comes from this file's checkout."""

    @property
    def name(self) -> str:
        """The entry's name in tables."""
        options = [f"{name}={value}" for name, value in self.options.items() if name != "path"]
        other = [] if self.checkout == ROOT else [f"of {self.checkout}"]
        return ", ".join([self.peer, self.precision, *options, *(["allocator kept"] if self.keeping else []), *other])

    @property
    def environment(self) -> Path:
        """The peer's Python interpreter; a peer without requirements uses the environment of torch.nn.Transformer."""
        if self.peer in OWN:
            return Path(sys.executable)
        path = python_of(self.peer if self.peer in ENVIRONMENTS else "torch_nn")
        return path if path.exists() or self.peer != "torch_nn" else Path(sys.executable)

    def as_json(self) -> dict[str, Any]:
        """Return all fields and the name."""
        return {"name": self.name, **asdict(self)}


class Process:
    """A peer's process, as a context manager that ends the process."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry, self.folder = entry, folder

    def __enter__(self) -> "Process":
        """Start the process and wait until it is ready.

        Raises:
            PeerError: the peer is not installed, or failed to start.
        """
        entry = self.entry
        if not entry.environment.exists():
            raise PeerError(
                f"{entry.peer} is not installed (no {entry.environment}); run make bench-peers, or set PEERS"
            )
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        options = ["--precision", entry.precision, "--options", json.dumps(dict(entry.options))]
        command = [str(entry.environment), "-m", "benchmarks.peers.worker", entry.peer, str(self.folder), *options]
        paths = [str(ROOT), *([str(entry.checkout / "src")] if entry.peer in OWN else [])]
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
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            if pipe:
                with suppress(BrokenPipeError):  # if the process has died, unflushed questions are lost as well
                    pipe.close()

    def ask(self, do: str, **question: Any) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            PeerError: the peer failed or died.
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
    """Return the peak resident memory of a process and its descendants in bytes, or 0 if it is unknown.

    The peaks of all processes are added up, but file pages that several processes share, such as PyTorch's code, count
    once.
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
    """Return the number of bytes that a process shares with other processes, by file."""
    maps = process.memory_maps(grouped=True)
    return {one.path: one.shared_clean + one.shared_dirty for one in maps if one.path.startswith("/")}


def rotated(names: Sequence[T], number: int) -> list[T]:
    """Return the names in the order of this round; each round begins one name later."""
    begin = number % max(len(names), 1)
    return [*names[begin:], *names[:begin]]


def sittings(entries: Sequence[Entry], together: int) -> list[list[Entry]]:
    """Return groups of at most `together` entries. Each group has the first entry: the others are compared with it."""
    first, others = entries[0], entries[1:]
    groups = [others[begin : begin + together - 1] for begin in range(0, len(others), together - 1)]
    return [[first, *group] for group in groups] or [[first]]


@dataclass
class Turns:
    """The results of a group of entries that took turns (a sitting)."""

    answers: dict[str, list[dict[str, Any]]]
    """For each entry by name, its answer in each round."""
    ready: dict[str, dict[str, Any]]
    """For each entry by name, the versions of its packages, and its start-up time."""
    peaks: dict[str, int]
    """For each entry by name, the peak resident memory in bytes."""
    failed: dict[str, str]
    """For each entry that failed, by name, the error; earlier answers of this entry are dropped."""


def take_turns(
    entries: Sequence[Entry],
    folder: Path,
    questions: Sequence[Mapping[str, Any]],
    *,
    warm: int = 0,
    on_round: Callable[[int], object] = lambda _: None,
) -> Turns:
    """Ask all entries the same questions: one question in each round, in a rotating order.

    The answers to the first `warm` questions are dropped.
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
    """Start all entries; yield the name and the process of each entry that is ready."""
    for entry in entries:
        try:
            process = stack.enter_context(Process(entry, folder))
        except PeerError as error:
            turns.failed[entry.name] = str(error)
            continue
        turns.ready[entry.name], turns.answers[entry.name] = process.ready, []
        yield entry.name, process
