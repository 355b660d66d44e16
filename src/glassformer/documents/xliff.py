"""XLIFF 1.2 and 2.0: from the source of a unit to its target."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from glassformer.documents.chunks import Chunk, Unit, has_text
from glassformer.documents.messages import protected_chunks
from glassformer.errors import DataError
from glassformer.text.edits import Replacement

__all__ = ["xliff_units"]

DEEPEST = 200
"""Maximum depth of elements."""
_TEXTS = {"trans-unit", "segment"}
"""The elements that hold a source and its target, in XLIFF 1.2 and 2.0."""
_AROUND = {"g", "pc", "mrk"}
"""Inline elements around text; all others are points."""


@dataclass(slots=True)
class _Node:
    """An element or, without a name, text, a comment or an instruction."""

    name: str
    begin: int
    inner_begin: int
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """The text as a reader sees it; "" for comments."""
    inner: "list[_Node]" = field(default_factory=list)
    inner_end: int = 0
    end: int = 0

    @property
    def local(self) -> str:
        """The name without the prefix of its namespace."""
        return self.name.rpartition(":")[2]

    def child(self, name: str) -> "_Node | None":
        return next((node for node in self.inner if node.local == name), None)

    @property
    def content(self) -> str:
        return self.text + "".join(node.content for node in self.inner)


class _Reader:
    """Reads elements with their places. Entities and document types are refused, so nothing is expanded or fetched."""

    def __init__(self, document: str) -> None:
        mark = 1 if document.startswith("\ufeff") else 0
        self._data = document[mark:].encode()
        self._place, self._index = mark, 0
        self.root = _Node("", 0, 0)
        self._open = [self.root]
        parser: Any = expat.ParserCreate("utf-8")
        parser.buffer_text = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.DefaultHandler = parser.CommentHandler = lambda *_: self._other()
        parser.ProcessingInstructionHandler = lambda *_: self._other()
        parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = self._other
        parser.StartDoctypeDeclHandler = self._refuse
        self._parser = parser
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise DataError(f"line {error.lineno}: expected XML, got an error ({error}); correct the line") from error
        self._finish(len(document))

    def _here(self) -> int:
        """Return the character of the event, from the byte that the parser names."""
        index = self._parser.CurrentByteIndex
        self._place += len(self._data[self._index : index].decode())
        self._index = index
        return self._place

    def _finish(self, here: int) -> None:
        """End what the last event began: a text, or a tag."""
        last = self._open[-1]
        if last.inner:
            last.inner[-1].end = last.inner[-1].end or here
        elif not last.inner_begin:
            last.inner_begin = here

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        here = self._here()
        self._finish(here)
        if len(self._open) > DEEPEST:
            raise DataError(f"line {self._parser.CurrentLineNumber}: expected at most {DEEPEST} nested elements")
        node = _Node(name, here, 0, attributes)
        self._open[-1].inner.append(node)
        self._open.append(node)

    def _end(self, _: str) -> None:
        here = self._here()
        node = self._open[-1]
        if not node.inner and self._data[self._index - 2 : self._index] == b"/>":  # <x/>, which has no inner part
            node.end = here
        else:
            self._finish(here)
            node.inner_end = here
        self._open.pop()

    def _text(self, text: str) -> None:
        here = self._here()
        self._finish(here)
        self._open[-1].inner.append(_Node("", here, here, text=text))

    def _other(self) -> None:
        self._text("")

    def _refuse(self, *_: object) -> None:
        line = self._parser.CurrentLineNumber
        raise DataError(f"line {line}: expected no document type (<!DOCTYPE>); remove it, as it may name other files")


def xliff_units(document: str, *, again: bool = False) -> list[Unit]:
    """Return the sources without a target, or all of them with `again`; each is replaced in its target.

    A missing target is added. Inline elements are tags; what says translate="no" stays.

    Raises:
        DataError: the file is not XLIFF, or has a document type.
    """
    root = next((node for node in _Reader(document).root.inner if node.local == "xliff"), None)
    if root is None:
        raise DataError("line 1: expected an element xliff; check the file's suffix")
    return [unit for node in _sources(root) if (unit := _unit(document, node, again))]


def _sources(node: _Node) -> Iterator[_Node]:
    if node.attributes.get("translate") == "no":
        return
    if node.local in _TEXTS and node.child("source"):
        yield node
    for one in node.inner:
        yield from _sources(one)


def _unit(document: str, node: _Node, again: bool) -> Unit | None:
    source, target = node.child("source"), node.child("target")
    assert source
    if target and target.content.strip() and not again:
        return None
    keeps_space = "preserve" in (node.attributes.get("xml:space"), source.attributes.get("xml:space"))
    chunks = tuple(_chunks(document, source.inner, keeps_space))
    if not has_text(chunks):
        return None
    is_new = node.local == "segment"
    unit = Unit(begin=0, end=0, chunks=chunks, escape=escape, edits=_states(document, node) if is_new else ())
    if target and target.inner_end:
        return replace(unit, begin=target.inner_begin, end=target.inner_end)
    name = source.name.removesuffix("source") + "target"
    if target:  # <target/>
        tag = document[target.begin : target.end].rstrip("/> \t\r\n")
        return replace(unit, begin=target.begin, end=target.end, compose=lambda content, _: f"{tag}>{content}</{name}>")
    after = (node.child("seg-source") or source).end
    space = document[node.inner_begin : source.begin]
    lead = space if space.isspace() else ""

    def added(content: str, is_suspicious: bool) -> str:
        state = "needs-review-translation" if is_suspicious else "translated"
        attribute = "" if is_new else f' state="{state}"'
        return f"{lead}<{name}{attribute}>{content}</{name}>"

    return replace(unit, begin=after, end=after, compose=added)


def _states(document: str, segment: _Node) -> tuple[Replacement, ...]:
    """Return the edit that makes an initial segment of XLIFF 2.0 a translated one."""
    tag = document[segment.begin : segment.inner_begin]
    found = re.search(r"""\sstate\s*=\s*["'](initial)["']""", tag)
    if found:
        return (Replacement(segment.begin + found.start(1), segment.begin + found.end(1), "translated"),)
    if "state" in segment.attributes:
        return ()
    place = segment.begin + 1 + len(segment.name)
    return (Replacement(place, place, ' state="translated"'),)


def _chunks(document: str, nodes: Sequence[_Node], keeps_space: bool) -> Iterator[Chunk]:
    held = ""
    for node in nodes:
        if not node.name and (node.text or document.startswith(("<![CDATA[", "]]>"), node.begin)):
            held += node.text
            continue
        yield from _text(held, keeps_space)
        held = ""
        if node.local in _AROUND and node.inner_end and not _is_kept(node):
            yield Chunk("open", document[node.begin : node.inner_begin], node.begin, node.inner_begin, node.name)
            yield from _chunks(document, node.inner, keeps_space)
            yield Chunk("close", document[node.inner_end : node.end], node.inner_end, node.end, node.name)
        else:
            yield Chunk("point", document[node.begin : node.end], node.begin, node.end)
    yield from _text(held, keeps_space)


def _text(text: str, keeps_space: bool) -> Iterator[Chunk]:
    return protected_chunks(text if keeps_space else re.sub(r"\s*\n\s*", " ", text), 0, 0)


def _is_kept(node: _Node) -> bool:
    return node.attributes.get("translate") == "no" or node.attributes.get("mtype") == "protected"
