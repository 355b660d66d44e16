"""Translated files that clients can fetch for a limited time, each under a random name."""

import secrets
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, NamedTuple

from glassformer.serving.refusals import too_many

__all__ = ["NamedFile", "TranslatedFiles"]

LIFE = 1200.0
"""Seconds for which a translated file can be fetched."""
LIFE_FETCHED = 60.0
"""Seconds for which a file can be fetched again after the first time."""
MOST_KEPT = 256
"""Maximum number of files that wait to be fetched; each is an open file."""
MOST_OF_CLIENT = 32
"""Maximum number of files of one client that wait to be fetched."""


class NamedFile(NamedTuple):
    """A file, and the name under which the client saves it."""

    name: str
    data: bytes


@dataclass(slots=True)
class _Kept:
    """A file without a name in the file system, so that the file disappears if the service is killed."""

    owner: str
    name: str
    ends: float
    file: IO[bytes]


class TranslatedFiles:
    """The temporary files of all clients; `close` removes them."""

    def __init__(self, life: float = LIFE, life_fetched: float = LIFE_FETCHED) -> None:
        self.life, self.life_fetched = life, life_fetched
        self._kept: dict[str, _Kept] = {}

    def check_room(self, owner: str) -> None:
        """Check that a client may have one more file.

        Raises:
            RequestError: too many files of this client wait to be fetched.
        """
        self._forget()
        ends = [one.ends for one in self._kept.values() if one.owner == owner]
        if len(ends) >= MOST_OF_CLIENT:
            why = f"{len(ends)} of your translated files wait to be fetched: fetch them first"
            raise too_many(why, min(ends) - monotonic())

    def keep(self, owner: str, name: str, data: bytes) -> str:
        """Write a file of a client; return the random name by which it can be fetched.

        If there are too many files in all, the oldest file of the client with the most files is removed.

        Raises:
            RequestError: too many files of this client wait to be fetched.
        """
        self.check_room(owner)
        if len(self._kept) >= MOST_KEPT:
            [(most, _)] = Counter(one.owner for one in self._kept.values()).most_common(1)
            self._remove(next(key for key, one in self._kept.items() if one.owner == most))
        key = secrets.token_urlsafe(24) + PurePath(name).suffix.lower()
        file = TemporaryFile(prefix="glassformer-")  # noqa: SIM115  (stays open while the file is kept)
        file.write(data)
        self._kept[key] = _Kept(owner, name, monotonic() + self.life, file)
        return key

    def find(self, key: str) -> NamedFile | None:
        """Return a file by its random name; None if no file has this name, or the file has expired."""
        self._forget()
        if key not in self._kept:
            return None
        kept = self._kept[key]
        kept.file.seek(0)
        return NamedFile(kept.name, kept.file.read())

    def fetched(self, key: str) -> None:
        """Record that a client has received a whole file, which shortens the time for which the file is kept."""
        if kept := self._kept.get(key):
            kept.ends = min(kept.ends, monotonic() + self.life_fetched)

    def close(self) -> None:
        """Remove all files."""
        for key in [*self._kept]:
            self._remove(key)

    def _forget(self) -> None:
        now = monotonic()
        for key in [key for key, one in self._kept.items() if one.ends < now]:
            self._remove(key)

    def _remove(self, key: str) -> None:
        self._kept.pop(key).file.close()
