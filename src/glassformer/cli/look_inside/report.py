"""`glassformer report`."""

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.arguments import RunFolder

__all__ = ["report_command"]


def report_command(
    run: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the page to FILE.  [default: report.html in the run]"),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = False,
) -> None:
    """Write a page about a run: curves, outputs, attention, corpus.

    The page needs no network. You can write it at any time during training; `train` writes it at the end.
    """
    from glassformer.watch.report import write_report

    path = write_report(run, output)
    typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB; open it in a browser, no network is needed")
    if browser:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
