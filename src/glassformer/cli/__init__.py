"""The command line: one file a command, each of which parses, makes one call, and prints.

Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Annotated

import typer

from glassformer.cli.average import average
from glassformer.cli.bench import bench
from glassformer.cli.check import check
from glassformer.cli.compare import compare
from glassformer.cli.demo import demo
from glassformer.cli.distil import distil
from glassformer.cli.estimate import estimate
from glassformer.cli.evaluate import evaluate
from glassformer.cli.explore import explore
from glassformer.cli.export import export
from glassformer.cli.learn import learn
from glassformer.cli.prepare import prepare
from glassformer.cli.recipes import recipes
from glassformer.cli.report import report
from glassformer.cli.score import score
from glassformer.cli.trace import trace
from glassformer.cli.train import train
from glassformer.cli.translate import translate
from glassformer.errors import GlassformerError

__all__ = ["app", "main"]

SPINS = "3000"
"""How often one of OpenMP's threads, which multiply matrices, looks whether the others are done before it sleeps."""

app = typer.Typer(
    name="glassformer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo,
    prepare,
    train,
    translate,
    evaluate,
    compare,
    score,
    trace,
    explore,
    report,
    check,
    estimate,
    average,
    export,
    distil,
    recipes,
    learn,
):
    app.command()(command)
app.add_typer(bench)


def _version(wanted: bool) -> bool:
    if wanted:
        from glassformer import __version__

        typer.echo(f"glassformer {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
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
            app([argument for argument in given if argument not in ("--debug", "--verbose")])
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
