"""Variants: the sources of a test set written as other people write them, such as in capitals or two in one line.

A model that has learned from edited sentences may fail on them. A variant leaves the meaning of a source as it is, so
its references hold, with the added marks.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from glassformer.evaluation.items import Items

__all__ = ["VARIANTS", "VariantItems", "variants_of"]

LEAST_CHANGED = 5
"""Minimum number of sources that a variant must change; others say nothing."""
_LONG_WORD = re.compile(r"[^\W\d_]{6,}")


class _Variant(NamedTuple):
    source: Callable[[str], str] = str
    target: Callable[[str], str] = str
    joined: int = 1
    """Number of sources that make one line."""


def _around(before: str, after: str) -> _Variant:
    def mark(text: str) -> str:
        return f"{before}{text.strip()}{after}"

    return _Variant(mark, mark)


def _title(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def _softened(text: str) -> str:
    return _LONG_WORD.sub(lambda word: f"{word[0][:3]}\u00ad{word[0][3:]}", text)


VARIANTS: Mapping[str, _Variant] = {
    "capitals": _Variant(str.upper),
    "lower case": _Variant(str.lower),
    "title case": _Variant(_title),
    "accents as signs of their own": _Variant(lambda text: unicodedata.normalize("NFD", text)),
    "soft hyphens": _Variant(_softened),
    "non-breaking hyphens": _Variant(lambda text: text.replace("-", "\u2011")),
    "no-break spaces": _Variant(lambda text: text.replace(" ", "\u00a0")),
    "two in a line": _Variant(joined=2),
    "three in a line": _Variant(joined=3),
    "dash before": _around("- ", ""),
    "number before": _around("1. ", ""),
    "in quotation marks": _around('"', '"'),
    "emoji behind": _around("", " 🙂"),
    "e-mail address behind": _around("", " (a.b@example.org)"),
}
"""How the sources are written, by name, and what is added to their references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantItems:
    """The sources that a variant changes."""

    name: str
    items: Items
    """The changed sources, with their references."""
    ordinary: tuple[int, ...]
    """The indices of the ordinary items that these were made of."""


def variants_of(items: Items) -> Iterator[VariantItems]:
    """Yield the variants that change at least a few sources. A joined line has one reference."""
    for name, variant in VARIANTS.items():
        size, found = variant.joined, list[tuple[tuple[int, ...], str, tuple[str, ...]]]()
        for first in range(0, len(items.sources) - size + 1, size):
            places = tuple(range(first, first + size))
            sources = [items.sources[place] for place in places]
            source = " ".join(map(variant.source, sources))
            if source == sources[0]:
                continue
            several = [items.references[place] for place in places]
            targets = several[0] if size == 1 else (" ".join(one[0] for one in several),)
            found.append((places, source, tuple(map(variant.target, targets))))
        if len(found) >= LEAST_CHANGED:
            yield VariantItems(
                name=name,
                items=Items.of([(source, *targets) for _, source, targets in found], group=False),
                ordinary=tuple(place for places, *_ in found for place in places),
            )
