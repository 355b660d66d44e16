"""Units: the parts of a document that are translated. A unit consists of chunks of text and of marks between them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from glassformer.text.edits import Replacement, edited

__all__ = ["LINK", "Chunk", "Role", "Unit", "closings_of", "has_words", "name_of_point", "unit_of"]

Role = Literal["text", "open", "close", "point"]

LINK = "a"
"""The name of the elements that must not be nested in each other."""


class Chunk(NamedTuple):
    """A chunk of a unit: text, or a mark such as a tag or an image."""

    role: Role
    text: str
    """For text, the text as people see it, without escapes; for a mark, its characters in the document."""
    begin: int = 0
    end: int = 0
    """The chunk stands for the characters [begin, end) of the document."""
    name: str = ""
    """The name of a tag, by which opening and closing tags are matched; of a point, `LINK` if it contains a link."""
    raws: Mapping[int, str] = {}
    """The spelling in the document of characters that are written as entities or white space, by their index in
    `text`."""
    parts: bool = False
    """Whether a mark always separates the words on its two sides, even without a space between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A part of a document that is translated as a whole, such as a paragraph."""

    begin: int
    end: int
    """The unit's translation replaces the characters [begin, end) of the document."""
    chunks: tuple[Chunk, ...]
    escape: Callable[[str], str] = str
    """Returns a text with its special characters escaped for the document's format."""
    compose: Callable[[str], str] = str
    """Returns the replacement for the unit's characters, given its escaped new content."""

    def edit(self, chunks: Iterable[Chunk], inner: Iterable[Replacement], document: str) -> Replacement:
        """Return the replacement that writes these chunks; `inner` are the edits inside the unit's marks."""
        known = sorted(inner, key=_begin)
        content = "".join(
            self._written(chunk) if chunk.role == "text" else _mark(chunk, known, document) for chunk in chunks
        )
        return Replacement(self.begin, self.end, self.compose(content))

    def _written(self, chunk: Chunk) -> str:
        if not chunk.raws:
            return self.escape(chunk.text)
        raws = chunk.raws
        return "".join(raws[place] if place in raws else self.escape(one) for place, one in enumerate(chunk.text))


def _begin(edit: Replacement) -> int:
    return edit.begin


def _mark(chunk: Chunk, inner: Sequence[Replacement], document: str) -> str:
    first, last = (bisect_left(inner, place, key=_begin) for place in (chunk.begin, chunk.end))
    within = [edit for edit in inner[first:last] if edit.end <= chunk.end]
    return edited(document, within, chunk.begin, chunk.end) if within else chunk.text


def unit_of(document: str, chunks: Sequence[Chunk], escape: Callable[[str], str] = str) -> Unit | None:
    """Return the unit that consists of these chunks, or None if they contain no letter and no digit.

    Marks and white space at the beginning and end do not belong to the unit, and stay in place. A pair of tags without
    a letter or digit inside becomes a point, together with its content.
    """
    some = [chunk for chunk in chunks if chunk.text]
    if not any(has_words(chunk.text) for chunk in some if chunk.role == "text"):
        return None
    kept = _without_ends(list(_with_points(document, some)))
    return Unit(begin=kept[0].begin, end=kept[-1].end, chunks=tuple(kept), escape=escape)


def has_words(text: str) -> bool:
    """Return whether a text contains a letter or a digit.

    >>> has_words("[1]"), has_words(" – ")
    (True, False)
    """
    return any(map(str.isalnum, text))


def _with_points(document: str, chunks: Sequence[Chunk]) -> Iterable[Chunk]:
    """Yield the chunks; each pair of tags without words inside becomes one point."""
    closings = closings_of(chunks)
    words = [0, *accumulate(chunk.role == "text" and has_words(chunk.text) for chunk in chunks)]
    place = 0
    while place < len(chunks):
        chunk, last = chunks[place], closings.get(place)
        if last is not None and words[place] == words[last]:
            begin, end = chunk.begin, chunks[last].end
            yield Chunk("point", document[begin:end], begin, end, name_of_point(chunks[place : last + 1]))
            place = last
        else:
            yield chunk
        place += 1


def name_of_point(marks: "Iterable[_Tag]") -> str:
    """Return the name of a point that stands for some tags: `LINK` if one of them is a link."""
    return LINK if any(one.name == LINK for one in marks) else ""


def _without_ends(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without white space and points at the ends, and without tags that enclose all other chunks."""
    closings = closings_of(chunks)
    paired = {*closings, *closings.values()}
    first, last = 0, len(chunks) - 1
    while first <= last:
        if _is_loose(chunks[first], first in paired):
            first += 1
        elif _is_loose(chunks[last], last in paired):
            last -= 1
        elif closings.get(first) == last:
            first, last = first + 1, last - 1
        else:
            break
    return _stripped(chunks[first : last + 1])


def _is_loose(chunk: Chunk, is_paired: bool) -> bool:
    return chunk.text.isspace() if chunk.role == "text" else not is_paired


def _stripped(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without white space at the beginning and end; white space written as entities is kept."""
    first = chunks[0]
    if first.role == "text":
        left, white = _white(first, range(len(first.text)))
        raws = {place - left: raw for place, raw in first.raws.items() if place >= left}
        chunks = [first._replace(text=first.text[left:], begin=first.begin + white, raws=raws), *chunks[1:]]
    last = chunks[-1]
    if last.role == "text":
        right, white = _white(last, range(len(last.text) - 1, -1, -1))
        chunks = [*chunks[:-1], last._replace(text=last.text[: len(last.text) - right], end=last.end - white)]
    return chunks


def _white(chunk: Chunk, places: Iterable[int]) -> tuple[int, int]:
    """Return how many characters are white space, until the first other one, and their length in the document."""
    written = (chunk.raws.get(place, chunk.text[place]) for place in places)
    found = [*takewhile(str.isspace, written)]
    return len(found), sum(map(len, found))


@runtime_checkable
class _Tag(Protocol):
    """The properties by which opening and closing tags are matched."""

    @property
    def role(self) -> str: ...
    @property
    def name(self) -> str: ...


def closings_of(chunks: Sequence[_Tag]) -> dict[int, int]:
    """Return the index of each closing tag, by the index of its opening tag.

    A closing tag closes the innermost open tag with its name. Tags that are still open inside have no closing tag.
    """
    found: dict[int, int] = {}
    opened: list[int] = []
    names: Counter[str] = Counter()  # open tags by name, counted so that the time is linear in the number of tags
    for place, chunk in enumerate(chunks):
        if chunk.role == "open":
            opened.append(place)
            names[chunk.name] += 1
        elif chunk.role == "close" and names[chunk.name]:
            last = None
            while last is None or chunks[last].name != chunk.name:
                last = opened.pop()
                names[chunks[last].name] -= 1
            found[last] = place
    return found
