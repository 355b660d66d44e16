"""The command line: one file per command, which parses its options, makes one call, and prints the result.

Large packages are imported only when a command runs, so that `--help` answers at once.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from inspect import signature
from itertools import zip_longest
from keyword import iskeyword
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from glassformer.cli.hidden_options import log_details, show_traceback
from glassformer.cli.option_groups import as_command
from glassformer.cli.streams import INTERRUPTED, end_at_once, flush_output, prepare_streams
from glassformer.errors import GlassformerError, RankError, remedy

__all__ = ["BARE", "COMMANDS", "GROUPS", "BareOptions", "GroupedCommands", "application", "main", "share_cores"]

SPINS = "3000"
"""The number of times that a waiting OpenMP thread checks whether it can continue before it sleeps."""

GROUPS = {
    "Use": ("demo", "translate", "bulk", "learn"),
    "Train": ("recipes", "prepare", "train", "average", "distil"),
    "Look inside": ("explore", "trace", "check", "report"),
    "Measure": ("evaluate", "compare", "score", "calibrate", "tune", "estimate"),
    "Deploy": ("import", "export", "serve"),
}
"""The commands by group, in the order of the help. The command `trace`, for example, is the function `trace_command` in
look_inside/trace.py."""

BARE = {"--ray": "local"}
"""Options that may be given without a value, and the value that each option then has."""

COMMANDS = tuple(name for commands in GROUPS.values() for name in commands)


class BareOptions(TyperCommand):
    """A command whose options in `BARE` may be given without a value, which Typer does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after adding the values of options in `BARE` that were given without a value."""
        words = list[str]()
        for word, following in zip_longest(args, args[1:], fillvalue="-"):
            words += [word, BARE[word]] if word in BARE and following.startswith("-") else [word]
        return super().parse_args(ctx, words)


class GroupedCommands(TyperGroup):
    """The command line as a group of commands, which the help lists by topic."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return sorted(super().list_commands(ctx), key=COMMANDS.index)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, with its commands and their summaries."""
        there = self.list_commands(ctx)
        width = max(map(len, COMMANDS))
        for group, names in GROUPS.items():
            rows = [(f"{name:<{width}}", self.commands[name].get_short_help_str(80)) for name in names if name in there]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def application(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with only these commands; building a single command is faster than building all."""
    app = typer.Typer(
        name="glassformer",
        cls=GroupedCommands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for name in commands:
        command = getattr(import_module(_module_of(name)), f"{name}_command")
        run = as_command(command)
        has_bare = any(option.removeprefix("--") in signature(run).parameters for option in BARE)
        app.command(name, cls=BareOptions if has_bare else None)(run)
    return app


def _module_of(command: str) -> str:
    """Return the name of a command's module, which ends with "_" if the command is a Python keyword (`import_`)."""
    group = next(group for group, commands in GROUPS.items() if command in commands)
    return f"glassformer.cli.{group.lower().replace(' ', '_')}.{command}{'_' if iskeyword(command) else ''}"


def _version(wanted: bool) -> bool:
    if wanted:
        from glassformer import __released__, __version__

        typer.echo(f"glassformer {__version__} ({__released__})")
        raise typer.Exit
    return wanted


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and the date of its release."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", callback=show_traceback, is_eager=True, help="Show the traceback of an error."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", callback=log_details, is_eager=True, help="Log details to stderr, such as the engine in use."
        ),
    ] = False,
) -> None:
    """Read, watch, train and use the Transformer of "Attention Is All You Need".

    Every command also takes --debug and --verbose. `glassformer COMMAND --help` explains a command.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; after a user's mistake, print one line on stderr and exit with status 1."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in given if not word.startswith("-")), "")
    flags: dict[str, bool] = {}  # set by `--debug`
    share_cores()
    try:
        prepare_streams()
        try:
            application([command] if command in COMMANDS else COMMANDS)(given, obj=flags)
        except SystemExit as end:
            flush_output()
            if end.code == INTERRUPTED:
                end_at_once()
            raise
    except BrokenPipeError:  # the program that reads our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (GlassformerError, OSError) as error:
        if flags.get("debug"):
            raise
        # Before the ranks that torchrun starts are connected, all ranks fail with the same error; only the first rank
        # of a machine prints the error.
        if isinstance(error, RankError) or os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"error: {' '.join(_sentence(error).split())}", file=sys.stderr)
        sys.exit(1)


def _sentence(error: Exception) -> str:
    """Return the message of an error; for a system error, the file's name, if any, the reason and what to do."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}; {remedy(error, 'check the path' if place else 'try again')}"
    return str(error)


def share_cores() -> None:
    """Let waiting threads sleep soon, unless the user sets how threads wait.

    By default, a waiting thread keeps its core busy for milliseconds, although other threads may need the core. While
    one other program is busy, training on two cores has a twentieth of its usual speed by default, and two fifths with
    this setting. OpenMP reads the setting when PyTorch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
