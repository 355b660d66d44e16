"""Processes that read long texts and documents of users.

Patterns, parsers and detectors hold Python's interpreter lock while they work. In the process that answers requests, a
long text would therefore keep every other client waiting, even if a thread read it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from glassformer.serving.log import ServiceLog
from glassformer.serving.refusals import busy
from glassformer.system.processes import Worker

__all__ = ["Readers"]

P = ParamSpec("P")
Result = TypeVar("Result")


class Readers:
    """Up to `count` processes, each of which starts when it is first needed."""

    def __init__(self, count: int, log: ServiceLog) -> None:
        self.log = log
        self._turns = asyncio.Semaphore(count)
        self._threads = ThreadPoolExecutor(count, "readers")
        self._idle: list[Worker[[Callable[..., Any], tuple[Any, ...]], Any]] = []

    async def run(self, is_short: bool, function: Callable[P, Result], *arguments: P.args, **_: P.kwargs) -> Result:
        """Return the result of a function, called here if it has little to read, otherwise in a process (see `ask`)."""
        return function(*arguments, **_) if is_short else await self.ask(function, *arguments, **_)

    async def ask(self, function: Callable[P, Result], *arguments: P.args, **_: P.kwargs) -> Result:
        """Return the result of a function that is called in another process; raise the function's errors.

        Raises:
            RequestError: the process died.
        """
        async with self._turns:
            worker = self._idle.pop() if self._idle else Worker(_called, "reads texts", resumes=False)
            is_asked = True
            try:
                loop = asyncio.get_running_loop()
                found: Result = await loop.run_in_executor(self._threads, worker.ask, function, arguments)
                is_asked = False
                return found
            except Exception:
                if is_asked := not worker.is_alive:
                    self.log.write(event="process ended", process="reader", reason=worker.end)
                    raise busy("a text could not be read: try again in a moment, or with less text") from None
                raise
            finally:  # if the request was cancelled, nobody waits for this process any more
                if is_asked:
                    worker.__exit__()
                else:
                    self._idle.append(worker)

    def close(self) -> None:
        """End the processes that are idle."""
        while self._idle:
            self._idle.pop().__exit__()
        self._threads.shutdown(wait=False)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)
