"""Find the tags in HTML, XML and plain text, and their positions.

The scanner takes linear time for every text; `html.parser` takes 15 s for 30 kB of "<a ". Faster libraries parse a page
and write it anew, which also changes parts of the page whose words have not changed.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["HTML", "PLAIN", "XML", "Attribute", "Syntax", "Token", "attributes", "scanned", "values"]


TokenRole = Literal["text", "open", "close", "empty", "other"]

_RAW = frozenset({"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"})
"""HTML elements whose content has no tags."""
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
"""HTML elements without an end tag."""

_VALUE = r"""=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+|(?=>))"""
_HTML_TAG = re.compile(rf"<(/?)([A-Za-z][^\s/>]*+)(?:[^>=]++|{_VALUE})*+>")
_XML_TAG = re.compile(rf"<(/?)([^\W\d][^\s/>]*+)(?:[^>=]++|{_VALUE})*+>")
_NUMBERED = re.compile(r"<(/?)(\d++)\s*+/?>")
_STRICT_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*+)(?:\s[^<>]*+|/)?+>")
_ATTRIBUTE = re.compile(r"""(?<=[\s"'/])([^\s"'<>/=]++)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)""")
_DOCTYPE = re.compile(
    r"<!DOCTYPE(?:[^\[>\"']++|\"[^\"]*+\"|'[^']*+')*+"
    r"(?:\[(?:[^\]\"'<]++|\"[^\"]*+\"|'[^']*+'|<!--(?:[^-]|-(?!->))*+-->|<\?(?:[^?]|\?(?!>))*+\?>|<(?!!--|\?))*+\]\s*+)?+>"
)
"""A document type, which may contain declarations in square brackets; entities in them are not read."""
_TAG_NAME_END = re.compile(r"<[^\s/>]++")


class Token(NamedTuple):
    """A token of a document: a text, a tag, or a part such as a comment or a declaration ("other")."""

    role: TokenRole
    begin: int
    end: int
    name: str = ""


class Attribute(NamedTuple):
    """An attribute of a tag; its value is the characters [begin, end) of the text, without quotes."""

    name: str
    begin: int
    end: int
    quote: str
    """The quotation mark around the value; "" for a value without quotes."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """What counts as a tag in a language."""

    tag: re.Pattern[str]
    ignores_case: bool = False
    has_comments: bool = True
    has_doctype: bool = False
    """Whether a document type may contain declarations in square brackets."""
    raw: frozenset[str] = frozenset()
    """Names of elements whose content has no tags."""
    void: frozenset[str] = frozenset()
    """Names of elements without an end tag. If there are such names, the slash in <b/> has no meaning."""
    ends: tuple[tuple[str, str], ...] = ()
    """Beginnings and ends of parts that are neither text nor tags, such as comments; all other such parts end with
    ">"."""
    exact_references: bool = False
    """Whether a reference has a semicolon and a known name; HTML also reads &copyright as ©right."""


HTML = Syntax(
    _HTML_TAG, ignores_case=True, raw=_RAW, void=_VOID, ends=(("<!-->", ">"), ("<!--->", ">"), ("<!--", "-->"))
)
XML = Syntax(
    _XML_TAG,
    has_doctype=True,
    ends=(("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")),
    exact_references=True,
)
PLAIN = Syntax(_STRICT_TAG, has_comments=False)
"""Plain text, in which only numbered tags and simple named tags count as tags."""


def scanned(text: str, syntax: Syntax) -> Iterator[Token]:
    """Yield the tokens of a text, in order; together, they are the whole text.

    As in browsers, a part without its end, such as an open comment, extends to the end of the text.
    """
    cursor, place = 0, text.find("<")
    while place >= 0:
        token = _token(text, place, syntax)
        if token is None:
            place = text.find("<", place + 1)
            continue
        if cursor < place:
            yield Token("text", cursor, place)
        yield token
        cursor = place = token.end
        if token.role == "open" and token.name in syntax.raw:
            found = re.compile(rf"</{token.name}(?=[\s/>])", re.IGNORECASE).search(text, cursor)
            place = found.start() if found else len(text)
        place = text.find("<", place)
    if cursor < len(text):
        yield Token("text", cursor, len(text))


def _token(text: str, place: int, syntax: Syntax) -> Token | None:
    """Return the token that begins with the "<" at a position; None if the "<" is text."""
    if found := _NUMBERED.match(text, place) or syntax.tag.match(text, place):
        slash, name = found.groups()
        name = name.lower() if syntax.ignores_case else name
        is_closed = text[found.end() - 2] == "/" and (not syntax.void or name.isdigit())
        role: TokenRole = "close" if slash else "empty" if is_closed or name in syntax.void else "open"
        return Token(role, *found.span(), name)
    if syntax.has_doctype and text.startswith("<!DOCTYPE", place):
        found = _DOCTYPE.match(text, place)
        return Token("other", place, found.end() if found else len(text))
    following = text[place + 1 : place + 3].removeprefix("/")[:1]
    is_tag = following.isalpha() and (following.isascii() or not syntax.void)  # a tag that begins here and never ends
    if not syntax.has_comments or not (is_tag or following in ("!", "?") or text.startswith("</", place)):
        return None
    ending = next((end for begin, end in syntax.ends if text.startswith(begin, place)), ">")
    begin = place + 4 if text.startswith("<!--", place) else place
    end = text.find(ending, begin)
    return Token("other", place, len(text) if end < 0 or is_tag else end + len(ending))


def attributes(text: str, tag: Token) -> Iterator[Attribute]:
    """Yield the attributes of a tag that have values."""
    name = _TAG_NAME_END.match(text, tag.begin)
    for found in _ATTRIBUTE.finditer(text, name.end() if name else tag.begin, tag.end):
        quote = found[2][0] if found[2][0] in "\"'" else ""
        yield Attribute(found[1].lower(), found.start(2) + len(quote), found.end(2) - len(quote), quote)


def values(text: str, tag: Token) -> dict[str, str]:
    """Return the values of a tag's attributes by attribute name."""
    return {one.name: html.unescape(text[one.begin : one.end]) for one in attributes(text, tag)}
