"""`glassformer average`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import RunFolder

__all__ = ["average"]


def average(
    run: RunFolder,
    last: Annotated[int, typer.Option("--last", help="How many of the latest checkpoints.")] = 5,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Folder of the result.  [default: RUN/averaged-LAST]")
    ] = None,
) -> None:
    """Average the weights of a run's last checkpoints into a model of its own; the run stays as it is."""
    from glassformer.run import average as average_run

    folder = average_run(run, last, output)
    typer.echo(f"the mean of {last} checkpoints is in {folder}:  glassformer evaluate {folder} SRC REF")
