"""Take the tags out of a text, and put them into its translation around the words that come from the tags' words.

A pair of tags is put around the words that come from its own words. No tag is repeated, lost or invented, and tags
remain nested. If no word of the translation comes from a tag's words alone, the tag is put around a free word close by,
or inside the tag whose words became the same word. A pair without any such word stays empty beside the words. A link
never stays empty, and never gets into another link: it takes a free word that is further away, or one of another link's
words, or else the text is not translated. A point (a mark without content, such as an image) stays next to the word
that it touched, or else goes before the word that followed it.

Programs fill some placeholders by their order, including placeholders in tags. If the alignment would change this
order, tags are put by their position instead.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate
from operator import itemgetter
from typing import Literal, NamedTuple

from glassformer.text.links import Link, Span
from glassformer.text.spans import ordered_spans, protected_spans
from glassformer.translating.markup.pieces import AlignedPiece, pieces_of
from glassformer.translating.markup.reading import MOST_NESTED
from glassformer.translating.markup.units import LINK, Chunk, closings_of

__all__ = ["Plain", "Tag", "detagged", "projected", "retagged"]

FEW_WORDS = 2
"""Maximum number of words that belong to no tag and that a tag may cover between its own words."""
MOST_GUESTS = 3
"""Maximum number of tags that are put inside a tag in the translation, but not in the source."""


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

    has_link: bool = False
    """Whether the tag is a link or contains a link."""
    height: int = 0
    """The number of pairs of tags that are nested in each other, including this one."""

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
            has_link = opening.name == LINK or any(one.has_link for one in inner)
            height = 1 + max((one.height for one in inner), default=0)
            tag = Tag(opening, chunk, begins.pop(), plain.size, inner, has_link=has_link, height=height)
            levels[-1].append(tag)
        else:
            space = plain.space_at_point(place)
            has_link = chunk.name == LINK
            levels[-1].append(Tag(chunk, None, plain.size, plain.size, (), space, has_link))
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
        if len(text) > skipped:
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
        return self._parts[-1][-1] if self._parts else ""

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

    Return None if the text must stay untranslated (see `projected`).
    """
    return projected(plain, target, *(partial(pieces_of, plain.text, target, some, plain.cuts) for some in (links, ())))


def projected(plain: Plain, target: str, *ways: Callable[[], Iterable[AlignedPiece]]) -> list[Chunk] | None:
    """Return the chunks of a target: its text, with the tags of the source put in.

    Each of `ways` aligns the target in a different way, and returns the target's pieces. The first way is used that
    puts every link around a word, and keeps the order of the placeholders, in text and tags, that programs fill by
    their order. Return None if there is no such way.
    """
    found = (_projected(plain, target, list(way())) for way in ways)
    return next((one for one in found if one is not None and (not plain.order or _order(one) == plain.order)), None)


def _projected(plain: Plain, target: str, pieces: Sequence[AlignedPiece]) -> list[Chunk] | None:
    try:
        placed = _Level(plain.text, target, pieces).placed(plain.tags)
    except _NoWordError:
        return None
    return list(_Writer(target, _raws(plain, target, pieces)).written(0, len(target), placed))


def _raws(plain: Plain, target: str, pieces: Sequence[AlignedPiece]) -> dict[int, str]:
    """Return the spelling of the target's characters that come unchanged from the source, by their index.

    A protected span that is aligned to nothing, such as &name;, is spelled as the first equal span of the source.
    """
    same = [(source, last, one.begin) for one in pieces if one.is_same for source, last in one.sources]
    if plain.raws:
        first = {plain.text[one.begin : one.end]: one for one in reversed(protected_spans(plain.text))}
        spans = [(first.get(target[one.begin : one.end]), one.begin) for one in protected_spans(target)]
        same = [(one.begin, one.end, begin) for one, begin in spans if one] + same
    return {
        begin + place - source: plain.raws[place]
        for source, last, begin in same
        for place in range(source, last)
        if place in plain.raws and plain.text[place] == target[begin + place - source]
    }


class _Sources:
    """Finds the pieces of a target by positions in the source that they come from."""

    def __init__(self, pieces: Sequence[AlignedPiece], words: Sequence[int]) -> None:
        some = sorted((*span, place) for place, piece in enumerate(pieces) for span in piece.sources)
        first: dict[int, int] = {}
        last: dict[int, tuple[int, int]] = {}
        for begin, end, place in some:
            first[begin] = min(first.get(begin, place), place)
            last[begin] = max(last.get(begin, (0, 0)), (end, place))
        self._begins = [*first]
        self._first = [*first.values()]
        self._last = [*accumulate(last.values(), max)]
        self._ends = {(place, end) for _, end, place in some}
        self._starts = {(place, begin) for begin, _, place in some}
        self._with_source = [place for place, piece in enumerate(pieces) if piece.sources]
        aligned: dict[Span, list[int]] = {}
        for word, place in enumerate(words):
            for span in pieces[place].sources:
                aligned.setdefault(span, []).append(word)
        self._aligned = aligned
        self._spans = sorted(aligned)
        self._longest = [*accumulate(self._spans, _later)]

    def around(self, source: int) -> tuple[int | None, int | None]:
        """Return the pieces that come from the words before and after a position, by their indices."""
        at = bisect_left(self._begins, source)
        return self._last[at - 1][1] if at else None, self._first[at] if at < len(self._first) else None

    def words(self, begin: int, end: int) -> Iterator[list[int]]:
        """Yield the words that come from each word of the source between two positions, as indices in ascending order.

        Of the words of the source that begin earlier, only the one that ends last is looked at.
        """
        first = bisect_left(self._spans, (begin,))
        if first and self._longest[first - 1][1] > begin:
            yield self._aligned[self._longest[first - 1]]
        for span in self._spans[first : bisect_left(self._spans, (end,))]:
            yield self._aligned[span]

    def meet(self, place: int, source: int) -> bool:
        """Return whether the pieces before and from `place` on come from the words before and after a position.

        A character may stand between the words, which was added there.
        """
        at = bisect_left(self._with_source, place)
        if not 0 < at < len(self._with_source):
            return False
        before, after = self._with_source[at - 1], self._with_source[at]
        return bool(self._ends & {(before, source - 1), (before, source)}) and (after, source) in self._starts


def _later(one: Span, other: Span) -> Span:
    """Return the span that ends later."""
    return max(one, other, key=itemgetter(1))


class _Free:
    """The words that no tag is around; union-find gives the next one before and after a word."""

    def __init__(self, count: int) -> None:
        self._before, self._after = [*range(count + 1)], [*range(count + 1)]

    def take(self, word: int) -> None:
        self._before[word + 1], self._after[word] = word, word + 1

    def around(self, word: int) -> Iterator[int]:
        """Yield the nearest free word up to a word, and the nearest free word from this word on."""
        if before := _root(self._before, word + 1):
            yield before - 1
        if (after := _root(self._after, word)) < len(self._after) - 1:
            yield after


def _root(parents: list[int], one: int) -> int:
    while parents[one] != one:
        parents[one] = one = parents[parents[one]]
    return one


class _NoWordError(Exception):
    """A link finds no word that it could be put around."""


class _Level:
    """Places tags on one level of nesting: from the character `begin` of the target on, which the pieces divide."""

    def __init__(
        self, source: str, target: str, pieces: Sequence[AlignedPiece], begin: int = 0, depth: int = 0
    ) -> None:
        self.source, self.target, self.pieces, self.begin, self.depth = source, target, pieces, begin, depth
        self._words = [place for place, one in enumerate(pieces) if one.is_word]
        """The indices of the pieces that contain a letter or a digit."""
        self._sources = _Sources(pieces, self._words)
        self._hosts: list[int | None] = [None] * len(self._words)
        """For each of these words, the index of the tag that is put around it."""
        self._free = _Free(len(self._words))
        self._runs: dict[int, Span] = {}
        """The pieces from the first to the last that each placed pair of tags is around, by the index of the tag."""
        self._guests: defaultdict[int, list[Tag]] = defaultdict(list)
        """Further tags that are put inside a tag, by the index of this tag."""

    def placed(self, tags: Sequence[Tag]) -> tuple[_Placed, ...]:
        """Return these tags with their positions in the target, in order and without overlaps.

        Raises:
            _NoWordError: a link finds no word.
        """
        pairs = [index for index, tag in enumerate(tags) if tag.closing]
        for index, run in sorted(_runs(self.pieces, self._owners(tags, pairs)).items()):
            self._put(index, run)
        # Last, because a tag without words of its own must know which words are taken.
        beside = [index for index in pairs if index not in self._runs and not self._settle(index, tags)]
        around = sorted(
            ((self.pieces[run[0]].begin, self.pieces[run[1]].end), index) for index, run in self._runs.items()
        )
        found = [self._around(index, tags[index], span) for span, index in around]
        found += [self._point(index, tags[index], around) for index in beside]
        found += [self._point(index, tag, around) for index, tag in enumerate(tags) if not tag.closing]
        return tuple(place for *_, place in sorted(found, key=lambda one: one[:3]))

    def _owners(self, tags: Sequence[Tag], pairs: Sequence[int]) -> list[int | None]:
        """Return, for each piece, the index of the tag that contains most of the piece's sources, or None.

        Of each source, only the tag that contains most of it counts.
        """
        begins = [tags[index].begin for index in pairs]

        @cache
        def share(begin: int, end: int) -> tuple[int, int]:
            first = max(0, bisect_right(begins, begin) - 1)
            inside = pairs[first : bisect_left(begins, end)]
            shares = ((min(end, tags[index].end) - max(begin, tags[index].begin), -index) for index in inside)
            return max(shares, default=(0, 0))

        def owner(piece: AlignedPiece) -> int | None:
            shares: Counter[int] = Counter()
            for source in piece.sources:
                length, index = share(*source)
                if length > 0:
                    shares[-index] += length
            return max(shares, key=lambda index: (shares[index], -index)) if shares else None

        return [owner(piece) for piece in self.pieces]

    def _put(self, index: int, run: Span) -> None:
        """Put a tag around the pieces from the first to the last of a run."""
        self._runs[index] = run
        for word in range(bisect_left(self._words, run[0]), bisect_right(self._words, run[1])):
            self._hosts[word] = index
            self._free.take(word)

    def _around(self, index: int, tag: Tag, span: Span) -> tuple[int, bool, int, _Placed]:
        first, last = self._runs[index]
        inner = sorted((*tag.inner, *self._guests[index]), key=lambda one: one.begin)
        return span[0], True, index, _Placed(*span, tag, self._inside(self.pieces[first : last + 1], span[0], inner))

    def _inside(self, pieces: Sequence[AlignedPiece], begin: int, tags: Sequence[Tag]) -> tuple[_Placed, ...]:
        return _Level(self.source, self.target, pieces, begin, self.depth + 1).placed(tags) if tags else ()

    def _settle(self, index: int, tags: Sequence[Tag]) -> bool:
        """Place a tag to which no piece belongs, if possible; return whether it is placed.

        A tag goes around the nearest word, or inside the tag around this word if the word also comes from its own
        words. A link needs a word: it may take one that is far away, or the first or the last word of another link.

        Raises:
            _NoWordError: the tag is or contains a link, and finds no word.
        """
        tag, anchor = tags[index], self._beside(tags[index])
        # The word comes partly from the tag's words, but belongs to a different tag, or to none.
        some = (self._nearest(words, anchor) for words in self._sources.words(tag.begin, tag.end))
        aligned = min(some, key=lambda word: self._distance(word, anchor), default=None)
        if not self._words:
            if tag.has_link:
                raise _NoWordError
            return False
        nearest = self._nearest(range(len(self._words)), anchor) if aligned is None else aligned
        host = self._hosts[nearest]
        free = min(self._free.around(nearest), key=lambda word: self._distance(word, anchor), default=None)
        if host is None:
            self._put(index, (self._words[nearest],) * 2)
        # Nothing ties the tag to the words of its host, so a free word close by is better than nesting.
        elif aligned is None and free is not None and abs(free - nearest) <= FEW_WORDS:
            self._put(index, (self._words[free],) * 2)
        elif (aligned is not None or tag.has_link) and self._takes(host, tags[host], tag):
            self._guests[host].append(tag)
        elif not tag.has_link:
            return False
        elif free is not None:
            self._put(index, (self._words[free],) * 2)
        else:
            self._divide(index, host)
        return True

    def _takes(self, host: int, around: Tag, guest: Tag) -> bool:
        """Return whether one tag may be put inside another: there is room, and no link inside a link, as HTML says."""
        inside = self._guests[host]
        has_room = len(inside) < MOST_GUESTS and self.depth + guest.height < MOST_NESTED
        return has_room and not (guest.has_link and any(one.has_link for one in (around, *inside)))

    def _nearest(self, words: Sequence[int], anchor: int) -> int:
        """Return the one of some words, in ascending order, that is nearest to a position of the target."""
        at = bisect_left(words, anchor, key=lambda word: self.pieces[self._words[word]].end)
        return min(words[max(0, at - 1) : at + 1], key=lambda word: self._distance(word, anchor))

    def _distance(self, word: int, place: int) -> int:
        piece = self.pieces[self._words[word]]
        return max(piece.begin - place, place - piece.end, 0)

    def _divide(self, index: int, host: int) -> None:
        """Put a tag around the first or the last word of the run of its host, which keeps the other words.

        Raises:
            _NoWordError: the host has only one word.
        """
        first, last = self._runs[host]
        inside = range(bisect_left(self._words, first), bisect_right(self._words, last))
        if len(inside) < 2:
            raise _NoWordError
        if index < host:
            self._put(index, (first, self._words[inside[0]]))
            first = self._words[inside[0]] + 1
            while self._is_space(first):
                first += 1
        else:
            self._put(index, (self._words[inside[-1]], last))
            last = self._words[inside[-1]] - 1
            while self._is_space(last):
                last -= 1
        self._runs[host] = first, last

    def _is_space(self, place: int) -> bool:
        return self.target[self.pieces[place].begin : self.pieces[place].end].isspace()

    def _beside(self, tag: Tag) -> int:
        """Return the position in the target for a point; in the source, the point is at `tag.begin`."""
        before, after = self._sources.around(tag.begin)
        touches = tag.begin > 0 and not self.source[tag.begin - 1].isspace()
        if before is not None and (touches or after is None):
            return self.pieces[before].end
        if after is not None:
            return self.pieces[after].begin
        return self.pieces[-1].end if self.pieces else self.begin

    def _point(self, index: int, tag: Tag, around: Sequence[tuple[Span, int]]) -> tuple[int, bool, int, _Placed]:
        """Return the position of a point in the target, outside the places of neighbouring tags.

        A pair of tags that found no word is placed like a point.
        """
        place = self._beside(tag)
        if before := bisect_left(around, ((place, 0), 0)):
            (first, last), other = around[before - 1]
            if place < last:
                place = first if index < other else last
        inner = self._inside((), place, tag.inner)
        return place, False, index, _Placed(place, place, tag, inner, self._joins(tag, place), self._spaces(tag, place))

    def _spaces(self, tag: Tag, place: int) -> tuple[str, str]:
        """Return the spaces before and after a point, which may touch a word where the source has a comma."""
        if not tag.opening.parts or tag.space != "kept" or tag.closing:
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
        return self._sources.meet(first, tag.begin)


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
