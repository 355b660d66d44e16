"""The sentences of a document, which a model translates, and the document with their translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from glassformer.text.edits import exchanged
from glassformer.text.links import Link, Span
from glassformer.text.splitting import sentence_spans
from glassformer.translating.documents.chunks import Chunk
from glassformer.translating.documents.document import Document
from glassformer.translating.documents.tags import Tag, detagged, projected, proportional_links
from glassformer.translating.translation import TRANSLATED, Translation

__all__ = ["DocumentReport", "DocumentSentences", "Doubt"]


class Doubt(NamedTuple):
    """A unit whose translation a reader should check, or which has none in part."""

    line: int
    """The line of the document in which the unit begins, from 1."""
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """What became of a document's units."""

    units: int
    doubts: tuple[Doubt, ...]


class _Plain(NamedTuple):
    """A unit as plain text."""

    text: str
    tags: list[Tag]
    spans: list[Span]
    """The characters of each sentence."""


class DocumentSentences:
    """The sentences of a document's units, split by the rules of a language unless each of its lines is a sentence."""

    def __init__(self, document: Document, language: str) -> None:
        self.document = document
        splitting = None if document.options.lines else language
        self._units = [_plain(unit.chunks, splitting) for unit in document.units]

    @property
    def has_tags(self) -> bool:
        """Whether there are tags to put back, for which the links of the translations are needed."""
        return any(unit.tags for unit in self._units)

    @property
    def wanted(self) -> list[str]:
        """The sentences to translate, in order."""
        return [unit.text[begin:end] for unit in self._units for begin, end in unit.spans]

    def rebuilt(self, found: Sequence[Translation]) -> tuple[bytes, DocumentReport]:
        """Return the bytes of the document with the translations of its sentences, and what became of its units.

        A unit whose translation equals its source stays byte for byte as it is. So does a sentence without a
        translation.

        Raises:
            DataError: the encoding of the file lacks a character of a translation.
        """
        rest = iter(found)
        changed: dict[int, Sequence[Chunk]] = {}
        doubts: dict[int, Doubt] = {}
        for place, unit in enumerate(self._units):
            renderings = [next(rest) for _ in unit.spans]
            target, links = _joined(unit, renderings)
            if target != unit.text:
                changed[place] = projected(unit.text, target, unit.tags, links)
            status = next((one.status for one in renderings if one.status != "ok"), None)
            if status:
                doubts[place] = Doubt(self.document.line(place), status)
        data = self.document.rebuilt(changed)
        return data, DocumentReport(units=len(self._units), doubts=tuple(doubts.values()))


def _plain(chunks: Sequence[Chunk], language: str | None) -> _Plain:
    text, tags = detagged(chunks)
    return _Plain(text, tags, list(sentence_spans(text, language)))


def _joined(unit: _Plain, renderings: Sequence[Translation]) -> tuple[str, list[Link]]:
    """Return the translation of a unit with the white space between its sentences, and the links of all of them."""
    sources = [unit.text[begin:end] for begin, end in unit.spans]
    targets = [
        one.text if one.status in TRANSLATED else source for source, one in zip(sources, renderings, strict=True)
    ]
    text, places = exchanged(unit.text, unit.spans, targets)
    links: list[Link] = []
    sentences = zip(sources, targets, renderings, strict=True)
    for (begin, _), (moved, _), sentence in zip(unit.spans, places, sentences, strict=True):
        links += [link.moved(begin, moved) for link in _links(*sentence)]
    return text, links


def _links(source: str, text: str, one: Translation) -> Sequence[Link]:
    """Return the links between the words of a sentence and its translation; without any, those by position."""
    return one.links or proportional_links(source, text)
