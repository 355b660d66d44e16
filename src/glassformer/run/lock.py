"""One process at a time trains in a folder: a lock that ends with the process that holds it, however it ends.

.lock         held (flock) while training; whether the file is there means nothing
.lock.json    who holds it
"""

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from glassformer.errors import CheckpointError, ConfigError
from glassformer.text.storage import remove, write_safely

__all__ = ["LOCK", "locked", "remove_if_empty"]

LOCK, _HOLDER = ".lock", ".lock.json"

_log = logging.getLogger(__name__)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, which is made if it is not there, and removed again if nothing comes into it.

    Raises:
        ConfigError: another process holds it; the message says which, where, and since when.
        CheckpointError: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, thread_local=False)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigError(
            f"{folder} is in use: {_holder(folder)} trains there. Wait until it ends, stop it, or choose another "
            "run.directory"
        ) from None
    except NotImplementedError:
        _log.warning("%s is on a file system without locks: make sure that only one process trains there", folder)
    except OSError as error:
        raise CheckpointError(f"cannot write {folder / LOCK}: {error.strerror or error}") from error
    try:
        write_safely(folder / _HOLDER, lambda path: path.write_text(json.dumps(_self())))
        yield
    finally:
        remove(folder / _HOLDER)
        lock.release()
        remove_if_empty(made)


def remove_if_empty(folders: list[Path]) -> None:
    """Remove a folder that holds only a lock, and those that were made for it: `folders`, the innermost first."""
    if folders and [path.name for path in folders[0].iterdir()] == [LOCK]:
        with suppress(OSError):  # another run may have come into a folder further up
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
    except (OSError, ValueError, KeyError, TypeError):  # it is just beginning, or just ending
        return "another process"
