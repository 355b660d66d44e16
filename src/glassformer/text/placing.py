"""Put missing terms into a finished translation, next to the words that are aligned to the terms in the source.

A term replaces the words that are aligned to its source term. Two kinds of terms have no aligned words: spans that were
taken out of the source before its translation, and terms that no word of the translation is aligned to. Such a term is
put next to the word that is aligned to the nearest source word. Terms that the translation already contains, and the
prefix that the translation must have, do not change.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import accumulate
from typing import NamedTuple

from glassformer.text.glossary import Term
from glassformer.text.links import Link, Span, overlap, overlapping, word_spans
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

    def original(self, links: Iterable[Link]) -> Iterator[Link]:
        """Yield links with the words of the text without the terms replaced by their spans in the source."""
        places = [gap.place for gap in self.gaps.values()]
        taken = [0, *(gap.taken for gap in self.gaps.values())]
        for (begin, end), word in links:
            first, last = bisect_right(places, begin), bisect_left(places, end)
            yield Link((begin + taken[first], end + taken[last]), word)

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
        missing: the terms to place, in order; if the source has gaps, all of them must be terms that were taken out.
        terms: all terms of the source.
        target: the translation.
        links: the links between the translation's words and the words of the source that was translated.
        begun: the number of characters at the beginning of the translation that must not change.
    """
    written = written_forms(terms, target)
    sources, targets = _grouped((word, one) for one, word in links), _grouped(links)
    fixed = _fixed(written, _end_of_word(target, begun))
    # A span that was taken out of the source replaces no words.
    replaceable = {word for word in sources if not source.gaps and _is_word(target[slice(*word)])}
    queues = {one: [*filter(replaceable.__contains__, words)] for one, words in targets.items() if replaceable}
    words, edits, beside = [*queues], list[_Edit](), list[_Placement]()
    for placement in _unwritten([source.placement(term) for term in missing], written, terms, sources):
        if run := _run(target, [queues[one] for one in overlapping(words, placement.at)], fixed):
            edits.append(_Edit(*_inner(target, run[0][0], run[-1][1]), placement.text, placement.term[:2]))
            insort(fixed, edits[-1][:2])
        else:
            beside.append(placement)
    edits += _insertions(beside, source.text, target, targets, fixed)
    return _edited(target, edits, source.original(links))


def _grouped(pairs: Iterable[tuple[Span, Span]]) -> dict[Span, list[Span]]:
    """Return the second spans of pairs by the first span; all spans are in order."""
    found = defaultdict[Span, list[Span]](list)
    for one, other in sorted(pairs):
        found[one].append(other)
    return found


def _fixed(written: Sequence[Written], begun: int) -> list[Span]:
    """Return the parts of a translation that must not change: its beginning, and the forms that it contains.

    The parts do not overlap: a form that the beginning cuts belongs to the beginning.
    """
    begun = max((one.end for one in written if one.begin < begun < one.end), default=begun)
    return [(-1, begun), *(one[:2] for one in written if one.begin >= begun)]


def _unwritten(
    placements: Sequence[_Placement],
    written: Sequence[Written],
    terms: Sequence[Term],
    sources: Mapping[Span, Sequence[Span]],
) -> Collection[_Placement]:
    """Return the placements whose terms the translation does not contain yet.

    Each form that the translation contains removes one placement of a term with this form: the placement whose source
    words are aligned to the form, or the first placement if no words are aligned to it. A form that another term needs
    removes no placement. `sources` maps each word of the translation to the source words aligned to it.
    """
    left, ats, words = dict(enumerate(placements)), [one.at for one in placements], [*sources]
    fitting = defaultdict[str, list[int]](list)
    for number, placement in left.items():
        for form in {*placement.term.forms}:
            fitting[form].append(number)
    needed = _needed(
        {one.form for one in written if one.form in fitting}, {*terms} - {placement.term for placement in placements}
    )
    for one in written:
        if (some := fitting[one.form]) and one.form not in needed:
            aligned = (_first_aligned(some, ats, sources[word]) for word in overlapping(words, one[:2]))
            number = min((number for number in aligned if number is not None), default=some[0])
            for form in {*left.pop(number).term.forms}:
                del fitting[form][bisect_left(fitting[form], number)]
    return left.values()


def _needed(forms: Iterable[str], terms: Iterable[Term]) -> set[str]:
    """Return the forms that count for any of these terms."""
    spans = {form for term in terms if term.kind == "span" for form in term.forms}
    entries = {term.forms: term for term in terms if term.kind != "span"}.values()
    return {form for form in forms if form in spans or any(suffices(form, term) for term in entries)}


def _first_aligned(numbers: Sequence[int], ats: Sequence[Span], words: Sequence[Span]) -> int | None:
    """Return the first of the numbers whose span in `ats` overlaps one of the words; all spans are in order."""
    place = 0
    while place < len(numbers):
        number = numbers[place]
        begin, end = ats[number]
        following = bisect_right(words, begin, key=lambda word: word[1])
        if following == len(words):
            return None
        if overlap(words[following], (begin, end)):
            return number
        place = bisect_right(numbers, words[following][0], place + 1, key=lambda number: ats[number][1])
    return None


def _run(target: str, queues: Sequence[list[Span]], fixed: Sequence[Span]) -> list[Span]:
    """Return the first word of the queues that is not fixed, and such words that follow it directly.

    Fixed words at the beginning of a queue are removed from it, because they stay fixed.
    """
    run = list[Span]()
    for queue in queues:
        while queue and overlapping(fixed, queue[0]):
            del queue[0]
    for word in merge(*queues):
        if overlapping(fixed, word) or (run and target[run[-1][1] : word[0]].strip()):
            break
        run.append(word)
    return run


def _is_word(text: str) -> bool:
    """Return whether a text without spaces is a word that a term may replace.

    Punctuation alone is not such a word, nor is a Korean word, which may end with a particle.
    """
    letters = [character for character in text if character.isalnum()]
    return bool(letters) and all(edge_kind(one) or is_unspaced(one) for one in letters)


def _insertions(
    placements: Iterable[_Placement],
    source: str,
    target: str,
    targets: Mapping[Span, Sequence[Span]],
    fixed: Sequence[Span],
) -> Iterator[_Edit]:
    """Yield the edits that write terms next to the words that are aligned to the source words nearest to the terms.

    A term goes before such a word if the nearest source word follows the term, and after the word if the nearest source
    word precedes the term. `targets` maps source words to the words of the translation aligned to them.
    """
    words = word_spans(source)
    linked = [number for number, word in enumerate(words) if word in targets]
    end_of = cache(lambda begin, end: _inner(target, begin, end)[1])

    @cache
    def behind(number: int) -> tuple[int, list[int]]:
        """Return where a source word ends without its marks, and where terms behind the word go in the translation.

        The first place is for a term directly behind the word, and each further place is for a term behind one more of
        the word's marks: it is behind this mark if the translation has the mark, too.
        """
        end, marks = _inner(source, *words[number])[1], words[number][1]
        at = end_of(*targets[words[number]][-1])
        return end, [*accumulate(source[end:marks], lambda at, mark: at + target.startswith(mark, at), initial=at)]

    for placement in placements:
        begin, end = placement.at
        rest = end_of(0, len(target))
        if not source[begin:].strip() and not placement.text.strip(_ENDS) and not target[rest:].strip(_ENDS):
            # the mark at the end of the source, for which the vocabulary has no sign
            yield _Edit(rest, len(target), placement.text, placement.term[:2])
            continue
        after = bisect_left(words, (end, 0))  # the number of the first word that follows the term
        place = bisect_left(linked, after)
        before, ahead = linked[place - 1] if place else None, linked[place] if place < len(linked) else None
        is_inside = begin == end and bool(overlapping(words, placement.at))
        is_joined = is_inside or _joins(placement.touches[0])
        if outside := _outside(placement, source, target, end_of):
            at, is_after = outside
        elif ahead is not None and (
            before is None or (not is_joined and ahead - after + (begin < end) < after - before)
        ):
            at, is_after = targets[words[ahead]][0][0], False
        elif before is None:
            at, is_after = end_of(0, len(target)), True
        else:
            first, places = behind(before)
            at, is_after = places[min(max(0, begin - first), len(places) - 1)], True
        for _, last in overlapping(fixed, (at, at)):
            at, is_after = last, True
        left, right = target[max(0, at - 1) : at], target[at : at + 1]
        spaces = (
            (is_after or is_of_word(left)) and _needs_space(placement.touches[0], left),
            (not is_after or is_of_word(right)) and _needs_space(placement.touches[1], right),
        )
        yield _Edit(at, at, placement.text, placement.term[:2], spaces)


def _outside(
    placement: _Placement, source: str, target: str, end_of: Callable[[int, int], int]
) -> tuple[int, bool] | None:
    """Return the place in the translation of a term before or behind the whole source, and whether it is behind.

    A term behind the whole source follows its last mark. Terms without letters, such as emoji, need no mark there.
    """
    before, behind = source[: placement.at[0]].rstrip(), source[placement.at[1] :].strip()
    is_sign = not any(map(str.isalnum, placement.term.forms[0]))
    if not behind and (is_sign or before[-1:] in _ENDS):
        return len(target), True
    if not is_sign or (before and behind.strip(_ENDS)):
        return None
    return (end_of(0, len(target)), True) if before else (0, False)


def _joins(character: str) -> bool:
    return bool(character) and not is_unspaced(character)


def _needs_space(touched: str, neighbour: str) -> bool:
    """Return whether a space belongs between a term and its neighbour in the translation.

    `touched` is the letter or digit that touches the term in the source, or "". A term needs a space if nothing touches
    it in the source, or if the touching letter is of a script without spaces and the neighbour's script has spaces.
    """
    return not touched or (is_unspaced(touched) and not is_unspaced(neighbour))


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
    replaced = sorted(edit[:2] for edit in edits if edit.begin < edit.end)
    for source, (begin, end) in links:
        if not overlapping(replaced, (begin, end)):
            number = bisect_right(moves, begin, key=lambda move: move[0])
            shift = moves[number - 1][1] if number else 0
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
    first = next((place for place in range(begin, end) if text[place].isalnum()), None)
    if first is None:
        return begin, end
    last = end_of_letters(text, begin, end)
    elided = max(text.rfind(mark, first, first + LONGEST_ELISION + 1) for mark in "'’")
    return (elided + 1 if first < elided < last - 1 else first), last


def _is_elision(source: str, place: int) -> bool:
    """Return whether a letter and an apostrophe precede a position, as before the %s of "l'%s"."""
    return source[place - 1] in "'’" and place > 1 and source[place - 2].isalnum()


def _is_mark(character: str) -> bool:
    return not is_of_word(character) and not character.isspace()
