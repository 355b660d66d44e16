"""Translated files that clients fetch: each under a random name, for a limited time."""

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from glassformer.serving.refusals import busy

__all__ = ["TranslatedFiles"]

LIFE = 1200.0
"""Seconds for which a translated file can be fetched."""
MOST_KEPT = 1000
"""Maximum number of files that wait to be fetched."""


class TranslatedFiles:
    """A temporary folder of files, which `close` removes."""

    def __init__(self, life: float = LIFE) -> None:
        self.life = life
        self._folder: TemporaryDirectory[str] | None = None
        self._ends: dict[str, float] = {}

    def keep(self, data: bytes, suffix: str) -> str:
        """Write a file; return the name by which it can be fetched.

        Raises:
            RequestError: too many files wait.
        """
        self._forget()
        if len(self._ends) >= MOST_KEPT:
            raise busy("too many translated files wait to be fetched: try again later")
        self._folder = self._folder or TemporaryDirectory(prefix="glassformer-")
        name = secrets.token_urlsafe(24) + suffix
        (Path(self._folder.name) / name).write_bytes(data)
        self._ends[name] = monotonic() + self.life
        return name

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None if no file has this name or its time is over."""
        self._forget()
        if name not in self._ends or self._folder is None:
            return None
        return (Path(self._folder.name) / name).read_bytes()

    def close(self) -> None:
        """Remove all files."""
        if self._folder:
            self._folder.cleanup()
        self._folder, self._ends = None, {}

    def _forget(self) -> None:
        now = monotonic()
        for name in [name for name, end in self._ends.items() if end < now]:
            del self._ends[name]
            if self._folder:
                (Path(self._folder.name) / name).unlink(missing_ok=True)
