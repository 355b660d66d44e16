"""Detect changed files by their hashes. A hash is recomputed only if its file was touched."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from glassformer.system.files import check_regular, hash_of_file

__all__ = ["Fingerprint", "changed_file", "fingerprints", "refreshed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The hash of a file, and the file's size and times when the hash was computed."""

    hash: str
    """The hash, as returned by `hash_of_file`."""
    size: int
    """Size of the file, in bytes."""
    inode: int
    modified: int
    """Time of the last change of the content (mtime), in nanoseconds."""
    changed: int
    """Time of the last change of the content or the attributes (ctime), in nanoseconds."""

    @classmethod
    def of(cls, path: Path, known: "Fingerprint | None" = None) -> "Fingerprint":
        """Return a file's fingerprint. If the file is untouched since `known`, return `known` without reading the file.

        A file whose size differs from the known size is not read either: the hash is then "", which differs from the
        known hash.

        Raises:
            CheckpointError: the file is not a regular file.
            OSError: the file is missing or cannot be read.
        """
        check_regular(path)
        state = _state(path)  # taken before hashing, so that a change during hashing is noticed next time
        if known and known == cls(hash=known.hash, **state):
            return known
        if known and known.size != state["size"]:
            return cls(hash="", **state)
        return cls(hash=hash_of_file(path), **state)


def fingerprints(folder: Path, names: Iterable[str]) -> dict[str, Fingerprint]:
    """Return the fingerprints of a folder's files with these names (relative to the folder)."""
    return {name: Fingerprint.of(folder / name) for name in names}


def refreshed(folder: Path, known: Mapping[str, Fingerprint]) -> dict[str, Fingerprint]:
    """Return the current fingerprints of a folder's files; only files touched since `known` are hashed.

    Raises:
        CheckpointError: a file is not a regular file.
        OSError: a file is missing or cannot be read.
    """
    return {name: Fingerprint.of(folder / name, fingerprint) for name, fingerprint in known.items()}


def changed_file(before: Mapping[str, Fingerprint], after: Mapping[str, Fingerprint]) -> str:
    """Return the name of the first file whose hash differs, or "" if no hash differs."""
    return next((name for name in before if after[name].hash != before[name].hash), "")


def _state(path: Path) -> dict[str, int]:
    found = os.stat(path)
    return {
        "size": found.st_size,
        "inode": found.st_ino,
        "modified": found.st_mtime_ns,
        "changed": found.st_ctime_ns,
    }
