"""Hidden options of commands: `--debug` and `--verbose`, shown in the main help only."""

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer

__all__ = ["log_details", "show_traceback", "with_hidden_options"]


def show_traceback(context: Any, wanted: bool) -> bool:
    """Tell `main` to raise errors, if wanted."""
    if wanted:
        context.ensure_object(dict)["debug"] = True
    return wanted


def log_details(context: Any, wanted: bool) -> bool:
    """Write the library's log to stderr while the command runs, if wanted."""
    flags = context.ensure_object(dict)
    if wanted and not flags.get("verbose"):  # the option may come before and after the command
        flags["verbose"] = True
        context.find_root().with_resource(_log_on_stderr())
    return wanted


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Write the library's log to stderr."""
    logger, handler = logging.getLogger("glassformer"), logging.StreamHandler()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


Debug = Annotated[bool, typer.Option("--debug", hidden=True, is_eager=True, callback=show_traceback)]
Verbose = Annotated[bool, typer.Option("--verbose", hidden=True, is_eager=True, callback=log_details)]


def with_hidden_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that also takes `--debug` and `--verbose`."""
    own = inspect.signature(command)
    added: dict[str, Any] = {"debug": Debug, "verbose": Verbose}

    @wraps(command)
    def run(**given: Any) -> None:
        command(**{name: value for name, value in given.items() if name not in added})

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in added.items()
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *parameters])  # type: ignore[attr-defined]  # where `inspect` looks for it
    run.__annotations__ = {**command.__annotations__, **added}
    return run
