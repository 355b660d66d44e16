"""Put missing terms into a finished translation, next to the words that are aligned to the terms in the source.

A term replaces the words that are aligned to its source term. Two kinds of terms have no aligned words: spans that were
taken out of the source before its translation, and terms that no word of the translation is aligned to. Such a term is
put next to the word that is aligned to the nearest source word. Terms that the translation already contains, and the
prefix that the translation must have, do not change.
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


class _Placement(NamedTuple):
    """A term to write into a translation."""

    term: Term
    text: str
    """The text to write: the term in its first form, with the brackets or quotes that were taken out with the term."""
    at: Span
    """The characters of the term in the source that was translated; an empty span if the term was taken out of the
    source."""
    touches: tuple[str, str] = ("", "")
    """The letters or digits directly before and directly after the term in the source; "" where there is none."""


class _Edit(NamedTuple):
    """A replacement of the characters [begin, end) of a text."""

    begin: int
    end: int
    text: str
    source: Span
    """The characters of the source term that the new text translates."""
    spaces: tuple[bool, bool] = (False, False)
    """Whether the new text needs a space before it, and whether it needs a space after it."""


class _Gap(NamedTuple):
    """A gap in a source: the characters [begin, end) of the source, which were taken out."""

    begin: int
    end: int
    text: str
    """The taken characters without white space at their ends, to be written into the translation."""
    touches: tuple[str, str]
    before: int
    """The number of characters that earlier gaps removed from the source."""
    rest: str
    """What replaces the taken characters: a space if the words before and after would otherwise join, else ""."""

    @property
    def place(self) -> int:
        """The position of the gap in the text without the taken characters."""
        return self.begin - self.before

    @property
    def taken(self) -> int:
        """The number of characters that this gap and the earlier gaps removed from the source."""
        return self.before + self.end - self.begin - len(self.rest)


class Stripped(NamedTuple):
    """A source without some of its terms."""

    text: str
    gaps: dict[Term, _Gap]

    def original(self, span: Span) -> Span:
        """Return the span in the source that a span of the text without the terms comes from."""
        gaps = [*self.gaps.values()]
        first = bisect_right(gaps, span[0], key=lambda gap: gap.place)
        last = bisect_left(gaps, span[1], key=lambda gap: gap.place)
        begin, end = (
            place + (gaps[number - 1].taken if number else 0) for place, number in zip(span, (first, last), strict=True)
        )
        return begin, end

    def placement(self, term: Term) -> _Placement:
        """Return where to put a term of the source and what to write there.

        If the source has gaps, the term must be one of the terms that were taken out.
        """
        if gap := self.gaps.get(term):
            return _Placement(term, gap.text, (gap.place, gap.place), gap.touches)
        return _Placement(term, term.forms[0], (term.begin, term.end))


def stripped(source: str, terms: Sequence[Term]) -> Stripped:
    """Return a source without these terms, without the punctuation marks that touch a term, and without extra spaces.

    A punctuation mark that ends a sentence or a clause stays. Two words that only a term separates get a space between
    them, so that they remain two words, each with its own links.
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
    """Return a source in which the first form of each translated term replaces the term, and the links of its words."""
    edits = [_Edit(one.begin, one.end, one.forms[0], one[:2]) for one in terms if one.kind == "translated"]
    return _edited(source, edits, [Link(word, word) for word in word_spans(source)])


def placed(
    source: Stripped, missing: Sequence[Term], terms: Sequence[Term], target: str, links: Sequence[Link], begun: int = 0
) -> tuple[str, list[Link]]:
    """Return a translation with the missing terms in it, and links between the words of the translation and the source.

    Args:
        source: the source as it was translated, with its gaps.
        missing: the terms to place; if the source has gaps, all of them must be terms that were taken out.
        terms: all terms of the source.
        target: the translation.
        links: the links between the translation's words and the words of the source that was translated.
        begun: the number of characters at the beginning of the translation that must not change.
    """
    written = written_forms(terms, target)
    fixed = [(-1, _end_of_word(target, begun)), *(one[:2] for one in written)]
    edits, beside = list[_Edit](), list[_Placement]()
    for placement in _unwritten([source.placement(term) for term in missing], written, terms, links):
        run = [] if placement.term in source.gaps else _run(target, _aligned(placement, links), fixed)
        if run:
            edits.append(_Edit(*_inner(target, run[0][0], run[-1][1]), placement.text, placement.term[:2]))
            fixed.append(edits[-1][:2])
        else:
            beside.append(placement)
    targets: dict[Span, list[Span]] = {word: [] for word in word_spans(source.text)}
    for word, other in links:
        targets.get(word, []).append(other)
    edits += [_insertion(placement, source.text, target, targets, fixed) for placement in beside]
    return _edited(target, edits, [Link(source.original(one), other) for one, other in links])


def _unwritten(
    placements: Sequence[_Placement], written: Sequence[Written], terms: Sequence[Term], links: Sequence[Link]
) -> list[_Placement]:
    """Return the placements whose terms the translation does not contain yet.

    Each form that the translation contains removes one placement of a term with this form: the placement whose source
    words are aligned to the form, or the first placement if no words are aligned to it. A form that another term needs
    removes no placement.
    """
    asked = {placement.term for placement in placements}
    left = list(placements)
    for one in written:
        fitting = [placement for placement in left if one.form in placement.term.forms]
        if fitting and not any(suffices(one.form, term) for term in terms if term not in asked):
            linked = (
                placement for placement in fitting if any(overlap(word, one[:2]) for word in _aligned(placement, links))
            )
            left.remove(next(linked, fitting[0]))
    return left


def _aligned(placement: _Placement, links: Iterable[Link]) -> list[Span]:
    """Return the words of the translation that are aligned to the source words of a placement's term."""
    return sorted(other for one, other in links if overlap(one, placement.at))


def _run(target: str, words: Sequence[Span], fixed: Sequence[Span]) -> list[Span]:
    """Return the first of these words that may be replaced, and the replaceable words that follow it directly."""
    free = [word for word in words if _is_word(target[slice(*word)]) and not any(overlap(word, one) for one in fixed)]
    run = free[:1]
    for word in free[1:]:
        if not target[run[-1][1] : word[0]].strip():
            run.append(word)
    return run


def _is_word(text: str) -> bool:
    """Return whether a text without spaces is a word that a term may replace.

    Punctuation alone is not such a word, nor is a Korean word, which may end with a particle.
    """
    letters = [character for character in text if character.isalnum()]
    return bool(letters) and all(edge_kind(one) or is_unspaced(one) for one in letters)


def _insertion(
    placement: _Placement, source: str, target: str, targets: Mapping[Span, Sequence[Span]], fixed: Iterable[Span]
) -> _Edit:
    """Return the edit that writes a term next to the word that is aligned to the source word nearest to the term.

    The term goes before this word if the nearest source word follows the term, and after this word if the nearest
    source word precedes the term. `targets` maps each source word to the words of the translation aligned to it.
    """
    words, (begin, end) = [*targets], placement.at
    after = bisect_left(words, (end, 0))
    # `others` lists the nearest words first: the term's own words, then the words before the term.
    following, others = words[after:], words[:after][::-1]
    ahead, back = (
        next(((number, targets[word]) for number, word in enumerate(some) if targets[word]), None)
        for some in (following, others)
    )
    is_joined = _joins(placement.touches[0]) or any(word[0] < begin == end < word[1] for word in others[:1])
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
        (is_after or is_of_word(left)) and _needs_space(placement.touches[0], left),
        (not is_after or is_of_word(right)) and _needs_space(placement.touches[1], right),
    )
    return _Edit(at, at, placement.text, placement.term[:2], spaces)


def _joins(character: str) -> bool:
    return bool(character) and not is_unspaced(character)


def _needs_space(touched: str, neighbour: str) -> bool:
    """Return whether a space belongs between a term and its neighbour in the translation.

    `touched` is the letter or digit that touches the term in the source, or "". A term needs a space if nothing touches
    it in the source, or if the touching letter is of a script without spaces and the neighbour's script has spaces.
    """
    return not touched or (is_unspaced(touched) and not is_unspaced(neighbour))


def _marks_before(source: str, word: Span, place: int) -> str:
    """Return the punctuation marks at the end of a word, up to a position in the source."""
    return source[_inner(source, *word)[1] : min(word[1], place)]


def _edited(target: str, edits: Sequence[_Edit], links: Iterable[Link]) -> tuple[str, list[Link]]:
    """Return a text with these edits made, and the links of its unchanged words and of its new texts."""
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
    """Return the space to put between two texts: " " if it is wanted or if the texts would otherwise join, else ""."""
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return ""
    if is_unspaced(left[-1]) and is_unspaced(right[0]):
        return ""
    return " " if is_wanted or not is_apart(left[-1] + right[0], 1, 1) else ""


def _end_of_word(text: str, place: int) -> int:
    """Return the end of the word that continues at a position of a text; the position itself if no word continues."""
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
    """Return whether a letter and an apostrophe precede a position, as before the %s of "l'%s"."""
    return source[place - 1] in "'’" and place > 1 and source[place - 2].isalnum()


def _is_mark(character: str) -> bool:
    return not is_of_word(character) and not character.isspace()
