"""Replacements of parts of a text."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Replacement", "edited"]


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
