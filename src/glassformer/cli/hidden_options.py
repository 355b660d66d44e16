"""The options `--debug` and `--verbose`, which every command has but only the main help shows."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = ["HIDDEN_OPTIONS", "log_details", "show_traceback"]


def show_traceback(context: Any, wanted: bool) -> bool:
    """Tell `main` to raise errors with their traceback, if the option was given."""
    if wanted:
        context.ensure_object(dict)["debug"] = True
    return wanted


def log_details(context: Any, wanted: bool) -> bool:
    """Write the library's log to stderr while the command runs, if the option was given."""
    flags = context.ensure_object(dict)
    if wanted and not flags.get("verbose"):  # the option may be given both before and after the command
        flags["verbose"] = True
        context.find_root().with_resource(_log_on_stderr())
    return wanted


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Write the library's log to stderr inside the context."""
    logger, handler = logging.getLogger("glassformer"), logging.StreamHandler()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


HIDDEN_OPTIONS: Mapping[str, Any] = {
    "debug": Annotated[bool, typer.Option("--debug", hidden=True, is_eager=True, callback=show_traceback)],
    "verbose": Annotated[bool, typer.Option("--verbose", hidden=True, is_eager=True, callback=log_details)],
}
"""The parameter types of the hidden options, by name. The options take effect by their callbacks."""
