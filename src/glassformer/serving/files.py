"""Translated files that clients fetch: each under a random name, for a limited time."""

import secrets
from collections import Counter
from dataclasses import dataclass
from tempfile import TemporaryFile
from time import monotonic
from typing import IO

from glassformer.serving.refusals import too_many

__all__ = ["TranslatedFiles"]

LIFE = 1200.0
"""Seconds for which a translated file can be fetched."""
LIFE_FETCHED = 60.0
"""Seconds for which a file can be fetched again."""
MOST_KEPT = 256
"""Maximum number of files that wait to be fetched; each is an open file."""
MOST_OF_CLIENT = 32
"""Maximum number of files that one client lets wait."""


@dataclass(slots=True)
class _Kept:
    """A file without a name in the file system, so that none is left behind when the service is killed."""

    owner: str
    ends: float
    file: IO[bytes]


class TranslatedFiles:
    """Temporary files, which `close` removes."""

    def __init__(self, life: float = LIFE, life_fetched: float = LIFE_FETCHED) -> None:
        self.life, self.life_fetched = life, life_fetched
        self._kept: dict[str, _Kept] = {}

    def check_room(self, owner: str) -> None:
        """Check that a client may leave one more file.

        Raises:
            RequestError: too many files of this client wait to be fetched.
        """
        self._forget()
        ends = [one.ends for one in self._kept.values() if one.owner == owner]
        if len(ends) >= MOST_OF_CLIENT:
            why = f"{len(ends)} of your translated files wait to be fetched: fetch them first"
            raise too_many(why, max(1, round(min(ends) - monotonic() + 0.5)))

    def keep(self, owner: str, data: bytes, suffix: str) -> str:
        """Write a file of a client; return the name by which it can be fetched.

        Where no room is left, the oldest file of the client with most files makes room.

        Raises:
            RequestError: too many files of this client wait to be fetched.
        """
        self.check_room(owner)
        if len(self._kept) >= MOST_KEPT:
            [(most, _)] = Counter(one.owner for one in self._kept.values()).most_common(1)
            self._remove(next(name for name, one in self._kept.items() if one.owner == most))
        name = secrets.token_urlsafe(24) + suffix
        file = TemporaryFile(prefix="glassformer-")  # noqa: SIM115  (open as long as it is kept)
        file.write(data)
        self._kept[name] = _Kept(owner, monotonic() + self.life, file)
        return name

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None if no file has this name or its time is over."""
        self._forget()
        if name not in self._kept:
            return None
        file = self._kept[name].file
        file.seek(0)
        return file.read()

    def fetched(self, name: str) -> None:
        """Note that a client has got the whole of a file."""
        if kept := self._kept.get(name):
            kept.ends = min(kept.ends, monotonic() + self.life_fetched)

    def close(self) -> None:
        """Remove all files."""
        for name in [*self._kept]:
            self._remove(name)

    def _forget(self) -> None:
        now = monotonic()
        for name in [name for name, one in self._kept.items() if one.ends < now]:
            self._remove(name)

    def _remove(self, name: str) -> None:
        self._kept.pop(name).file.close()
