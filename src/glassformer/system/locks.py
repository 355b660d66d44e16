"""Locks that let one process at a time write into a folder. A lock is released when its process ends, even if killed.

.lock         locked (flock) while a process writes the folder; the mere existence of the file is not a lock
.lock.json    the process that has the lock
"""

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from glassformer.errors import ConfigError
from glassformer.system.files import remove, unwritable, write_safely

__all__ = ["LOCK", "locked"]

LOCK, _HOLDER = ".lock", ".lock.json"

_log = logging.getLogger(__name__)


@contextmanager
def locked(folder: Path, on_wait: Callable[[], object] | None = None) -> Iterator[None]:
    """Lock a folder within the context. A missing folder is created first, and is removed afterwards if still empty.

    If another process holds the lock, call `on_wait` and wait for that process; without `on_wait`, raise an error.

    Raises:
        ConfigError: another process holds the lock; the message names the process, its host and its start time.
        CheckpointError: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, thread_local=False)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if on_wait is None:
                raise ConfigError(
                    f"{folder} is in use: {_holder(folder)} trains there; wait until it ends, stop it, or choose "
                    "another run.directory"
                ) from None
            on_wait()
            lock.acquire()
    except NotImplementedError:
        _log.warning("%s is on a file system without locks: make sure that only one process writes there", folder)
    except OSError as error:
        raise unwritable(folder / LOCK, error) from error
    try:
        write_safely(folder / _HOLDER, lambda path: path.write_text(json.dumps(_self())))
        yield
    finally:
        remove(folder / _HOLDER)
        lock.release()
        _remove_if_empty(made)


def _remove_if_empty(folders: list[Path]) -> None:
    """Remove the first folder if it contains only a lock, and then the next folders, its parents, if they are empty."""
    with suppress(OSError):  # the folder may have been moved, or another run may be using a parent folder
        if folders and [path.name for path in folders[0].iterdir()] == [LOCK]:
            (folders[0] / LOCK).unlink()
            for folder in folders:
                folder.rmdir()


def _self() -> dict[str, str | int]:
    now = datetime.now().astimezone().isoformat(" ", "seconds")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": now}


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / _HOLDER).read_text())
        return f"process {holder['process']} on {holder['host']}, since {holder['since']},"
    except (OSError, ValueError, KeyError, TypeError):  # the process that holds the lock is just starting or ending
        return "another process"
