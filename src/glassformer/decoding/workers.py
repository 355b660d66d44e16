"""Worker processes that decode in parallel, with one thread each.

On a CPU, several processes are faster than several threads of one process. The threads of a process wait for each other
after each small matrix product of decoding, and all threads wait while Python code runs.
"""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import torch

from glassformer.decoding.engine import Job, Search
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.system.machine import using_threads
from glassformer.system.processes import Worker

__all__ = ["Decode", "Workers"]

SMALLEST_PARCEL = 64
"""Minimum number of sentences that a process gets at a time, because small batches decode slowly."""
TURNS = 4
"""How many times each process gets sentences, if there are enough sentences. Small parcels let all processes end at
about the same time."""

T = TypeVar("T")

Found = list[list[Hypothesis]]
Decode = Callable[[Sequence[Job], Search], Found]
"""A function that returns the hypotheses of each job, best first."""


class Workers:
    """This process and its worker processes. Each worker has a copy of `decode`, so `decode` must be picklable.

    The workers start at the first call with enough sentences for several processes, and end when this object is
    deleted. Threads that share this object take turns, because a worker decodes for one thread at a time.
    """

    def __init__(self, decode: Decode, count: int) -> None:
        self._decode, self._count = decode, count
        self._workers: dict[int, Worker[[Sequence[Job], Search], Found]] = {}
        self._turn = threading.Lock()

    def decode(self, jobs: Sequence[Job], search: Search) -> Found:
        """Return the hypotheses of each job, in the order of the jobs, whichever process decodes it.

        Raises:
            DataError: a process was killed.
        """
        size = max(SMALLEST_PARCEL, -(-len(jobs) // (TURNS * self._count)))
        parcels = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        if self._count == 1 or len(parcels) < 2:
            return self._decode(jobs, search)
        waiting, found = deque(enumerate(parcels)), dict[int, Found]()

        def work(decode: Decode) -> None:
            for number, parcel in _taken(waiting):
                found[number] = decode(parcel, search)

        def ask(number: int) -> None:
            work(self._worker(number).ask)

        with self._turn, using_threads(1), ThreadPoolExecutor(self._count - 1) as pool:
            try:
                asked = [pool.submit(ask, number) for number in range(1, self._count)]
                work(self._decode)
                for answer in asked:
                    answer.result()
            except BaseException:
                # The pool waits for its threads, and each thread waits for a worker. Without workers, all threads end;
                # the next call starts new workers.
                waiting.clear()
                while self._workers:
                    self._workers.popitem()[1].__exit__()
                raise
        return [hypotheses for number in range(len(parcels)) for hypotheses in found[number]]

    def _worker(self, number: int) -> Worker[[Sequence[Job], Search], Found]:
        if number not in self._workers:
            alone = _Alone(self._decode)
            worker = Worker(alone, "translates", "workers=1 (in a command, run it with `taskset -c 0`)", resumes=False)
            weakref.finalize(self, worker.__exit__)
            self._workers[number] = worker
        return self._workers[number]


@dataclass(frozen=True, slots=True)
class _Alone:
    """The function that a worker calls: `decode` with one thread."""

    decode: Decode

    def __call__(self, jobs: Sequence[Job], search: Search) -> Found:
        torch.set_num_threads(1)
        return self.decode(jobs, search)


def _taken(waiting: deque[T]) -> Iterator[T]:
    """Yield waiting items until none is left; other threads take items from the same queue."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()
