"""Translate plain texts without their pairs of tags, and put the tags around the words that they belong to."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from glassformer.text.edits import edited
from glassformer.text.links import Link, Span, word_spans
from glassformer.text.spans import protected_spans
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import MOST_CHARACTERS, TRANSLATED, Translation

if TYPE_CHECKING:
    from glassformer.translating.markup.projection import Plain
    from glassformer.translating.markup.units import Chunk, Unit

__all__ = ["TaggedText", "tagged_texts", "tagging"]


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text with pairs of numbered or named tags around some of its words."""

    text: str
    unit: "Unit"
    plain: "Plain"

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

    def restored(self, one: Translation, *, links: bool) -> Translation:
        """Return a translation of the plain text with the tags of the text put into it.

        If the placeholders of the translation cannot be kept in order, or a link finds no word, the original text is
        returned instead. Such an alternative is left out.
        """
        from glassformer.translating.markup.projection import retagged

        if one.status not in TRANSLATED or not one.text.strip():
            return replace(one, links=())
        chunks = retagged(self.plain, one.text, one.links)
        if not chunks:
            return replace(one, text=self.text, links=(), alternatives=(), kept="lost")
        text = edited(self.text, [self.unit.edit(chunks, (), self.text)])
        others = (self.restored(other, links=links) for other in one.alternatives)
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


def tagged_texts(asked: Request) -> dict[int, TaggedText]:
    """Return the texts of a request that have pairs of tags, by the index of the text.

    Texts whose output must begin with a prefix are left out. If the request does not protect tags, no text is returned.
    """
    if not asked.terms.protect:
        return {}
    free = [
        place
        for place, text in enumerate(asked.texts)
        if "</" in text and len(text) <= MOST_CHARACTERS and not asked.prefixes[place]
    ]
    found = ((place, TaggedText.of(asked.texts[place], asked.terms.patterns)) for place in free)
    return {place: one for place, one in found if one}


def tagging(tagged: Mapping[int, TaggedText], asked: Request, below: Translate) -> Iterator[Translation]:
    """Start translating; return an iterator over the translations, into which the tags of their texts are put."""
    rest = [place for place in range(len(asked.texts)) if place not in tagged]
    plain = _among(asked, [*tagged])._replace(texts=[one.plain.text for one in tagged.values()], links=True)
    return _merged(asked, tagged, below(plain), below(_among(asked, rest)))


def _among(asked: Request, places: Sequence[int]) -> Request:
    """Return a request with only those texts of `asked` whose indices are in `places`."""
    texts, prefixes = ([some[place] for place in places] for some in (asked.texts, asked.prefixes))
    return asked._replace(texts=texts, prefixes=prefixes, seeds=[asked.seeds[place] for place in places])


def _merged(
    asked: Request, tagged: Mapping[int, TaggedText], found: Iterator[Translation], others: Iterator[Translation]
) -> Iterator[Translation]:
    for place in range(len(asked.texts)):
        yield tagged[place].restored(next(found), links=asked.links) if place in tagged else next(others)
