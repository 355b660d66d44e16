"""What is asked of a translator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from glassformer.decoding.engine import Search
from glassformer.text.placeholders import Masked
from glassformer.text.terms import Terms
from glassformer.translating.translation import Translation

__all__ = ["Request", "Translate"]


class Request(NamedTuple):
    """Texts to translate, and how."""

    texts: Sequence[str]
    prefixes: Sequence[str]
    """The beginning of each output."""
    seeds: Sequence[int]
    """For sampling, what tells the random numbers of the texts apart, such as their indices in the whole input."""
    search: Search
    terms: Terms
    links: bool = False
    """Whether to align the words of each output to the words of its text."""
    guards: bool = True
    """Whether to look for suspicious outputs."""
    masked: Sequence[Masked] = ()
    """The texts as the models read them, once the translator has begun."""

    def within(self, **settings: Any) -> "Request":
        """Return the request for translations that serve to make others: with other settings, and not looked at."""
        decoding = replace(self.search.settings, retry=False, **settings)
        return self._replace(search=replace(self.search, settings=decoding), guards=False)


Translate = Callable[[Request], Iterator[Translation]]
"""Starts translating; returns an iterator that waits for the translations."""
