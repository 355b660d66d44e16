"""Settle the spans of a finished translation: their order where order is meaning, and the spaces around them."""

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
    """Return a translation with the spans of its source in order, and with the spaces beside them that they had there.

    A space is changed only between a span and a neighbour that it has in the source, too.

    Args:
        source: the source.
        terms: its terms.
        target: the translation, which contains all spans.
        links: its words and those of the source.
        begun: the number of its first characters that stay as they are.
    """
    spans = [term for term in terms if term.kind == "span"]
    for find in (_in_order, _spaced):
        edits = list(find(source, spans, target, begun))
        if edits:
            target, links = edited(target, edits), [Link(one, moved(other, edits)) for one, other in links]
    return target, list(links)


def _in_order(_: str, spans: Sequence[Term], target: str, begun: int) -> Iterator[Replacement]:
    """Yield the edits that exchange the spans which must be in the order of the source, but for those that stay."""
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
    """Yield the edits that change the space between a span and the neighbour that it has in both texts."""
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
    """Return the white space before or after a place of a text, and the word or the punctuation mark behind it."""
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
