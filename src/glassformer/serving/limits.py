"""Limits per request and per client, and the keys of the clients that may use the service."""

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
    """The limits per request and per client. A request over a limit is refused before any work."""

    characters: Annotated[int, Range(1, 10**8)] = 20_000
    """Maximum number of characters of a text."""
    sentence: Annotated[int, Range(2, 10**6)] = 256
    """Maximum number of tokens of a sentence, including `<eos>`. A long sentence is cut at its commas, semicolons and
    colons; a text is refused if a part of it is still too long. A given `decoding.max_source` replaces this limit."""
    texts: Annotated[int, Range(1, 10**6)] = 256
    """Maximum number of texts of a request."""
    alternatives: Annotated[int, Range(0, 63)] = 3
    """Maximum number of alternatives of a text."""
    rate: str = ""
    """Number of texts that a client may send per time, such as "100/minute"; a client is a key or, without keys, an
    address."""
    seconds: Annotated[float, Range(0.1, 10**5)] = 60.0
    """Maximum time to answer a request, in seconds."""
    body: Annotated[int, Range(1000, 10**10)] = 4_000_000
    """Maximum number of bytes of a request."""
    body_seconds: Annotated[float, Range(0.1, 10**5)] = 20.0
    """Maximum time in which the body of a request must arrive, in seconds."""
    queue: Annotated[int, Range(1, 10**8)] = 4096
    """Maximum number of texts that wait for a model."""
    connections: Annotated[int, Range(1, 10**6)] = 1000
    """Maximum number of requests that are answered at the same time."""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_fields(SECTION, self)


class Rates:
    """Limits the number of texts that each client may send per time, such as "100/minute"; "" means no limit."""

    def __init__(self, rate: str = "") -> None:
        self._item: RateLimitItem | None = None
        if not rate:
            return
        # Imported here because the import adds a twentieth to the start-up time, and most services set no rate.
        from limits import parse
        from limits.storage import MemoryStorage
        from limits.strategies import MovingWindowRateLimiter

        try:
            self._item = parse(rate)
        except ValueError as error:
            raise ConfigError(
                f"{SECTION}.rate: expected a number of texts per time, such as 100/minute, got {quoted(rate)}"
            ) from error
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def check(self, client: str, texts: int) -> None:
        """Count the texts of a client's request.

        Raises:
            RequestError: the client has sent too many texts.
        """
        if self._item is None:
            return
        if not self._limiter.hit(self._item, client, cost=min(max(texts, 1), self._item.amount)):
            reset, _ = self._limiter.get_window_stats(self._item, client)
            raise too_many(f"at most {self._item} are allowed", reset - time())


class Keys:
    """The keys that allow clients to use the service. The file of keys is read again whenever it has changed.

    Each line of the file holds the SHA-256 hash of a key, a tab, and a name. The hashes need no salt, because keys are
    random.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._names: dict[str, str] = {}
        self._read()

    def name_of(self, key: str) -> str | None:
        """Return the name of a key, or None if the key is not in the file; the time does not depend on the key."""
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
            if self._stamp is None:  # an error only at start-up: later, the keys that were read before remain valid
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
    """Add a new key with this name to a file of keys; return the key, of which the file only holds a hash."""
    if not name.strip() or any(character in name for character in "\t\r\n"):
        raise ConfigError(f"--new-key: expected a name in one line, got {quoted(name)}")
    key = secrets.token_hex(24)  # hexadecimal, because a key that begins with "-" would look like an option
    # The mode only applies to a new file. An existing file keeps its mode, because the service may run as a different
    # user than the user who writes the file.
    with open(path, "a+", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
        file.seek(0)
        before = file.read()
        file.write("\n" * (before[-1:] not in ("", "\n")) + f"{_hash(key)}\t{name}\n")
    return key


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
