"""Translate plain texts without their pairs of tags, and put the tags around the words that they belong to."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from glassformer.text.edits import edited
from glassformer.text.links import Link, Span, word_spans
from glassformer.text.spans import protected_spans
from glassformer.translating.request import Request
from glassformer.translating.translation import TRANSLATED, Translation

if TYPE_CHECKING:
    from glassformer.translating.markup.projection import Plain
    from glassformer.translating.markup.units import Chunk, Unit

__all__ = ["TaggedText", "tagged"]


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text with pairs of numbered or named tags around some of its words."""

    needs_links: ClassVar[bool] = True

    text: str
    unit: "Unit"
    plain: "Plain"

    @property
    def parts(self) -> list[str]:
        """The text without its tags."""
        return [self.plain.text]

    @classmethod
    def of(cls, text: str, patterns: Sequence[str]) -> "TaggedText | None":
        """Return a text and its tags; None if the text has no pair of tags, or nests too many.

        A tag inside another protected span, such as a plural or a match of a user's pattern, belongs to that span.
        """
        # imported for the first text with a tag, so that a line without tags is translated sooner
        from glassformer.translating.markup.projection import detagged
        from glassformer.translating.markup.reading import MOST_NESTED
        from glassformer.translating.markup.scanning import PLAIN, scanned
        from glassformer.translating.markup.units import Chunk, closings_of, unit_of

        begins = {span.begin for span in protected_spans(text, patterns) if span.kind == "tag"}
        tokens = [
            one if one.role == "text" or one.begin in begins else one._replace(role="text")
            for one in scanned(text, PLAIN)
        ]
        closings = closings_of(tokens)
        paired = {*closings, *closings.values()}
        chunks = [
            Chunk(
                ("open" if place in closings else "close") if place in paired else "text",
                text[token.begin : token.end],
                token.begin,
                token.end,
                token.name,
            )
            for place, token in enumerate(tokens)
        ]
        if not closings or not (unit := unit_of(text, chunks)):
            return None
        plain = detagged(unit.chunks)
        return cls(text, unit, plain) if max((tag.height for tag in plain.tags), default=0) <= MOST_NESTED else None

    def restored(self, found: Sequence[Translation], asked: Request) -> Translation:
        """Return a translation of the plain text with the tags of the text put into it.

        If the placeholders of the translation cannot be kept in order, or a link finds no word, the original text is
        returned instead. Such an alternative is left out.
        """
        return self._restored(found[0], links=asked.links)

    def _restored(self, one: Translation, *, links: bool) -> Translation:
        from glassformer.translating.markup.projection import retagged

        if one.status not in TRANSLATED or not one.text.strip():
            return replace(one, links=())
        chunks = retagged(self.plain, one.text, one.links)
        if not chunks:
            return replace(one, text=self.text, links=(), alternatives=(), kept="lost")
        text = edited(self.text, [self.unit.edit(chunks, (), self.text)])
        others = (self._restored(other, links=links) for other in one.alternatives)
        moved = tuple(self._moved(one.links, chunks, text)) if links else ()
        return replace(
            one, text=text, links=moved, alternatives=tuple(other for other in others if other.text != self.text)
        )

    def _moved(self, links: Sequence[Link], chunks: "Sequence[Chunk]", text: str) -> Iterator[Link]:
        """Yield the links between the words of the text with tags and the words of its translation with tags."""
        ours, theirs = (
            _Places(one, self.unit.begin, some) for one, some in ((self.text, self.unit.chunks), (text, chunks))
        )
        for link in links:
            yield Link(ours.word(link.source), theirs.word(link.target))


class _Places:
    """Finds words of a text with tags by positions in the same text without tags."""

    def __init__(self, text: str, begin: int, chunks: "Sequence[Chunk]") -> None:
        self._words = word_spans(text)
        self._plain, self._moved = [0], [begin]
        for chunk in chunks:
            begin += len(chunk.text)
            if chunk.role == "text":
                self._plain.append(self._plain[-1] + len(chunk.text))
                self._moved[-1:] = [begin - len(chunk.text), begin]

    def word(self, span: Span) -> Span:
        """Return the word that contains the first character of a span."""
        part = min(bisect_right(self._plain, span[0]), len(self._plain) - 1) - 1
        place = self._moved[part] + span[0] - self._plain[part]
        return self._words[bisect_right(self._words, place, key=lambda word: word[0]) - 1]


def tagged(text: str, asked: Request) -> TaggedText | None:
    """Return a text with its tags; None if it has no pair of tags, or the request does not protect tags."""
    return TaggedText.of(text, asked.terms.patterns) if "</" in text and asked.terms.protect else None
