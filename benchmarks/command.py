"""A benchmark as a command: what goes wrong is said in a sentence."""

import shlex
from collections.abc import Callable
from subprocess import CalledProcessError

from glassformer.errors import GlassformerError

__all__ = ["as_command"]


def as_command(main: Callable[[], object]) -> None:
    """Run a benchmark's main function.

    Raises:
        SystemExit: a file, a folder, a run or a peer is not what it should be; the message says why.
    """
    try:
        main()
    except CalledProcessError as error:
        # What was not captured of its words stands above.
        last = (error.stderr or "").strip().splitlines()[-1:]
        raise SystemExit("\n".join([*last, f"this command failed: {shlex.join(map(str, error.cmd))}"])) from None
    except (GlassformerError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
