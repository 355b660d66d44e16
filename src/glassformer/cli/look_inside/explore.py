"""`glassformer explore`: show every number of a model in a browser, from a server or in one page."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.built_in import BUILT_IN, run_folder
from glassformer.cli.arguments import Device
from glassformer.cli.serving import say_if_elsewhere, serve_until_interrupted
from glassformer.errors import ConfigError, DataError, quoted

if TYPE_CHECKING:
    from glassformer.translator import Translator
    from glassformer.watch.explorer.standalone import Page

__all__ = ["explore_command", "print_page"]


def explore_command(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run directory, such as runs/demo; demo is the model in the package.")
    ] = BUILT_IN,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Begin with this sentence.  [default: an example]")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write one self-contained page to FILE instead of serving."),
    ] = None,
    snapshots: Annotated[
        int,
        typer.Option(
            min=0, max=6, metavar="N", help="With --html: include N snapshots of the training, to play it back."
        ),
    ] = 0,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="With --html: include this sentence's numbers and no weights, for a large model or to share the page.",
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Serve at this port; 0 = any free port.  [default: 8765 if free]"
        ),
    ] = None,
    device: Device = "cpu",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """See and change every number of a model, in the browser.

    Serve the explorer until Ctrl-C, or write it to one page that needs no network.
    """
    if recorded and file is None:
        raise ConfigError("--recorded has no effect without --html FILE; give the file to write")
    if recorded and snapshots:
        raise ConfigError(
            "--snapshots has no effect with --recorded, because a recording has no weights; leave one of them out"
        )
    if snapshots and file is None:
        raise ConfigError(
            "--snapshots has no effect without --html FILE, because a served page always has snapshots; leave it out"
        )
    if file is None:
        _serve_page(_load(run, text, device), text or "", port, browser=browser)
        return
    from glassformer.watch.explorer.standalone import check_path, write_page

    if port is not None:
        raise ConfigError(f"--port {port} has no effect with --html, which serves nothing; leave one of them out")
    check_path(file)
    print_page(write_page(_load(run, text, device), file, text or "", snapshots=snapshots, recorded=recorded))


def print_page(page: "Page") -> None:
    """Print the path and the size of a page, and what the page leaves out."""
    typer.echo(f"{page.path}: {page.size / 1e6:.1f} MB; open it in a browser, no network is needed")
    for what in page.left_out:
        typer.echo(f"left out: {what}")


def _load(run: str, text: str | None, device: str) -> "Translator":
    """Return the translator of a run, after checking the sentence to begin with.

    Raises:
        ConfigError: a sentence is given instead of a run.
        DataError: the sentence is blank, or not valid Unicode.
    """
    from glassformer.cli.explanation import read_instead
    from glassformer.translator import Translator

    if text is None and " " in run.strip() and not Path(run).exists():
        command = f"glassformer explore {BUILT_IN} {shlex.quote(run)}"
        raise ConfigError(
            f"RUN: expected the folder of a run, got the text {quoted(run)}; for the model in the package, use "
            f"`{command}`"
        )
    folder = run_folder(run)
    if text is None:
        return Translator.load(folder, device=device)
    if not text.strip():
        raise DataError("the text is blank; give a sentence, or leave out the text")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError("the text is not valid Unicode; give it in UTF-8")
    translator = Translator.load(folder, device=device)
    if unknown := translator.unknown(text):
        typer.echo(
            f"not in the vocabulary, so the model reads <unk> instead: {', '.join(map(quoted, unknown))}", err=True
        )
    if (instead := translator.rewritten(text)) is not None:
        typer.echo(read_instead(instead), err=True)
    return translator


def _serve_page(translator: "Translator", text: str, port: int | None, *, browser: bool) -> None:
    from glassformer.watch.explorer.server import DEFAULT_PORT, serve

    with serve(translator, text, port) as server:
        say_if_elsewhere(server, DEFAULT_PORT if port is None else None)
        serve_until_interrupted(server, f"explorer of {translator.bundle.folder}", server.url, browser=browser)
