"""Divide a text with tags into sentences for a model, and rebuild the text from their translations."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from glassformer.text.edits import exchanged
from glassformer.text.links import Link, Span
from glassformer.text.splitting import sentence_spans
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.pieces import AlignedPiece, pieces_of, unchanged
from glassformer.translating.markup.projection import Plain, detagged, projected
from glassformer.translating.markup.units import Chunk
from glassformer.translating.translation import MOST_CHARACTERS, Translation, text_or

__all__ = ["MarkedSentences"]


class _Unit(NamedTuple):
    """A unit as plain text."""

    plain: Plain
    spans: list[Span]
    """The span of each sentence in the plain text."""
    cuts: list[int]
    """The positions in the plain text at which tags begin or end, in ascending order."""


class MarkedSentences:
    """The sentences of a text's units, split by the rules of `language`; if it is None, each line is a sentence."""

    def __init__(self, marked: MarkedText, language: str | None) -> None:
        self.marked = marked
        sizes = [sum(len(chunk.text) for chunk in unit.chunks) for unit in marked.units]
        self.too_long = [place for place, size in enumerate(sizes) if size > MOST_CHARACTERS]
        """The indices of units that are not translated because they are too long."""
        skipped = {*self.too_long}
        self._units = [
            _unit(() if place in skipped else unit.chunks, language) for place, unit in enumerate(marked.units)
        ]

    @property
    def has_tags(self) -> bool:
        """Whether the text has tags to put back, which needs the links of the translations."""
        return any(unit.plain.tags for unit in self._units)

    @property
    def wanted(self) -> list[str]:
        """The sentences to translate, in order."""
        return [unit.plain.text[begin:end] for unit in self._units for begin, end in unit.spans]

    def rebuilt(self, found: Sequence[Translation]) -> tuple[str, list[int]]:
        """Return the text with the translations of its sentences, and the indices of units that are not translated.

        A unit is not translated if its placeholders cannot be kept in order, or if a link finds no word. A unit whose
        translation equals its source, and a sentence without a translation, are also kept exactly as they are.
        """
        changed, lost = dict[int, Sequence[Chunk]](), list[int]()
        for place, (unit, renderings) in enumerate(zip(self._units, self.by_unit(found), strict=True)):
            sources = [unit.plain.text[begin:end] for begin, end in unit.spans]
            targets = [text_or(one, source) for one, source in zip(renderings, sources, strict=True)]
            if targets == sources:
                continue
            if chunks := _chunks(unit, targets, renderings):
                changed[place] = chunks
            else:
                lost.append(place)
        return self.marked.rebuilt(changed), lost

    def by_unit(self, found: Sequence[Translation]) -> list[list[Translation]]:
        """Return the translations of each unit's sentences; `found` are the translations of all sentences, in order."""
        rest = iter(found)
        return [[next(rest) for _ in unit.spans] for unit in self._units]


def _unit(chunks: Sequence[Chunk], language: str | None) -> _Unit:
    plain = detagged(chunks)
    return _Unit(plain, list(sentence_spans(plain.text, language)), plain.cuts)


def _chunks(unit: _Unit, targets: Sequence[str], renderings: Sequence[Translation]) -> list[Chunk] | None:
    """Return the chunks of a unit with these targets in place of its sentences, and the same white space between them.

    Return None if placeholders cannot be kept in order, or if a link finds no word.
    """
    text, places = exchanged(unit.plain.text, unit.spans, targets)
    if not unit.plain.tags and not unit.plain.raws:
        return [Chunk("text", text)]
    aligned = [one.links for one in renderings], [()] * len(renderings)
    return projected(unit.plain, text, *(partial(_pieces, unit, places, targets, links) for links in aligned))


def _pieces(
    unit: _Unit, places: Sequence[Span], targets: Sequence[str], links: Sequence[Sequence[Link]]
) -> Iterator[AlignedPiece]:
    """Yield the pieces of a unit's target text, in which the translated sentences have the spans `places`."""
    source, cursor, size = unit.plain.text, 0, 0
    for (begin, end), (first, last), target, some in zip(unit.spans, places, targets, links, strict=True):
        yield from unchanged(source, (cursor, begin), size, unit.cuts)
        cuts = [cut - begin for cut in unit.cuts[bisect_left(unit.cuts, begin) : bisect_right(unit.cuts, end)]]
        for piece in pieces_of(source[begin:end], target, some, cuts):
            yield piece.moved(begin, first)
        cursor, size = end, last
    yield from unchanged(source, (cursor, len(source)), size, unit.cuts)
