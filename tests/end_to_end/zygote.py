"""Training runs that start quickly: one process imports torch, and each training run is a fork of this process.

The process computes nothing before it forks and has one thread, so a fork is as good as a fresh process. A training run
can be made to fail, or to be killed, at its n-th change in a folder: when it writes, makes, renames or removes a file.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

_NUMBERS = count()

_PATHS = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))

TOUCHES = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link"}


@dataclass(frozen=True)
class Ended:
    """The end of a training run: its status (negative: the signal that killed it), and its output."""

    status: int
    said: str


class Forking:
    """A test's connection to a process that reads lines of JSON and forks for each line."""

    def __init__(self, folder: Path, command: Iterable[str]) -> None:
        self.folder = folder
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _PATHS}
        self.process = subprocess.Popen(
            list(command), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.pid = self._read()["pid"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _ask(self, **request: Any) -> None:
        self.process.stdin.write(f"{json.dumps(request)}\n")
        self.process.stdin.flush()

    def _read(self) -> dict[str, int]:
        return json.loads(self.process.stdout.readline())


class Zygote(Forking):
    """The process that forks training runs."""

    def __init__(self, folder: Path, prefix: Iterable[str] = ()) -> None:
        super().__init__(folder, [*prefix, sys.executable, str(Path(__file__).resolve())])
        self._said = folder / f"said-{next(_NUMBERS)}.txt"

    def start(self, *settings: str, **options: Any) -> int:
        """Start training small.toml with these settings; return the process id; call `ended` before the next start."""
        self._ask(said=str(self._said), settings=settings, **options)
        return self._read()["pid"]

    def ended(self) -> Ended:
        """Wait for the training to end."""
        return Ended(self._read()["status"], self._said.read_text())

    def run(self, *settings: str, **options: Any) -> Ended:
        """Start a training run and wait for its end."""
        self.start(*settings, **options)
        return self.ended()

    @staticmethod
    def wait_until(pid: int, seen: Callable[[], object]) -> bool:
        """Wait until a condition holds, or the training has ended; return whether it held."""
        while os.path.exists(f"/proc/{pid}"):
            if seen():
                return True
            time.sleep(0.0005)
        return False

    @staticmethod
    def kill(pid: int, number: int) -> None:
        """Send a signal to a training run, if it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def preload() -> None:
    """Import what a training run imports."""
    import sacrebleu  # noqa: F401
    import torch._dynamo  # noqa: F401  (torch's optimisers import it, which takes a second)

    import glassformer.cli.progress
    import glassformer.translator  # noqa: F401
    from glassformer.recipes.toml import load

    load("copy")


def main() -> None:
    preload()
    answer(pid=os.getpid())
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            obey(**request)
        answer(pid=pid)
        _, status = os.waitpid(pid, 0)
        answer(status=os.waitstatus_to_exitcode(status))


def answer(**values: int) -> None:
    sys.stdout.write(f"{json.dumps(values)}\n")
    sys.stdout.flush()


def obey(said: str, settings: list[str], folder: str = "", fail: int | None = None, kill: int | None = None) -> None:
    """Train, and end with the status of the command; skip the run's page, which takes longer than the run."""
    from glassformer.cli.train.train import train_with_progress
    from glassformer.errors import GlassformerError
    from glassformer.recipes.toml import load

    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    happened = fail_or_kill(folder, fail, kill)
    status = 0
    try:
        summary = train_with_progress(load("small.toml", settings))
        sys.stderr.write(f"{summary.reason} at step {summary.steps}\n")
    except (GlassformerError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        status = 1
    if fail is not None and not happened:
        sys.stderr.write("there was no such touch\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def fail_or_kill(folder: str, fail: int | None, kill: int | None) -> list[str]:
    """Fail with a full disk, or be killed, at the n-th change in a folder; return a list that names a failure."""
    happened: list[str] = []

    def full() -> None:
        happened.append("full")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fail is not None:
        at_touch(folder, fail, full)
    if kill is not None:
        at_touch(folder, kill, lambda: os.kill(os.getpid(), signal.SIGKILL))
    return happened


def at_touch(folder: str, number: int, act: Callable[[], None]) -> None:
    """Run an action at the `number`-th change in a folder."""
    left = [number]

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in TOUCHES or (event == "open" and set(arguments[1] or "w").isdisjoint("wax+")):
            return  # reading is not a change
        inside = isinstance(arguments[0], (str, os.PathLike)) and str(arguments[0]).startswith(folder)
        # shutil.rmtree passes a descriptor and a relative name
        relative = event in {"os.remove", "os.rmdir"} and arguments[-1] != -1
        if inside or relative:
            left[0] -= 1
            if left[0] == -1:
                act()

    sys.addaudithook(watch)


if __name__ == "__main__":
    main()
