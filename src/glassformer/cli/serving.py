"""What the commands that serve a page share: say where it is, open it, serve it until Ctrl-C."""

import os
import sys
import webbrowser
from socketserver import BaseServer

import typer

__all__ = ["serve_until_interrupted"]


def serve_until_interrupted(server: BaseServer, what: str, url: str, *, browser: bool) -> None:
    """Print what is served where, open it if somebody can see it, and serve until Ctrl-C."""
    typer.echo(f"{what}: {url}  (Ctrl-C ends it)")
    sys.stdout.flush()
    if browser and _has_display():
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        typer.echo()


def _has_display() -> bool:
    """Return whether somebody sits in front of this machine's screen."""
    local = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(local)
