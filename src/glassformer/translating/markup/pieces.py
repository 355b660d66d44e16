"""Divide a translation into pieces, each with the characters of the source that it comes from."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from glassformer.text.edits import Replacement, edited
from glassformer.text.links import Link, Span, word_spans
from glassformer.text.spans import ordered_spans, protected_spans
from glassformer.text.word_edges import end_of_letters
from glassformer.translating.markup.units import has_words

__all__ = ["AlignedPiece", "pieces_of", "same", "unchanged"]


class AlignedPiece(NamedTuple):
    """A piece: the characters [begin, end) of a translation, and the characters of the source that they come from."""

    begin: int
    end: int
    sources: tuple[Span, ...] = ()
    """The characters of the source from which the piece comes; empty if the piece is aligned to nothing."""
    is_word: bool = False
    """Whether the piece contains a letter or a digit."""
    is_same: bool = False
    """Whether the piece has exactly the characters of its only source, except for letter case."""

    def moved(self, source: int, target: int) -> "AlignedPiece":
        """Return the piece with its positions in source and target moved by these numbers of characters."""
        sources = tuple((begin + source, end + source) for begin, end in self.sources)
        return self._replace(begin=self.begin + target, end=self.end + target, sources=sources)


def same(one: str, other: str) -> bool:
    """Return whether two texts have the same characters, except that letters may differ in case.

    >>> same("The cat.", "THE CAT."), same("cat", "cats")
    (True, False)
    """
    return len(one) == len(other) and all(
        a == b or a.casefold() == b.casefold() for a, b in zip(one, other, strict=True)
    )


def pieces_of(source: str, target: str, links: Sequence[Link], cuts: Sequence[int]) -> Iterator[AlignedPiece]:
    """Yield the pieces of a sentence's translation, in order; together, they are the whole translation.

    Aligned words that are equal in both texts are aligned character by character, and divided at each of `cuts`, which
    are ascending positions in the source. All other words are aligned as a whole. Without links, words are aligned by
    their positions between the spans that programs fill by their order. A protected span, such as {{ cart.name }}, is
    always inside one word.
    """
    if same(source, target):
        yield from unchanged(source, (0, len(source)), 0, cuts)
        return
    words = _Words(source, target, links, cuts)
    cursor, before = 0, None
    for word, origin in words.origins():
        yield from words.gap((cursor, word[0]), before, origin)
        yield from words.of(word, origin)
        cursor, before = word[1], origin
    if cursor < len(target):
        yield AlignedPiece(cursor, len(target))


class _Words:
    def __init__(self, source: str, target: str, links: Sequence[Link], cuts: Sequence[int]) -> None:
        self.source, self.target, self.cuts = source, target, cuts
        self._letters_of_source, self._letters_of_target = _with_letters(source), _with_letters(target)
        self.sources, targets = word_spans(self._letters_of_source), word_spans(self._letters_of_target)
        self._places = {span[0]: place for place, span in enumerate(self.sources)}
        self._aligned: dict[int, dict[Span, None]] = {}
        for one, other in links or self._by_position(targets):
            word, origin = _around(targets, other), _around(self.sources, one)
            self._aligned.setdefault(word[0], {})[origin] = None

    def _by_position(self, targets: Sequence[Span]) -> Iterator[Link]:
        """Yield a link for each target word, to the source word at the same relative position.

        Positions are relative to the ordered spans around a word, which are linked to each other.
        """
        spans, others = ordered_spans(self.source), ordered_spans(self.target)
        is_whole = [span for _, span in spans] == [span for _, span in others]
        pairs = zip(spans, others, strict=True) if is_whole else ()
        anchors = [(_index(self.sources, one), _index(targets, other)) for (one, _), (other, _) in pairs]
        yield from (Link(self.sources[one], targets[other]) for one, other in anchors)
        ends = [(-1, -1), *anchors, (len(self.sources), len(targets))]
        for (first, first_target), (last, last_target) in pairwise(ends):
            inside = self.sources[first + 1 : last]
            share = len(inside) / max(1, last_target - first_target - 1)
            for place, word in enumerate(targets[first_target + 1 : last_target] if inside else ()):
                yield Link(inside[int((place + 0.5) * share)], word)

    def origins(self) -> Iterator[tuple[Span, Span | None]]:
        """Yield each word of the target with the aligned source word that has the same letters, or with None."""
        for word in word_spans(self._letters_of_target):
            inner = self.target[slice(*self._inner(word))]
            aligned = self._aligned.get(word[0], ())
            yield word, next((one for one in aligned if same(inner, self.source[slice(*self._origin(one))])), None)

    def _inner(self, word: Span) -> Span:
        return _inner(self._letters_of_target, word)

    def _origin(self, word: Span) -> Span:
        return _inner(self._letters_of_source, word)

    def of(self, word: Span, origin: Span | None) -> Iterator[AlignedPiece]:
        """Yield the pieces of a word: the punctuation before its letters, the letters, and the punctuation after."""
        begin, end = self._inner(word)
        aligned = [origin] if origin else [*self._aligned.get(word[0], ())]
        inners = [(one, self._origin(one)) for one in aligned]
        ends = [[(one[0], inner[0]) for one, inner in inners], [(inner[1], one[1]) for one, inner in inners]]
        if begin == end:  # the piece consists of punctuation only
            around = [one for several in reversed(ends) for one in several if one[0] < one[1]]
            yield from self._edge(word, around or aligned)
            return
        yield from self._edge((word[0], begin), ends[0])
        if origin:
            yield from self._unchanged((begin, end), self._origin(origin)[0])
        else:
            sources = (inner if inner[0] < inner[1] else one for one, inner in inners)
            yield AlignedPiece(begin, end, tuple(sources), is_word=True)
        yield from self._edge((end, word[1]), ends[1])

    def _edge(self, span: Span, sources: Sequence[Span]) -> Iterator[AlignedPiece]:
        """Yield the pieces of the punctuation in a span, which comes from one of the parts `sources` of the source."""
        written = self.target[slice(*span)]
        equal = next((one for one in sources if written and same(self.source[slice(*one)], written)), None)
        if equal:
            yield from self._unchanged(span, equal[0])
        elif written:
            yield AlignedPiece(*span, tuple(one for one in sources if one[0] < one[1])[:1])

    def gap(self, span: Span, before: Span | None, after: Span | None) -> Iterator[AlignedPiece]:
        """Yield the pieces of the white space between two words.

        If the two words come from neighbouring words of the source, their white space comes from the white space
        between those source words.
        """
        if span[0] == span[1]:
            return
        is_same = before and after and self._places.get(after[0], -1) == self._places.get(before[0], -1) + 1
        if is_same and before and after and self.source[before[1] : after[0]] == self.target[slice(*span)]:
            yield from self._unchanged(span, before[1])
        else:
            yield AlignedPiece(*span)

    def _unchanged(self, span: Span, source: int) -> Iterator[AlignedPiece]:
        """Yield the pieces of a span of the target that has the characters of the source from position `source` on."""
        return unchanged(self.source, (source, source + span[1] - span[0]), span[0], self.cuts)


def unchanged(source: str, span: Span, begin: int, cuts: Sequence[int]) -> Iterator[AlignedPiece]:
    """Yield the pieces of the target's characters from `begin` on, which are equal to a source span's characters."""
    inside = cuts[bisect_right(cuts, span[0]) : bisect_left(cuts, span[1])]
    moved = begin - span[0]
    for first, last in pairwise([span[0], *inside, span[1]]):
        if first < last:
            yield AlignedPiece(
                first + moved, last + moved, ((first, last),), has_words(source[first:last]), is_same=True
            )


def _with_letters(text: str) -> str:
    """Return a text with the letter "a" in place of each character of its protected spans."""
    spans = protected_spans(text)
    return edited(text, (Replacement(one.begin, one.end, "a" * (one.end - one.begin)) for one in spans))


def _around(words: Sequence[Span], span: Span) -> Span:
    """Return the word that contains the first character of a span."""
    return words[_index(words, span[0])]


def _index(words: Sequence[Span], place: int) -> int:
    """Return the index of the word that contains a position of a text."""
    return max(0, bisect_right(words, place, key=lambda word: word[0]) - 1)


def _inner(text: str, word: Span) -> Span:
    """Return the span of a word from its first to its last letter or digit; an empty span if it has neither."""
    begin, end = word
    while begin < end and not text[begin].isalnum():
        begin += 1
    return begin, end_of_letters(text, begin, end)
