r"""Byte ranges of text files, so that several processes can each read a part of the lines.

A range holds the lines that start in it: its reader skips to the first start of a line, and reads beyond the range's
end to finish its last line. Ranges that cover a file without gaps and overlaps therefore hold each line exactly once,
wherever the file is cut. A line ends at "\n" or "\r\n" and nowhere else, as in `readers`.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

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
from glassformer.errors import ConfigError, DataError, quoted

__all__ = ["FileRange", "check_column", "count_texts", "ranges_of"]


@dataclass(frozen=True, slots=True)
class FileRange:
    """The lines of a file that start at its bytes `begin` to `end` - 1; of a compressed file, all lines."""

    file: str
    begin: int
    end: int

    def texts(self, column: str | None = None) -> Iterator[str]:
        """Yield the text of each line, or of one column of each line; bytes that are not UTF-8 become surrogates.

        The line with the names of a TSV file's columns has no text.

        Raises:
            DataError: the file is missing or damaged, or a line lacks the column.
        """
        if column is None:
            texts = (text_of(line, first=position == 0) for position, line in self.lines())
            yield from (text for text in texts if text is not None)
            return
        named = _has_header(self.file, column)
        number = column_numbers(_header(self.file), [column], self.file)[0] if named else column
        for position, line in self.lines():
            row = line.removeprefix(BYTE_ORDER_MARK) if position == 0 else line
            if row and not (named and position == 0):
                yield self._cell(row, number, position).decode("utf-8", "surrogateescape")

    def _cell(self, raw: bytes, column: int | str, position: int) -> bytes:
        line = raw.removesuffix(b"\n").removesuffix(b"\r")

        def place(_: int) -> str:
            return f"{self.file}, byte {position}"

        if format_of(self.file) == "tsv":
            return split_columns([line], [int(column)], place)[0][0]
        return split_fields([line], [str(column)], place)[0][0]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the position of each line's first byte, in the decompressed text, and the line with its end.

        Raises:
            DataError: the file is missing or damaged, or a line has more than LONGEST_LINE bytes.
        """
        with opened(self.file) as file:
            position = self._first(file)
            while self._is_whole or position < self.end:
                line = file.readline(LONGEST_LINE + 1)
                if not line:
                    return
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
        """Seek the first line that starts in the range; return its position, `end` or more if none starts there."""
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
    """Yield ranges of `size` bytes, and a last one with the rest, that cover a file; one range if it is compressed.

    Raises:
        DataError: the file cannot be read.
    """
    stored = stored_bytes(file)
    if file.endswith(COMPRESSED):
        yield FileRange(file, 0, stored)
        return
    for begin in range(0, stored, size):
        yield FileRange(file, begin, min(begin + size, stored))


def count_texts(file: str, column: str | None = None) -> int:
    """Return the number of texts in a file, counted over the whole file rather than range by range.

    Raises:
        DataError: the file is missing or damaged.
    """
    lines, size, last, start = 0, 0, b"\n", b""
    for block in blocks(file):
        start = start or block[: len(BYTE_ORDER_MARK)]
        lines += block.count(b"\n")
        size += len(block)
        last = block[-1:]
    lines += last != b"\n"
    if size == len(BYTE_ORDER_MARK) and start == BYTE_ORDER_MARK:
        return 0
    return lines - (lines > 0 and _has_header(file, column))


def check_column(file: str, column: str | None) -> None:
    """Raise an error if a file of this format has no such column, or needs one.

    Raises:
        ConfigError: the file has columns and `column` is None, or the other way round.
    """
    kind = format_of(file)
    if column is None and kind != "lines":
        raise ConfigError(f"column: expected the column of {file} to translate, got none; give its name")
    if column is not None and kind == "lines":
        raise ConfigError(
            f"column: expected none for {file}, which has no columns, got {quoted(column)}; leave it out, or give .tsv "
            "or .jsonl files"
        )


def _has_header(file: str, column: str | None) -> bool:
    """Return whether the first line of a file names its columns: a TSV file's does if `column` is not a number."""
    return column is not None and format_of(file) == "tsv" and not column.isdecimal()


def _header(file: str) -> bytes:
    with opened(file) as opened_file:
        line = opened_file.readline(LONGEST_LINE + 1)
    return line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
