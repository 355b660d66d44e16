"""Translate texts by way of other texts, such as the sentences of a line, and make the translations from theirs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import MOST_CHARACTERS, Translation

__all__ = ["Rewrite", "Rewritten", "rewriting", "rewritten_texts"]


@runtime_checkable
class Rewritten(Protocol):
    """A text that is translated by way of other texts."""

    needs_links: ClassVar[bool]
    """Whether the translations of the parts must have links."""

    @property
    def parts(self) -> Sequence[str]:
        """The texts to translate instead; none if the translation is known."""

    def restored(self, found: Sequence[Translation], asked: Request) -> Translation:
        """Return the translation of the text, given the translations of its parts."""


Rewrite = Callable[[str, Request], Rewritten | None]
"""The type of a function that returns how a text of a request is rewritten; None if it is translated as it is."""


def rewritten_texts(rewrite: Rewrite, asked: Request) -> dict[int, Rewritten]:
    """Return the texts of a request that are rewritten, by their indices.

    Texts whose outputs must begin with a prefix, and texts that are too long, are translated as they are.
    """
    free = (
        (place, text)
        for place, (text, prefix) in enumerate(zip(asked.texts, asked.prefixes, strict=True))
        if not prefix and len(text) <= MOST_CHARACTERS
    )
    found = ((place, rewrite(text, asked)) for place, text in free)
    return {place: one for place, one in found if one}


def rewriting(rewritten: Mapping[int, Rewritten], asked: Request, below: Translate) -> Iterator[Translation]:
    """Start translating a request, of which some texts are rewritten; return an iterator over the translations."""
    texts = [rewritten[place].parts if place in rewritten else (text,) for place, text in enumerate(asked.texts)]
    linked = {place for place, one in rewritten.items() if one.needs_links}
    # Links take a second pass, so only the texts that need them are translated with links.
    groups: dict[bool, list[int]] = {}
    for place in range(len(texts)):
        groups.setdefault(place in linked, []).append(place)
    found = {links: below(_parts(places, texts, asked, links)) for links, places in groups.items()}
    return _merged(texts, rewritten, asked, lambda place: next(found[place in linked]))


def _parts(places: Sequence[int], texts: Sequence[Sequence[str]], asked: Request, links: bool) -> Request:
    """Return the request for the texts at these places; `texts` has the parts of each text."""
    each = [(place, part) for place in places for part in texts[place]]
    return asked._replace(
        texts=[part for _, part in each],
        prefixes=[asked.prefixes[place] for place, _ in each],
        seeds=[asked.seeds[place] for place, _ in each],
        links=asked.links or links,
    )


def _merged(
    texts: Sequence[Sequence[str]],
    rewritten: Mapping[int, Rewritten],
    asked: Request,
    found: Callable[[int], Translation],
) -> Iterator[Translation]:
    for place, parts in enumerate(texts):
        translations = [found(place) for _ in parts]
        yield rewritten[place].restored(translations, asked) if place in rewritten else translations[0]
