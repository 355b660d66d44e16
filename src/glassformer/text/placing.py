"""Put terms into a finished translation, at the words that are aligned to their places in the source.

A term replaces the words that are aligned to it. A span that was taken out of the source, and a term without words of
its own, go beside the word that is aligned to the nearest word of the source. What the translation already contains,
and the beginning that it must have, stay whole.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from glassformer.text.glossary import Term
from glassformer.text.links import Link, Span, overlap, word_spans
from glassformer.text.terms import Written, suffices, written_forms
from glassformer.text.word_edges import edge_kind, end_of_letters, is_apart, is_of_word, is_unspaced

__all__ = ["Stripped", "copied", "placed", "stripped"]

LONGEST_ELISION = 2
"""Maximum number of letters of an elided word, such as "qu" in "qu'un"."""
_ENDS = ".,;:!?…。，、；：？！"
"""Marks that end a sentence or a part of it."""


class _Wish(NamedTuple):
    """A text to write into a translation."""

    term: Term
    text: str
    """The term in its first form, with the brackets or quotes that were taken out with it."""
    at: Span
    """The characters of the translated source that it stands for: none, if the term was taken out there."""
    touches: tuple[str, str] = ("", "")
    """The letter or the digit that stands directly before the term in the source, and directly after it, if any."""


class _Edit(NamedTuple):
    """A replacement of the characters [begin, end) of a text."""

    begin: int
    end: int
    text: str
    source: Span
    """The characters of the source that the new text stands for."""
    spaces: tuple[bool, bool] = (False, False)
    """Whether the new text needs a space before it, and after it."""


class _Gap(NamedTuple):
    """Characters [begin, end) of a source that were taken out."""

    begin: int
    end: int
    text: str
    """What of them belongs into the translation."""
    touches: tuple[str, str]
    before: int
    """The number of characters by which the text without them is shorter before them."""
    rest: str
    """What stands there instead: a space, where the characters before and after were apart by nothing else."""

    @property
    def place(self) -> int:
        """Where they would stand in the text without them."""
        return self.begin - self.before

    @property
    def taken(self) -> int:
        """The number of characters by which the text without them is shorter up to their end."""
        return self.before + self.end - self.begin - len(self.rest)


class Stripped(NamedTuple):
    """A source without some of its terms."""

    text: str
    gaps: dict[Term, _Gap]

    def original(self, span: Span) -> Span:
        """Return the characters of the source for those of the text."""
        gaps = [*self.gaps.values()]
        first = bisect_right(gaps, span[0], key=lambda gap: gap.place)
        last = bisect_left(gaps, span[1], key=lambda gap: gap.place)
        begin, end = (
            place + (gaps[number - 1].taken if number else 0) for place, number in zip(span, (first, last), strict=True)
        )
        return begin, end

    def wish(self, term: Term) -> _Wish:
        """Return what to write for a term of the source: one that was taken out, or else one of a text without gaps."""
        if gap := self.gaps.get(term):
            return _Wish(term, gap.text, (gap.place, gap.place), gap.touches)
        return _Wish(term, term.forms[0], (term.begin, term.end))


def stripped(source: str, terms: Sequence[Term]) -> Stripped:
    """Return a source without these terms, the marks that touch one, and the space that it needed.

    A mark at the end of a sentence or of a part of it stays. Words that only a term parts get a space between them, so
    that they stay two words, which have links of their own.
    """
    gaps = dict[Term, _Gap]()
    cursor = start = taken = 0  # everything before `start` belongs to spans at the beginning of the text
    for term, following in zip(terms, [*(one.begin for one in terms[1:]), len(source)], strict=False):
        begin, end = term.begin, term.end
        while begin > cursor and _is_mark(source[begin - 1]) and not _is_elision(source, begin):
            begin -= 1
        while end < following and _is_mark(source[end]) and (begin == start or source[end] not in _ENDS):
            end += 1
        is_space_before = begin > cursor and source[begin - 1] == " "
        first = begin - 1 if is_space_before and not source[end : end + 1].isalnum() else begin
        last = end + 1 if begin == start and source[end : end + 1] == " " else end
        before, after = source[max(cursor, begin - 1) : begin], source[end : end + 1]
        touches = (before if is_of_word(before) else "", after if is_of_word(after) else "")
        goes_on = touches[1] or (after in _ENDS and source[end + 1 : end + 2].isalnum())
        is_cut = any(map(is_unspaced, before + source[end : end + 2]))
        rest = " " if touches[0] and goes_on and not is_cut else ""
        gaps[term] = _Gap(first, last, source[begin:end], touches, taken, rest)
        taken = gaps[term].taken
        cursor, start = last, last if begin == start else start
    ends = [0, *(gap.end for gap in gaps.values())]
    begins = [*(gap.begin for gap in gaps.values()), len(source)]
    rests = [*(gap.rest for gap in gaps.values()), ""]
    parts = zip(ends, begins, rests, strict=True)
    return Stripped("".join(source[end:begin] + rest for end, begin, rest in parts), gaps)


def copied(source: str, terms: Iterable[Term]) -> tuple[str, list[Link]]:
    """Return a source with each of its terms in its first form, and the links of its words."""
    edits = [_Edit(one.begin, one.end, one.forms[0], one[:2]) for one in terms if one.kind == "translated"]
    return _edited(source, edits, [Link(word, word) for word in word_spans(source)])


def placed(
    source: Stripped, missing: Sequence[Term], terms: Sequence[Term], target: str, links: Sequence[Link], begun: int = 0
) -> tuple[str, list[Link]]:
    """Return a translation with the missing ones of some terms in it, and links from its parts to the whole source.

    Args:
        source: what was translated.
        missing: the terms to place: those that were taken out of the source; or any, if none was.
        terms: all terms of the source.
        target: the translation.
        links: its words and those of the source that was translated.
        begun: the number of its first characters that stay as they are.
    """
    written = written_forms(terms, target)
    fixed = [(-1, _end_of_word(target, begun)), *(one[:2] for one in written)]
    edits, beside = list[_Edit](), list[_Wish]()
    for wish in _unwritten([source.wish(term) for term in missing], written, terms, links):
        run = [] if wish.term in source.gaps else _run(target, _aligned(wish, links), fixed)
        if run:
            edits.append(_Edit(*_inner(target, run[0][0], run[-1][1]), wish.text, wish.term[:2]))
            fixed.append(edits[-1][:2])
        else:
            beside.append(wish)
    targets: dict[Span, list[Span]] = {word: [] for word in word_spans(source.text)}
    for word, other in links:
        targets.get(word, []).append(other)
    edits += [_insertion(wish, source.text, target, targets, fixed) for wish in beside]
    return _edited(target, edits, [Link(source.original(one), other) for one, other in links])


def _unwritten(
    wishes: Sequence[_Wish], written: Sequence[Written], terms: Sequence[Term], links: Sequence[Link]
) -> list[_Wish]:
    """Return the wishes that are left when each form in the translation, but those of other terms, has granted one.

    A form grants the wish whose words it is aligned to, or else the first.
    """
    asked = {wish.term for wish in wishes}
    left = list(wishes)
    for one in written:
        fitting = [wish for wish in left if one.form in wish.term.forms]
        if fitting and not any(suffices(one.form, term) for term in terms if term not in asked):
            linked = (wish for wish in fitting if any(overlap(word, one[:2]) for word in _aligned(wish, links)))
            left.remove(next(linked, fitting[0]))
    return left


def _aligned(wish: _Wish, links: Iterable[Link]) -> list[Span]:
    """Return the words of the translation that are aligned to a wish's source words."""
    return sorted(other for one, other in links if overlap(one, wish.at))


def _run(target: str, words: Sequence[Span], fixed: Sequence[Span]) -> list[Span]:
    """Return the first of some words that may be replaced, and those that follow it directly."""
    free = [word for word in words if _is_word(target[slice(*word)]) and not any(overlap(word, one) for one in fixed)]
    run = free[:1]
    for word in free[1:]:
        if not target[run[-1][1] : word[0]].strip():
            run.append(word)
    return run


def _is_word(text: str) -> bool:
    """Return whether a text without spaces is one word: not only punctuation, and without particles as in Korean."""
    letters = [character for character in text if character.isalnum()]
    return bool(letters) and all(edge_kind(one) or is_unspaced(one) for one in letters)


def _insertion(
    wish: _Wish, source: str, target: str, targets: Mapping[Span, Sequence[Span]], fixed: Iterable[Span]
) -> _Edit:
    """Return the edit that writes a text beside the word aligned to the nearest word of the translated source.

    That is before the word that is aligned to a following word, or after the word that is aligned to one before.
    `targets` are the words of the translation by the aligned words of the source.
    """
    words, (begin, end) = [*targets], wish.at
    after = bisect_left(words, (end, 0))
    # `others` has the nearest words first: the term's own words, then the words before it.
    following, others = words[after:], words[:after][::-1]
    ahead, back = (
        next(((number, targets[word]) for number, word in enumerate(some) if targets[word]), None)
        for some in (following, others)
    )
    is_joined = _joins(wish.touches[0]) or any(word[0] < begin == end < word[1] for word in others[:1])
    if ahead and (not back or (not is_joined and ahead[0] + (begin < end) <= back[0])):
        at, is_after = min(ahead[1])[0], False
    else:
        at, is_after = _inner(target, *(max(back[1]) if back else (0, len(target))))[1], True
        for mark in _marks_before(source, others[back[0]], begin) if back else "":
            at += target.startswith(mark, at)
    for first, last in sorted(fixed):
        if first < at < last:
            at, is_after = last, True
    left, right = target[:at][-1:], target[at : at + 1]
    spaces = (
        (is_after or is_of_word(left)) and _needs_space(wish.touches[0], left),
        (not is_after or is_of_word(right)) and _needs_space(wish.touches[1], right),
    )
    return _Edit(at, at, wish.text, wish.term[:2], spaces)


def _joins(character: str) -> bool:
    return bool(character) and not is_unspaced(character)


def _needs_space(touched: str, neighbour: str) -> bool:
    """Return whether a space belongs between a term and its neighbour in the translation.

    `touched` is the neighbour without a space in the source, if it has one; among words with spaces, a term needs one.
    """
    return not touched or (is_unspaced(touched) and not is_unspaced(neighbour))


def _marks_before(source: str, word: Span, place: int) -> str:
    """Return the marks at the end of a word that stand before a place."""
    return source[_inner(source, *word)[1] : min(word[1], place)]


def _edited(target: str, edits: Sequence[_Edit], links: Iterable[Link]) -> tuple[str, list[Link]]:
    """Return a text with some edits, and the links of its parts."""
    text, cursor = "", 0
    found: list[Link] = []
    moves: list[tuple[int, int]] = []
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        text += target[cursor : edit.begin]
        text += _space(text[-1:], edit.text, edit.spaces[0])
        found.append(Link(edit.source, (len(text), len(text) + len(edit.text))))
        text += edit.text
        text += _space(edit.text, target[edit.end : edit.end + 1], edit.spaces[1])
        cursor = edit.end
        moves.append((edit.end, len(text) - edit.end))
    text += target[cursor:]
    replaced = [edit[:2] for edit in edits if edit.begin < edit.end]
    for source, (begin, end) in links:
        if not any(overlap((begin, end), one) for one in replaced):
            shift = next((by for place, by in reversed(moves) if place <= begin), 0)
            found.append(Link(source, (begin + shift, end + shift)))
    return text, found


def _space(left: str, right: str, is_wanted: bool) -> str:
    """Return the space between two texts, if it is wanted or they would join without it."""
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return ""
    if is_unspaced(left[-1]) and is_unspaced(right[0]):
        return ""
    return " " if is_wanted or not is_apart(left[-1] + right[0], 1, 1) else ""


def _end_of_word(text: str, place: int) -> int:
    """Return the end of the word that continues at a position of a text, or the position itself if no word does."""
    words = (_inner(text, *word)[1] for word in word_spans(text) if word[0] < place < word[1])
    return max(place, next(words, place))


def _inner(text: str, begin: int, end: int) -> Span:
    """Return a part of a text without punctuation at its ends, and without an elided word such as "l'" before it."""
    places = [place for place in range(begin, end) if text[place].isalnum()]
    if not places:
        return begin, end
    first, last = places[0], end_of_letters(text, begin, end)
    elided = max(text.rfind(mark, first, first + LONGEST_ELISION + 1) for mark in "'’")
    return (elided + 1 if first < elided < last - 1 else first), last


def _is_elision(source: str, place: int) -> bool:
    """Return whether an apostrophe and a letter stand before a place, such as in l'%s."""
    return source[place - 1] in "'’" and place > 1 and source[place - 2].isalnum()


def _is_mark(character: str) -> bool:
    return not is_of_word(character) and not character.isspace()
