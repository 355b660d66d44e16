"""Requests to a translator, and the interface of the layers that answer them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from glassformer.decoding.engine import Search, Sources
from glassformer.text.terms import Terms
from glassformer.translating.translation import Status, Translation

__all__ = ["Layer", "Request", "Translate"]


class Request(NamedTuple):
    """A request: texts to translate, and the settings for their translation."""

    texts: Sequence[str]
    prefixes: Sequence[str]
    """The text with which each output must begin; "" for none."""
    seeds: Sequence[int]
    """For sampling, a number for each text, such as its index in the whole input, so that each text gets different
    random numbers.
    """
    search: Search
    terms: Terms
    links: bool = False
    """Whether to align the words of each output to the words of its text."""
    guards: bool = True
    """Whether to look for suspicious outputs."""
    messages: bool = True
    """Whether to translate the texts inside plurals and selections."""
    rewritten: int = 0
    """How many of the ways in which `Layers` rewrites texts were tried on these texts."""
    statuses: Sequence[Status] = ()
    """The status of each text: "ok" if it can be translated, otherwise the reason why not. `Reader.read` sets this
    field and the field below."""
    sources: Mapping[int, Sources] = {}
    """The ids of each translatable text, by the index of the text."""

    def within(self, **settings: Any) -> "Request":
        """Return the request with these settings and without judging, for translations that become parts of others."""
        decoding = replace(self.search.settings, retry=False, **settings)
        return self._replace(search=replace(self.search, settings=decoding, sums=False), guards=False, messages=False)


Translate = Callable[[Request], Iterator[Translation]]
"""The type of a function that starts to translate a request, and returns an iterator that waits for the
translations."""


@runtime_checkable
class Layer(Protocol):
    """A layer: answers a request by calling the layer below it, and changes the request, the translations, or both."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Call `below` at once, so that decoding begins; return an iterator that waits for the translations."""
