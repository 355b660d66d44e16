"""Call one function on many items, in order: in this process or in several."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, TypeVar, runtime_checkable

from glassformer.system.processes import Worker

__all__ = ["HERE", "Pool", "Processes"]

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Pool(Protocol):
    """A way to call functions: in this process, in processes of this machine, or on other machines."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield the results of a picklable function, in the order of the items. Items are read when they are needed.

        Raises:
            DataError: a process was killed.
        """


@dataclass(frozen=True, slots=True)
class Processes:
    """A pool of processes of this machine."""

    count: int
    """Number of processes; 1 = this process alone."""
    doing: str = ""
    """The work of each process, for error messages, such as "prepares the corpus"."""
    without: str = ""
    """The setting that avoids additional processes, for error messages, such as "cleaning.workers = 1"."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield the results of a picklable function, in the order of the items; see `Pool.map`."""
        if self.count == 1:
            yield from map(function, items)
        else:
            yield from _in_order(self._workers(function), items)

    @contextmanager
    def _workers(self, function: Callable[[Item], Result]) -> Iterator[Sequence[Worker[[Item], Result]]]:
        with ExitStack() as stack:
            yield [stack.enter_context(Worker(function, self.doing, self.without)) for _ in range(self.count)]


HERE = Processes(1)
"""A pool of this process alone."""


def _in_order(
    workers: AbstractContextManager[Sequence[Worker[[Item], Result]]], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """Yield the workers' results, in the order of the items; up to about two items per worker are read ahead."""
    waiting: deque[Future[Result]] = deque()
    with ExitStack() as stack:
        last = stack.enter_context(ExitStack())
        # entered last, so that the workers end before the threads that wait for them
        some = stack.enter_context(workers)
        threads = last.enter_context(ThreadPoolExecutor(len(some)))
        idle: SimpleQueue[Worker[[Item], Result]] = SimpleQueue()
        for worker in some:
            idle.put(worker)
        try:
            for item in items:
                waiting.append(threads.submit(_ask, idle, item))
                if len(waiting) > 2 * len(some):  # enough to keep all workers busy, and a bound on the memory
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _ask(idle: "SimpleQueue[Worker[[Item], Result]]", item: Item) -> Result:
    """Give an item to an idle worker, and return the result."""
    worker = idle.get()
    try:
        return worker.ask(item)
    finally:
        idle.put(worker)
