"""Folders for results, local or remote (any URL that fsspec supports). A file appears in them only when complete."""

import math
import os
import tempfile
import uuid
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from glassformer.errors import CheckpointError, GlassformerError
from glassformer.system.files import clear_temporaries, sync, unwritable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = ["LocalStorage", "RemoteStorage", "Storage", "storage_of", "using"]

_BUFFER = 1 << 20


@runtime_checkable
class Storage(Protocol):
    """A folder in which several processes may write. If two processes write the same file, the later version stays."""

    place: str
    """The folder's path or URL."""

    def names(self, folder: str) -> set[str]:
        """Return the names of the complete files in a subfolder; an empty set if the subfolder does not exist."""

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that appears under its name when the context ends without an error.

        Raises:
            CheckpointError: the file cannot be written.
        """

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the blocks of a file.

        Raises:
            OSError: the file is missing or cannot be read.
        """

    def rename(self, name: str, new: str) -> None:
        """Rename a file.

        Raises:
            OSError: the file is missing or cannot be renamed.
        """

    def clear(self, folder: str, of: Container[str] | None = None, before: float = math.inf) -> None:
        """Remove the files that killed processes left in a subfolder; no other process may be writing them.

        With `of`, only what belongs to files with these names is removed; with `before`, only what was last written
        before this time (seconds since 1970).
        """


def storage_of(place: str) -> Storage:
    """Return the storage with this path or URL.

    Raises:
        CheckpointError: the URL's protocol is unknown, or its file system is not installed.
    """
    return RemoteStorage(place) if "://" in place else LocalStorage(place)


class LocalStorage:
    """A folder on this machine or a shared file system. A file is written under a temporary name and then renamed."""

    def __init__(self, place: str) -> None:
        self.place = place

    def names(self, folder: str) -> set[str]:
        """Return the names of the complete files in a subfolder; an empty set if the subfolder does not exist."""
        try:
            with os.scandir(Path(self.place, folder)) as found:
                return {entry.name for entry in found if not entry.name.startswith(".")}
        except FileNotFoundError:
            return set()

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that appears under its name when the context ends without an error.

        Raises:
            CheckpointError: the file cannot be written, for example because the disk is full.
        """
        path = Path(self.place, name)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync(path.parent)
        except OSError as error:
            raise unwritable(path, error) from error
        finally:
            with suppress(OSError):
                temporary.unlink()

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the blocks of a file.

        Raises:
            OSError: the file is missing or cannot be read.
        """
        with Path(self.place, name).open("rb") as file:
            while block := file.read(_BUFFER):
                yield block

    def rename(self, name: str, new: str) -> None:
        """Rename a file.

        Raises:
            OSError: the file is missing or cannot be renamed.
        """
        Path(self.place, name).replace(Path(self.place, new))

    def clear(self, folder: str, of: Container[str] | None = None, before: float = math.inf) -> None:
        """Remove the files that killed processes left in a subfolder; no other process may be writing them."""
        clear_temporaries(Path(self.place, folder), of, before)


class RemoteStorage:
    """A folder of an object store. A file is uploaded, under its final name, when it is complete."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._files, self._folder = _file_system(place)
        self._made = set[str]()  # caches the folders that exist, because each check costs a request

    def names(self, folder: str) -> set[str]:
        """Return the names of the files in a subfolder; an empty set if the subfolder does not exist."""
        try:
            found = self._files.ls(self._path(folder), detail=False, refresh=True)
        except FileNotFoundError:
            return set()
        return {PurePosixPath(path).name for path in found}

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a local file that is uploaded when the context ends without an error.

        Raises:
            CheckpointError: the file cannot be written.
        """
        with tempfile.NamedTemporaryFile(prefix="glassformer-") as file:
            try:
                yield file
                file.flush()
                self._make_folder_of(name)
                self._files.put_file(file.name, self._path(name))
            except OSError as error:
                raise unwritable(f"{self.place.rstrip('/')}/{name}", error) from error

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the blocks of a file.

        Raises:
            OSError: the file is missing or cannot be read.
        """
        with self._files.open(self._path(name), "rb") as file:
            while block := file.read(_BUFFER):
                yield block

    def download(self, name: str, path: Path) -> None:
        """Download a file to a path on this machine.

        Raises:
            OSError: the file is missing or cannot be read.
        """
        self._files.get_file(self._path(name), str(path))

    def rename(self, name: str, new: str) -> None:
        """Copy a file to a different name, and remove the original file.

        Raises:
            OSError: the file is missing or cannot be renamed.
        """
        self._files.mv(self._path(name), self._path(new))

    def clear(self, folder: str, of: Container[str] | None = None, before: float = math.inf) -> None:
        """Do nothing: a killed process leaves nothing in an object store."""

    def _make_folder_of(self, name: str) -> None:
        folder = self._path(name).rpartition("/")[0]
        if folder not in self._made:
            self._files.makedirs(folder, exist_ok=True)
            self._made.add(folder)

    def _path(self, name: str) -> str:
        return f"{self._folder.rstrip('/')}/{name}"


def _file_system(place: str) -> tuple["AbstractFileSystem", str]:
    from fsspec.core import url_to_fs

    try:
        files, folder = url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise CheckpointError(
            f"cannot open {place}: {error}; correct the URL, or install its protocol's package"
        ) from error
    return files, str(folder)


@contextmanager
def using(where: str) -> Iterator[None]:
    """Turn the errors of a remote file system into CheckpointError, within the context.

    Raises:
        CheckpointError: a file is missing, or the file system denies access or cannot be reached.
    """
    try:
        yield
    except GlassformerError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"{where} does not exist; correct the URL") from error
    except Exception as error:  # file systems raise their own exceptions, for example if credentials are missing
        raise CheckpointError(f"cannot use {where}: {error}; see its file system's documentation") from error
