"""Replace the placeholder tokens in translations by the protected spans that they stand for."""

from collections.abc import Iterator
from dataclasses import replace

from glassformer.text.placeholders import Masked
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import Translation

__all__ = ["restored", "restoring"]


def restoring(asked: Request, below: Translate) -> Iterator[Translation]:
    """Start translating, and return an iterator over the translations, with spans in place of placeholder tokens."""
    return map(restored, below(asked), asked.masked)


def restored(one: Translation, masked: Masked) -> Translation:
    """Return the translation of a masked text, with spans in place of its placeholder tokens."""
    text, links = masked.restored(one.text, one.links)
    if text == one.text and links == one.links and not one.alternatives:
        return one
    others = [restored(other, masked) for other in one.alternatives]
    # Different outputs may become the same text, because spans may be equal and unused placeholder tokens are dropped.
    distinct = {other.text: other for other in reversed(others) if other.text != text}
    return replace(one, text=text, links=links, alternatives=tuple(reversed(distinct.values())))
