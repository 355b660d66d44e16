"""Tags by detagging and projection: a model translates plain text, and the tags follow the words that they belonged to.

A tag goes to the target words that are aligned to its source words, as a whole: it is never repeated, lost or invented,
and tags stay nested as in the source. A point, such as an image, goes before the target word aligned
to the source word that followed it. What finds no word goes to the end of the tag around it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from glassformer.text.links import Link, Span, overlap
from glassformer.translating.documents.chunks import Chunk, closings_of

__all__ = ["Tag", "detagged", "projected", "proportional_links"]

FEW_WORDS = 2
"""A tag also covers this number of unaligned words between its own."""


class Tag(NamedTuple):
    """A tag that was taken out of a text."""

    opening: Chunk
    closing: Chunk | None
    """None for a point."""
    begin: int
    end: int
    """The characters of the plain text that the tag stood around."""
    inner: "tuple[Tag, ...]" = ()
    space: Literal["kept", "taken", "added"] = "kept"
    """What happened to the white space at a point: one of two spaces was taken out, or one was added between words."""


class _Placed(NamedTuple):
    """A tag's place in the target."""

    begin: int
    end: int
    tag: Tag
    inner: "tuple[_Placed, ...]"


class _Word(NamedTuple):
    begin: int
    end: int
    sources: tuple[Span, ...]


class _Words:
    """The words of a part of a target in order, found by their source words, so that many tags take little time."""

    def __init__(self, words: Sequence[_Word]) -> None:
        self.words = words
        aligned = sorted((source, place) for place, word in enumerate(words) for source in word.sources)
        self._places = [place for _, place in aligned]
        self._begins, self._ends = ([source[side] for source, _ in aligned] for side in (0, 1))

    def of(self, tag: Tag) -> list[int]:
        """Return the places of the words that are aligned to a tag's source words."""
        first, last = bisect_right(self._ends, tag.begin), bisect_left(self._begins, tag.end)
        return sorted({*self._places[first:last]})

    def after(self, place: int) -> Iterator[_Word]:
        """Yield the words aligned to the source words after a place in the source, in the order of the source."""
        first = bisect_right(self._ends, place)
        return (self.words[self._places[one]] for one in range(first, len(self._places)))

    def within(self, begin: int, end: int) -> "_Words":
        """Return the words that are at least in part between two characters of the target."""
        first = bisect_right(self.words, begin, key=lambda word: word.end)
        return _Words(self.words[first : bisect_left(self.words, end, key=lambda word: word.begin)])


def detagged(chunks: Sequence[Chunk]) -> tuple[str, list[Tag]]:
    """Return the plain text of chunks, and their tags."""
    closings, plain = closings_of(chunks), _PlainText(chunks)
    ends = {end: begin for begin, end in closings.items()}
    levels: list[list[Tag]] = [[]]
    begins: list[int] = []
    for place, chunk in enumerate(chunks):
        if chunk.role == "text":
            plain.add(chunk.text)
        elif place in closings:
            levels.append([])
            begins.append(plain.size)
        elif place in ends:
            inner, opening = tuple(levels.pop()), chunks[ends[place]]
            levels[-1].append(Tag(opening, chunk, begins.pop(), plain.size, inner))
        else:
            space = plain.space_at_point(place)
            levels[-1].append(Tag(chunk, None, plain.size, plain.size, (), space))
    return plain.text, levels[0]


class _PlainText:
    """The plain text of chunks, as far as they are read."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.size = 0
        self._chunks = chunks
        self._parts: list[str] = []
        self._skips_space = False
        self._next: list[str] = []
        """For each chunk, the first character of the text after it."""
        following = ""
        for chunk in reversed(chunks):
            self._next.append(following)
            following = chunk.text[:1] if chunk.role == "text" and chunk.text else following
        self._next.reverse()

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str) -> None:
        if self._skips_space and text:
            text, self._skips_space = text[1:], False
        if text:
            self._parts.append(text)
            self.size += len(text)

    def space_at_point(self, place: int) -> Literal["kept", "taken", "added"]:
        before, after = self._parts[-1][-1] if self._parts else "", self._next[place]
        if self._skips_space or not (before or after):
            return "kept"
        if before in ("", " ") and after == " ":
            self._skips_space = True
            return "taken"
        if before == " " and not after and self._chunks[place - 1].role == "text":
            last = self._parts.pop()
            self._parts += [last[:-1]] if len(last) > 1 else []
            self.size -= 1
            return "taken"
        if not before or not after or before.isspace() or after.isspace():
            return "kept"
        self.add(" ")
        return "added"


def proportional_links(source: str, target: str) -> list[Link]:
    """Return links from each target word to the source word at the same share of the text."""
    sources, targets = _words(source), _words(target)
    if not sources:
        return []
    return [Link(sources[(2 * i + 1) * len(sources) // (2 * len(targets))], word) for i, word in enumerate(targets)]


def _words(text: str) -> list[Span]:
    return [found.span() for found in re.finditer(r"\S+", text)]


def projected(source: str, target: str, tags: Iterable[Tag], links: Iterable[Link]) -> list[Chunk]:
    """Return the chunks of a target: its text, with the tags of the source at the aligned words."""
    aligned: dict[int, list[Span]] = {}
    for span, (begin, _) in links:
        aligned.setdefault(begin, []).append(span)
    words = [_Word(begin, end, tuple(aligned.get(begin, ()))) for begin, end in _words(target)]
    end = len(target.rstrip())
    placed = _Projection(source, target).placed(list(tags), 0, end, _Words(words))
    return list(_written(target, 0, len(target), placed))


class _Projection:
    """Places the tags of a source in a target."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target

    def placed(self, tags: Sequence[Tag], begin: int, end: int, words: _Words) -> tuple[_Placed, ...]:
        """Return the places of tags between two characters, in order and without overlaps; `words` lie there."""
        ranges: dict[int, Span] = {}
        taken: set[int] = set()
        for index, tag in enumerate(tags):
            if tag.closing and (run := _run(tag, words, taken, tags)):
                taken.update(run)
                ranges[index] = self._clipped(tag, words.words[run[0]], words.words[run[-1]], begin, end)
        found = []
        for index, tag in enumerate(tags):
            first, last = ranges.get(index) or self._point(index, tag, ranges, (begin, end), words)
            inner = self.placed(tag.inner, first, last, words.within(first, last)) if tag.inner else ()
            found.append((first, index in ranges, index, _Placed(first, last, tag, inner)))
        return tuple(place for *_, place in sorted(found, key=lambda one: one[:3]))

    def _clipped(self, tag: Tag, head: _Word, tail: _Word, begin: int, end: int) -> Span:
        """Return the characters of a run of words, without the punctuation at its ends that the tag did not cover."""
        first, last = max(head.begin, begin), min(tail.end, end)
        inner = self.target[first:last]
        if _is_punctuation(self.source[tag.begin - 1 : tag.begin]) and (kept := inner.lstrip(_punctuation(inner))):
            first = last - len(kept)
        inner = self.target[first:last]
        if _is_punctuation(self.source[tag.end : tag.end + 1]) and (kept := inner.rstrip(_punctuation(inner))):
            last = first + len(kept)
        return first, last

    def _point(self, index: int, tag: Tag, ranges: Mapping[int, Span], around: Span, words: _Words) -> Span:
        """Return the place of a point, or of a tag that no word belongs to, outside the ranges of its neighbours."""
        begin, end = around
        following = (word.begin for word in words.after(tag.begin) if begin < word.end and word.begin < end)
        place = min(max(next(following, end), begin), end)
        for other, (first, last) in ranges.items():
            if first < place < last:
                place = first if index < other else last
        return place, place


def _run(tag: Tag, words: _Words, taken: set[int], siblings: Sequence[Tag]) -> range:
    """Return the places of the longest run of words aligned to a tag's source words.

    Between these words may be few others, aligned to no other tag.
    """
    runs = [range(0)]
    for place in words.of(tag):
        if place in taken:
            continue
        gap = range(runs[-1].stop, place)
        is_near = len(gap) <= FEW_WORDS and taken.isdisjoint(gap)
        between = [words.words[one] for one in gap] if is_near and runs[-1] else []
        if runs[-1] and is_near and not any(_covers(other, one) for one in between for other in siblings):
            runs[-1] = range(runs[-1].start, place + 1)
        else:
            runs.append(range(place, place + 1))
    return max(runs, key=len)


def _covers(tag: Tag, word: _Word) -> bool:
    return any(overlap((tag.begin, tag.end), source) for source in word.sources)


def _is_punctuation(character: str) -> bool:
    return bool(character) and not character.isalnum() and not character.isspace()


def _punctuation(text: str) -> str:
    return "".join({character for character in text if _is_punctuation(character)})


def _written(target: str, begin: int, end: int, placed: Iterable[_Placed]) -> Iterator[Chunk]:
    """Yield the chunks of a part of the target."""
    cursor = begin
    for place in placed:
        text, tag = target[cursor : place.begin], place.tag
        yield Chunk("text", text.rstrip() if tag.space == "added" else text)
        is_after_word = place.begin > 0 and not target[place.begin - 1].isspace()
        if tag.space == "taken" and is_after_word:
            yield Chunk("text", " ")
        yield tag.opening
        if tag.space == "taken" and not is_after_word:
            yield Chunk("text", " ")
        if tag.closing:
            yield from _written(target, place.begin, place.end, place.inner)
            yield tag.closing
        cursor = place.end
    yield Chunk("text", target[cursor:end])
