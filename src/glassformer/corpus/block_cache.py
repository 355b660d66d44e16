"""A folder for blocks of remote files, of bounded size, which all processes of a machine share.

A block's name is the hash of its content, so that whatever is in the folder can be checked. The block that has not been
used for the longest time makes room for a new one; a process that is just reading it has it in memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import xxhash

from glassformer.errors import CheckpointError

__all__ = ["BlockCache"]

_LOCKS = 64
"""Number of locks of blocks: a block is fetched by one process, while others may fetch other blocks."""
_ATTEMPTS = 3
"""Number of times that a block is fetched that does not arrive as it should."""
_FULL = 0.9
"""Share of the size that is left when blocks make room, so that each new block does not cost a look at all others."""


class BlockCache:
    """Blocks of at most `size` bytes together, in `folder`."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size

    def get(self, check: int, length: int, fetch: Callable[[], bytes], where: str) -> bytes:
        """Return the block with this hash (xxh3, 64 bits) and length; `fetch` reads it if the folder does not have it.

        Raises:
            CheckpointError: what `fetch` returns has a different hash or length, or the folder cannot be written;
                the message begins with `where`.
        """
        name = f"{check:016x}-{length}"
        path = self.folder / name[:2] / name
        if (found := _read(path, check)) is not None:
            return found
        from filelock import FileLock

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / f".lock-{check % _LOCKS}"):
                if (found := _read(path, check)) is None:  # else another process has fetched it meanwhile
                    found = _fetched(check, length, fetch, where)
                    self._keep(path, found)
        except OSError as error:
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}; see data.cache") from error
        return found

    def _keep(self, path: Path, block: bytes) -> None:
        from filelock import FileLock

        if len(block) > self.size:
            return
        with FileLock(self.folder / ".lock"):
            used = self._used()
            if used is None or used + len(block) > self.size:
                used = self._make_room(len(block))
            # Counted before it is written: after a crash, the count may be too high, but never too low.
            (self.folder / ".used").write_text(str(used + len(block)))
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_name(f".{path.name}")
            temporary.write_bytes(block)
            temporary.replace(path)

    def _used(self) -> int | None:
        try:
            return int((self.folder / ".used").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _make_room(self, length: int) -> int:
        """Remove blocks until a new one fits; return the bytes that are used then."""
        blocks = sorted(self._blocks())
        used = sum(size for _, size, _ in blocks)
        room = min(self.size - length, int(self.size * _FULL))
        for _, size, path in blocks:
            if used <= room:
                break
            with suppress(FileNotFoundError):
                Path(path).unlink()
            used -= size
        return used

    def _blocks(self) -> Iterator[tuple[float, int, str]]:
        """Yield each block's time of last use, size and path; remove what killed processes left."""
        for folder in self.folder.glob("[0-9a-f][0-9a-f]"):
            for entry in os.scandir(folder):
                if entry.name.startswith("."):
                    Path(entry.path).unlink()
                else:
                    status = entry.stat()
                    yield status.st_mtime, status.st_size, entry.path


def _read(path: Path, check: int) -> bytes | None:
    """Return a block of the folder and mark it as used; None if it is missing or damaged."""
    try:
        block = path.read_bytes()
        os.utime(path)
    except FileNotFoundError:
        return None
    return block if xxhash.xxh3_64_intdigest(block) == check else None


def _fetched(check: int, length: int, fetch: Callable[[], bytes], where: str) -> bytes:
    got = 0
    for _ in range(_ATTEMPTS):
        block = fetch()
        if len(block) == length and xxhash.xxh3_64_intdigest(block) == check:
            return block
        got = len(block)
    what = f"has other bytes than when it was prepared, or is cut short ({got:,} of {length:,} bytes)"
    raise CheckpointError(f"{where} {what}; upload it again, or prepare the corpus again")
