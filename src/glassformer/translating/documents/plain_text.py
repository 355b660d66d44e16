"""Divide plain text into units: paragraphs between blank lines, or lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import groupby
from textwrap import wrap
from typing import NamedTuple

from glassformer.text.edits import Replacement, edited
from glassformer.text.spans import protected_spans
from glassformer.translating.markup.units import Chunk, Unit, unit_of

__all__ = ["text_units"]


class _Line(NamedTuple):
    """A line of a document; `text` is the line without its ending, which is LF, CR LF or CR."""

    begin: int
    text: str
    ending: str

    @property
    def end(self) -> int:
        """The position in the document directly after the line's text."""
        return self.begin + len(self.text)


def text_units(document: str, *, lines: bool = False) -> list[Unit]:
    """Return one unit for each paragraph of a text file, or for each line if `lines` is true.

    A paragraph consists of lines without a blank line between them.
    """
    read = _lines_of(document)
    blocks = [[line] for line in read] if lines else _blocks_of(read)
    return [unit for block in blocks if (unit := _paragraph(document, block))]


def _lines_of(document: str) -> list[_Line]:
    """Return the lines of a document; a byte order mark belongs to no line."""
    found, begin = [], 0
    for line in StringIO(document, newline=""):
        text = line.rstrip("\r\n")
        mark = 1 if begin == 0 and text.startswith("\ufeff") else 0
        found.append(_Line(begin + mark, text[mark:], line[len(text) :]))
        begin += len(line)
    return found


def _blocks_of(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the paragraphs: runs of lines that are not blank."""
    for is_block, some in groupby(lines, lambda line: bool(line.text.strip())):
        if is_block:
            yield list(some)


def _paragraph(document: str, lines: Sequence[_Line]) -> Unit | None:
    """Return the unit of a paragraph; if it has several lines, its translation is wrapped to their maximum length."""
    first, last = lines[0], lines[-1]
    begin = first.begin + len(first.text) - len(first.text.lstrip())
    end = last.begin + len(last.text.rstrip())
    text = " ".join(line.text.strip() for line in lines)
    unit = unit_of(document, [Chunk("text", text, begin, end)])
    if not unit or len(lines) == 1:
        return unit
    indent = lines[1].text[: len(lines[1].text) - len(lines[1].text.lstrip())]
    joint = lines[0].ending + indent
    width = max(len(line.text.strip()) for line in lines)
    return replace(unit, compose=lambda content: joint.join(_wrapped(content, width)))


def _wrapped(content: str, width: int) -> list[str]:
    """Return a text as lines of up to `width` characters; only a single word or protected span may be longer."""
    spans = protected_spans(content)
    whole = edited(content, (Replacement(*one[:2], content[one.begin : one.end].replace(" ", "\0")) for one in spans))
    lines = wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]
