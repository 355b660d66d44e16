"""Divide a document into sentences for a model, and rebuild the document from their translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from glassformer.translating.documents.document import Document
from glassformer.translating.markup.sentences import MarkedSentences
from glassformer.translating.translation import Translation

__all__ = ["DocumentReport", "DocumentSentences", "Doubt"]


class Doubt(NamedTuple):
    """A unit whose translation should be checked, or of which a part has no translation."""

    line: int
    """The line of the document in which the unit begins, from 1."""
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """A report on a document's units: their number, and the units whose translations are doubtful."""

    units: int
    doubts: tuple[Doubt, ...]


class DocumentSentences:
    """The sentences of a document's units, split by a language's rules; or its lines, if its options say so."""

    def __init__(self, document: Document, language: str) -> None:
        self.document = document
        self._sentences = MarkedSentences(document.content, None if document.options.lines else language)

    @property
    def has_tags(self) -> bool:
        """Whether the document has tags to put back, which needs the links of the translations."""
        return self._sentences.has_tags

    @property
    def wanted(self) -> list[str]:
        """The sentences to translate, in order."""
        return self._sentences.wanted

    def rebuilt(self, found: Sequence[Translation]) -> tuple[bytes, DocumentReport]:
        """Return the bytes of the document with the translations of its sentences, and a report on its units.

        Three things keep their bytes: a unit whose translation equals its source, a sentence without a translation, and
        a unit whose placeholders cannot be kept in order or a link of which finds no word (status "lost"). So does a
        unit that is too long.

        Raises:
            DataError: the file's encoding does not have a character of a translation.
        """
        text, lost = self._sentences.rebuilt(found)
        data = self.document.encoded(text)
        statuses = {**dict.fromkeys(lost, "lost"), **dict.fromkeys(self._sentences.too_long, "too_long")}
        for place, renderings in enumerate(self._sentences.by_unit(found)):
            if status := next((one.status for one in renderings if one.status != "ok"), None):
                statuses.setdefault(place, status)
        doubts = [Doubt(self.document.content.line(place), statuses[place]) for place in sorted(statuses)]
        return data, DocumentReport(units=len(self.document.content.units), doubts=tuple(doubts))
