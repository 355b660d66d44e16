"""Plain text: paragraphs between blank lines, or lines; and how text is wrapped into lines again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from itertools import groupby
from typing import NamedTuple

from glassformer.documents.chunks import Chunk, Unit, unit_of

__all__ = ["TextLine", "blocks_of", "line_units", "lines_of", "paragraph_units", "wrapped"]

_WORD = re.compile(r"(?:<[^<>]*>|\{[^{}]*\}|\S)+")
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")


class TextLine(NamedTuple):
    """A line of a document, without its end: LF, CR LF or CR."""

    number: int
    begin: int
    text: str
    ending: str

    @property
    def end(self) -> int:
        """The character of the document after the line's text."""
        return self.begin + len(self.text)


def lines_of(document: str) -> list[TextLine]:
    """Return the lines of a document; a byte order mark belongs to none."""
    found, begin = [], 0
    for number, line in enumerate(StringIO(document, newline=""), 1):
        text = line.rstrip("\r\n")
        mark = 1 if begin == 0 and text.startswith("\ufeff") else 0
        found.append(TextLine(number, begin + mark, text[mark:], line[len(text) :]))
        begin += len(line)
    return found


def blocks_of(lines: Iterable[TextLine]) -> Iterator[list[TextLine]]:
    """Yield the lines between blank ones."""
    for is_block, some in groupby(lines, lambda line: bool(line.text.strip())):
        if is_block:
            yield list(some)


def line_units(document: str) -> list[Unit]:
    """Return one unit for each line of a text file."""
    return [unit for line in lines_of(document) if (unit := _paragraph(document, [line]))]


def paragraph_units(document: str) -> list[Unit]:
    """Return one unit for each paragraph of a text file: lines without a blank one between them."""
    return [unit for block in blocks_of(lines_of(document)) if (unit := _paragraph(document, block))]


def _paragraph(document: str, lines: Sequence[TextLine]) -> Unit | None:
    """Return the unit of a paragraph, whose translation is wrapped to its longest line if it has several."""
    begin, end = lines[0].begin, lines[-1].end
    text = " ".join(line.text.strip() for line in lines)
    unit = unit_of(document, [Chunk("text", text, begin, end)])
    if not unit or len(lines) == 1:
        return unit
    indent = lines[1].text[: len(lines[1].text) - len(lines[1].text.lstrip())]
    joint = lines[0].ending + indent
    width = max(len(line.text.strip()) for line in lines)
    return replace(unit, compose=lambda content, _: joint.join(wrapped(content, width)))


def wrapped(content: str, width: int, most: int = 0) -> list[str]:
    """Return lines of up to `width` characters, not counting tags; wider ones if they would be more than `most`."""
    words = _WORD.findall(content)
    sizes = [len(_MARKUP.sub("", word)) for word in words]
    lines = _filled(words, sizes, width)
    while most and len(lines) > most:
        width += 1 + width // 20  # a step that keeps long texts fast
        lines = _filled(words, sizes, width)
    return lines


def _filled(words: Sequence[str], sizes: Sequence[int], width: int) -> list[str]:
    lines, used = list[list[str]](), 0
    for word, size in zip(words, sizes, strict=True):
        if lines and used + 1 + size <= width:
            lines[-1].append(word)
            used += 1 + size
        else:
            lines.append([word])
            used = size
    return [" ".join(line) for line in lines]
