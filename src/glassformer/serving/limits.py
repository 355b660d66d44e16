"""How much one request may ask for, how many requests a client may send, and who may send any."""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

from glassformer.errors import ConfigError, DataError, quoted
from glassformer.serving.refusals import too_many
from glassformer.settings import Range, check_fields

if TYPE_CHECKING:
    from limits import RateLimitItem

__all__ = ["SECTION", "Keys", "Limits", "Rates", "add_key"]

SECTION = "serving"
"""The section of these settings: `--set serving.rate=100/minute`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one request may ask for, and how much a client; a request over a limit is refused before any work."""

    characters: Annotated[int, Range(1, 10**8)] = 20_000
    """Maximum number of characters of a text."""
    texts: Annotated[int, Range(1, 10**6)] = 256
    """Maximum number of texts of a request."""
    alternatives: Annotated[int, Range(0, 63)] = 3
    """Maximum number of alternatives of a text."""
    rate: str = ""
    """Texts that a client may send in a time, such as "100/minute"; a client is a key or, without keys, an address."""
    seconds: Annotated[float, Range(0.1, 10**5)] = 60.0
    """Time in which a request must be answered."""
    body: Annotated[int, Range(1000, 10**10)] = 4_000_000
    """Maximum number of bytes of a request."""
    body_seconds: Annotated[float, Range(0.1, 10**5)] = 20.0
    """Time in which the body of a request must arrive."""
    queue: Annotated[int, Range(1, 10**8)] = 4096
    """Maximum number of texts that wait for a model."""
    connections: Annotated[int, Range(1, 10**6)] = 1000
    """Maximum number of requests that are open at once."""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_fields(SECTION, self)


class Rates:
    """How many texts each client may send in a time, such as "100/minute"; "" allows any number."""

    def __init__(self, rate: str = "") -> None:
        self._item: RateLimitItem | None = None
        if not rate:
            return
        # Imported here because it adds a twentieth to the start-up time, and most services set no rate.
        from limits import parse
        from limits.storage import MemoryStorage
        from limits.strategies import MovingWindowRateLimiter

        try:
            self._item = parse(rate)
        except ValueError as error:
            raise ConfigError(
                f"{SECTION}.rate: expected texts in a time, such as 100/minute, got {quoted(rate)}"
            ) from error
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def check(self, client: str, texts: int) -> None:
        """Count the texts of a client's request.

        Raises:
            RequestError: they are too many.
        """
        if self._item is None:
            return
        if not self._limiter.hit(self._item, client, cost=min(max(texts, 1), self._item.amount)):
            reset, _ = self._limiter.get_window_stats(self._item, client)
            raise too_many(f"at most {self._item} are allowed", reset - time())


class Keys:
    """The keys with which the service may be used, read again whenever their file has changed.

    Each line holds the SHA-256 hash of a key (keys are random, so that it needs no salt), a tab, and a name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._names: dict[str, str] = {}
        self._read()

    def name_of(self, key: str) -> str | None:
        """Return the name of a key, or None if it is not in the file. Takes the same time for every key."""
        self._read()
        hashed, found = _hash(key), None
        for known, name in self._names.items():
            if hmac.compare_digest(known, hashed):
                found = name
        return found

    def _read(self) -> None:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                lines = self.path.read_text(encoding="utf-8").splitlines()
                self._names, self._stamp = (
                    dict(self._entry(number, line) for number, line in enumerate(lines, 1)),
                    stamp,
                )
        except (OSError, UnicodeDecodeError, DataError):
            if self._stamp is None:  # only an error at start-up: later, the keys that were read before remain valid
                raise

    def _entry(self, number: int, line: str) -> tuple[str, str]:
        hashed, tab, name = line.partition("\t")
        if not tab or len(hashed) != len(_hash("")) or not name:
            raise DataError(
                f"{self.path}, line {number}: expected a hash, a tab and a name; add keys by `glassformer serve "
                "--new-key NAME --keys FILE`"
            )
        return hashed, name


def add_key(path: Path, name: str) -> str:
    """Add a new key under a name to a file of keys; return the key, which the file does not show."""
    if not name.strip() or any(character in name for character in "\t\r\n"):
        raise ConfigError(f"--new-key: expected a name in one line, got {quoted(name)}")
    key = secrets.token_hex(24)  # hexadecimal, because a key that begins with "-" would look like an option
    # The mode only applies to a new file: an existing one keeps its mode, because the service's user may have to read a
    # file that another user has written.
    with open(path, "a+", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
        file.seek(0)
        before = file.read()
        file.write("\n" * (before[-1:] not in ("", "\n")) + f"{_hash(key)}\t{name}\n")
    return key


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
