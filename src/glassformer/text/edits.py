"""Replacements of parts of a text."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from glassformer.text.links import Span
from glassformer.text.word_edges import space_between

__all__ = ["Replacement", "edited", "exchanged", "moved"]


class Replacement(NamedTuple):
    """A replacement of the characters [begin, end) of a text."""

    begin: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Replacement], begin: int = 0, end: int | None = None) -> str:
    """Return a text, or the part of it from `begin` to `end`, with edits that do not overlap.

    >>> edited("the cat sleeps", [Replacement(4, 7, "dog")])
    'the dog sleeps'
    """
    parts, cursor = list[str](), begin
    for edit in sorted(edits):
        parts += [text[cursor : edit.begin], edit.text]
        cursor = edit.end
    return "".join([*parts, text[cursor:end]])


def exchanged(text: str, spans: Sequence[Span], others: Sequence[str]) -> tuple[str, list[Span]]:
    """Return a text with each span replaced by another text, and the new spans of these texts; `spans` are in order.

    Sentences that touch each other, as in Chinese, get a space between them in languages with spaces.

    >>> exchanged("One. Two.", [(0, 4), (5, 9)], ["Eins.", "Zwei."])
    ('Eins. Zwei.', [(0, 5), (6, 11)])
    >>> exchanged("\u4e00\u3002\u4e8c\u3002", [(0, 2), (2, 4)], ["One.", "Two."])
    ('One. Two.', [(0, 4), (5, 9)])
    """
    places, found, cursor = list[Span](), "", 0
    for (begin, end), other in zip(spans, others, strict=True):
        found += text[cursor:begin] or space_between(text, begin, found, other)
        places.append((len(found), len(found) + len(other)))
        found, cursor = found + other, end
    return found + text[cursor:], places


def moved(spans: Iterable[Span], edits: Iterable[Replacement]) -> Iterator[Span]:
    """Yield where spans of a text are after edits that do not overlap.

    >>> [*moved([(0, 3), (8, 14)], [Replacement(4, 7, "little dog")])]
    [(0, 3), (15, 21)]
    """
    ordered = sorted(edits)
    ends = [edit.end for edit in ordered]
    growths = [*accumulate((len(edit.text) - (edit.end - edit.begin) for edit in ordered), initial=0)]
    for begin, end in spans:
        yield begin + growths[bisect_right(ends, begin)], end + growths[bisect_right(ends, end)]
