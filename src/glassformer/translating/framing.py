"""Set aside the marks around a line, such as "1." or a pair of quotation marks, and put them back."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from glassformer.text.links import Link, Span, word_spans
from glassformer.text.splitting import has_letter
from glassformer.translating.reading import status_of
from glassformer.translating.request import Request
from glassformer.translating.translation import TRANSLATED, Translation
from glassformer.translating.writing import on_one_line

__all__ = ["FramedText", "within_marks"]

_LIST_MARK = re.compile(r"\s*+(?:[-‑–—•*·‣◦▪]|\d{1,3}[.)]|\((?:\d{1,3}|[a-zA-Z])\)|[a-zA-Z]\))\s++")
"""A dash, a bullet, a number or a letter in brackets at the beginning of a line, with white space after it."""
_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "‹": "›", "「": "」", "『": "』", "‘": "’", "'": "'"}
"""The closing marks of each opening quotation mark."""


@dataclass(frozen=True, slots=True)
class FramedText:
    """A line with marks around it: it is translated without the characters outside [begin, end)."""

    needs_links: ClassVar[bool] = False

    text: str
    begin: int
    end: int

    @property
    def parts(self) -> list[str]:
        """The line without its marks."""
        return [self.text[self.begin : self.end]]

    def restored(self, found: Sequence[Translation], asked: Request) -> Translation:
        """Return the translation with the marks of the line around it."""
        [one] = found
        return self._framed(one, links=asked.links)

    def _framed(self, one: Translation, *, links: bool) -> Translation:
        if one.status not in TRANSLATED or not one.text.strip():
            return one
        text = on_one_line(self.text[: self.begin]) + one.text + on_one_line(self.text[self.end :])
        moved = tuple(self._links(one, text)) if links else ()
        others = tuple(self._framed(other, links=links) for other in one.alternatives)
        return replace(one, text=text, links=moved, alternatives=others)

    def _links(self, one: Translation, text: str) -> list[Link]:
        """Return the links between the words of the line and of its translation, of which the marks are a part."""
        words, others = word_spans(self.text), word_spans(text)
        found = [Link(_around(words, a + self.begin), _around(others, b + self.begin)) for (a, _), (b, _) in one.links]
        before = ((word, other) for word, other in zip(words, others, strict=False) if word[1] <= self.begin)
        return [*(Link(*both) for both in before), *found]


def _around(words: Sequence[Span], place: int) -> Span:
    """Return the word that contains a position of a text."""
    return words[bisect_right(words, place, key=lambda word: word[0]) - 1]


def within_marks(text: str, asked: Request) -> FramedText | None:
    """Return a line with a list mark before it, or with one pair of quotation marks around it; None for other lines."""
    if not asked.search.settings.split or asked.search.sample:
        return None
    mark = _LIST_MARK.match(text)
    first, last = mark.end() if mark else len(text) - len(text.lstrip()), len(text.rstrip())
    begin, end = _within_quotes(text, first, last)
    is_framed = mark is not None or begin > first
    if not is_framed or not has_letter(text[begin:end]) or status_of(text) != "ok":
        return None
    return FramedText(text, begin, end)


def _within_quotes(text: str, begin: int, end: int) -> Span:
    """Return the span inside a pair of quotation marks that encloses a span and does not occur inside it."""
    if end - begin > 2 and text[end - 1] in _QUOTES.get(text[begin], ""):
        inner = text[begin + 1 : end - 1]
        if text[begin] not in inner and text[end - 1] not in inner:
            return begin + 1, end - 1
    return begin, end
