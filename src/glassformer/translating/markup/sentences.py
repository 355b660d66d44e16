"""The sentences of a text with tags, which a model translates, and the text with their translations."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from glassformer.text.edits import exchanged
from glassformer.text.links import Span
from glassformer.text.splitting import sentence_spans
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.pieces import AlignedPiece, pieces_of, unchanged
from glassformer.translating.markup.projection import Plain, detagged, projected
from glassformer.translating.markup.units import Chunk
from glassformer.translating.translation import Translation, text_or

__all__ = ["MarkedSentences"]


class _Unit(NamedTuple):
    """A unit as plain text."""

    plain: Plain
    spans: list[Span]
    """The characters of each sentence."""
    cuts: list[int]
    """The places in the plain text where tags begin or end, in order."""


class MarkedSentences:
    """The sentences of a text's units, split by the rules of a language; without one, each line is a sentence."""

    def __init__(self, marked: MarkedText, language: str | None) -> None:
        self.marked = marked
        self._units = [_unit(unit.chunks, language) for unit in marked.units]

    @property
    def has_tags(self) -> bool:
        """Whether there are tags to put back, for which the links of the translations are needed."""
        return any(unit.plain.tags for unit in self._units)

    @property
    def wanted(self) -> list[str]:
        """The sentences to translate, in order."""
        return [unit.plain.text[begin:end] for unit in self._units for begin, end in unit.spans]

    def rebuilt(self, found: Sequence[Translation]) -> str:
        """Return the text with the translations of its sentences.

        A unit whose translation equals its source stays as it is written. So does a sentence without a translation.
        """
        changed: dict[int, Sequence[Chunk]] = {}
        for place, (unit, renderings) in enumerate(zip(self._units, self.by_unit(found), strict=True)):
            sources = [unit.plain.text[begin:end] for begin, end in unit.spans]
            targets = [text_or(one, source) for one, source in zip(renderings, sources, strict=True)]
            if targets != sources:
                changed[place] = _chunks(unit, targets, renderings)
        return self.marked.rebuilt(changed)

    def by_unit(self, found: Sequence[Translation]) -> list[list[Translation]]:
        """Return the translations of the sentences of each unit."""
        rest = iter(found)
        return [[next(rest) for _ in unit.spans] for unit in self._units]


def _unit(chunks: Sequence[Chunk], language: str | None) -> _Unit:
    plain = detagged(chunks)
    return _Unit(plain, list(sentence_spans(plain.text, language)), plain.cuts)


def _chunks(unit: _Unit, targets: Sequence[str], renderings: Sequence[Translation]) -> list[Chunk]:
    """Return the chunks of a unit with these targets in place of its sentences, and the same white space between."""
    text, places = exchanged(unit.plain.text, unit.spans, targets)
    if not unit.plain.tags and not unit.plain.raws:
        return [Chunk("text", text)]
    return projected(unit.plain, text, list(_pieces(unit, places, targets, renderings)))


def _pieces(
    unit: _Unit, places: Sequence[Span], targets: Sequence[str], renderings: Sequence[Translation]
) -> Iterator[AlignedPiece]:
    """Yield the pieces of the target of a unit, in which its sentences are at these places."""
    source, cursor, size = unit.plain.text, 0, 0
    for (begin, end), (first, last), target, one in zip(unit.spans, places, targets, renderings, strict=True):
        yield from unchanged(source, (cursor, begin), size, unit.cuts)
        cuts = [cut - begin for cut in unit.cuts[bisect_left(unit.cuts, begin) : bisect_right(unit.cuts, end)]]
        for piece in pieces_of(source[begin:end], target, one.links, cuts):
            yield piece.moved(begin, first)
        cursor, size = end, last
    yield from unchanged(source, (cursor, len(source)), size, unit.cuts)
