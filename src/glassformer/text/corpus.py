r"""Readers of text files, plain or gzip (by the name's ending): UTF-8, one sentence or pair a line.

A line ends at "\n" or "\r\n" and nowhere else: a form feed, U+0085, U+2028 or a lone "\r" stays inside its line, so
that line n of one file stays beside line n of the other. Lines are kept as they are, spaces at their ends too. Line
numbers count from 1, bytes from 0 (of the text, when the file is compressed).
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from glassformer.errors import DataError, nearest

__all__ = [
    "ParallelCorpus",
    "iterate_lines",
    "raw_lines",
    "read_lines",
    "read_parallel",
    "read_parallel_lines",
    "read_tsv",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCorpus:
    """Sentence pairs: `source[i]` and `target[i]` mean the same."""

    source: list[str]
    """The source sentences."""
    target: list[str]
    """The target sentences, as many."""
    dropped: dict[str, list[int]]
    """The line numbers of the pairs that were left out, by reason: "blank" when a side holds only white space."""

    def __len__(self) -> int:
        return len(self.source)


def read_parallel(source_path: str | Path, target_path: str | Path) -> ParallelCorpus:
    """Return the pairs of two files: line n of one and line n of the other.

    Raises:
        DataError: a file is missing, empty, damaged or not UTF-8, the files have unequal numbers of lines, or no pair
            has text on both sides.
    """
    return _without_blanks(*read_parallel_lines(source_path, target_path), f"{source_path} and {target_path}")


def read_parallel_lines(source_path: str | Path, target_path: str | Path) -> tuple[list[str], list[str]]:
    """Return the lines of two files, as many of one as of the other, blank ones too.

    Raises:
        DataError: a file is missing, empty, damaged or not UTF-8, or the files have unequal numbers of lines.
    """
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) != len(target):
        raise DataError(
            f"{source_path} has {len(source)} lines, {target_path} has {len(target)}: expected as many. "
            "Line n of one file must be the translation of line n of the other"
        )
    return source, target


def read_tsv(path: str | Path, *, source_column: int = 0, target_column: int = 1) -> ParallelCorpus:
    """Return the pairs of one file with columns between tab characters; columns count from 0.

    Raises:
        DataError: the file is missing, empty, damaged or not UTF-8, a line has too few columns, or no pair
            has text on both sides.
    """
    columns = max(source_column, target_column) + 1
    source, target = [], []
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t") if line.strip() else [""] * columns
        if len(cells) < columns:
            raise DataError(
                f"{path}, line {number}: expected at least {columns} columns between tab characters, got {len(cells)}: "
                "correct the line, or choose other columns"
            )
        source.append(cells[source_column])
        target.append(cells[target_column])
    return _without_blanks(source, target, str(path))


def _without_blanks(source: Sequence[str], target: Sequence[str], files: str) -> ParallelCorpus:
    sides = list(zip(source, target, strict=True))
    pairs = [pair for pair in sides if all(side.strip() for side in pair)]
    if not pairs:
        raise DataError(f"{files}: no pair with text on both sides among {len(sides)} lines: is it the right file?")
    blank = [number for number, pair in enumerate(sides, start=1) if not all(side.strip() for side in pair)]
    return ParallelCorpus(
        source=[source for source, _ in pairs],
        target=[target for _, target in pairs],
        dropped={"blank": blank} if blank else {},
    )


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a file, blank ones too.

    Raises:
        DataError: the file is missing, empty, damaged or not UTF-8.
    """
    lines = list(iterate_lines(path))
    if not lines:
        raise DataError(f"{path} is empty: expected at least one line")
    return lines


def iterate_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a file of any size, blank ones too; a last line needs no line end.

    Raises:
        DataError: the file is missing, damaged or not UTF-8.
    """
    offset = 0
    for number, raw in enumerate(raw_lines(Path(path)), start=1):
        skip = len(BYTE_ORDER_MARK) if number == 1 and raw.startswith(BYTE_ORDER_MARK) else 0
        if skip < len(raw):
            yield _decoded(raw[skip:], f"{path}, line {number}", offset + skip)
        offset += len(raw)


def _decoded(raw: bytes, place: str, offset: int) -> str:
    line = raw[:-2] if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{place}: expected UTF-8, got the byte 0x{line[error.start]:02x} at byte {offset + error.start} of the "
            f"file ({error.reason}): convert the file to UTF-8, or correct the line"
        ) from error


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file of any size as bytes, with their line ends: the text may be in any encoding.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        with _opened(path) as file:
            yield from file
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist{_neighbour(path)}: correct the path") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read ({error}): is it complete, and named .gz if and only if it is gzip?"
        ) from error


def _opened(path: Path) -> BufferedIOBase:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _neighbour(path: Path) -> str:
    if not path.parent.is_dir():
        return f" (there is no folder {path.parent})"
    return nearest(path.name, (file.name for file in path.parent.iterdir()))
