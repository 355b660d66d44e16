"""Read and write documents: files with an encoding and a format, divided into units of text to translate."""

import codecs
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import NamedTuple

from glassformer.errors import ConfigError, DataError, shortened
from glassformer.translating.documents.plain_text import text_units
from glassformer.translating.markup.html_pages import html_charset, html_units
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.units import Unit

__all__ = ["DOCUMENT_SECTION", "SUFFIXES", "Document", "DocumentOptions", "is_document"]


class _Format(NamedTuple):
    """A format of documents."""

    read: Callable[..., list[Unit]]
    """Returns the units of a file's text; its keyword arguments are the format's options."""
    charset: Callable[[str], str | None] | None = None
    """Returns the encoding that the first characters of a file declare, or None."""
    options: tuple[str, ...] = ()
    """The fields of `DocumentOptions` that `read` takes."""
    has_references: bool = False
    """Whether a character outside the encoding can be written as a reference, such as &#26085;."""


_HTML = _Format(html_units, html_charset, has_references=True)
_FORMATS = {".txt": _Format(text_units, options=("lines",)), ".html": _HTML, ".htm": _HTML}
"""The document formats by file suffix."""
SUFFIXES = tuple(_FORMATS)

DOCUMENT_SECTION = "documents"
"""The section under which the command line sets these options, such as --set documents.lines=true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """Options for reading a document."""

    lines: bool = False
    """Whether each line of a text file (.txt) is one sentence; if not, paragraphs are split into sentences."""

    def check_for(self, name: str) -> None:
        """Refuse options that have no effect on a file's format.

        Raises:
            ConfigError: an option is set that has no effect on files with this suffix.
        """
        for option, value in asdict(self).items():
            known = [suffix for suffix, one in _FORMATS.items() if option in one.options]
            if value and _suffix(name) not in known:
                kinds = ", ".join(known)
                raise ConfigError(
                    f"{DOCUMENT_SECTION}.{option}: expected a file with the suffix {kinds}, got {name}; leave it out"
                )


_ENCODINGS = frozenset(
    {"ascii", "utf-8", "utf-16-le", "utf-16-be", "cp866", "mac-roman", "mac-cyrillic", "koi8-r", "koi8-u", "tis-620"}
    | {"gb2312", "gbk", "gb18030", "hz", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "cp932", "euc_kr"}
    | {f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))}
    | {f"cp{page}" for page in (874, 949, *range(1250, 1259))}
)
"""The allowed encodings, by Python's names. Some of Python's other codecs do not write text, or take time that grows
with the square of the text's length."""
_MARKED = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
"""Byte order marks and their encodings. The mark remains in the text, as its first character."""


def is_document(name: str) -> bool:
    """Return whether a file name has the suffix of a document format."""
    return _suffix(name) in _FORMATS


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document that was read from a file: its text, and its units in order."""

    name: str
    content: MarkedText
    encoding: str
    options: DocumentOptions
    """The options with which the file was read."""

    @classmethod
    def read(cls, name: str, data: bytes, options: DocumentOptions | None = None) -> "Document":
        """Return the document in the bytes of a file; the suffix of the name decides the format.

        Raises:
            DataError: the format is unknown, or the file is damaged; the message names the place of the damage.
        """
        suffix = _suffix(name)
        if suffix not in _FORMATS:
            raise DataError(f"{name}: expected the suffix {', '.join(SUFFIXES)}, got {suffix or 'none'}")
        kind = _FORMATS[suffix]
        text, encoding = _decoded(name, data, kind.charset)
        options = options or DocumentOptions()
        try:
            units = kind.read(text, **{option: getattr(options, option) for option in kind.options})
        except DataError as error:
            raise DataError(f"{name}, {error}") from error
        content = MarkedText(text=text, units=tuple(units))
        return cls(name=name, content=content, encoding=encoding, options=options)

    def encoded(self, text: str) -> bytes:
        """Return a text in the encoding of the document.

        Raises:
            DataError: the encoding does not have a character of the text.
        """
        otherwise = "xmlcharrefreplace" if _FORMATS[_suffix(self.name)].has_references else "strict"
        try:
            return text.encode(self.encoding, otherwise)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise DataError(
                f"{self.name}: the encoding {self.encoding} lacks the character {character!r} of a translation; "
                "convert the file to UTF-8"
            ) from error


def _decoded(name: str, data: bytes, charset: Callable[[str], str | None] | None) -> tuple[str, str]:
    """Return the text of a file and its encoding, in which the text has exactly the bytes of the file."""
    encoding = next((encoding for mark, encoding in _MARKED if data.startswith(mark)), None)
    if encoding is None:
        encoding = (charset and charset(data[:4096].decode("latin-1"))) or "utf-8"
    try:
        if codecs.lookup(encoding).name not in _ENCODINGS:
            raise LookupError
        text = data.decode(encoding)
        if text.encode(encoding) == data:
            return text, encoding
        raise DataError(f"{name}: expected text that {encoding} writes back as the same bytes; convert it to UTF-8")
    except LookupError as error:
        raise DataError(
            f"{name}: expected a known encoding, got {shortened(encoding)}; convert the file to UTF-8"
        ) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}, line {line}: expected {encoding}, got an invalid byte; convert the file") from error
