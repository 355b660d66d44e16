"""`glassformer learn`: the book in the browser, without a network."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.serving import say_if_elsewhere, serve_until_interrupted
from glassformer.errors import ConfigError, MissingDependencyError, nearest

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

__all__ = ["learn"]

PACKAGE = Path(__file__).parents[1]
SITE = PACKAGE / "site"
BUILDER = PACKAGE.parents[1] / "book" / "site" / "build.py"
ADDRESS, DEFAULT_PORT = "127.0.0.1", 8764
_NO_CHAPTERS = {"search", "genindex", "explorer"}


def learn(
    chapter: Annotated[
        str | None,
        typer.Argument(help='A chapter, such as "attention" or "experiments/beam".  [default: the first page]'),
    ] = None,
    chinese: Annotated[bool, typer.Option("--zh", help="In Chinese, where the chapter is there in Chinese.")] = False,
    chapters: Annotated[bool, typer.Option("--list", help="List the chapters, and end.")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve at this port; 0 = any that is free.  [default: 8764 if it is free]"),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the book in a browser.")] = True,
) -> None:
    """Read the book: the Transformer from a token to a translation, in the browser, served until Ctrl-C."""
    if not (SITE / "index.html").exists():
        _build()
    names = _chapters(SITE)
    if chapters:
        typer.echo("\n".join(names))
        return
    page = _page(chapter or "index", names, SITE / "zh" if chinese else SITE)
    with _server(port) as server:
        say_if_elsewhere(server, DEFAULT_PORT if port is None else None)
        address = f"http://{ADDRESS}:{server.server_port}/{page}"
        serve_until_interrupted(server, "the book", address, browser=browser)


def _build() -> None:
    """Build the book from a checkout's sources.

    Raises:
        ConfigError: the sources, or the demo's model, are not there.
        MissingDependencyError: what builds it is not installed.
    """
    if not BUILDER.exists():
        raise ConfigError("this installation came without the book: in a checkout of glassformer, run `make book`")
    if any(find_spec(name) is None for name in ("sphinx", "myst_nb", "jupytext", "furo", "math_core")):
        raise MissingDependencyError("the book is not built yet: run `make book`, or pip install -e '.[book]' first")
    if not (BUILDER.parents[2] / "runs" / "demo" / "model.safetensors").exists():
        raise ConfigError(
            "the book is not built yet, and it looks into the demo's model: run `make book`, which makes both"
        )
    import subprocess

    typer.echo("the book is not built yet: executing its chapters and building it takes some minutes", err=True)
    if subprocess.run([sys.executable, str(BUILDER)], check=False).returncode:
        raise ConfigError("the book could not be built; what went wrong stands above")


def _chapters(site: Path) -> list[str]:
    """Return the names of the chapters, in the order of the table of contents of the first page."""
    text = (site / "index.html").read_text(encoding="utf-8")
    found = re.findall(r'class="reference internal" href="([\w/]+)\.html"', text)
    return [name for name in dict.fromkeys(["index", *found]) if name not in _NO_CHAPTERS and "source/" not in name]


def _page(chapter: str, names: list[str], site: Path) -> str:
    """Return the address of a chapter within the site.

    Raises:
        ConfigError: there is no such chapter, or not in Chinese.
    """
    if chapter not in names:
        raise ConfigError(f"no chapter is called {chapter!r}{nearest(chapter, names)}; there are {', '.join(names)}")
    path = site / f"{chapter}.html"
    if not path.exists():
        raise ConfigError(f"the chapter {chapter!r} is there in English only: leave --zh out")
    return path.relative_to(SITE).as_posix()


def _server(port: int | None) -> "ThreadingHTTPServer":
    """Return a server of the site that listens already, to this machine alone.

    Raises:
        ConfigError: the port is not free.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the terminal is the user's."""

    handler = partial(Quiet, directory=str(SITE))
    try:
        return ThreadingHTTPServer((ADDRESS, DEFAULT_PORT if port is None else port), handler)
    except OSError as error:
        if port is None:
            return ThreadingHTTPServer((ADDRESS, 0), handler)
        raise ConfigError(f"port {port} cannot be used ({error.strerror}): choose another, or 0 for any") from error
