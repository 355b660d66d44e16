"""Worker processes, which take over work from the main process.

A worker reads pickled questions (the arguments of a function) from its standard input and writes pickled answers. So
the main program needs no `if __name__ == "__main__"`, and a worker ends when the main program ends, even if killed.
Only the main program handles Ctrl-C.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Generic, ParamSpec, TypeVar

from glassformer.errors import DataError

__all__ = ["Worker", "answer_questions"]

P = ParamSpec("P")
Result = TypeVar("Result")
END_SECONDS = 1.0
"""Maximum time in seconds for a process to end after it has closed its pipe of answers."""

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from glassformer.system.processes import answer_questions; answer_questions()"
)


class Worker(Generic[P, Result]):
    """A context manager with a process that calls one picklable function, once for each `ask`."""

    def __init__(self, function: Callable[P, Result], doing: str, without: str = "", *, resumes: bool = True) -> None:
        """Start the process.

        The other arguments are for error messages. `doing` says what the process does, such as "encodes texts";
        `without` names the setting that avoids the process, such as "cleaning.workers = 1"; `resumes` says whether the
        same command, run again, resumes the work.
        """
        self._doing, self._without, self._resumes = doing, without, resumes
        self._has_failed = False
        # The worker gets its own session. Otherwise, a terminal's Ctrl-C could reach the worker before it can ignore
        # the signal.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        pickle.dump(function, _pipe(self._process.stdin))

    def __enter__(self) -> "Worker[P, Result]":
        """Return this object. The process ends when the context ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, even if it is busy."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # the pipe may be closed, so that unflushed output is lost
                _pipe(pipe).close()

    @property
    def is_alive(self) -> bool:
        """Whether the process is running and has answered all questions so far."""
        return not self._has_failed and self._process.poll() is None

    @property
    def end(self) -> str:
        """A description of how the process ended, such as "killed by SIGKILL"; "" while the process is running."""
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(timeout=END_SECONDS)
            return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return ""

    def ask(self, *arguments: P.args, **options: P.kwargs) -> Result:
        """Return the function's result for these arguments, or raise its exception.

        Raises:
            DataError: the process was killed, or the context has ended.
        """
        try:
            pickle.dump((arguments, options), _pipe(self._process.stdin), protocol=5)
            _pipe(self._process.stdin).flush()
            answer: Result | Exception = pickle.load(_pipe(self._process.stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:  # ValueError: the pipe is closed
            self._has_failed = True
            raise DataError(
                f"a process that {self._doing} was killed, perhaps for lack of memory: run the same command again"
                f"{' to resume' if self._resumes else ''}"
                f"{f', or set {self._without} to avoid other processes' if self._without else ''}"
            ) from error
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer_questions() -> None:
    """Run the program of a worker: answer questions until the input ends."""
    # every process receives these signals, but only the main program handles them
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text goes to stderr, because stdout carries the answers
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):  # the main program has ended
        function = pickle.load(sys.stdin.buffer)
        while True:
            arguments, options = pickle.load(sys.stdin.buffer)
            pickle.dump(_answer(function, arguments, options), answers, protocol=5)
            answers.flush()


def _answer(function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object]) -> object:
    try:
        return function(*arguments, **options)
    except Exception as error:  # sent back, and raised by the main program
        return error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
