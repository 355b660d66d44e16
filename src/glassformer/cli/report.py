"""`glassformer report`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import RunFolder

__all__ = ["report"]


def report(
    run: RunFolder,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write it here.  [default: report.html in the run]")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write one page about a run: curves, best and worst translations, attention, corpus, configuration.

    The page needs no network. It can be written while the training goes on; at its end, training writes it itself.
    """
    from glassformer.report import write_report

    path = write_report(run, output)
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB; open it in a browser, no network is needed")
    if show:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
