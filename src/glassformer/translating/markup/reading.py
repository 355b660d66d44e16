"""Divide a text with tags into units, by the rules of HTML or XML."""

import html
import html.entities
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from glassformer.errors import DataError
from glassformer.text.languages import primary
from glassformer.translating.markup.scanning import Syntax, Token, scanned, values
from glassformer.translating.markup.units import Chunk, Role, Unit, closings_of, name_of_point, unit_of

__all__ = ["Rules", "read_text", "units_of"]

MOST_NESTED = 100
"""Maximum depth of nested elements."""
_BEGINS = frozenset({"bpt", "bx", "sc"})
_ENDS = frozenset({"ept", "ex", "ec"})
"""Elements of XLIFF and TMX that stand for opening tags (`_BEGINS`) and closing tags (`_ENDS`) of another format."""
_REFERENCES = ("rid", "startref", "i", "id")
"""The attributes of these elements that tell which opening tag and which closing tag form a pair."""
_WRITTEN = re.compile(r"[ \t\r\n\f]++|&(?:#[0-9]{1,8}+;?|#[xX][0-9A-Fa-f]{1,8}+;?|[A-Za-z][A-Za-z0-9]{0,31}+;?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules by which a markup language is read."""

    syntax: Syntax
    ends: Callable[[str, Sequence[Token], dict[int, int]], Collection[int]]
    """Returns the indices of the tags at which a text ends, given the document, its tokens, and the result of
    `closings_of`."""
    escape: Callable[[str], str]
    attributes: Callable[[str, Token], Iterator[Unit]] = lambda _, __: iter(())
    """Returns the units of a tag's attributes."""
    kept: Collection[str] = ()
    """Names of elements whose content is not translated."""
    notes: Collection[str] = ()
    """Names of elements that do not belong to the sentence before them if they contain only a number, a sign, or a
    text in brackets."""
    apart: Collection[str] = ()
    """Names of elements that are separate texts if they touch each other, like the links of a menu."""
    language: str | None = None
    """The language of the text; None if inline elements in a different language are also translated."""


def units_of(document: str, rules: Rules) -> list[Unit]:
    """Return the units of a document, in order.

    Raises:
        DataError: too many elements are nested.
    """
    reader = _Reader(document, rules)
    return sorted(reader.units(0, len(reader.tokens)), key=lambda unit: unit.begin)


@dataclass
class _Reader:
    document: str
    rules: Rules
    tokens: list[Token] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = list(scanned(self.document, self.rules.syntax))
        self.closings = closings_of(self.tokens)
        self._check_depth()
        self.ends = self.rules.ends(self.document, self.tokens, self.closings)

    def _check_depth(self) -> None:
        opened: list[int] = []
        for place, token in enumerate(self.tokens):
            while opened and opened[-1] <= place:
                opened.pop()
            if place in self.closings:
                opened.append(self.closings[place])
            if len(opened) > MOST_NESTED:
                line = self.document.count("\n", 0, token.begin) + 1
                raise DataError(f"line {line}: expected at most {MOST_NESTED} nested elements; divide the document")

    def units(self, first: int, last: int, *, is_note: bool = False) -> Iterator[Unit]:
        """Yield the units between two tokens."""
        chunks: list[Chunk] = []
        place = first
        while place < last:
            token, end = self.tokens[place], place
            is_tag = token.role in ("open", "empty")
            if is_tag and self._is_kept(place):
                end = min(self.closings.get(place, place if token.role == "empty" else last - 1), last - 1)
                yield from self._translated_again(place + 1, end)
                chunk = self._point(place, end, parts=True)
            elif is_tag and not is_note and self._is_note(place):
                end = self.closings[place]
                yield from self.rules.attributes(self.document, token)
                yield from self.units(place + 1, end, is_note=True)
                chunk = self._point(place, end)
            elif is_tag and token.name in _BEGINS | _ENDS:
                end = self.closings.get(place, place)
                chunk = self._code(place, end)
            else:
                chunk = self._chunk(token)
                if is_tag:
                    yield from self.rules.attributes(self.document, token)
            if place in self.ends:
                yield from self._unit(chunks, is_note)
                chunks = []
            else:
                chunks.append(chunk)
            place = end + 1
        yield from self._unit(chunks, is_note)

    def _unit(self, chunks: Sequence[Chunk], is_note: bool) -> Iterator[Unit]:
        """Yield the unit that consists of these chunks, if there are words; a note also needs a letter."""
        is_said = not is_note or any(any(map(str.isalpha, one.text)) for one in chunks if one.role == "text")
        if is_said and (unit := unit_of(self.document, chunks, self.rules.escape)):
            yield unit

    def _is_kept(self, place: int) -> bool:
        token = self.tokens[place]
        if token.name in self.rules.kept:
            return True
        found = values(self.document, token)
        if "translate" in found:
            return found["translate"].lower() == "no"
        language = found.get("lang") or found.get("xml:lang")
        is_foreign = language and self.rules.language and primary(language) != primary(self.rules.language)
        return "notranslate" in found.get("class", "").split() or bool(is_foreign and place not in self.ends)

    def _translated_again(self, first: int, last: int) -> Iterator[Unit]:
        """Yield the units of elements with translate="yes" inside an element that is not translated."""
        place = first
        while place < last:
            end = self.closings.get(place, place)
            if end > place and values(self.document, self.tokens[place]).get("translate", "no").lower() in ("", "yes"):
                yield from self.units(place + 1, end)
                place = end
            place += 1

    def _is_note(self, place: int) -> bool:
        if self.tokens[place].name not in self.rules.notes or place not in self.closings:
            return False
        content = self._text(place, self.closings[place]).strip()
        after = self._text(self.closings[place], min(len(self.tokens), self.closings[place] + 3))
        is_within_word = after[:1].isalnum() and content.isalnum()
        return content.startswith(("[", "(")) or not (is_within_word or any(map(str.isalpha, content)))

    def _text(self, first: int, last: int) -> str:
        return "".join(self.document[one.begin : one.end] for one in self.tokens[first:last] if one.role == "text")

    def _point(self, first: int, last: int, *, parts: bool = False) -> Chunk:
        begin, end = self.tokens[first].begin, self.tokens[last].end
        name = name_of_point(self.tokens[first : last + 1])
        return Chunk("point", self.document[begin:end], begin, end, name, parts=parts)

    def _code(self, first: int, last: int) -> Chunk:
        """Return the chunk of an XLIFF or TMX element that stands for a tag."""
        found = values(self.document, self.tokens[first])
        reference = next((found[name] for name in _REFERENCES if name in found), "")
        role: Role = "open" if self.tokens[first].name in _BEGINS else "close"
        return self._point(first, last)._replace(role=role, name=f"code {reference}")

    def _chunk(self, token: Token) -> Chunk:
        raw = self.document[token.begin : token.end]
        if token.role == "text":
            text, raws = read_text(raw, self.rules.escape, exact=self.rules.syntax.exact_references)
            return Chunk("text", text, token.begin, token.end, raws=raws)
        if token.role in ("empty", "other"):
            is_apart = token.name in self.rules.syntax.void and token.name != "wbr"
            return Chunk("point", raw, token.begin, token.end, parts=is_apart)
        is_apart = token.name in self.rules.apart
        role: Role = "open" if token.role == "open" else "close"
        return Chunk(role, raw, token.begin, token.end, token.name, parts=is_apart)


def read_text(raw: str, escape: Callable[[str], str], *, exact: bool = False) -> tuple[str, dict[int, str]]:
    """Return the text that a part of a document stands for, and by index, how some characters were spelled.

    Spellings are given for entities, white space other than a space, and characters that `escape` would change. `exact`
    is `Syntax.exact_references`.
    """
    parts, raws, size, cursor = list[str](), dict[int, str](), 0, 0
    for found in chain(_WRITTEN.finditer(raw), [None]):
        meant, rest = _meant(found[0], exact=exact) if found else ("", "")
        if found and meant in ("", found[0]):
            continue
        plain = raw[cursor : found.start() if found else None]
        if escape(plain) != plain:
            raws |= {size + place: one for place, one in enumerate(plain) if escape(one) != one}
        parts += [plain, meant]
        size += len(plain)
        if found:
            raws[size] = found[0].removesuffix(rest)
            size += len(meant)
            cursor = found.end() - len(rest)
    return "".join(parts), raws


def _meant(written: str, *, exact: bool = False) -> tuple[str, str]:
    """Return the text that white space or a reference stands for, and the characters after the reference.

    >>> _meant("&eacute;"), _meant("&notit;"), _meant("&notit;", exact=True), _meant("&so")
    (('é', ''), ('¬', 'it;'), ('', ''), ('', '&so'))
    """
    if exact and written[0] == "&" and not _is_exact(written):
        return "", ""
    meant = html.unescape(written) or "\ufffd"
    if meant[0] in " \t\r\n\f":
        return " ", ""
    size = 0
    while size < len(meant) and meant[-size - 1] == written[-size - 1]:
        size += 1
    return meant[: len(meant) - size], meant[len(meant) - size :]


def _is_exact(written: str) -> bool:
    """Return whether characters that begin with & are a whole reference to a number or a known name."""
    return written.endswith(";") and (written[1] == "#" or written[1:] in html.entities.html5)
