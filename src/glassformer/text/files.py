"""Files of a corpus: found by their names, opened and unpacked, read in blocks of whole lines."""

import glob
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from glassformer.errors import DataError, nearest

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "BLOCK",
    "BYTE_ORDER_MARK",
    "COMPRESSED",
    "LONGEST_LINE",
    "Format",
    "blocks",
    "expand",
    "files_of",
    "format_of",
    "is_url",
    "opened",
    "raw_lines",
    "reading",
    "stored_bytes",
    "too_long",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

COMPRESSED = (".gz", ".zst", ".xz")
"""Endings of names whose files are unpacked as they are read."""

BLOCK = 1 << 18
"""Bytes that are read at once: few enough for the processor's cache, many enough that Python's part is small."""

LONGEST_LINE = 1 << 26
"""Bytes of the longest line that is read: a file without line ends must not fill the memory."""

Format = Literal["lines", "tsv", "jsonl"]
"""One side a file, a line each; or both sides in one file."""


def files_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of one file or of several, as they are given: globs are not yet looked up."""
    return (names,) if isinstance(names, str) else tuple(names)


def format_of(name: str) -> Format:
    """Return how a file of this name holds sentences, by the ending that its text has without compression."""
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(".tsv"):
        return "tsv"
    return "jsonl" if name.endswith((".jsonl", ".ndjson")) else "lines"


def is_url(name: str) -> bool:
    """Return whether fsspec opens what has this name, and not the local file system."""
    return "://" in name


def expand(names: str | Sequence[str], directory: str = "") -> tuple[str, ...]:
    """Return the files that these names, globs and URLs stand for; the files of one glob in the order of their names.

    Raises:
        DataError: a file does not exist, or a glob fits none.
    """
    return tuple(file for name in files_of(names) for file in _found(_joined(directory, name)))


def _joined(directory: str, name: str) -> str:
    if is_url(name) or not directory:
        return name
    return f"{directory.rstrip('/')}/{name}" if is_url(directory) else os.path.join(directory, name)


def _found(path: str) -> list[str]:
    if is_url(path):
        return _found_remote(path)
    if Path(path).exists():
        return [path]
    if not glob.has_magic(path):
        raise _missing(path)
    files = sorted(file for file in glob.glob(path, recursive=True) if not Path(file).is_dir())
    if not files:
        raise DataError(f"{path}: no file has such a name: correct the pattern, or the folder")
    return files


def _found_remote(url: str) -> list[str]:
    with reading(url):
        files, path = _file_system(url)
        if not glob.has_magic(path):
            if not files.exists(path):
                raise _missing(url)
            return [url]
        found = sorted(files.unstrip_protocol(file) for file in files.glob(path))
    if not found:
        raise DataError(f"{url}: no file has such a name: correct the pattern, or the folder")
    return found


def _file_system(url: str) -> tuple["AbstractFileSystem", str]:
    from fsspec.core import url_to_fs

    files, path = url_to_fs(url)
    return files, path


def _missing(path: str) -> DataError:
    return DataError(f"{path} does not exist{'' if is_url(path) else _neighbour(Path(path))}: correct the path")


def _neighbour(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (there is no folder {path.parent})"
    return nearest(path.name, (file.name for file in path.parent.iterdir()))


def stored_bytes(path: str) -> int:
    """Return the size of a file as it is stored, or 0 if nobody knows."""
    with reading(path):
        if not is_url(path):
            return Path(path).stat().st_size
        files, inner = _file_system(path)
        return files.size(inner) or 0


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Translate what goes wrong in reading a file.

    Raises:
        DataError: the file is missing or damaged, or the URL is of an unknown kind.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(
            f"{path} cannot be read ({error}): is it complete, and named {', '.join(COMPRESSED)} if and only if it is "
            "packed like that?"
        ) from error
    except (ImportError, ValueError) as error:
        if isinstance(error, DataError) or not is_url(path):
            raise
        raise DataError(f"{path} cannot be opened ({error}): correct the URL, or install what it needs") from error


@contextmanager
def opened(path: str, on_read: Callable[[int], None] | None = None) -> Iterator[io.BufferedIOBase]:
    """Open a file as its text's bytes; `on_read` is told how many bytes of the file as stored have been read.

    Raises:
        DataError: the file is missing or damaged, also when that shows only as it is read.
    """
    with reading(path), ExitStack() as stack:
        raw = stack.enter_context(_stored(path))
        if on_read is not None:
            raw = io.BufferedReader(_Watched(raw, on_read), BLOCK)
        yield stack.enter_context(_unpacked(path, raw))


def _stored(path: str) -> io.BufferedIOBase:
    if not is_url(path):
        return open(path, "rb")
    import fsspec

    return io.BufferedReader(fsspec.open(path, "rb").open(), BLOCK)


def _unpacked(path: str, raw: io.BufferedIOBase) -> io.BufferedIOBase:
    if path.endswith(".gz"):
        import gzip

        return gzip.open(raw)
    if path.endswith(".xz"):
        return lzma.LZMAFile(cast(BinaryIO, raw))
    if path.endswith(".zst"):
        from glassformer.text.zstd import ZstandardFile

        return io.BufferedReader(ZstandardFile(raw), BLOCK)
    return raw


class _Watched(io.RawIOBase):
    """A file that tells how much of it has been read."""

    def __init__(self, raw: io.BufferedIOBase, on_read: Callable[[int], None]) -> None:
        self.raw, self.on_read, self.done = raw, on_read, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self.raw.read(len(buffer))
        buffer[: len(piece)] = piece
        self.done += len(piece)
        self.on_read(self.done)
        return len(piece)


def blocks(path: str, on_read: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Yield a file of any size in blocks of whole lines; only the last line of the file may lack its line end.

    Raises:
        DataError: the file is missing or damaged, or a line has more than LONGEST_LINE bytes.
    """
    lines, rest = 0, bytearray()
    with opened(path, on_read) as file:
        while piece := file.read(BLOCK):
            end = piece.rfind(b"\n") + 1
            if end:
                rest += piece[:end]
                yield bytes(rest)
                lines += rest.count(b"\n")
                rest = bytearray()
            rest += piece[end:]
            if len(rest) > LONGEST_LINE:
                raise too_long(path, lines + 1)
    if rest:
        yield bytes(rest)


def raw_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file of any size as bytes, with their line ends: the text may be in any encoding.

    Raises:
        DataError: the file is missing or damaged, or a line has more than LONGEST_LINE bytes.
    """
    with opened(str(path)) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise too_long(str(path), number)
            yield line


def too_long(path: str, line: int) -> DataError:
    """Return the error that a line is longer than any that is read."""
    return DataError(
        f"{path}, line {line}: longer than {LONGEST_LINE:,} bytes: is it a text file whose lines end with a line feed?"
    )
