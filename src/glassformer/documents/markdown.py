"""Markdown: the texts of paragraphs, headings, list items and tables."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from glassformer.documents.chunks import Chunk, Unit, unit_of
from glassformer.documents.plain_text import TextLine, lines_of
from glassformer.errors import MissingDependencyError, install_command

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["markdown_units"]

_FRONT_MATTER = re.compile(r"\ufeff?(---|\+\+\+)[ \t]*\r?\n(?:[^\n]*\n)*?\1[ \t]*(?:\r?\n|$)")
_SPECIAL = re.compile(r"[\\`\[\]<]|(?<!\s)\*|\*(?!\s)|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~|$)|^~")
_DELIMITED = ("em", "strong", "s")
_BLOCK = re.compile(r"(?P<mark>[-+*](?=\s|$)|#{1,6}(?=\s|$)|>|[-=]+\s*$)|(?P<number>\d+)(?=[.)](?:\s|$))")
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^>]*(?<!/)>$", flags=re.DOTALL)


class _Inline(NamedTuple):
    """What one of markdown-it's rules read: the characters of the content from `begin` to `end`."""

    rule: str
    begin: int
    end: int
    tokens: tuple[Any, ...]
    """The tokens that the rule added; the parser changes some of them later."""


class _Notes:
    """What the inline rules of a parser read, by the identity of the list of tokens that they add to."""

    def __init__(self, parser: "MarkdownIt") -> None:
        self.read: dict[int, list[_Inline]] = {}
        self.limits: dict[tuple[int, int], int] = {}
        """Where the text ends that is read at a place: in a link, at the end of its label."""
        parser.core.ruler.disable("text_join")  # it hides which characters were escaped
        parser.inline.ruler2.disable("fragments_join")  # it hides which asterisks remained text
        for rule in parser.inline.ruler.__rules__:
            parser.inline.ruler.at(rule.name, self._noting(rule.name, rule.fn))

    def _noting(self, name: str, read: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
        def noting(state: Any, silent: bool) -> bool:
            if silent:
                return read(state, silent)
            key, begin, known = id(state.tokens), state.pos, len(state.tokens)
            self.limits.setdefault((key, begin), state.posMax)
            is_read = read(state, silent)
            if is_read:
                added = tuple(state.tokens[known:])
                self.read.setdefault(key, []).append(_Inline(name, begin, state.pos, added))
            return is_read

        return noting


def markdown_units(document: str) -> list[Unit]:
    """Return the texts of a Markdown file.

    Code, addresses of links, images, blocks of HTML, tables' bars and the front matter stay.

    Raises:
        MissingDependencyError: markdown-it-py is not installed.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingDependencyError(f"Markdown needs markdown-it-py: {install_command('documents')}") from error
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    notes = _Notes(parser)
    front = _FRONT_MATTER.match(document)
    lines = lines_of(document)[document.count("\n", 0, front.end()) if front else 0 :]
    units: list[Unit] = []
    row: TextLine | None = None
    cursor = 0
    for token in parser.parse("\n".join(line.text for line in lines)):
        if token.type == "tr_open" and token.map:
            row, cursor = lines[token.map[0]], 0
        elif token.type == "table_close":
            row = None
        elif token.type == "inline" and token.map and row:
            places, cursor = _cell(row, token.content, cursor)
            units += _units(document, token, places, notes, in_table=True)
        elif token.type == "inline" and token.map:
            places = _places(lines[token.map[0] : token.map[1]], token.content)
            units += _units(document, token, places, notes, in_table=False)
    return units


def _places(lines: Sequence[TextLine], content: str) -> list[int]:
    """Return the character of the document at which each character of a block's content stands."""
    found: list[int] = []
    for line, text in zip(lines, content.split("\n"), strict=False):
        inner = text.strip()
        begin = line.begin + line.text.rfind(inner)
        indent = len(text) - len(text.lstrip())
        found += [begin] * indent + [*range(begin, begin + len(text) - indent + 1)]
    return found


def _cell(row: TextLine, content: str, cursor: int) -> tuple[list[int], int]:
    """Return the places of a table cell's content, in which bars are escaped, and where the next cell begins."""
    place = row.begin + row.text.index(content.replace("|", "\\|"), cursor)
    found = []
    for character in content:
        found.append(place)
        place += 2 if character == "|" else 1
    return [*found, place], place - row.begin


def _units(document: str, token: Any, places: Sequence[int], notes: _Notes, *, in_table: bool) -> Iterator[Unit]:
    """Yield the units of a block's content; a forced line break ends a unit."""
    chunks: list[Chunk] = []
    cursor = 0
    for mark in [*_marks(token.content, notes, id(token.children)), None]:
        until = mark.begin if mark else len(token.content)
        if cursor < until:
            chunks.append(Chunk("text", token.content[cursor:until], places[cursor], places[until]))
        if mark and mark.name != "break":
            text = mark.text.replace("|", "\\|") if in_table and mark.role != "text" else mark.text
            chunks.append(mark._replace(text=text, begin=places[mark.begin], end=places[mark.end]))
        elif unit := unit_of(document, chunks, _escaped_in_table if in_table else _escaped):
            yield replace(unit, compose=_as_text, writable=_without_empty)
        if not mark or mark.name == "break":
            chunks = []
        cursor = mark.end if mark else cursor


def _marks(content: str, notes: _Notes, key: int) -> list[Chunk]:
    """Return the marks of a content, and its text that is written in another way, in order."""
    found: list[Chunk] = []
    for rule, begin, end, tokens in notes.read.get(key, ()):
        raw = content[begin:end].replace("\n", " ")
        kinds = {token.type for token in tokens}
        if "hardbreak" in kinds:
            found.append(Chunk("point", raw, begin, end, "break"))
        elif rule == "newline":
            found.append(Chunk("text", " ", begin, end))
        elif rule == "escape":
            found.append(Chunk("text", raw[1:], begin, end))
        elif rule == "entity":
            found.append(Chunk("text", html.unescape(raw), begin, end))
        elif rule in ("emphasis", "strikethrough"):
            found += _delimiters(content, begin, end, tokens, 1 if rule == "emphasis" else 2)
        elif rule == "link":
            label_end = notes.limits.get((key, begin + 1), begin + 1)
            found.append(Chunk("open", "[", begin, begin + 1, "link"))
            found.append(Chunk("close", content[label_end:end].replace("\n", " "), label_end, end, "link"))
        elif rule == "html_inline" and (tag := _HTML_TAG.match(raw)):
            found.append(Chunk("close" if tag[1] else "open", raw, begin, end, tag[2].lower()))
        elif rule in ("image", "autolink", "html_inline") or "code_inline" in kinds:
            found.append(Chunk("point", raw, begin, end))
    return sorted(found, key=lambda chunk: chunk.begin)


def _delimiters(content: str, begin: int, end: int, tokens: Sequence[Any], width: int) -> Iterator[Chunk]:
    """Yield the marks among a run of asterisks, underscores or tildes; strong emphasis takes two characters."""
    place = end
    for token in reversed(tokens):
        if place <= begin:
            return
        first, last = max(begin, place - width), place
        place = first
        if token.type == "text":
            continue
        if token.type == "strong_open":
            first -= 1
        elif token.type == "strong_close":
            last += 1
        name, _, side = token.type.rpartition("_")
        yield Chunk("open" if side == "open" else "close", content[first:last], first, last, name)


def _without_empty(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks without emphasis of nothing, which Markdown would read as text."""
    kept: list[Chunk] = []
    for chunk in chunks:
        is_pair = bool(kept) and (kept[-1].role, chunk.role, kept[-1].name) == ("open", "close", chunk.name)
        if is_pair and chunk.name in _DELIMITED:
            kept.pop()
        elif chunk.text:
            kept.append(chunk)
    return kept


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _escaped_in_table(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _as_text(content: str, _: bool) -> str:
    """Return the content of a block, escaped where it would begin another kind of block."""
    found = _BLOCK.match(content)
    if not found:
        return content
    number = found["number"] or ""
    return f"{number}\\{content[len(number) :]}"
