"""Files that are never half written, and JSON files that say in which format they are."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import xxhash

from glassformer.errors import CheckpointError, CheckpointVersionError

__all__ = [
    "FORMAT_VERSION",
    "clear_temporaries",
    "hash_of_file",
    "read_json",
    "remove",
    "sync",
    "write_json",
    "write_safely",
]

FORMAT_VERSION = 1
_BUFFER = 1 << 22


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` and the format's version as UTF-8 JSON that a person can read."""
    text = json.dumps({"format_version": FORMAT_VERSION, **content}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return what `write_json` wrote there.

    Raises:
        CheckpointError: the file is missing or is no JSON object with a format version.
        CheckpointVersionError: a newer glassformer wrote it.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}): save the run's tokenizers again") from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise CheckpointError(f"{path}: expected a JSON object with a format_version, got none: is it the right file?")
    if version > FORMAT_VERSION:
        raise CheckpointVersionError(
            f"{path} has format version {version}, this glassformer reads up to {FORMAT_VERSION}: upgrade glassformer"
        )
    return dict(content)


def write_safely(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name and put it in its place when it is whole: `path` is never half written.

    Raises:
        CheckpointError: it could not be written, because the disk is full, say; what was there before still is.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CheckpointError(
            f"cannot write {path}: {error.strerror or error}; what was there before is kept: once there is room, run "
            "the same command again"
        ) from error


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk: only then does it outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, as far as that is possible; it need not be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def clear_temporaries(folder: Path) -> None:
    """Remove what a process that was killed while writing has left in a folder."""
    for path in folder.glob(".*.tmp"):
        remove(path)


def hash_of_file(path: Path) -> str:
    """Return xxh3 (128 bits) of a file, as hexadecimal digits."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BUFFER):
            digest.update(block)
    return digest.hexdigest()
