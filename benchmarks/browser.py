"""The browser that reads the pages."""

import shutil

__all__ = ["FLAGS", "chromium"]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of the browser, the fastest first."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
"""Flags with which the browser makes no requests of its own."""


def chromium() -> str | None:
    """Return the path of the browser; None if the PATH has none."""
    return next(filter(None, map(shutil.which, NAMES)), None)
