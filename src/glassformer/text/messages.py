"""The texts inside plurals and selections of ICU's messages, such as {n, plural, one {# file} other {# files}}."""

import re
from itertools import accumulate

from glassformer.text.links import Span
from glassformer.text.spans import MESSAGE, closing_braces, protected_spans

__all__ = ["branches", "messages"]

MOST_LEVELS = 10
"""Maximum depth of braces; the texts of a deeper message stay as they are."""
_HEADER = re.compile(MESSAGE)
_BRANCH = re.compile(r"\s*+(?:offset:\d++\s*+)?+(?:=\d++|[\w-]++)\s*+(?=\{)")


def messages(text: str) -> list[str]:
    """Return the plurals and selections in a text, in order and without those inside others."""
    if not _HEADER.search(text):
        return []
    return [text[span.begin : span.end] for span in protected_spans(text) if span.kind == "message"]


def branches(message: str) -> list[Span]:
    """Return where the texts of a plural or selection are; none if it is malformed.

    >>> message = "{n, plural, =0 {no file} other {# files}}"
    >>> [message[begin:end] for begin, end in branches(message)]
    ['no file', '# files']
    """
    depth = max(accumulate({"{": 1, "}": -1}.get(character, 0) for character in message))
    header, closings = _HEADER.match(message), closing_braces(message)
    if depth > MOST_LEVELS or not header:
        return []
    found, place = list[Span](), header.end()
    while branch := _BRANCH.match(message, place):
        place = closings[branch.end()]
        found.append((branch.end() + 1, place - 1))
    return found if message[place:].strip() == "}" else []
