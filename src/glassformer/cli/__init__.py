"""The command line: one file a command, each of which parses, makes one call, and prints.

Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Annotated

import typer

from glassformer.errors import GlassformerError

__all__ = ["COMMANDS", "application", "main"]

SPINS = "3000"
"""How often one of OpenMP's threads, which multiply matrices, looks whether the others are done before it sleeps."""

COMMANDS = (
    "demo",
    "prepare",
    "train",
    "translate",
    "evaluate",
    "compare",
    "score",
    "trace",
    "explore",
    "report",
    "check",
    "estimate",
    "average",
    "export",
    "distil",
    "recipes",
    "learn",
    "bench",
)
"""In the order of the help; each is in the file of its name."""


def application(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands: the one that is called needs no other, and to make it takes time."""
    app = typer.Typer(
        name="glassformer",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for name in commands:
        command = getattr(import_module(f"glassformer.cli.{name}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command()(command)
    return app


def _version(wanted: bool) -> bool:
    if wanted:
        from glassformer import __version__

        typer.echo(f"glassformer {__version__}")
        raise typer.Exit
    return wanted


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error (at any place).")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say on stderr what works (at any place).")] = False,
) -> None:
    """The Transformer of "Attention Is All You Need" that you can read, watch, train and use."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake ends it with one line on stderr and status 1."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _share_cores()
    try:
        with _saying_more() if "--verbose" in given else nullcontext():
            words = [argument for argument in given if argument not in ("--debug", "--verbose")]
            application([word for word in words[:1] if word in COMMANDS] or COMMANDS)(words)
    except BrokenPipeError:  # whoever read our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (GlassformerError, OSError) as error:
        if debug:
            raise
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)


def _share_cores() -> None:
    """Let threads that wait for each other sleep soon, where the user has not said how they shall wait.

    By default they look for milliseconds, on a core that the one they wait for may need: beside one busy program, a
    training on two cores falls to a twentieth of its speed; so to two fifths. OpenMP reads it when PyTorch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


@contextmanager
def _saying_more() -> Iterator[None]:
    """Write on stderr what the library logs."""
    logger, handler = logging.getLogger("glassformer"), logging.StreamHandler()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
