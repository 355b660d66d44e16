"""The rules for HTML: texts between block elements are units, and so are the attributes that people see."""

import html
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from glassformer.translating.markup.reading import Rules, read_text, units_of
from glassformer.translating.markup.scanning import HTML, Attribute, Token, attributes, values
from glassformer.translating.markup.units import Chunk, Unit, unit_of

__all__ = ["html_charset", "html_units"]

_BLOCKS = frozenset(
    {"address", "area", "article", "aside", "audio", "base", "blockquote", "body", "button", "canvas", "caption"}
    | {"center", "col", "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption"}
    | {"figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header"}
    | {"hgroup", "hr", "html", "iframe", "legend", "li", "link", "main", "map", "menu", "meta", "nav", "noscript"}
    | {"object", "ol", "optgroup", "option", "p", "param", "pre", "script", "search", "section", "select", "style"}
    | {"summary", "table", "tbody", "td", "template", "textarea", "tfoot", "th", "thead", "title", "tr", "ul", "video"}
)
"""Elements at whose tags a text ends."""
_KEPT = frozenset(
    {"code", "kbd", "math", "pre", "rp", "rt", "rtc", "samp", "script", "style", "svg", "template", "textarea", "tt"}
    | {"var", "xmp"}
)
"""Elements whose content is not translated."""
_SEEN = frozenset(
    {"alt", "title", "placeholder", "aria-label", "aria-description", "aria-placeholder", "aria-roledescription"}
)
"""Attributes whose values are translated."""
_BUTTONS = frozenset({"button", "reset", "submit"})
"""Types of <input> whose value is their label, which is translated."""
_DESCRIPTIONS = frozenset({"description", "og:description", "og:title", "twitter:description", "twitter:title"})
"""Names of <meta> elements whose content is translated."""
_LABELLED = frozenset({"optgroup", "option", "track"})
"""Elements whose attribute "label" is translated."""
_UNQUOTED = re.compile(r"""[^\s"'>][^\s>]*+(?<!/)""")
_CHARSET = re.compile(r"<meta[^<>]+?charset\s*+=\s*[\"']?([\w-]+)", flags=re.IGNORECASE)


def html_charset(head: str) -> str | None:
    """Return the encoding that the first characters of a page declare, or None."""
    found = _CHARSET.search(head)
    return found[1] if found else None


def html_units(
    document: str,
    language: str | None = None,
    *,
    ignored: Collection[str] = (),
    splitting: Collection[str] = (),
    joining: Collection[str] = (),
) -> list[Unit]:
    """Return the units of an HTML page: its texts, and the values of attributes that people see.

    These parts are not translated: scripts, styles, code, comments, elements with translate="no" or
    class="notranslate", and inline elements in a language other than the text's.

    Args:
        document: the page, or a part of a page.
        language: the language of the page's texts.
        ignored: names of further elements that are not translated.
        splitting: names of further elements at which a text ends.
        joining: names of elements at which no text ends.

    Raises:
        DataError: too many elements are nested.
    """
    blocks = (_BLOCKS | {*splitting}) - {*joining}
    rules = Rules(
        syntax=HTML,
        ends=partial(_ends, blocks),
        escape=_escaped,
        attributes=_attributes,
        kept=_KEPT | {*ignored},
        notes=("sup",),
        apart=("a", "label", "span", "time"),
        language=language,
    )
    return units_of(document, rules)


def _ends(blocks: Collection[str], _: str, tokens: Sequence[Token], __: dict[int, int]) -> set[int]:
    return {place for place, token in enumerate(tokens) if token.name in blocks}


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _attributes(document: str, tag: Token) -> Iterator[Unit]:
    """Yield the units of a tag's attributes that people see."""
    seen = _seen(document, tag)
    for one in attributes(document, tag):
        if one.name in seen and (unit := _value_unit(document, one)):
            yield unit


def _seen(document: str, tag: Token) -> Collection[str]:
    """Return the names of the attributes that people see in a tag of this kind."""
    if tag.name == "input" and values(document, tag).get("type", "").lower() in _BUTTONS:
        return _SEEN | {"value"}
    if tag.name == "meta":
        found = values(document, tag)
        return {"content"} if (found.get("name") or found.get("property", "")).lower() in _DESCRIPTIONS else ()
    return _SEEN | {"label"} if tag.name in _LABELLED else _SEEN


def _value_unit(document: str, one: Attribute) -> Unit | None:
    escape = partial(_value, one.quote)
    text, raws = read_text(document[one.begin : one.end], escape)
    unit = unit_of(document, [Chunk("text", text, one.begin, one.end, raws=raws)], escape)
    return unit if unit is None or one.quote else replace(unit, compose=_quoted)


def _quoted(content: str) -> str:
    """Return the new value of an attribute that was written without quotes; add quotes if the value needs them."""
    return content if _UNQUOTED.fullmatch(content) else f'"{content}"'


def _value(quote: str, text: str) -> str:
    written = text.replace("&", "&amp;").replace("<", "&lt;")
    return written.replace(quote, f"&#{ord(quote)};") if quote else written.replace('"', "&quot;")
