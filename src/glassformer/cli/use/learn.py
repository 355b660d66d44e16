"""`glassformer learn`: open the book in the browser, or check a reader's own Transformer."""

import json
import shlex
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from glassformer.built_in import BUILT_IN
from glassformer.cli.arguments import Json
from glassformer.cli.serving import say_if_elsewhere, serve_until_interrupted
from glassformer.errors import ConfigError, MissingDependencyError, install_command, nearest, quoted
from glassformer.system.machine import LOOPBACK

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from glassformer.watch.capstone.checking import FileCheck

__all__ = ["learn_command"]

PACKAGE = Path(__file__).parents[2]
SITE = PACKAGE / "site"
BUILDER = PACKAGE.parents[1] / "docs" / "site" / "build.py"
BOOK_PORT = 8764
_WIDTH = 100


def learn_command(
    chapter: Annotated[
        str | None,
        typer.Argument(metavar="CHAPTER", help='Open this chapter, such as "attention" or "experiments/beam".'),
    ] = None,
    chinese: Annotated[bool, typer.Option("--zh", help="Open the Chinese edition, where there is one.")] = False,
    chapters: Annotated[bool, typer.Option("--list", help="List the chapters instead of serving.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Serve at this port; 0 = any free port.  [default: 8764 if free]"
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the book in a browser.")] = True,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help='Instead, check the Transformer that you write on the page "Write it yourself", step by step.',
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Open the book in the browser.

    The book explains the Transformer from a token to a translation. It is served until Ctrl-C and needs no network.
    With --check, print which step FILE has reached (begin with an empty file), and exit with status 1 if a step is
    wrong.
    """
    if check is not None:
        _check(check, chapter, as_json)
        return
    if as_json:
        raise ConfigError("--json: has an effect only with --check; leave it out, or add --check FILE")
    if not (SITE / "contents.txt").exists():
        _build()
    names = _chapters(SITE)
    if chapters:
        typer.echo("\n".join(names))
        return
    page = _page(chapter or "index", names, SITE / "zh" if chinese else SITE)
    with _server(port) as server:
        say_if_elsewhere(server, BOOK_PORT if port is None else None)
        address = f"http://{LOOPBACK}:{server.server_port}/{page}"
        serve_until_interrupted(server, "the book", address, browser=browser)


def _check(file: Path, chapter: str | None, as_json: bool) -> None:
    """Check a reader's file, and print which steps are right.

    Raises:
        ConfigError: a chapter is also given.
    """
    from glassformer.watch.capstone.checking import check_file

    if chapter is not None:
        raise ConfigError(f"CHAPTER: has no effect with --check, got {quoted(chapter)}; leave one of them out")
    found = check_file(file)
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else "\n".join(_report(found)))
    raise typer.Exit(0 if found.passed else 1)


def _report(found: "FileCheck") -> list[str]:
    """Return the lines of a report on which steps of a reader's file are right."""
    from glassformer.watch.capstone.exercises import EXERCISES

    width = max(len(exercise.title) for exercise in EXERCISES)
    lines = [
        f"✓ {number:2} {exercise.title:{width}}  {shown}"
        for number, (exercise, shown) in enumerate(zip(EXERCISES, found.passed_steps, strict=False), 1)
    ]
    step, line = len(found.passed_steps) + 1, f", line {found.line}" if found.line else ""
    if not found.passed:
        lines.append(f"✗ {step:2} {found.file}{line}: {found.message}")
        lines += [f"     {'or' if number else 'likely'}: {one}" for number, one in enumerate(found.likely)]
        lines += ["     These mistakes give the same numbers here."] * (len(found.likely) > 1)
    lines += [f"note: {note}" for note in found.notes]
    if found.next is None:
        lines.append(f"{found.file} is a Transformer.")
    else:
        verb = "write" if found.passed else "mend"
        lines.append(f"step {step} is next: {verb} `{found.next.signature}`")
        lines.append(f"  {found.next.task}")
        lines.append(f"  See `glassformer learn {shlex.quote(found.next.chapter)}`.")
    return [part for line in lines for part in wrap(line, _WIDTH, subsequent_indent="     ")]


def _build() -> None:
    """Build the documentation from a checkout's sources.

    Raises:
        ConfigError: the sources are missing, or the documentation cannot be built.
        MissingDependencyError: the packages that build the documentation are not installed.
    """
    if not BUILDER.exists():
        raise ConfigError(
            "this installation has no documentation; run `make site` in a clone of glassformer, then "
            "`.venv/bin/glassformer learn` there"
        )
    if any(find_spec(name) is None for name in ("sphinx", "myst_nb", "jupytext", "furo", "math_core")):
        raise MissingDependencyError(f"the documentation is not built; run `make site`, or {install_command('docs')}")
    import subprocess

    typer.echo("building the documentation: its chapters are executed, which takes some minutes", err=True)
    if subprocess.run([sys.executable, str(BUILDER)], check=False).returncode:
        raise ConfigError("the documentation could not be built; see the error above")


def _chapters(site: Path) -> list[str]:
    """Return the names of the site's pages, in reading order."""
    return (site / "contents.txt").read_text(encoding="utf-8").split()


def _page(chapter: str, names: list[str], site: Path) -> str:
    """Return the address of a chapter within the site.

    Raises:
        ConfigError: the chapter does not exist, or has no Chinese edition.
    """
    if chapter not in names:
        raise ConfigError(
            f"CHAPTER: expected one of {', '.join(names)}, got {quoted(chapter)}{nearest(chapter, names)}"
        )
    path = site / f"{chapter}.html"
    if not path.exists():
        raise ConfigError(f"the chapter {quoted(chapter)} has no Chinese edition; leave out --zh")
    return path.relative_to(SITE).as_posix()


class _LeftOut(NamedTuple):
    """A file of the site that the wheel does not contain."""

    kind: str
    content: bytes


def _left_out(address: str) -> _LeftOut | None:
    """Return the file at an address if it is the explorer or a source file, which the wheel lacks; otherwise None."""
    from urllib.parse import unquote, urlsplit

    name = unquote(urlsplit(address).path).lstrip("/")
    if name == "explorer.html":
        return _LeftOut("text/html", _explorer_page())
    file = (PACKAGE.parent / name.removeprefix("source/src/").removesuffix(".html")).resolve()
    is_source = name.startswith("source/src/") and file.is_relative_to(PACKAGE.resolve()) and file.is_file()
    return _LeftOut("text/plain", file.read_bytes()) if is_source else None


@cache
def _explorer_page() -> bytes:
    """Return the explorer page of the model in the package."""
    from glassformer.translator import Translator
    from glassformer.watch.explorer.payload import MOST_CHECKPOINTS, payload
    from glassformer.watch.explorer.standalone import page_html, translation

    translator = Translator.load(BUILT_IN)
    shown = payload(translator, checkpoints=MOST_CHECKPOINTS, story="first")
    return page_html(shown, translation(translator, shown)).encode("utf-8", "replace")


def _server(port: int | None) -> "ThreadingHTTPServer":
    """Return a listening server of the site, which only this machine can reach.

    Raises:
        ConfigError: the port is not free.
    """
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    class Quiet(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            """Send a file of the site; if the wheel does not contain the file, make it from the package."""
            found = None if Path(self.translate_path(self.path)).exists() else _left_out(self.path)
            if found is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", f"{found.kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(found.content)))
            self.end_headers()
            self.wfile.write(found.content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, to keep the user's terminal clear."""

    handler = partial(Quiet, directory=str(SITE))
    try:
        return ThreadingHTTPServer((LOOPBACK, BOOK_PORT if port is None else port), handler)
    except OSError as error:
        if port is None:
            return ThreadingHTTPServer((LOOPBACK, 0), handler)
        raise ConfigError(
            f"port {port} cannot be used ({error.strerror}); choose another port, or 0 for any"
        ) from error
