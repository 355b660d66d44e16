"""Hidden options of commands: `--debug` and `--verbose`, shown in the main help only, and moved options."""

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer

__all__ = ["log_details", "show_traceback", "with_hidden_options"]

MOVED_TYPES = {
    "length_penalty": float,
    "max_source": int,
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "seed": int,
}
"""Options of version 0.1.0 that are decoding settings now, with their types. The next version drops them."""


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


def with_hidden_options(command: Callable[..., None], moved: Sequence[str] = ()) -> Callable[..., None]:
    """Return a command that also takes `--debug`, `--verbose` and these moved options.

    A moved option becomes an override of the command's `--set`, and stderr gets a line with the new spelling.
    """
    own = inspect.signature(command)
    added: dict[str, tuple[Any, Any]] = {"debug": (Debug, False), "verbose": (Verbose, False)}
    for name in moved:
        kind: Any = MOVED_TYPES[name] | None
        added[name] = Annotated[kind, typer.Option(_spelling(name), hidden=True)], None

    @wraps(command)
    def run(**given: Any) -> None:
        values = {name: given.pop(name) for name in added}
        overrides = [_override(name, values[name]) for name in moved if values[name] is not None]
        if overrides:
            given["overrides"] = [*overrides, *(given["overrides"] or ())]
        command(**given)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *parameters])  # type: ignore[attr-defined]  # where `inspect` looks for it
    run.__annotations__ = {**command.__annotations__, **{name: kind for name, (kind, _) in added.items()}}
    return run


def _spelling(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _override(name: str, value: object) -> str:
    override = f"decoding.{name}={value}"
    typer.echo(f"{_spelling(name)} has moved: use --set {override}", err=True)
    return override
