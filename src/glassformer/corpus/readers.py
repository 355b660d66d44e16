r"""Readers of UTF-8 text files with one sentence or pair per line, plain or compressed (by the ending of the name).

A line ends only at "\n" or "\r\n". A form feed, U+0085, U+2028 or a lone "\r" is part of the line, so that line n of
the source file stays parallel to line n of the target file. Lines are not changed; even spaces at their ends are kept.
Line numbers start at 1. Byte offsets start at 0, and refer to the decompressed text.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.corpus.columns import column_numbers, split_columns, split_fields
from glassformer.corpus.files import (
    BYTE_ORDER_MARK,
    READ_BYTES,
    Format,
    blocks,
    expand,
    format_of,
    raw_lines,
    unread,
)
from glassformer.errors import ConfigError, DataError, counted, quoted
from glassformer.system.files import check_width

__all__ = [
    "Block",
    "Corpus",
    "PairReader",
    "TextPairs",
    "invalid_bytes",
    "iterate_lines",
    "pairs_at",
    "read_lines",
    "read_parallel_lines",
]

TextPairs = Sequence[tuple[str, str]]
"""Source and target of each pair."""


def read_parallel_lines(source_path: str | Path, target_path: str | Path) -> tuple[list[str], list[str]]:
    """Return the lines of two files with equal numbers of lines, including blank lines.

    Raises:
        DataError: a file is missing, empty, damaged or not UTF-8, or the files have unequal numbers of lines.
    """
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) != len(target):
        raise DataError(
            f"{source_path} has {counted(len(source), 'line')}, {target_path} has {len(target):,}: expected equal "
            "numbers; line n of one file must be the translation of line n of the other"
        )
    return source, target


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a file, including blank lines.

    Raises:
        DataError: the file is missing, empty, damaged or not UTF-8.
    """
    lines = list(iterate_lines(path))
    if not lines:
        raise DataError(f"{path}: expected at least one line, got an empty file; choose another file")
    return lines


def iterate_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a file of any size, including blank lines; the last line may lack a line end.

    Raises:
        DataError: the file is missing, damaged or not UTF-8.
    """
    offset = 0
    for number, raw in enumerate(raw_lines(path), start=1):
        if number == 1:
            check_width(str(path), raw)
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
            f"file ({error.reason}); convert the file to UTF-8, or correct the line"
        ) from error


@dataclass(frozen=True, slots=True)
class Corpus:
    """The files of a parallel corpus: either files for each side, whose concatenated lines are parallel, or TSV or
    JSONL files that hold both sides.

    Raises:
        ConfigError: a setting does not fit the format of the files.
    """

    source: tuple[str, ...]
    """Files of the source, or files with both sides, as paths or URLs."""
    target: tuple[str, ...] = ()
    """Files of the target; empty when the source files hold both sides."""
    source_column: int | str | None = None
    """Column of the source (see `DataConfig`)."""
    target_column: int | str | None = None
    """Column of the target."""

    def __post_init__(self) -> None:
        """Check that all files have the same format, and that the columns fit the format."""
        formats = {"lines"} if self.target else {format_of(file) for file in self.source}
        if len(formats) > 1:
            raise ConfigError(
                f"data.source: expected files of one format, got {' and '.join(sorted(formats))}; "
                "convert some of the files"
            )
        if not self.target and self.format == "lines":
            advice = "name the file with the translation, or one .tsv or .jsonl file with both sides"
            raise ConfigError(
                f"data.target: expected the translation of {self.source[0]}, got nothing; "
                f"{unread(self.source[0]) or advice}"
            )
        for name in ("source_column", "target_column"):
            column = getattr(self, name)
            if column is not None and self.format == "lines":
                raise ConfigError(
                    f"data.{name}: expected no value with plain files, got {quoted(column)}; leave it out"
                )
            if isinstance(column, int) and self.format == "jsonl":
                raise ConfigError(f"data.{name}: expected the name of a field of JSONL files, got {column}")
            if isinstance(column, int) and column < 0:
                raise ConfigError(f"data.{name}: expected a number from 0 or a name, got {column}")

    @classmethod
    def of(
        cls,
        source: str | tuple[str, ...],
        target: str | tuple[str, ...] = "",
        directory: str = "",
        source_column: int | str | None = None,
        target_column: int | str | None = None,
    ) -> "Corpus":
        """Return the corpus of existing files, given as names, globs and URLs relative to a folder.

        Raises:
            DataError: a file does not exist.
            ConfigError: a setting does not fit the format of the files.
        """
        return cls(expand(source, directory), expand(target, directory) if target else (), source_column, target_column)

    @property
    def format(self) -> Format:
        """The format of the files."""
        return "lines" if self.target else format_of(self.source[0])

    @property
    def columns(self) -> tuple[int | str, int | str]:
        """The columns of source and target."""
        source, target = self.source_column, self.target_column
        default = self._usual_columns()
        return (default[0] if source is None else source, default[1] if target is None else target)

    def _usual_columns(self) -> tuple[int | str, int | str]:
        match self.format:
            case "jsonl":
                return "source", "target"
            case "tsv" | "lines":
                return 0, 1

    @property
    def names(self) -> str:
        """A short list of the files, for messages."""
        return " and ".join(_names(files) for files in (self.source, self.target) if files)


def _names(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} … {files[-1]} ({len(files)} files)"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive pairs of lines, as bytes."""

    source: bytes
    r"""The source lines. Each line ends with "\n", even if it ended with "\r\n" in the file."""
    target: bytes
    """The target lines, in the same form; there are as many target lines as source lines."""
    lines: int
    """Number of pairs."""


class PairReader:
    """A reader that yields a corpus in blocks of line pairs, once and in bounded memory, with blank and invalid lines.

    Iterate over the reader, then call `check` to compare the numbers of lines of both sides. `on_read` receives the
    number of stored bytes read so far.
    """

    def __init__(self, corpus: Corpus, on_read: Callable[[int], None] | None = None) -> None:
        self.corpus, self.on_read = corpus, on_read
        self.lines = [0, 0]
        """Numbers of source and target lines read so far."""
        self.starts: list[list[tuple[int, str, int]]] = [[], []]
        """For each side, a tuple for each file: the number of the file's first line within the side, the file's name,
        and its number of header lines.
        """
        self.marked: list[str] = []
        """Files that begin with a byte order mark, which is not part of the text."""
        self.columns = 0
        """Maximum number of columns in the first lines of TSV files; 0 for other formats."""
        self._read = [[0] * len(corpus.source), [0] * len(corpus.target)]

    def __iter__(self) -> Iterator[Block]:
        """Yield the pairs in blocks; if one side has more lines than the other side, its surplus lines are left out.

        Raises:
            DataError: a file is missing or damaged, or a line does not have the columns or fields.
        """
        match self.corpus.format:
            case "lines":
                yield from self._joined()
            case "tsv":
                yield from self._split_files(split_columns)
            case "jsonl":
                yield from self._split_files(split_fields)

    def _joined(self) -> Iterator[Block]:
        """Yield the pairs of files with one side each."""
        source, target = (_Lines(self._texts(side)) for side in (0, 1))
        while lines := min(source.available(), target.available()):
            yield Block(source.take(lines), target.take(lines), lines)
        for side in (source, target):
            while lines := side.available():
                side.take(lines)

    def check(self, hint: str = "") -> None:
        """Check that both sides have the same number of lines.

        Raises:
            DataError: the numbers differ.
        """
        source, target = self.lines
        if source != target and self.corpus.target:
            raise DataError(
                f"{_names(self.corpus.source)} has {source} lines, {_names(self.corpus.target)} has {target}: expected "
                f"equal numbers; line n of one side must be the translation of line n of the other{hint}"
            )

    def place(self, pair: int, side: int = 0) -> tuple[str, int]:
        """Return the file and the line number (from 1) of a pair that was already read; `pair` counts from 0."""
        first, file, before = next(start for start in reversed(self.starts[side]) if start[0] <= pair)
        return file, pair - first + before + 1

    def number(self, pair: int) -> int:
        """Return a pair's line number (from 1), counted across all source files and including header lines."""
        return pair + 1 + sum(before for first, _, before in self.starts[0] if first <= pair)

    def _texts(self, side: int) -> Iterator[tuple[bytes, int]]:
        """Yield the concatenated files of one side in blocks of whole lines, each with its number of lines."""
        for index, file in enumerate((self.corpus.source, self.corpus.target)[side]):
            self.starts[side].append((self.lines[side], file, 0))
            for text in self._text(side, index, file):
                lines = text.count(b"\n")
                self.lines[side] += lines
                yield text, lines

    def _text(self, side: int, index: int, file: str) -> Iterator[bytes]:
        r"""Yield a file without its byte order mark, in blocks of whole lines, each ending with "\n"."""
        for number, block in enumerate(blocks(file, self._watch(side, index))):
            text = block
            if number == 0 and block.startswith(BYTE_ORDER_MARK):
                self.marked.append(file)
                text = block.removeprefix(BYTE_ORDER_MARK)
            if b"\r" in text:
                text = text.replace(b"\r\n", b"\n")
            if text:
                yield text if text.endswith(b"\n") else text + b"\n"

    def _watch(self, side: int, index: int) -> Callable[[int], None] | None:
        if self.on_read is None:
            return None
        on_read = self.on_read

        def watch(done: int) -> None:
            self._read[side][index] = done
            on_read(sum(map(sum, self._read)))

        return watch

    def _split_files(self, split: Any) -> Iterator[Block]:
        """Yield the pairs of files with both sides; `split` is `split_columns` or `split_fields`."""
        for index, file in enumerate(self.corpus.source):
            yield from self._split(index, file, split)

    def _split(self, index: int, file: str, split: Any) -> Iterator[Block]:
        """Yield the pairs of a file with both sides."""
        columns: Sequence[int | str] | None = None
        for text in self._text(0, index, file):
            lines = text[:-1].split(b"\n")
            if columns is None:
                columns = self._columns(lines, file)
            if lines:
                first = self.lines[0]
                sides = split(lines, columns, lambda number, first=first: _line(*self.place(first + number)))
                self.lines = [first + len(lines)] * 2
                source, target = (b"\n".join([*side, b""]) for side in sides)
                yield Block(source, target, len(lines))

    def _columns(self, lines: list[bytes], file: str) -> Sequence[int | str]:
        """Return the columns of source and target; if a header names the columns, remove the header from `lines`."""
        columns: Sequence[int | str] = self.corpus.columns
        if self.corpus.format == "tsv":
            self.columns = max(self.columns, *(line.count(b"\t") + 1 for line in lines))
        named = self.corpus.format == "tsv" and any(isinstance(column, str) for column in columns)
        if named:
            columns = column_numbers(lines.pop(0), columns, file)
        for side in self.starts:
            side.append((self.lines[0], file, int(named)))
        return columns


class _Lines:
    """A stream of text from which any number of lines can be taken."""

    def __init__(self, texts: Iterator[tuple[bytes, int]]) -> None:
        self.texts, self.text, self.lines = texts, b"", 0

    def available(self) -> int:
        """Read until READ_BYTES bytes are available or the stream ends; return the number of available lines."""
        while len(self.text) < READ_BYTES and (more := next(self.texts, None)):
            self.text += more[0]
            self.lines += more[1]
        return self.lines

    def take(self, lines: int) -> bytes:
        if lines == self.lines:
            taken, self.text = self.text, b""
        else:
            end = _end_of_line(self.text, lines)
            taken, self.text = self.text[:end], self.text[end:]
        self.lines -= lines
        return taken


def _end_of_line(text: bytes, lines: int) -> int:
    """Return the index of the first byte after the first `lines` lines."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    return int(ends[lines - 1]) + 1


def pairs_at(corpus: Corpus, pairs: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """Return the unchanged pairs with these numbers (from 0); the corpus is read only up to the last of these pairs."""
    found: dict[int, tuple[bytes, bytes]] = {}
    first, last = 0, max(pairs, default=-1)
    blocks_of_pairs = iter(PairReader(corpus))
    while first <= last:
        block = next(blocks_of_pairs)
        here = [pair for pair in pairs if first <= pair < first + block.lines]
        if here:
            source, target = block.source.split(b"\n"), block.target.split(b"\n")
            found |= {pair: (source[pair - first], target[pair - first]) for pair in here}
        first += block.lines
    return [found[pair] for pair in pairs]


def _line(file: str, line: int) -> str:
    return f"{file}, line {line}"


def invalid_bytes(path: str, lines: Sequence[int]) -> list[int]:
    """Return, for each line number, the byte offset in the file of the line's first byte that is not valid UTF-8.

    If all bytes of a line are valid UTF-8, return the offset of the line's beginning. (In JSONL, such a line can still
    have an invalid text, because an escape can stand for half of a surrogate pair.)
    """
    wanted, offsets, offset = set(lines), {}, 0
    for number, raw in enumerate(raw_lines(path), start=1):
        if number in wanted:
            offsets[number] = offset + _valid_length(raw)
        if number >= max(lines):
            break
        offset += len(raw)
    return [offsets[line] for line in lines]


def _valid_length(raw: bytes) -> int:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0
