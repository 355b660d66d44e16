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
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Generic, ParamSpec, TypeVar

from glassformer.errors import DataError, GlassformerError, shortened

__all__ = ["Worker", "answer_questions", "place_of"]

P = ParamSpec("P")
Result = TypeVar("Result")
END_SECONDS = 1.0
"""Maximum time in seconds for a process to end after it has closed its pipe of answers."""

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"
_ENDS = (OSError, EOFError, ValueError, pickle.UnpicklingError)
"""The errors of a pipe whose other end, or whose own end, has been closed."""

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
        except BaseException as error:
            self._has_failed = True  # the pipes may contain a part of a question or of an answer
            if not isinstance(error, _ENDS):
                raise
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
            answers.write(_answer(function, arguments, options))
            answers.flush()


def _answer(function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object]) -> bytes:
    """Return the pickled result of a function, or its pickled exception, which the main program raises."""
    try:
        return pickle.dumps(function(*arguments, **options), protocol=5)
    except Exception as error:
        if not isinstance(error, GlassformerError) and (place := place_of(error)):
            error.add_note(place)  # the main program does not get the traceback
        with suppress(Exception):
            pickled = pickle.dumps(error, protocol=5)
            # Some exceptions cannot be created again from their pickles, and no task can raise StopIteration.
            if not isinstance(pickle.loads(pickled), StopIteration):
                return pickled
        return pickle.dumps(_named(error), protocol=5)


def _named(error: Exception) -> RuntimeError:
    """Return an exception of a type that any process can raise, with the type and the message of another exception."""
    found = RuntimeError(f"{type(error).__name__}: {shortened(str(error))}")
    found.__notes__ = getattr(error, "__notes__", [])
    return found


def place_of(error: BaseException) -> str:
    """Return the place in our code where an exception was raised, such as "text/spans.py:61 in _found"; "" if unknown.

    For an exception of another process, it is the place in that process.
    """
    if notes := getattr(error, "__notes__", None):
        return str(notes[-1])
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(_PACKAGE)]
    return f"{frames[-1].filename[len(_PACKAGE) :]}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
