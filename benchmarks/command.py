"""A benchmark as a command, whose mistakes are told in a sentence, and the commands of ours that it runs first."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from glassformer.errors import GlassformerError

__all__ = ["as_command", "make"]


def as_command(main: Callable[[], object]) -> None:
    """Run a benchmark's main function.

    Raises:
        SystemExit: a file, a folder, a run or a peer is not what it should be; the message says why.
    """
    try:
        main()
    except subprocess.CalledProcessError as error:
        # What was not captured of its words stands above.
        last = (error.stderr or "").strip().splitlines()[-1:]
        raise SystemExit("\n".join([*last, f"this command failed: {shlex.join(map(str, error.cmd))}"])) from None
    except (GlassformerError, OSError) as error:
        raise SystemExit(f"error: {error}") from None


def make(models: Mapping[str, Sequence[str]], work: Path) -> None:
    """Train or distil what is not there; what was stopped goes on.

    Raises:
        CalledProcessError: a command failed, which has said why.
    """
    for name, arguments in models.items():
        finished = work / f"{name}.finished"
        if not finished.exists():
            subprocess.run([sys.executable, "-m", "glassformer", *arguments], check=True)
            finished.touch()
