"""The rules for XML of any vocabulary: elements are parts of sentences, unless the outline shows otherwise."""

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
    """Return the units of an XML document, or of a part of one; attributes and CDATA are not translated.

    Args:
        document: the text with its tags.
        language: the language of the document's texts.
        outline: whether a text ends at the child elements of elements that contain no text of their own.
        ignored: names of elements that are not translated.
        splitting: names of further elements at which a text ends.
        joining: names of elements at which no text ends.

    Raises:
        DataError: too many elements are nested.
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
    """Return the indices of the tags of the outline: tags whose outer elements all contain only elements, not text."""
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
    """Return the indices of the opening tags of elements that directly contain text; -1 stands for the document."""
    found, opened, last = set[int](), [-1], {*closings.values()}
    for place, token in enumerate(tokens):
        if place in closings:
            opened.append(place)
        elif place in last:
            opened.pop()
        elif token.role == "text" and not document[token.begin : token.end].isspace():
            found.add(opened[-1])
    return found
