"""Run a benchmark as a command with one-line errors, and run the glassformer commands that a benchmark needs first."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from glassformer.errors import GlassformerError

__all__ = ["as_command", "make"]


def as_command(main: Callable[[], object]) -> None:
    """Run a benchmark's main function; report expected errors in one line.

    Raises:
        SystemExit: a file, folder, run or peer is missing or faulty; the message says why.
    """
    try:
        main()
    except subprocess.CalledProcessError as error:
        # If a command's stderr was not captured, its error is already on the screen.
        last = (error.stderr or "").strip().splitlines()[-1:]
        raise SystemExit("\n".join([*last, f"command failed: {shlex.join(map(str, error.cmd))}"])) from None
    except (GlassformerError, OSError) as error:
        raise SystemExit(f"error: {error}") from None


def make(models: Mapping[str, Sequence[str]], work: Path) -> None:
    """Train or distil the models that are not finished; resume models whose training was stopped.

    Raises:
        CalledProcessError: a command failed; its error is on the screen.
    """
    for name, arguments in models.items():
        finished = work / f"{name}.finished"
        if not finished.exists():
            subprocess.run([sys.executable, "-m", "glassformer", *arguments], check=True)
            finished.touch()
