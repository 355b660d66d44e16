"""A file as a document: its units, and the file again with other texts in their places."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from glassformer.documents.chunks import Chunk, Unit
from glassformer.documents.gettext import gettext_charset, gettext_units
from glassformer.documents.html_pages import html_units
from glassformer.documents.json_messages import json_units
from glassformer.documents.markdown import markdown_units
from glassformer.documents.plain_text import line_units, paragraph_units
from glassformer.documents.subtitles import srt_units, vtt_units
from glassformer.documents.xliff import xliff_units
from glassformer.errors import ConfigError, DataError
from glassformer.text.edits import Replacement, edited

__all__ = ["DOCUMENT_SECTION", "SUFFIXES", "Document", "DocumentOptions", "is_document"]

MOST_MARKS = 500
"""Maximum number of tags and placeholders of a unit; the time to put them back grows with its square."""


DOCUMENT_SECTION = "documents"
"""The section of the overrides on the command line that set these options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """What a reader of a document may ask for; other formats ignore it."""

    lines: bool = False
    """Whether each line of a text file (.txt) is one sentence; else paragraphs are split into sentences."""
    again: bool = False
    """Whether messages that already have a translation (.po, .xliff) are translated again."""

    def check_for(self, name: str) -> None:
        """Refuse options that the format of a file ignores.

        Raises:
            ConfigError: an option is set and does not fit the file's suffix.
        """
        suffix = PurePath(name).suffix.lower()
        for option, suffixes in _OPTION_SUFFIXES.items():
            if getattr(self, option) and suffix not in suffixes:
                known = ", ".join(suffixes)
                raise ConfigError(
                    f"{DOCUMENT_SECTION}.{option}: expected a file of the kinds {known}, got {name}; leave it out"
                )


_OPTION_SUFFIXES = {"lines": (".txt",), "again": (".po", ".pot", ".xliff", ".xlf")}
"""The suffixes of the formats that read an option."""


_Read = Callable[[str, DocumentOptions], list[Unit]]


def _text(document: str, options: DocumentOptions) -> list[Unit]:
    return line_units(document) if options.lines else paragraph_units(document)


def _po(document: str, options: DocumentOptions) -> list[Unit]:
    return gettext_units(document, again=options.again)


def _xliff(document: str, options: DocumentOptions) -> list[Unit]:
    return xliff_units(document, again=options.again)


def _plain(read: Callable[[str], list[Unit]]) -> _Read:
    return lambda document, _: read(document)


_FORMATS: dict[str, _Read] = {
    ".txt": _text,
    ".md": _plain(markdown_units),
    ".html": _plain(html_units),
    ".htm": _plain(html_units),
    ".srt": _plain(srt_units),
    ".vtt": _plain(vtt_units),
    ".po": _po,
    ".pot": _po,
    ".xliff": _xliff,
    ".xlf": _xliff,
    ".json": _plain(json_units),
}
SUFFIXES = tuple(_FORMATS)
"""The suffixes of the formats."""
_CHARSETS: Mapping[str, Callable[[str], str | None]] = {
    ".html": lambda head: _declared(r"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)", head),
    ".xliff": lambda head: _declared(r"<\?xml[^>]+encoding\s*=\s*[\"']([\w.-]+)", head),
    ".po": gettext_charset,
}
_SAME = {".htm": ".html", ".xlf": ".xliff", ".pot": ".po"}
_MARKED = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
"""Byte order marks, which remain in the text as its first character."""


def is_document(name: str) -> bool:
    """Return whether a file has the suffix of one of the formats."""
    return PurePath(name).suffix.lower() in _FORMATS


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file that was read: its text and its units in order."""

    name: str
    text: str
    encoding: str
    units: tuple[Unit, ...]

    @classmethod
    def read(cls, name: str, data: bytes, options: DocumentOptions | None = None) -> "Document":
        """Return the document in the bytes of a file; the name's suffix tells its format.

        Raises:
            DataError: the format is unknown, or the file is damaged; the message names the place.
            MissingDependencyError: a package that the format needs is not installed.
        """
        suffix = PurePath(name).suffix.lower()
        if suffix not in _FORMATS:
            raise DataError(f"{name}: expected a file of the kinds {', '.join(SUFFIXES)}, got {suffix or 'no suffix'}")
        text, encoding = _decoded(name, data, _CHARSETS.get(_SAME.get(suffix, suffix)))
        try:
            units = _FORMATS[suffix](text, options or DocumentOptions())
        except DataError as error:
            raise DataError(f"{name}, {error}") from error
        document = cls(name=name, text=text, encoding=encoding, units=tuple(units))
        for place, unit in enumerate(units):
            marks = sum(chunk.role != "text" for chunk in unit.chunks)
            if marks > MOST_MARKS:
                where = f"{name}, line {document.line(place)}"
                raise DataError(f"{where}: expected at most {MOST_MARKS} tags in a paragraph, got {marks}; divide it")
        return document

    def rebuilt(self, changed: Mapping[int, Sequence[Chunk]], suspicious: Iterable[int] = ()) -> bytes:
        """Return the bytes of the file with new chunks for some units, by their indices; all else stays as it is.

        Raises:
            DataError: the encoding of the file lacks a character of a new text.
        """
        doubted = set(suspicious)
        edits: set[Replacement] = set()
        for place, inner in self._nested(changed).items():
            unit = self.units[place]
            within = [self.units[one].edit(changed[one], one in doubted, (), self.text) for one in inner]
            edits.add(unit.edit(changed[place], place in doubted, within, self.text))
            edits.update(unit.edits, unit.doubts if place in doubted else ())
        return self._encoded(edited(self.text, edits))

    def _nested(self, places: Iterable[int]) -> dict[int, list[int]]:
        """Return the indices of units that are in no other of these units, each with those within it."""
        found: dict[int, list[int]] = {}
        outer: Unit | None = None
        for place in sorted(places, key=lambda one: (self.units[one].begin, -self.units[one].end)):
            unit = self.units[place]
            if outer and outer.begin < unit.begin and unit.end <= outer.end:
                found[next(reversed(found))].append(place)
            else:
                found[place], outer = [], unit
        return found

    def line(self, place: int) -> int:
        """Return the line of the file in which a unit begins, from 1."""
        return bisect_right(self._line_starts, self.units[place].begin)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def _encoded(self, text: str) -> bytes:
        has_references = PurePath(self.name).suffix.lower() in (".html", ".htm", ".xliff", ".xlf")
        try:
            return text.encode(self.encoding, "xmlcharrefreplace" if has_references else "strict")
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise DataError(
                f"{self.name}: the encoding {self.encoding} lacks the character {character!r} of a translation; "
                "convert the file to UTF-8"
            ) from error


def _declared(pattern: str, head: str) -> str | None:
    found = re.search(pattern, head, flags=re.IGNORECASE)
    return found[1] if found else None


def _decoded(name: str, data: bytes, charset: Callable[[str], str | None] | None) -> tuple[str, str]:
    """Return the text of a file and its encoding, by which the text gives the same bytes again."""
    encoding = next((encoding for mark, encoding in _MARKED if data.startswith(mark)), None)
    if encoding is None:
        encoding = (charset and charset(data[:4096].decode("latin-1"))) or "utf-8"
    try:
        text = data.decode(encoding)
        if text.encode(encoding) == data:
            return text, encoding
        raise DataError(f"{name}: expected text in {encoding} that stays the same when written; convert it to UTF-8")
    except LookupError as error:
        raise DataError(f"{name}: expected a known encoding, got {encoding}; convert the file to UTF-8") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}, line {line}: expected {encoding}, got another byte; convert the file") from error
