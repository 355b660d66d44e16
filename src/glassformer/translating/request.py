"""What is asked of a translator, and the layers that an answer passes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from glassformer.decoding.engine import Search, Sources
from glassformer.text.placeholders import Masked
from glassformer.text.terms import Terms
from glassformer.translating.translation import Status, Translation

__all__ = ["Layer", "Request", "Translate"]


class Request(NamedTuple):
    """Texts to translate, and how."""

    texts: Sequence[str]
    prefixes: Sequence[str]
    """The beginning of each output."""
    seeds: Sequence[int]
    """For sampling, a number for each text that makes its random numbers different, such as its index in the whole
    input.
    """
    search: Search
    terms: Terms
    links: bool = False
    """Whether to align the words of each output to the words of its text."""
    guards: bool = True
    """Whether to look for suspicious outputs."""
    messages: bool = True
    """Whether to translate the texts inside plurals and selections."""
    masked: Sequence[Masked] = ()
    """The texts as the models read them. The reader adds this field and those below."""
    statuses: Sequence[Status] = ()
    """Whether each text can be translated, and why not."""
    sources: Mapping[int, Sources] = {}
    """The ids of each translatable text, by the index of the text."""

    def within(self, **settings: Any) -> "Request":
        """Return the request for translations that serve to make others: with other settings, and not looked at."""
        decoding = replace(self.search.settings, retry=False, **settings)
        return self._replace(search=replace(self.search, settings=decoding, sums=False), guards=False, messages=False)


Translate = Callable[[Request], Iterator[Translation]]
"""Starts translating; returns an iterator that waits for the translations."""


@runtime_checkable
class Layer(Protocol):
    """Answers a request by means of what lies below it, and changes the request, the translations, or both."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Call `below` at once, so that decoding begins; return an iterator that waits for the translations."""
