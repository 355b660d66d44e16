"""The process that runs a reader's file.

    python -m glassformer.watch.capstone.worker FILE RESULTS SECONDS TRAINING_SECONDS

The process appends one line of JSON to RESULTS for each step. If a step takes longer than its limit, the process writes
its stack to RESULTS.stack and ends.
"""

import faulthandler
import json
import os
import sys
from pathlib import Path

import torch

from glassformer.watch.capstone.attempts import ATTEMPTS
from glassformer.watch.capstone.exercises import EXERCISES
from glassformer.watch.capstone.reading import Mine, Printed, RejectedError

__all__ = ["work"]

_NAMES = [name for exercise in EXERCISES for name in exercise.names]
_MEMORY = 2 << 30
"""Maximum number of bytes of address space for a reader's file, in addition to those that PyTorch needs."""


def work(path: Path, results: Path, seconds: float, training_seconds: float) -> None:
    """Check the steps of a file in order, until one is missing or wrong."""
    torch.set_num_threads(1)
    _limit_memory()
    with results.open("a", encoding="utf-8") as lines, results.with_suffix(".stack").open("w") as stack:

        def say(**values: object) -> None:
            lines.write(json.dumps(values) + "\n")
            lines.flush()

        try:
            say(reading=True)
            faulthandler.dump_traceback_later(seconds, exit=True, file=stack)
            sys.stdout = printed = Printed(str(path))
            mine = Mine(path, path.read_text(encoding="utf-8"))
            for number, (exercise, attempt) in enumerate(zip(EXERCISES, ATTEMPTS, strict=True), 1):
                missing = [name for name in exercise.names if not mine.has(name)]
                if missing:
                    say(missing=missing[0], step=number, nearest=mine.nearest(missing[0], _NAMES))
                    break
                say(step=number)
                limit = training_seconds if exercise.names == ("train",) else seconds
                faulthandler.dump_traceback_later(limit, exit=True, file=stack)
                torch.set_default_dtype(torch.float64)
                torch.manual_seed(number)
                with mine.blamed(exercise.title):
                    shown = attempt(mine)
                say(passed=number, shown=shown)
            if printed.line:
                say(printed=printed.text, line=printed.line)
        except RejectedError as error:
            say(message=error.message, line=error.line, point=error.point, likely=error.likely)
        say(end=True)


def _limit_memory() -> None:
    """Limit the address space, where the system supports it."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    except (ImportError, OSError, ValueError):  # only Linux has this limit; the time limit applies everywhere
        return


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    os._exit(0)  # skips threads and exit functions of the reader's file
