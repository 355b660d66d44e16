"""HTML: texts between block elements, and the attributes that a reader sees."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from typing import NamedTuple

from glassformer.translating.documents.chunks import Chunk, Unit, unit_of

__all__ = ["html_charset", "html_units"]

INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img", "ins"}
    | {"kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"}
    | {"time", "tt", "u", "var", "wbr"}
)
"""Elements within a sentence."""
KEPT = frozenset({"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "template", "textarea", "tt", "var"})
"""Elements whose content is not translated."""
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
"""Elements without an end tag."""
SEEN = ("alt", "title", "placeholder")
"""Attributes that are translated."""
_CHARSET = re.compile(r"<meta[^<>]+?charset\s*+=\s*[\"']?([\w-]+)", flags=re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<=[\s"'/])([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+)""")


class _Event(NamedTuple):
    kind: str
    begin: int
    name: str = ""
    is_kept: bool = False
    """Whether the element says that it is not to be translated."""


class _Reader(HTMLParser):
    """Notes where each tag, text and reference begins."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(found.end() for found in re.finditer("\n", document))]
        self.events: list[_Event] = []
        self.feed(document)
        if self.rawdata.startswith("<"):  # a tag or a comment without an end, which browsers do not show either
            self.events.append(_Event("comment", len(document) - len(self.rawdata)))
        else:
            self.close()

    def _note(self, kind: str, name: str = "", is_kept: bool = False) -> None:
        line, offset = self.getpos()
        self.events.append(_Event(kind, self._lines[line - 1] + offset, name, is_kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("void" if tag in VOID else "start", tag, ("translate", "no") in attrs or tag in KEPT)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # HTML ignores the slash of <b/>

    def handle_endtag(self, tag: str) -> None:
        self._note("end", tag)

    def handle_data(self, _: str) -> None:
        self._note("text")

    def handle_entityref(self, _: str) -> None:
        self._note("reference")

    def handle_charref(self, _: str) -> None:
        self._note("reference")

    def handle_comment(self, _: str) -> None:
        self._note("comment")

    def handle_decl(self, _: str) -> None:
        self._note("declaration")

    def handle_pi(self, _: str) -> None:
        self._note("declaration")

    def parse_marked_section(self, i: int, report: int = 1) -> int:  # noqa: ARG002 – the parser gives it
        """Note `<![…>`, which browsers read as a comment; return where it ends, or -1 if it does not."""
        self._note("comment")
        return self.rawdata.find(">", i) + 1 or -1

    def unknown_decl(self, _: str) -> None:
        self._note("declaration")


def html_charset(head: str) -> str | None:
    """Return the encoding that the first characters of a page declare, or None."""
    found = _CHARSET.search(head)
    return found[1] if found else None


def html_units(document: str) -> list[Unit]:
    """Return the texts of an HTML page, and its attributes alt, title and placeholder.

    Scripts, styles, code, comments and what says translate="no" stay.
    """
    events = _Reader(document).events
    ends = [*(event.begin for event in events[1:]), len(document)]
    chunks: list[Chunk] = []
    units: list[Unit | None] = []
    for begin, end, event in _joined(list(zip(events, ends, strict=False))):
        raw = document[begin:end]
        is_inline = event.name in INLINE or event.kind in ("text", "reference", "comment")
        if is_inline:
            chunks.append(_chunk(event, raw, begin, end))
        else:
            units.append(_unit(document, chunks))
            chunks = []
        if event.kind in ("start", "void") and not event.is_kept:
            units += _attributes(document, begin, end)
    units.append(_unit(document, chunks))
    return sorted((unit for unit in units if unit), key=lambda unit: unit.begin)


def _joined(events: Sequence[tuple[_Event, int]]) -> Iterator[tuple[int, int, _Event]]:
    """Yield the first and last character of each event; an element that is kept is one event with its content."""
    kept: _Event | None = None
    depth = 0
    for event, end in events:
        if kept is None and event.is_kept and event.kind == "start":
            kept, depth = event, 0
        if kept is None:
            yield event.begin, end, event
            continue
        if event.name == kept.name:
            depth += {"start": 1, "end": -1}.get(event.kind, 0)
        if depth == 0:
            yield kept.begin, end, kept
            kept = None
    if kept and events:
        yield kept.begin, events[-1][1], kept


def _chunk(event: _Event, raw: str, begin: int, end: int) -> Chunk:
    if event.kind == "text":
        return Chunk("text", re.sub(r"[ \t\r\n\f]+", " ", raw), begin, end)
    if event.kind == "reference":
        return Chunk("text", html.unescape(raw), begin, end)
    if event.kind in ("void", "comment") or event.is_kept:
        return Chunk("point", raw, begin, end)
    return Chunk("open" if event.kind == "start" else "close", raw, begin, end, event.name)


def _unit(document: str, chunks: Sequence[Chunk]) -> Unit | None:
    return unit_of(document, chunks, _escaped)


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _attributes(document: str, begin: int, end: int) -> Iterator[Unit]:
    """Yield the units of a start tag's attributes."""
    for found in _ATTRIBUTE.finditer(document, begin, end):
        written = found[2]
        quote = written[0] if written[0] in "\"'" else ""
        first, last = found.start(2) + len(quote), found.end(2) - len(quote)
        if found[1].lower() in SEEN:
            chunk = Chunk("text", html.unescape(document[first:last]), first, last)
            unit = unit_of(document, [chunk], partial(_value, quote))
            if unit:
                yield unit if quote else replace(unit, compose=lambda content: f'"{content}"')


def _value(quote: str, text: str) -> str:
    written = text.replace("&", "&amp;").replace("<", "&lt;")
    return written.replace(quote, f"&#{ord(quote)};") if quote else written.replace('"', "&quot;")
