"""`glassformer average`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import RunFolder
from glassformer.errors import counted

__all__ = ["average_command"]


def average_command(
    run: RunFolder,
    last: Annotated[int, typer.Option("--last", metavar="N", help="Average the N latest checkpoints.")] = 5,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Write the model to DIR.  [default: RUN/averaged-N]")
    ] = None,
) -> None:
    """Average the weights of a run's last checkpoints.

    The result is a separate model; the run is not changed.
    """
    from glassformer.jobs import average

    folder = average(run, last, output)
    command = f"glassformer evaluate {shlex.quote(str(folder))} SRC REF"
    typer.echo(f"wrote the mean of {counted(last, 'checkpoint')} to {folder}:  {command}")
