"""Serve a page: print its address, open it in a browser, and serve it until Ctrl-C."""

import os
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from http.server import HTTPServer

__all__ = ["say_if_elsewhere", "serve_until_interrupted"]


def say_if_elsewhere(server: "HTTPServer", usual: int | None) -> None:
    """Print on stderr that a server is not at its usual port; `usual` is None if the user chose the port."""
    if usual is not None and server.server_port != usual:
        typer.echo(f"port {usual} is in use; serving at port {server.server_port} instead", err=True)


def serve_until_interrupted(server: "HTTPServer", what: str, url: str, *, browser: bool) -> None:
    """Print the address, open it in a browser if this session has a display, and serve until Ctrl-C."""
    import webbrowser

    typer.echo(f"{what}: {url}  (Ctrl-C ends it)")
    sys.stdout.flush()
    if browser and _has_display():
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        typer.echo()


def _has_display() -> bool:
    """Return whether this session has a display."""
    local = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(local)
