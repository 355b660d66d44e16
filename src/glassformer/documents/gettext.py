"""Messages of gettext (.po, .pot): translations of the entries that have none yet."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from glassformer.documents.chunks import Unit
from glassformer.documents.messages import message_unit
from glassformer.documents.plain_text import TextLine, lines_of
from glassformer.errors import DataError, quoted
from glassformer.text.edits import Replacement

__all__ = ["gettext_charset", "gettext_units"]

GETTEXT_WIDTH = 76
"""Texts that are wider stand in several lines, as gettext's own programs write them."""
_STATEMENT = re.compile(r"\s*(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s*)?(\".*\")\s*$")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"$')
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPES = {"\\": "\\\\", '"': '\\"', **{value: f"\\{name}" for name, value in _ESCAPED.items()}}


@dataclass(slots=True)
class _Field:
    """A keyword of an entry and its text."""

    keyword: str
    start: int
    """The first character of the keyword's line."""
    begin: int
    end: int
    """The characters of the texts, with their quotes."""
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class _Entry:
    """A message, its translations and its flags."""

    fields: dict[str, _Field] = field(default_factory=dict)
    flags: TextLine | None = None


def gettext_charset(head: str) -> str | None:
    """Return the encoding that the first characters of a file declare, or None."""
    found = re.search(r"charset=([\w.-]+)", head)
    return found[1] if found and found[1] != "CHARSET" else None


def gettext_units(document: str, *, again: bool = False) -> list[Unit]:
    """Return the messages without a translation, or all of them with `again`; each plural form is a unit.

    Comments, contexts, obsolete entries and the header stay. If the file's header gives the number of plural forms,
    missing forms are added.

    Raises:
        DataError: a line is not one of gettext's.
    """
    entries = [entry for entry in _entries(lines_of(document)) if "msgid" in entry.fields]
    header = next((entry for entry in entries if not entry.fields["msgid"].text), None)
    forms = _forms(header)
    newline = "\r\n" if "\r\n" in document else "\n"
    units: list[Unit] = []
    for entry in entries:
        strings = [one for name, one in entry.fields.items() if name.startswith("msgstr")]
        if entry is header or not strings or (any(one.text for one in strings) and not again):
            continue
        make = _plural_units if "msgid_plural" in entry.fields else _single_units
        units += [replace(unit, doubts=_fuzzy(entry, newline)) for unit in make(entry, strings, forms, newline)]
    return units


def _forms(header: _Entry | None) -> int:
    """Return the number of plural forms that a header gives, 0 if it gives none."""
    text = header.fields["msgstr"].text if header and "msgstr" in header.fields else ""
    found = re.search(r"nplurals\s*=\s*(\d)", text)
    return int(found[1]) if found else 0


def _single_units(entry: _Entry, strings: Sequence[_Field], _: int, newline: str) -> Iterator[Unit]:
    source, target = entry.fields["msgid"], strings[0]
    unit = message_unit(source.text, target.begin, target.end)
    if unit:
        yield replace(unit, compose=_composer(newline))


def _plural_units(entry: _Entry, strings: Sequence[_Field], forms: int, newline: str) -> Iterator[Unit]:
    """Yield the unit of each plural form: the first translates the singular, unless it is the only form."""
    one, many = entry.fields["msgid"], entry.fields["msgid_plural"]
    count = forms or len(strings)
    for number, target in enumerate(strings[:count]):
        source = one if number == 0 and count > 1 else many
        extra = range(len(strings), count) if target is strings[-1] else range(0)
        unit = message_unit(source.text, target.begin, target.end)
        if unit:
            yield replace(unit, compose=_composer(newline, [f"msgstr[{form}] " for form in extra]))


def _composer(newline: str, more: Sequence[str] = ()) -> Callable[[str, bool], str]:
    """Return a function that writes a message, and again after each of the further keywords."""

    def compose(content: str, _: bool) -> str:
        written = _written(content, newline)
        return "".join([written, *(f"{newline}{keyword}{written}" for keyword in more)])

    return compose


def _written(content: str, newline: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in content)
    if len(escaped) <= GETTEXT_WIDTH and "\\n" not in escaped[:-2]:
        return f'"{escaped}"'
    lines = []
    for line in content.splitlines(keepends=True):
        words = re.findall(r"\S*\s*", line)
        held = ""
        for word in words:
            if held and len(held + word) > GETTEXT_WIDTH:
                lines.append(held)
                held = ""
            held += word
        lines.append(held)
    quoted_lines = ('"' + "".join(_ESCAPES.get(one, one) for one in line) + '"' for line in lines if line)
    return newline.join(['""', *quoted_lines])


def _fuzzy(entry: _Entry, newline: str) -> tuple[Replacement, ...]:
    """Return the edit that flags an entry as fuzzy."""
    if entry.flags:
        flags = [flag.strip() for flag in entry.flags.text[2:].split(",")]
        return () if "fuzzy" in flags else (Replacement(entry.flags.end, entry.flags.end, ", fuzzy"),)
    first = next(iter(entry.fields.values()))
    return (Replacement(first.start, first.start, f"#, fuzzy{newline}"),)


def _entries(lines: Sequence[TextLine]) -> Iterator[_Entry]:
    entry, current = _Entry(), None
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("#"):
            if "msgstr" in entry.fields or "msgstr[0]" in entry.fields:
                yield entry
                entry = _Entry()
            if text.startswith("#,"):
                entry.flags = line
            current = None
            continue
        keyword, written = _statement(line)
        if keyword in ("msgctxt", "msgid") and any(name.startswith("msgstr") for name in entry.fields):
            yield entry
            entry = _Entry()
        begin = line.begin + line.text.index('"')
        if keyword:
            if keyword in entry.fields:
                raise DataError(f"line {line.number}: expected one {keyword} in an entry, got two; remove one")
            current = entry.fields[keyword] = _Field(keyword, line.begin, begin, begin)
        if current is None:
            raise DataError(f"line {line.number}: expected a keyword such as msgid before a text; correct the line")
        current.parts.append(_unescaped(written, line))
        current.end = line.begin + len(line.text.rstrip())
    if entry.fields:
        yield entry


def _statement(line: TextLine) -> tuple[str | None, str]:
    found = _STATEMENT.match(line.text)
    if not found:
        raise DataError(f"line {line.number}: expected a keyword and a text in quotes, got {quoted(line.text)}")
    return found[1], found[2]


def _unescaped(written: str, line: TextLine) -> str:
    found = _TEXT.match(written)
    if not found:
        raise DataError(f"line {line.number}: expected a text in quotes, got {quoted(written)}; correct its quotes")
    return re.sub(r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[1]), found[1])
