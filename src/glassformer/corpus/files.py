"""Files of a corpus: find them by name, open and decompress them, and read them in blocks of whole lines."""

import atexit
import glob
import io
import lzma
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from glassformer.errors import DataError, nearest, quoted, remedy
from glassformer.system.files import check_width, remove

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = [
    "BYTE_ORDER_MARK",
    "COMPRESSED",
    "LONGEST_LINE",
    "READ_BYTES",
    "Format",
    "blocks",
    "expand",
    "files_of",
    "format_of",
    "is_url",
    "local_file",
    "opened",
    "raw_lines",
    "reading",
    "stored_bytes",
    "text_of",
    "too_long",
    "unread",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

COMPRESSED = (".gz", ".zst", ".xz")
"""File endings of compressed files, which are decompressed while they are read."""

_OTHER_TABLES = (".csv", ".xls", ".xlsx", ".ods", ".json", ".xml", ".tmx", ".parquet")
"""File endings of tables of pairs in formats that are not read."""

READ_BYTES = 1 << 18
"""Number of bytes per read: few enough for the processor's cache, enough to keep Python's overhead small."""

_PIPES: dict[tuple[int, int], str] = {}
"""Temporary files with the contents of pipes, by the pipe's device and inode."""

LONGEST_LINE = 1 << 26
"""Maximum number of bytes per line, so that a file without line ends cannot fill the memory."""

Format = Literal["lines", "tsv", "jsonl"]
"""The format of a file: "lines" has one sentence of one side per line; "tsv" and "jsonl" have both sides."""


def files_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several names of files as a tuple, without expanding globs."""
    return (names,) if isinstance(names, str) else tuple(names)


def format_of(name: str) -> Format:
    """Return a file's format, by the ending of its name; a compression ending such as .gz is ignored."""
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    if name.endswith(".tsv"):
        return "tsv"
    return "jsonl" if name.endswith((".jsonl", ".ndjson")) else "lines"


def unread(name: str) -> str:
    """Return what to do about a file of pairs in a format that is not read, judging by its ending; "" for other files.

    >>> unread("corpus.csv.gz")
    '.csv is not read: convert the file to .tsv or .jsonl'
    """
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = os.path.splitext(name)[1]
    return f"{ending} is not read: convert the file to .tsv or .jsonl" if ending.lower() in _OTHER_TABLES else ""


def is_url(name: str) -> bool:
    """Return whether a name is a URL, which fsspec opens, and not a local path."""
    return "://" in name


def expand(names: str | Sequence[str], directory: str = "") -> tuple[str, ...]:
    """Return the files that names, globs and URLs stand for; the files of each glob are sorted by name.

    A pipe, such as a shell's `<(zcat a.gz)`, is copied to a temporary file, which is read instead of the pipe: a corpus
    is read more than once, but a pipe can be read only once.

    Raises:
        DataError: a file does not exist or cannot be reached, or a glob matches no file.
    """
    return tuple(file for name in files_of(names) for file in _found(_joined(directory, name)))


def _joined(directory: str, name: str) -> str:
    if is_url(name) or not directory:
        return name
    return f"{directory.rstrip('/')}/{name}" if is_url(directory) else os.path.join(directory, name)


def _found(path: str) -> list[str]:
    if is_url(path):
        return _found_remote(path)
    if _exists(path):
        files = [path]
    elif glob.has_magic(path):
        files = sorted(file for file in glob.glob(path, recursive=True) if not Path(file).is_dir())
    else:
        raise _missing(path)
    if not files:
        raise _unmatched(path)
    for file in files:
        _keep_pipe(file)
    return files


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # for example, a loop of symbolic links
        advice = remedy(error, "correct the path")
        raise DataError(f"{quoted(path)} cannot be read: {error.strerror}; {advice}") from error
    return True


def _keep_pipe(path: str) -> None:
    """Copy a pipe to its end into a temporary file, which is removed when the process ends."""
    with reading(path):
        status = os.stat(path)
        if not stat.S_ISFIFO(status.st_mode) or (status.st_dev, status.st_ino) in _PIPES:
            return
        descriptor, name = tempfile.mkstemp(prefix="glassformer-")
        atexit.register(remove, Path(name))
        with open(path, "rb") as pipe, open(descriptor, "wb") as file:
            shutil.copyfileobj(pipe, file, READ_BYTES)
        _PIPES[status.st_dev, status.st_ino] = name


def local_file(path: str) -> Path:
    """Return the file to read for a local path: the path itself or, for a pipe, the temporary copy."""
    status = os.stat(path)
    return Path(_PIPES.get((status.st_dev, status.st_ino), path))


def _found_remote(url: str) -> list[str]:
    with reading(url):
        files, path = _file_system(url)
        if not glob.has_magic(path):
            if not files.exists(path):
                raise _missing(url)
            return [url]
        found = sorted(files.unstrip_protocol(file) for file in files.glob(path))
    if not found:
        raise _unmatched(url)
    return found


def _file_system(url: str) -> tuple["AbstractFileSystem", str]:
    from fsspec.core import url_to_fs

    files, path = url_to_fs(url)
    return files, path


def _missing(path: str) -> DataError:
    return DataError(f"{path} does not exist{'' if is_url(path) else _neighbour(Path(path))}: correct the path")


def _unmatched(pattern: str) -> DataError:
    return DataError(f"{pattern} matches no file: correct the pattern or the folder")


def _neighbour(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (the folder {path.parent} does not exist)"
    return nearest(path.name, (file.name for file in path.parent.iterdir()))


def stored_bytes(path: str) -> int:
    """Return the stored size of a file in bytes, or 0 if it is unknown."""
    with reading(path):
        if not is_url(path):
            return local_file(path).stat().st_size
        files, inner = _file_system(path)
        return files.size(inner) or 0


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn errors in reading a file into DataError, within the context.

    Raises:
        DataError: the file is missing, damaged or a folder, or the URL's protocol is unknown.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(path) from error
    except IsADirectoryError as error:
        raise DataError(f"{path}: expected a file, got a folder; name a file in the folder") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.strerror:
            advice = remedy(error, "make sure that the file can be read")
            raise DataError(f"cannot read {path}: {error.strerror}; {advice}") from error
        raise DataError(
            f"cannot read {path}: {error}; make sure that the file is complete, and that its name ends in "
            f"{', '.join(COMPRESSED)} only if the file is compressed in this format"
        ) from error
    except (ImportError, ValueError) as error:
        if isinstance(error, DataError) or not is_url(path):
            raise
        raise DataError(f"cannot open {path}: {error}; correct the URL, or install its protocol's package") from error


@contextmanager
def opened(path: str, on_read: Callable[[int], None] | None = None) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading its decompressed bytes; `on_read` receives the number of stored bytes read so far.

    Raises:
        DataError: the file is missing or damaged, even if the damage is found only during reading.
    """
    with reading(path), ExitStack() as stack:
        raw = stack.enter_context(_stored(path))
        if on_read is not None:
            raw = io.BufferedReader(_Watched(raw, on_read), READ_BYTES)
        yield stack.enter_context(_unpacked(path, raw))


def _stored(path: str) -> io.BufferedIOBase:
    if not is_url(path):
        return open(local_file(path), "rb")
    import fsspec

    return io.BufferedReader(fsspec.open(path, "rb").open(), READ_BYTES)


def _unpacked(path: str, raw: io.BufferedIOBase) -> io.BufferedIOBase:
    if path.endswith(".gz"):
        import gzip

        return gzip.open(raw)
    if path.endswith(".xz"):
        return lzma.LZMAFile(cast(BinaryIO, raw))
    if path.endswith(".zst"):
        from glassformer.corpus.zstd import ZstandardFile

        return io.BufferedReader(ZstandardFile(raw), READ_BYTES)
    return raw


class _Watched(io.RawIOBase):
    """A file that reports the number of bytes read so far."""

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
    """Yield a file of any size in blocks of whole lines; only the last line of the file may lack a line end.

    Raises:
        DataError: the file is missing, damaged or UTF-16, or a line has more than LONGEST_LINE bytes.
    """
    lines, rest = 0, bytearray()
    with opened(path, on_read) as file:
        while piece := file.read(READ_BYTES):
            if not lines and not rest:
                check_width(path, piece)
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
    """Yield the lines of a file of any size as bytes, with their line ends, whatever the encoding.

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


def text_of(line: bytes, *, first: bool) -> str | None:
    """Return the text of a line without its line end; bytes that are not UTF-8 become surrogates.

    `first` says whether the line is the first line of a file. The byte order mark at the beginning of a first line is
    removed. If the line has only this mark, None is returned, because such a file has no lines.
    """
    line = line.removeprefix(BYTE_ORDER_MARK) if first else line
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape") if line else None


def too_long(path: str, line: int) -> DataError:
    """Return the error for a line of more than LONGEST_LINE bytes."""
    return DataError(
        f"{path}, line {line}: expected at most {LONGEST_LINE:,} bytes, got more; give a text file whose lines end "
        "with a line feed"
    )
