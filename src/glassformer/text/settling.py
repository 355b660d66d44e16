"""Correct the order of a finished translation's protected spans, and the spaces around them."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence

from glassformer.text.edits import Replacement, edited, moved
from glassformer.text.glossary import Term
from glassformer.text.links import Link, Span
from glassformer.text.terms import Written, written_forms

__all__ = ["settled"]


def settled(
    source: str, terms: Sequence[Term], target: str, links: Sequence[Link], begun: int = 0
) -> tuple[str, list[Link]]:
    """Return a translation whose protected spans have the order and the spaces that they have in the source.

    Only spans that programs fill by their order are reordered. A space is changed only between a span and a neighbour
    that the span also has in the source.

    Args:
        source: the source text.
        terms: the terms of the source.
        target: the translation, which contains all spans.
        links: the links between the words of the translation and the words of the source.
        begun: the number of characters at the beginning of the translation that must not change.
    """
    spans = [term for term in terms if term.kind == "span"]
    for find in (_in_order, _spaced):
        edits = list(find(source, spans, target, begun))
        if edits:
            words = moved((link.target for link in links), edits)
            target, links = edited(target, edits), [*map(Link, (link.source for link in links), words)]
    return target, list(links)


def _in_order(_: str, spans: Sequence[Term], target: str, begun: int) -> Iterator[Replacement]:
    """Yield the edits that put ordered spans into the source's order; the first `begun` characters do not change."""
    ordered = [span.forms[0] for span in spans if span.is_ordered]
    known, left = {*ordered}, list[str]()
    if len(known) > 1:
        written = [one for one in written_forms(spans, target) if one.form in known]
        fixed = Counter(one.form for one in written if one.begin < begun)
        for form in ordered:
            if fixed[form]:
                fixed[form] -= 1
            else:
                left.append(form)
        free = [one for one in written if one.begin >= begun]
        if len(free) == len(left):
            for one, form in zip(free, left, strict=True):
                if one.form != form:
                    yield Replacement(one.begin, one.end, form)


def _spaced(source: str, spans: Sequence[Term], target: str, begun: int) -> Iterator[Replacement]:
    """Yield the edits that correct the space between a span and a neighbour that the span has in source and target."""
    places = defaultdict[str, deque[Written]](deque)
    for one in written_forms(spans, target):
        places[one.form].append(one)
    gaps = dict[Span, str]()
    for span in spans:
        if places[span.forms[0]]:
            one = places[span.forms[0]].popleft()
            for is_before in (True, False):
                gap, neighbour = _beside(source, span.begin if is_before else span.end, is_before)
                other, found = _beside(target, one.begin if is_before else one.end, is_before)
                if neighbour and neighbour == found and bool(gap) != bool(other):
                    begin, end = (one.begin - len(other), one.begin) if is_before else (one.end, one.end + len(other))
                    gaps[begin, end] = " " if gap else ""
    return (Replacement(*place, space) for place, space in gaps.items() if place[0] >= begun)


def _beside(text: str, place: int, is_before: bool) -> tuple[str, str]:
    """Return the white space before or after a position, and the word or punctuation mark beyond that white space."""
    step, first = (-1, place - 1) if is_before else (1, place)
    last = len(text) if step > 0 else -1
    behind = next((at for at in range(first, last, step) if not text[at].isspace()), last)
    if behind == last:
        return "", ""
    ends = (at for at in range(behind, last, step) if not text[at].isalnum())
    end = next(ends, last) if text[behind].isalnum() else behind + step
    return (
        (text[behind + 1 : place], text[end + 1 : behind + 1]) if is_before else (text[place:behind], text[behind:end])
    )
