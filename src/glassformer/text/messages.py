"""The texts inside plurals and selections of ICU messages, such as {n, plural, one {# file} other {# files}}.

In these texts, an apostrophe may be written as two. It must be written as two before a character such as a brace, where
a single apostrophe would begin a quotation.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

from glassformer.text.edits import Replacement, edited
from glassformer.text.links import Span
from glassformer.text.spans import MESSAGE, closing_braces, protected_spans

__all__ = ["as_message", "as_text", "branches", "messages"]

MOST_LEVELS = 10
"""Maximum depth of braces; the texts of a deeper message stay as they are."""
_HEADER = re.compile(MESSAGE)
_BRANCH = re.compile(r"\s*+(?:offset:\d++\s*+)?+(?:=\d++|[\w-]++)\s*+(?=\{)")
_APOSTROPHES = re.compile(r"'++")
_SYNTAX = ("{", "}", "#", "|", "")
"""The characters before which an apostrophe begins a quotation; "" stands for the brace after the text."""


def messages(text: str) -> list[str]:
    """Return the plurals and selections in a text, in order, without those inside another plural or selection."""
    if not _HEADER.search(text):
        return []
    return [text[span.begin : span.end] for span in protected_spans(text) if span.kind == "message"]


def branches(message: str) -> list[Span]:
    """Return the spans of the texts in a plural or selection; no spans if the message is malformed.

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


def as_text(inside: str) -> str:
    """Return a text inside a message as people read it: each doubled apostrophe becomes a single apostrophe.

    A text that also has single apostrophes does not change.

    >>> as_text("Don''t delete {name}''s file"), as_text("Don't delete ''x''")
    ("Don't delete {name}'s file", "Don't delete ''x''")
    """
    if _written(inside) != 2:
        return inside
    text = edited(inside, (one._replace(text="'") for one in _apostrophes(inside)))
    return text if as_message(text, inside) == inside else inside


def as_message(text: str, source: str) -> str:
    """Return a translation of a text inside a message, with its apostrophes written as the message needs them.

    Apostrophes are doubled if the source doubles its apostrophes. Otherwise, only an apostrophe that would begin a
    quotation is doubled.

    >>> as_message("l'ami de {name}", "{name}''s friend"), as_message("l'ami, l'{name}", "the friend, {name}")
    ("l''ami de {name}", "l'ami, l''{name}")
    """
    count = _written(source)
    single = (one for one in _apostrophes(text) if one.text == "'" and (count == 2 or _quotes(text, one)))
    return edited(text, [one._replace(text="''") for one in single]) if count else text


def _apostrophes(text: str) -> Iterator[Replacement]:
    """Yield the runs of apostrophes in a text, except those inside protected spans."""
    ends = [0, *(place for span in protected_spans(text) for place in span[:2]), len(text)]
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        for run in _APOSTROPHES.finditer(text, begin, end):
            yield Replacement(*run.span(), run[0])


def _quotes(text: str, one: Replacement) -> bool:
    """Return whether an apostrophe begins a quotation; at the text's end it does, because a brace follows there."""
    return one.text == "'" and text[one.end : one.end + 1] in _SYNTAX


def _written(inside: str) -> int:
    """Return whether a text inside a message writes apostrophes once (1) or doubles them (2).

    The result is 0 if the text does both, or has a quotation.
    """
    runs = [*_apostrophes(inside)]
    counts = {len(one.text) for one in runs} or {1}
    return 0 if len(counts) > 1 or any(_quotes(inside, one) for one in runs) else counts.pop()
