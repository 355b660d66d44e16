"""Find the browser in which benchmarks open pages."""

import shutil

__all__ = ["FLAGS", "chromium"]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of the browser's program, fastest program first."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
"""Flags that keep the browser from making requests of its own."""


def chromium() -> str | None:
    """Return the path of the browser, or None if no browser is in the PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)
