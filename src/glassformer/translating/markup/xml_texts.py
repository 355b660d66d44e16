"""XML: fragments of any vocabulary, whose elements stand within sentences unless their outline shows otherwise."""

import html
from collections.abc import Collection, Sequence
from functools import partial

from glassformer.translating.markup.reading import Rules, units_of
from glassformer.translating.markup.scanning import XML, Token
from glassformer.translating.markup.units import Unit

__all__ = ["xml_units"]


def xml_units(
    document: str,
    language: str | None = None,
    *,
    outline: bool = True,
    ignored: Collection[str] = (),
    splitting: Collection[str] = (),
    joining: Collection[str] = (),
) -> list[Unit]:
    """Return the texts of an XML document or a part of one; attributes and CDATA stay.

    Args:
        document: the text with its tags.
        language: the language of its texts.
        outline: whether a text ends at the elements of elements that hold no text of their own.
        ignored: names of elements that stay as they are.
        splitting: names of further elements at which a text ends.
        joining: names of elements at which no text ends.

    Raises:
        DataError: there are too many elements within each other.
    """
    rules = Rules(
        syntax=XML,
        ends=partial(_ends, outline, splitting, joining),
        escape=partial(html.escape, quote=False),
        kept=ignored,
        language=language,
    )
    return units_of(document, rules)


def _ends(
    outline: bool,
    splitting: Collection[str],
    joining: Collection[str],
    document: str,
    tokens: Sequence[Token],
    closings: dict[int, int],
) -> set[int]:
    """Return the indices of the tags at which a text ends."""
    found = _structure(document, tokens, closings) if outline else set[int]()
    found |= {place for place, token in enumerate(tokens) if token.name in splitting}
    return {place for place in found if tokens[place].name not in joining}


def _structure(document: str, tokens: Sequence[Token], closings: dict[int, int]) -> set[int]:
    """Return the indices of the tags within elements that hold nothing but elements, up to the outermost one."""
    mixed, parents = _mixed(document, tokens, closings), list[int]()
    found, last = set[int](), {end: begin for begin, end in closings.items()}
    structured = {-1} - mixed
    for place, token in enumerate(tokens):
        if place in last:
            parents.pop()
        parent = parents[-1] if parents else -1
        if token.role not in ("text", "other") and parent in structured:
            if parent >= 0:
                found.add(place)
            if place in closings and place not in mixed:
                structured.add(place)
        if place in closings:
            parents.append(place)
    return found


def _mixed(document: str, tokens: Sequence[Token], closings: dict[int, int]) -> set[int]:
    """Return the indices of the opening tags of elements with a text of their own; -1 for the whole document."""
    found, opened, last = set[int](), [-1], {*closings.values()}
    for place, token in enumerate(tokens):
        if place in closings:
            opened.append(place)
        elif place in last:
            opened.pop()
        elif token.role == "text" and not document[token.begin : token.end].isspace():
            found.add(opened[-1])
    return found
