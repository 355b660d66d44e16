r"""Byte ranges of files, so that several processes can each read a part of the lines or of the rows.

A range holds the lines that start within the range. Its reader skips to the first start of a line, and reads beyond the
end of the range to complete the last line. So ranges that cover a file without gaps and overlaps hold each line exactly
once, wherever the file is cut. A line ends only at "\n" or "\r\n", as in `readers`. In the same way, a range of a
Parquet file holds the row groups that start within the range.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from glassformer.corpus.columns import column_numbers, split_columns, split_fields
from glassformer.corpus.files import (
    BYTE_ORDER_MARK,
    COMPRESSED,
    LONGEST_LINE,
    READ_BYTES,
    blocks,
    format_of,
    opened,
    stored_bytes,
    text_of,
)
from glassformer.corpus.parquet import count_rows, group_rows, group_starts, is_parquet
from glassformer.errors import ConfigError, DataError, quoted
from glassformer.system.files import check_width

__all__ = ["FileRange", "check_column", "count_texts", "has_columns", "ranges_of"]


@dataclass(frozen=True, slots=True)
class FileRange:
    """The lines, or the row groups, of a file that start at its bytes `begin` to `end` - 1.

    The range of a compressed file holds all lines of the file.
    """

    file: str
    begin: int
    end: int

    def texts(self, column: str | None = None) -> Iterator[str]:
        """Yield the text of each line, or the text in one column of each line; invalid UTF-8 becomes surrogates.

        Raises:
            DataError: the file is missing or damaged, or a line does not have the column.
            MissingDependencyError: the file is a Parquet file, and pyarrow is not installed.
        """
        if column is None:
            texts = (text_of(line, first=position == 0) for position, line in self.lines())
            yield from (text for text in texts if text is not None)
            return
        yield from (text for (text,) in self.rows(column))

    def rows(self, *columns: str) -> Iterator[tuple[str, ...]]:
        """Yield the texts in these columns of each line or row; bytes that are not UTF-8 become surrogates.

        The header line of a TSV file, which names the columns, is skipped.

        Raises:
            DataError: the file is missing or damaged, or a line lacks a column.
            MissingDependencyError: the file is a Parquet file, and pyarrow is not installed.
        """
        if is_parquet(self.file):
            yield from group_rows(self.file, columns, self.begin, self.end)
            return
        named = _has_header(self.file, columns)
        wanted = _numbers(self.file, columns) if named else columns
        for position, line in self.lines():
            row = line.removeprefix(BYTE_ORDER_MARK) if position == 0 else line
            if row and not (named and position == 0):
                yield tuple(cell.decode("utf-8", "surrogateescape") for cell in self._cells(row, wanted, position))

    def _cells(self, raw: bytes, columns: Sequence[int | str], position: int) -> list[bytes]:
        line = raw.removesuffix(b"\n").removesuffix(b"\r")

        def place(_: int) -> str:
            return f"{self.file}, byte {position}"

        if format_of(self.file) == "tsv":
            return [cell for (cell,) in split_columns([line], list(map(int, columns)), place)]
        return [cell for (cell,) in split_fields([line], list(map(str, columns)), place)]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the position of each line's first byte in the decompressed text, and the line with its line end.

        Raises:
            DataError: the file is missing or damaged, or a line has more than LONGEST_LINE bytes.
        """
        with opened(self.file) as file:
            position = self._first(file)
            while self._is_whole or position < self.end:
                line = file.readline(LONGEST_LINE + 1)
                if not line:
                    return
                if not position:
                    check_width(self.file, line)
                if len(line) > LONGEST_LINE:
                    raise DataError(
                        f"{self.file}, byte {position}: expected a line of at most {LONGEST_LINE:,} bytes, got more; "
                        "give a text file whose lines end with a line feed"
                    )
                yield position, line
                position += len(line)

    @property
    def _is_whole(self) -> bool:
        return self.file.endswith(COMPRESSED)

    def _first(self, file: io.BufferedIOBase) -> int:
        """Seek the first line that starts in the range, and return its position.

        If no line starts in the range, return `end` or a higher position.
        """
        if self.begin == 0:
            return 0
        position = self.begin - 1
        file.seek(position)
        while position < self.end:
            piece = file.readline(READ_BYTES)
            position += len(piece)
            if piece.endswith(b"\n"):
                return position
            if not piece:
                break
        return self.end


def ranges_of(file: str, size: int) -> Iterator[FileRange]:
    """Yield ranges that cover a file: ranges of `size` bytes, then a last range with the rest.

    A compressed file has a single range. The ranges of a Parquet file have at least `size` bytes, and end at the end of
    a row group.

    Raises:
        DataError: the file cannot be read.
        MissingDependencyError: the file is a Parquet file, and pyarrow is not installed.
    """
    stored = stored_bytes(file)
    if file.endswith(COMPRESSED):
        yield FileRange(file, 0, stored)
        return
    cuts = _ends_of_groups(file, size) if is_parquet(file) else range(size, stored, size)
    for begin, end in pairwise([0, *cuts, stored]):
        if begin < end:
            yield FileRange(file, begin, end)


def _ends_of_groups(file: str, size: int) -> Iterator[int]:
    last = 0
    for start in group_starts(file)[1:]:
        if start - last >= size:
            yield start
            last = start


def count_texts(file: str, *columns: str) -> int:
    """Return the number of texts in a file, or the number of rows with texts in these columns.

    The whole file is read at once, not range by range.

    Raises:
        DataError: the file is missing or damaged.
        MissingDependencyError: the file is a Parquet file, and pyarrow is not installed.
    """
    if is_parquet(file):
        return count_rows(file)
    lines, size, last, start = 0, 0, b"\n", b""
    for block in blocks(file):
        start = start or block[: len(BYTE_ORDER_MARK)]
        lines += block.count(b"\n")
        size += len(block)
        last = block[-1:]
    lines += last != b"\n"
    if size == len(BYTE_ORDER_MARK) and start == BYTE_ORDER_MARK:
        return 0
    return lines - (lines > 0 and _has_header(file, columns))


def check_column(file: str, column: str | None) -> None:
    """Raise an error if `column` is missing for a format with columns, or is given for a format without columns.

    Raises:
        ConfigError: the file's format has columns and `column` is None, or has no columns and `column` is not None.
    """
    if column is None and has_columns(file):
        raise ConfigError(f"column: expected the column of {file} to translate, got none; give the column's name")
    if column is not None and not has_columns(file):
        raise ConfigError(
            f"column: expected none for {file}, which has no columns, got {quoted(column)}; leave the column out, or "
            "give .tsv, .jsonl or .parquet files"
        )


def has_columns(file: str) -> bool:
    """Return whether a file has columns or fields, judging by the ending of its name; if not, each line is a text."""
    return is_parquet(file) or format_of(file) != "lines"


def _has_header(file: str, columns: Sequence[str]) -> bool:
    """Return whether the first line of a file names its columns: true for TSV files, unless all columns are numbers."""
    return format_of(file) == "tsv" and not all(map(str.isdecimal, columns))


def _numbers(file: str, columns: Sequence[str]) -> list[int]:
    wanted = [int(column) if column.isdecimal() else column for column in columns]
    return column_numbers(_header(file), wanted, file)


def _header(file: str) -> bytes:
    with opened(file) as opened_file:
        line = opened_file.readline(LONGEST_LINE + 1)
    return line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
