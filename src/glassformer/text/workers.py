"""Processes that take work off the main one.

They read pickled questions from their standard input: they need nothing of the main program (no
`if __name__ == "__main__"`), and end when it ends, however it ends. What Ctrl-C means is for the main program to say.
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

__all__ = ["Worker", "serve"]

P = ParamSpec("P")
A = TypeVar("A")

_PROGRAM = "import sys; sys.path[:] = {path!r}; from glassformer.text.workers import serve; serve()"


class Worker(Generic[P, A]):
    """A context with a process that calls one function, which can be pickled, again and again."""

    def __init__(self, function: Callable[P, A], doing: str, without: str = "", *, resumes: bool = True) -> None:
        """Start the process.

        For errors, `doing` says what it does, such as "cuts texts into tokens", `without` which setting does
        without it, such as "cleaning.workers = 1", and `resumes` whether the command goes on where it was.
        """
        self._doing, self._without, self._resumes = doing, without, resumes
        # In a session of its own it is not reached by a terminal's Ctrl-C, not even before it could ignore it.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        pickle.dump(function, _pipe(self._process.stdin))

    def __enter__(self) -> "Worker[P, A]":
        """Return itself; the process ends with the context."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not yet flushed has nowhere to go
                _pipe(pipe).close()

    def ask(self, *arguments: P.args, **options: P.kwargs) -> A:
        """Return what the function returns for these arguments, or raise what it raises.

        Raises:
            DataError: the process was killed.
        """
        try:
            pickle.dump((arguments, options), _pipe(self._process.stdin), protocol=5)
            _pipe(self._process.stdin).flush()
            answer: A | Exception = pickle.load(_pipe(self._process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                f"a process that {self._doing} was killed (is there too little memory?): run the same command again"
                f"{', it goes on where it was' if self._resumes else ''}"
                f"{f'; {self._without} does without other processes' if self._without else ''}"
            ) from error
        if isinstance(answer, Exception):
            raise answer
        return answer


def serve() -> None:
    """Answer what comes in until nothing more comes: the program of a worker."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they may be sent to all processes: the main program decides
        signal.signal(number, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed shall not come between the answers
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):  # the main program has ended
        function = pickle.load(sys.stdin.buffer)
        while True:
            arguments, options = pickle.load(sys.stdin.buffer)
            pickle.dump(_answer(function, arguments, options), answers, protocol=5)
            answers.flush()


def _answer(function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object]) -> object:
    try:
        return function(*arguments, **options)
    except Exception as error:  # for the main program to raise
        return error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
