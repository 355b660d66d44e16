"""Take the tags out of a text, and put them into its translation around the words that come from the tags' words.

A pair of tags is put around the words that come from its own words. No tag is repeated, lost or invented, and tags
remain nested. If no word of the translation comes from a tag's words, the tag is put around the nearest word, if
necessary inside another tag, so that no pair of tags is empty. A point (a mark without content, such as an image) stays
next to the word that it touched, or else goes before the word that followed it.

Programs fill some placeholders by their order, including placeholders in tags. If the alignment would change this
order, tags are put by their position instead.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Literal, NamedTuple

from glassformer.text.links import Link, Span, overlap
from glassformer.text.spans import ordered_spans, protected_spans
from glassformer.text.word_edges import is_combining
from glassformer.translating.markup.pieces import AlignedPiece, pieces_of
from glassformer.translating.markup.units import Chunk, closings_of

__all__ = ["Plain", "Tag", "detagged", "projected", "retagged"]

FEW_WORDS = 2
"""Maximum number of words that belong to no tag and that a tag may cover between its own words."""
_LINK = "a"
"""The name of the elements that must not be nested in each other."""


class Tag(NamedTuple):
    """A pair of tags, or a point, that was taken out of a text."""

    opening: Chunk
    closing: Chunk | None
    """The closing tag; None for a point."""
    begin: int
    end: int
    """The tag was around the characters [begin, end) of the plain text."""
    inner: "tuple[Tag, ...]" = ()
    space: Literal["kept", "taken", "added"] = "kept"
    """What happened to the white space at a point. "taken": one of the two spaces around it was taken out. "added": a
    space was added between two words that only the point separated."""

    @property
    def has_link(self) -> bool:
        """Whether the tag is a link or contains a link."""
        return self.opening.name == _LINK or any(one.has_link for one in self.inner)

    def cuts(self) -> Iterator[int]:
        """Yield the positions in the plain text at which the tag, or a tag inside it, begins or ends."""
        yield from (self.begin, self.end)
        for one in self.inner:
            yield from one.cuts()


class Plain(NamedTuple):
    """A text without its tags."""

    text: str
    tags: list[Tag]
    raws: dict[int, str]
    """The spelling in the document of characters that are written as entities or other white space, by their index."""
    order: list[Chunk]
    """The marks and the spans of the text that programs fill by their order; empty if they fill no mark by its
    order."""

    @property
    def cuts(self) -> list[int]:
        """The positions at which tags begin or end, in ascending order."""
        return sorted({place for tag in self.tags for place in tag.cuts()})


class _Placed(NamedTuple):
    """A tag with its position in the target: around the characters [begin, end)."""

    begin: int
    end: int
    tag: Tag
    inner: "tuple[_Placed, ...]" = ()
    joins: bool = False
    """Whether the space that was added for a point is left out where the point is put in the target."""
    spaces: tuple[str, str] = ("", "")
    """The spaces to write before and after a point that did not touch a word in the source, but would in the target."""


def detagged(chunks: Sequence[Chunk]) -> Plain:
    """Return the plain text of a unit's chunks, and the tags among them."""
    closings, plain = closings_of(chunks), _PlainText(chunks)
    ends = {end: begin for begin, end in closings.items()}
    levels: list[list[Tag]] = [[]]
    begins: list[int] = []
    for place, chunk in enumerate(chunks):
        if chunk.role == "text":
            plain.add(chunk.text, chunk.raws)
        elif place in closings:
            plain.end_before(place)
            levels.append([])
            begins.append(plain.size)
        elif place in ends:
            inner, opening = tuple(levels.pop()), chunks[ends[place]]
            levels[-1].append(Tag(opening, chunk, begins.pop(), plain.size, inner))
        else:
            space = plain.space_at_point(place)
            levels[-1].append(Tag(chunk, None, plain.size, plain.size, (), space))
    return Plain(plain.text, levels[0], plain.raws, _order(chunks))


class _PlainText:
    """The plain text of the chunks that have been read so far."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.size = 0
        self.raws: dict[int, str] = {}
        self._chunks = chunks
        self._parts: list[str] = []
        self._skips_space = False
        self._next: list[str] = []
        """For each chunk, the first character of the text after the chunk."""
        following = ""
        for chunk in reversed(chunks):
            self._next.append(following)
            following = chunk.text[:1] if chunk.role == "text" and chunk.text else following
        self._next.reverse()

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, raws: Mapping[int, str]) -> None:
        skipped = 1 if self._skips_space and text else 0
        self._skips_space = self._skips_space and not text
        self.raws |= {self.size + place - skipped: raw for place, raw in raws.items() if place >= skipped}
        self._parts.append(text[skipped:])
        self.size += len(text) - skipped

    def end_before(self, place: int) -> None:
        """End the sentence before an element that touches another element, if such elements are separate texts."""
        chunk, last = self._chunks[place], self._chunks[max(0, place - 1)]
        if chunk.parts and last.role == "close" and last.parts and self._touches(place):
            self.add("\n", {0: ""})

    def space_at_point(self, place: int) -> Literal["kept", "taken", "added"]:
        if self._skips_space:
            return "kept"
        if self._before == " " and self._stands_before_space(place):
            self._skips_space = True
            return "taken"
        if not self._chunks[place].parts or not self._touches(place):
            return "kept"
        self.add(" ", {0: ""})
        return "added"

    @property
    def _before(self) -> str:
        return next((part[-1] for part in reversed(self._parts) if part), "")

    def _touches(self, place: int) -> bool:
        before, after = self._before, self._next[place]
        return bool(before and after) and not before.isspace() and not after.isspace()

    def _stands_before_space(self, place: int) -> bool:
        following = self._chunks[place + 1] if place + 1 < len(self._chunks) else None
        return (
            following is not None and following.role == "text" and following.text[:1] == " " and 0 not in following.raws
        )


def _order(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the marks and text spans that programs fill by their order; nothing if they fill no mark by its order."""
    text, marks = "", list[tuple[int, bool, Chunk]]()
    for chunk in chunks:
        if chunk.role == "text":
            text += chunk.text
        elif ordered_spans(chunk.text):
            marks.append((len(text), False, chunk))
    spans = [(place, True, Chunk("text", span)) for place, span in ordered_spans(text)] if marks else []
    return [chunk for *_, chunk in sorted([*marks, *spans], key=lambda one: one[:2])]


def retagged(plain: Plain, target: str, links: Sequence[Link]) -> list[Chunk] | None:
    """Return the chunks of the translation of a one-sentence text, given the links of its words.

    Return None if placeholders cannot be kept in order (see `projected`).
    """
    return projected(plain, target, *(partial(pieces_of, plain.text, target, some, plain.cuts) for some in (links, ())))


def projected(plain: Plain, target: str, *ways: Callable[[], Iterable[AlignedPiece]]) -> list[Chunk] | None:
    """Return the chunks of a target: its text, with the tags of the source put in.

    Each of `ways` aligns the target in a different way, and returns the target's pieces. The first way is used that
    keeps the order of the placeholders, in text and tags, that programs fill by their order. Return None if no way
    keeps this order.
    """
    found = (_projected(plain, target, list(way())) for way in ways)
    return next((chunks for chunks in found if not plain.order or _order(chunks) == plain.order), None)


def _projected(plain: Plain, target: str, pieces: Sequence[AlignedPiece]) -> list[Chunk]:
    raws = {
        one.begin + place - source: plain.raws[place]
        for one in pieces
        if one.is_same
        for source, last in one.sources
        for place in range(source, last)
        if place in plain.raws and plain.text[place] == target[one.begin + place - source]
    }
    placed = _Level(plain.text, target, pieces).placed(plain.tags)
    return list(_Writer(target, raws).written(0, len(target), placed))


@dataclass
class _Level:
    """Places tags on one level of nesting: in a part of the target, which consists of these pieces."""

    source: str
    target: str
    pieces: Sequence[AlignedPiece]
    ranges: dict[int, Span] = field(default_factory=dict)
    """The characters of the target that each placed pair of tags is around, by the index of the tag."""
    guests: defaultdict[int, list[Tag]] = field(default_factory=lambda: defaultdict(list))
    """Further tags that are put inside a tag, by the index of this tag."""

    def __post_init__(self) -> None:
        some = sorted((*span, place) for place, piece in enumerate(self.pieces) for span in piece.sources)
        self._begins = [begin for begin, *_ in some]
        self._places = [place for *_, place in some]
        self._last = list(accumulate(((end, place) for _, end, place in some), max))

    def placed(self, tags: Sequence[Tag]) -> tuple[_Placed, ...]:
        """Return these tags with their positions in the target, in order and without overlaps."""
        pairs = [index for index, tag in enumerate(tags) if tag.closing]
        owners = self._owners(tags, pairs)
        runs = _runs(self.pieces, owners)
        for index in pairs:
            if index in runs:
                first, last = runs[index]
                self.ranges[index] = self.pieces[first].begin, self.pieces[last].end
        for index in pairs:
            if index not in runs:
                self._settle(index, tags)
        around = sorted((span, index) for index, span in self.ranges.items())
        found = [self._around(index, tags[index]) for index in self.ranges]
        found += [self._point(index, tag, around) for index, tag in enumerate(tags) if not tag.closing]
        return tuple(place for *_, place in sorted(found, key=lambda one: one[:3]))

    def _owners(self, tags: Sequence[Tag], pairs: Sequence[int]) -> list[int | None]:
        """Return, for each piece, the index of the tag that contains most of the piece's sources, or None."""
        begins = [tags[index].begin for index in pairs]

        def owner(piece: AlignedPiece) -> int | None:
            shares: dict[int, int] = {}
            for begin, end in piece.sources:
                first = max(0, bisect_right(begins, begin) - 1)
                for index in pairs[first : bisect_left(begins, end)]:
                    share = min(end, tags[index].end) - max(begin, tags[index].begin)
                    if share > 0:
                        shares[index] = shares.get(index, 0) + share
            return max(shares, key=lambda index: (shares[index], -index)) if shares else None

        return [owner(piece) for piece in self.pieces]

    def _around(self, index: int, tag: Tag) -> tuple[int, bool, int, _Placed]:
        begin, end = self.ranges[index]
        inner = (*tag.inner, *self.guests[index])
        within = _Level(self.source, self.target, self._within(begin, end)).placed(inner) if inner else ()
        return begin, True, index, _Placed(begin, end, tag, within)

    def _within(self, begin: int, end: int) -> list[AlignedPiece]:
        """Return the pieces, and parts of pieces, between two positions of the target."""
        first = bisect_right(self.pieces, begin, key=lambda piece: piece.end)
        last = bisect_left(self.pieces, end, key=lambda piece: piece.begin)
        return [
            one._replace(begin=max(one.begin, begin), end=min(one.end, end))
            if one.begin < begin or end < one.end
            else one
            for one in self.pieces[first:last]
        ]

    def _settle(self, index: int, tags: Sequence[Tag]) -> None:
        """Place a tag to which no piece belongs: around the nearest word, or inside a tag that is around this word."""
        tag = tags[index]
        words = (
            [one for one in self.pieces if one.is_word]
            or [one for one in self.pieces if not self.target[one.begin : one.end].isspace()]
            or self.pieces
        )
        aligned = [one for one in words if any(overlap(tag[2:4], source) for source in one.sources)]
        anchor = self._beside(tag)
        nearest = min(aligned or words, key=lambda one: _distance(one, anchor))
        near = words.index(nearest)
        beside = [one for one in words[max(0, near - FEW_WORDS) : near + FEW_WORDS + 1] if self._host(one) is None]
        host = self._host(nearest)
        if host is not None and beside and not aligned:
            nearest, host = min(beside, key=lambda one: _distance(one, anchor)), None
        if host is not None and tag.has_link and any(one.has_link for one in (tags[host], *self.guests[host])):
            if free := [one for one in words if self._host(one) is None]:
                nearest, host = min(free, key=lambda one: _distance(one, anchor)), None
            elif self._divide(index, host, words):
                return
        if host is None:
            self.ranges[index] = nearest.begin, nearest.end
        else:
            self.guests[host].append(tag)

    def _host(self, piece: AlignedPiece) -> int | None:
        """Return the index of the tag around a piece; None if there is none."""
        return next((index for index, span in self.ranges.items() if overlap(span, piece[:2])), None)

    def _divide(self, index: int, host: int, words: Sequence[AlignedPiece]) -> bool:
        """Place a tag at a part of the host tag's place: its first or last word, or some letters of its only word.

        Return whether the place could be divided; a single protected span cannot be divided.
        """
        begin, end = self.ranges[host]
        inside = [one for one in words if begin <= one.begin and one.end <= end]
        if len(inside) > 1:
            first, last = (end_of_first := inside[0].end), inside[-1].begin
        else:
            first = last = end_of_first = begin + _middle(self.target[begin:end])
        if not begin < first <= last < end:
            return False
        if index < host:
            self.ranges[index] = begin, end_of_first
            kept = self.target[end_of_first:end]
            self.ranges[host] = end - len(kept.lstrip()), end
        else:
            self.ranges[index] = last, end
            self.ranges[host] = begin, begin + len(self.target[begin:last].rstrip())
        return True

    def _beside(self, tag: Tag) -> int:
        """Return the position in the target for a point; in the source, the point is at `tag.begin`."""
        left = bisect_left(self._begins, tag.begin) - 1
        right = left + 1
        after = self.pieces[self._last[left][1]].end if left >= 0 else None
        before = None
        if right < len(self._places):
            source = self._begins[right]
            before = min(self.pieces[self._places[one]].begin for one in self._of(source, right))
        touches = tag.begin > 0 and not self.source[tag.begin - 1].isspace()
        if touches and after is not None:
            return after
        return before if before is not None else after if after is not None else self.pieces[-1].end

    def _of(self, source: int, first: int) -> range:
        return range(first, bisect_right(self._begins, source, first))

    def _point(self, index: int, tag: Tag, around: Sequence[tuple[Span, int]]) -> tuple[int, bool, int, _Placed]:
        """Return the position of a point in the target, outside the places of neighbouring tags."""
        place = self._beside(tag)
        if before := bisect_left(around, ((place, 0), 0)):
            (first, last), other = around[before - 1]
            if place < last:
                place = first if index < other else last
        return place, False, index, _Placed(place, place, tag, (), self._joins(tag, place), self._spaces(tag, place))

    def _spaces(self, tag: Tag, place: int) -> tuple[str, str]:
        """Return the spaces before and after a point, which may touch a word where the source has a comma."""
        if not tag.opening.parts or tag.space != "kept":
            return "", ""
        before, after = (
            " " if there.isalnum() and not here.isalnum() else ""
            for here, there in (
                (self.source[max(0, tag.begin - 1) : tag.begin], self.target[max(0, place - 1) : place]),
                (self.source[tag.begin : tag.begin + 1], self.target[place : place + 1]),
            )
        )
        return before, after

    def _joins(self, tag: Tag, place: int) -> bool:
        """Return whether a point got a space added, and the words around `place` come from the words around it."""
        if tag.space != "added":
            return False
        first = bisect_left(self.pieces, place, key=lambda piece: piece.begin)
        before = next((one for one in reversed(self.pieces[:first]) if one.sources), None)
        after = next((one for one in self.pieces[first:] if one.sources), None)
        ends = before is not None and any(end in (tag.begin - 1, tag.begin) for _, end in before.sources)
        return ends and after is not None and any(begin == tag.begin for begin, _ in after.sources)


def _middle(word: str) -> int:
    """Return a position near the middle of a word, not inside a protected span or between a letter and its marks."""
    spans = protected_spans(word)
    places = (
        place
        for place in range(len(word))
        if not is_combining(word[place]) and not any(one.begin < place < one.end for one in spans)
    )
    return min(places, key=lambda place: (place == 0, abs(place - len(word) // 2)), default=0)


def _distance(piece: AlignedPiece, place: int) -> int:
    return max(piece.begin - place, place - piece.end, 0)


def _runs(pieces: Sequence[AlignedPiece], owners: Sequence[int | None]) -> dict[int, Span]:
    """Return, for each tag, the indices of the first and the last piece of its longest run.

    A run is a sequence of pieces that belong to one tag, with at least one word. Up to `FEW_WORDS` words of no tag may
    be between its pieces.
    """
    best: dict[int, tuple[int, Span]] = {}
    owner: int | None = None
    first = last = words = gap = 0
    for place, (piece, own) in enumerate(zip(pieces, owners, strict=True)):
        if own is None:
            gap += piece.is_word
            continue
        if own != owner or gap > FEW_WORDS:
            owner, first, words = own, place, 0
        last, gap, words = place, 0, words + piece.is_word
        if (words and words > best.get(own, (0,))[0]) or (words and best[own][1][0] == first):
            best[own] = words, (first, last)
    return {own: run for own, (_, run) in best.items()}


class _Writer:
    """Writes a target, or a part of it, with tags."""

    def __init__(self, target: str, raws: Mapping[int, str]) -> None:
        self.target, self.raws = target, raws
        self._places = sorted(raws)

    def written(self, begin: int, end: int, placed: Iterable[_Placed]) -> Iterator[Chunk]:
        """Yield the chunks of a part of the target."""
        cursor = begin
        for place in placed:
            tag, last = place.tag, place.begin
            if place.joins:
                last = cursor + len(self.target[cursor : place.begin].rstrip())
            yield self._text(cursor, last)
            is_after_word = place.begin > 0 and not self.target[place.begin - 1].isspace()
            if tag.space == "taken" and is_after_word:
                yield Chunk("text", " ")
            yield Chunk("text", place.spaces[0])
            yield tag.opening
            yield Chunk("text", place.spaces[1])
            if tag.space == "taken" and not is_after_word:
                yield Chunk("text", " ")
            if tag.closing:
                yield from self.written(place.begin, place.end, place.inner)
                yield tag.closing
            cursor = place.end
        yield self._text(cursor, end)

    def _text(self, begin: int, end: int) -> Chunk:
        places = self._places[bisect_left(self._places, begin) : bisect_left(self._places, end)]
        return Chunk("text", self.target[begin:end], raws={place - begin: self.raws[place] for place in places})
