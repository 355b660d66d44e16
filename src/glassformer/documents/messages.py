"""Messages of programs: texts with placeholders, which their formats write with escapes."""

import re
from collections.abc import Iterator

from glassformer.documents.chunks import Chunk, Unit, has_text
from glassformer.text.terms import ADDRESS, PLACEHOLDER

__all__ = ["message_unit", "protected_chunks"]

_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_PLACEHOLDER = re.compile(
    rf"{_BRACES}"  # {{name}}, {name}, {count, plural, one {…} other {…}}
    r"|\$t\([^()]*\)"  # i18next: another message
    rf"|{PLACEHOLDER}|{ADDRESS}"
)


def message_unit(text: str, begin: int, end: int) -> Unit | None:
    """Return the unit of a whole message, or None if it has nothing to translate.

    White space and placeholders at its ends remain part of it, because the format writes the message as a whole.
    """
    chunks = tuple(protected_chunks(text, begin, end))
    if not has_text(chunks):
        return None
    return Unit(begin=begin, end=end, chunks=chunks)


def protected_chunks(text: str, begin: int, end: int) -> Iterator[Chunk]:
    """Yield the chunks of a text that stands for these characters of a document: placeholders become points."""
    cursor = 0
    for found in _PLACEHOLDER.finditer(text):
        yield Chunk("text", text[cursor : found.start()], begin, end)
        yield Chunk("point", found[0], begin, end)
        cursor = found.end()
    yield Chunk("text", text[cursor:], begin, end)
