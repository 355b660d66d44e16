"""Put terms into a finished translation, at the words that are aligned to their places in the source."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from glassformer.text.glossary import Term
from glassformer.text.links import Link, Span, overlap, word_spans

__all__ = ["Stripped", "placed_spans", "replaced_terms", "stripped"]

LONGEST_ELISION = 2
"""Maximum number of letters of an elided word, such as "qu" in "qu'un"."""
_OPENING, _CLOSING = "([{«“‘\"'", ")]}»”’\"'"


class _Edit(NamedTuple):
    """A replacement of the characters [begin, end) of a text."""

    begin: int
    end: int
    text: str
    source: Span
    """The characters of the source that the new text stands for."""


class _Gap(NamedTuple):
    """Characters [begin, end) of a source that were taken out, and what of them belongs into the translation."""

    begin: int
    end: int
    text: str
    source: Span
    joins: tuple[bool, bool]
    """Whether a letter or a digit stands directly before it, and directly after it."""


class Stripped(NamedTuple):
    """A source without some of its spans."""

    text: str
    gaps: tuple[_Gap, ...]

    def place(self, gap: _Gap) -> int:
        """Return the place of a gap in the text."""
        return gap.begin - sum(one.end - one.begin for one in self.gaps if one.end <= gap.begin)

    def original(self, span: Span) -> Span:
        """Return the characters of the source for those of the text."""
        begin = span[0] + sum(gap.end - gap.begin for gap in self.gaps if self.place(gap) <= span[0])
        return begin, span[1] + sum(gap.end - gap.begin for gap in self.gaps if self.place(gap) < span[1])


def stripped(source: str, terms: Sequence[Term]) -> Stripped:
    """Return a source without these spans, the brackets or quotes around one, and the space that it needed."""
    gaps: list[_Gap] = []
    cursor = 0
    for term in terms:
        begin, end = term.begin, term.end
        while begin > cursor and end < len(source) and _is_pair(source[begin - 1], source[end]):
            begin, end = begin - 1, end + 1
        first = (
            begin - 1 if begin > cursor and source[begin - 1] == " " and not source[end : end + 1].isalnum() else begin
        )
        last = end + 1 if begin == 0 and source[end : end + 1] == " " else end
        joins = (source[max(begin - 1, 0) : begin].isalnum(), source[end : end + 1].isalnum())
        gaps.append(_Gap(first, last, source[begin:end], (term.begin, term.end), joins))
        cursor = last
    ends = [0, *(gap.end for gap in gaps)]
    begins = [*(gap.begin for gap in gaps), len(source)]
    return Stripped("".join(source[end:begin] for end, begin in zip(ends, begins, strict=True)), tuple(gaps))


def placed_spans(without: Stripped, target: str, links: Sequence[Link]) -> tuple[str, list[Link]]:
    """Return the translation of a stripped source with its spans, and links from its parts to the whole source.

    A span goes before the word that is aligned to the source word after it; at the end of a source or before
    punctuation, after the word that is aligned to the source word before it.
    """
    edits = [_insertion(gap, without, target, links) for gap in without.gaps]
    return _edited(target, edits, [Link(without.original(one), other) for one, other in links])


def replaced_terms(target: str, links: Sequence[Link], terms: Iterable[Term]) -> tuple[str, list[Link]] | None:
    """Return a translation with the first form of each term in place of the words aligned to it, and new links.

    There is none if no word is aligned to a term, or if two terms have the same words.
    """
    edits: list[_Edit] = []
    for term in terms:
        words = [other for one, other in links if overlap(one, (term.begin, term.end))]
        if not words:
            return None
        run = words[:1]
        for word in words[1:]:
            if not target[run[-1][1] : word[0]].strip():
                run.append(word)
        begin, end = _inner(target, run[0][0], run[-1][1])
        edits.append(_Edit(begin, end, term.forms[0], (term.begin, term.end)))
    edits.sort()
    if any(one.end > other.begin for one, other in pairwise(edits)):
        return None
    return _edited(target, edits, links)


def _insertion(gap: _Gap, without: Stripped, target: str, links: Sequence[Link]) -> _Edit:
    place, words = without.place(gap), word_spans(without.text)
    targets = {word: [other for one, other in links if one == word] for word in words}
    following = [word for word in words if word[0] >= place and targets[word]]
    before = [word for word in words if word[0] < place and targets[word]]
    is_inside = any(word[0] < place < word[1] for word in words)
    joins_before, joins_after = gap.joins
    if following and not is_inside and not joins_before:
        at = min(targets[following[0]])[0]
        return _Edit(at, at, gap.text if joins_after else f"{gap.text} ", gap.source)
    word = max(targets[before[-1]]) if before else (0, len(target))
    _, at = _inner(target, *word)
    return _Edit(at, at, gap.text if joins_before or not at else f" {gap.text}", gap.source)


def _edited(target: str, edits: Sequence[_Edit], links: Iterable[Link]) -> tuple[str, list[Link]]:
    """Return a text with some edits, and the links of its parts."""
    text, cursor = "", 0
    found: list[Link] = []
    moves: list[tuple[int, int]] = []
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        text += target[cursor : edit.begin]
        inner = len(edit.text) - len(edit.text.lstrip())
        found.append(Link(edit.source, (len(text) + inner, len(text) + len(edit.text.rstrip()))))
        text += edit.text
        cursor = edit.end
        moves.append((edit.end, len(text) - edit.end))
    text += target[cursor:]
    for source, (begin, end) in links:
        shift = next((by for place, by in reversed(moves) if place <= begin), 0)
        found.append(Link(source, (begin + shift, end + shift)))
    return text, found


def _inner(text: str, begin: int, end: int) -> Span:
    """Return a part of a text without punctuation at its ends, and without an elided word such as "l'" before it."""
    places = [place for place in range(begin, end) if text[place].isalnum()]
    if not places:
        return begin, end
    first, last = places[0], places[-1] + 1
    elided = max(text.rfind(mark, first, first + LONGEST_ELISION + 1) for mark in "'’")
    return (elided + 1 if first < elided < last - 1 else first), last


def _is_pair(opening: str, closing: str) -> bool:
    place = _OPENING.find(opening)
    return place >= 0 and _CLOSING[place] == closing
