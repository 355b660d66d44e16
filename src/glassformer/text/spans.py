"""Protected spans: the parts of a text that occur in its translation character by character.

Every pattern takes linear time for every text. Repetitions are possessive. A match begins only at the beginning of a
run of characters, or has a bounded length. No pattern repeats the character with which it begins.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

__all__ = [
    "KINDS",
    "LONGEST_WILD",
    "MESSAGE",
    "ProtectedSpan",
    "closing_braces",
    "ordered_spans",
    "protected_spans",
]

FEWEST_DIGITS = 3
"""Minimum number of digits of a protected number."""
LONGEST_WILD = 100
"""Maximum number of characters that a * in a user's pattern stands for."""
_ALNUM = r"A-Za-z0-9\u00c0-\u024f\u0300-\u036f\u0370-\u05ff"
"""Letters and digits of scripts with spaces between words, and the marks that letters are combined with."""
_LETTERS = f"{_ALNUM}_"
"""The letters and digits that e-mail addresses and identifiers may contain."""
_FILE_NAME = r"(?u:[^\s\\/:*?\"<>|`。，、；：？！）】」』》])"
_FORMAT = (
    r"[#0+'-]*+(?:[1-9]\d*+|\*)?+(?:\.(?:\d++|\*)?+)?+(?:hh|h|ll|l|L|q|j|z|t)?+(?:[diouxXeEfFgGaAcspn]|@(?:\w++@)?+)"
)
"""What follows the % of a conversion in C or Python: flags (all except the space), width, precision and type."""
_ESCAPE = r"%[0-9][0-9A-Fa-f](?!(?:\.\d{1,3}+)?+[diouxXeEfFgGaAcspn](?![A-Za-z]))"
"""A percent-encoded character, such as %2F; %20s and %08.3f are conversions."""
_VALUE = "[^\\s<>&=\"'`。，、；：？！）】」』》]*+"
_NO_PRICE = (
    r"(?![.,'’–-]?\d|[ \u00a0\u202f]\d{3}(?!\d)|(?:[KMBkmb]|bn|mn)(?!\w)"
    r"|[ -](?:hundred|thousand|million|billion|trillion|bn|mn|USD)(?!\w))"
)
"""Distinguishes MediaWiki's parameter $1 from prices such as $1.50, $10 and $1 million. A lone $5 is always
protected."""
MESSAGE = r"\{\s{0,9}+[\w.-]{1,99}+\s{0,9}+,\s{0,9}+(?:plural|selectordinal|select)\s{0,9}+,"
"""The beginning of a plural or selection in an ICU message."""

KINDS = {
    # a number in white brackets, which programs put in place of a part of a text
    "token": "⟦[0-9]⟧",
    "code": r"(?<![\w`])(?P<ticks>`{1,2}+)[^`\n]++(?P=ticks)(?![\w`])",
    "address": (
        r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+-]{1,20}+://(?=[^\s<>\"'`().,:;!?])|(?:mailto|tel):(?=\w)|www\.(?=\w))"
        r"(?u:[^\s<>\"`。，、；：？！）】」』》]++)"
    ),
    "mail": rf"(?<![{_LETTERS}])[{_LETTERS}][{_LETTERS}.%+-]{{0,63}}+@[{_LETTERS}-]++(?:\.[{_LETTERS}-]++)++",
    "path": (
        r"(?<![\w\\.:%])(?:[A-Za-z]:(?=\\)|%\w++%(?=\\)|\\(?=\\\w)|\.\.?(?=\\))"
        rf"(?:\\(?:{_FILE_NAME}++(?: (?=[A-Z(]){_FILE_NAME}++){{1,2}}+(?=\\)|{_FILE_NAME}*+))++"
        r"|(?<![\w\\.:%-])[\w-]++(?:\\[\w-]++)++\.\w{1,5}+(?!\w)"
    ),
    "tag": r"</?(?:[A-Za-z][\w.:-]*+(?:\s[^<>]*+)?+|\d{1,9}+ ?)/?+>",
    "template": r"\{{2,3}+[^{}\n]*+\}{2,3}+|\{%[^%{\n]*+(?:(?:%(?!\})|\{(?!%))[^%{\n]*+)*+%\}",
    "message": rf"{MESSAGE}|\{{\d++,choice,",  # Java's choice formats are not translated
    "braces": r"\{[^{}\n]*+\}",
    "quoted": r"(?<!')'[{}]{1,3}+'(?!')",
    "query": rf"(?<![\w.~-])[\w.~-]++={_VALUE}(?:&[\w.~-]++={_VALUE})++",
    "escaped": (rf"(?<![\w.~+%-])(?:[\w.~+-]++{_ESCAPE}|{_ESCAPE}(?={_ESCAPE}|[\w.~+-]))(?:[\w.~+-]++|{_ESCAPE})*+"),
    "ruby": rf"[%#]\{{[^{{}}\n]*+\}}|%<\w++>(?:{_FORMAT}(?![a-zA-Z]))?+",
    "python": rf"%\([^()%\n]++\){_FORMAT}",
    "numbered": rf"%\d{{1,2}}\${_FORMAT}|%\|[^|%\s]++\||(?<!\d)%\d{{1,2}}%(?!\d)",
    "percent": "%%",
    "variable": r"%[A-Z][A-Z0-9_()]++%",
    "printf": (
        rf"(?<!\w)(?<!\d )%{_FORMAT}|%{_FORMAT}(?![a-zA-Z])|(?<=[a-zA-Z])%[sd]"
        r"|(?<![\w%])%[a-zA-Z](?![a-zA-Z0-9])"  # part of a date format, such as %d
    ),
    "qt": r"(?:(?<![\w%])|(?<=%\d)|(?<=%\d\d)|(?<=%L\d))%L?\d{1,2}(?!\d)",
    "dollar": (
        r"\$[A-Za-z_]\w*+\$|\$t\([^()$\n]*+\)|\$\([\w.]++\)|\$\{[^{}\n]*+\}|(?<![\w$])\$[A-Za-z_]\w*+"
        rf"|(?<![A-Z$])\$[1-9]{_NO_PRICE}"
    ),
    "linked": r"(?<![\w@])@(?:\.\w++)?+:(?:\([\w.-]++\)|\w++(?:[.-]++\w++)*+)",
    "entity": r"&(?:[A-Za-z_][\w.:-]{1,63}+|#\d{1,7}+|#[xX][0-9A-Fa-f]{1,6}+);|(?<!\w)&[A-Za-z];",
    "shortcode": r"(?<![\w:]):(?!\d{1,60}+:)[\w+-]{1,60}+:(?!\w)",
    "identifier": (
        rf"(?<![{_LETTERS}])(?:_*+[{_ALNUM}]++(?:_++[{_ALNUM}]++)++_*+|__[{_ALNUM}]++__)(?:\.[A-Za-z_]\w*+)*+"
    ),
    "sign": r"(?<![^\s{(])#(?![^\s.,;:!?)}])",
    "number": r"(?u:\d{1,3}(?: \d{3}(?!\d))++|\d++(?:[.,:/'’\u00a0\u202f]++\d++)*+)",
}
"""The pattern of each kind of span, in the order in which the patterns are tried; docs/terms.md has examples."""
_PERHAPS = re.compile(r"[\d@{}%$<&`\\_#⟦]|:[\w+/-]|www\.")
_BEGIN = re.compile(rf"[%{{$<&`\\#@⟦]|'(?=[{{}}])|:(?=[\w+-])|\.(?=\.?\\)|(?<!\d)\d|(?<![{_LETTERS}])[{_LETTERS}]")
"""Finds the positions at which a span may begin."""
_TRIMMED = frozenset({"address", "path", "query", "escaped"})
"""Kinds whose spans end before punctuation, which belongs to the sentence."""
_JOINED = frozenset({"template", "braces", "ruby", "python", "numbered", "percent", "printf", "qt", "dollar"})
"""Kinds whose neighbouring spans become one span, as in %d/%d, if no space, bracket or quote is between them."""
_JOINT = re.compile(r"[/:.,;|+*=~@&_!?–—-]{0,3}|[x×]")
_CONTAINERS = frozenset({"code", "address", "path", "tag", "message", "own"})
"""Kinds whose spans may contain placeholders."""
_CLOSINGS = {")": "(", "]": "[", "}": "{"}
_BRACE = re.compile(r"''|'[{}](?:[^'{}]|'')*+'|[{}]")
_IN_ORDER = re.compile(r"\{[:!]|\{\}")
_FILLED = re.compile(r"\{\}|(?<!%)%[diouxXeEfgGcsp@](?!\w)", flags=re.ASCII)
"""Placeholders inside the spans of `_CONTAINERS`. %20d and %2f are not placeholders but escaped characters of an
address."""
_TYPED = re.compile(r"\s*+[\w.-]++\s*+,\s*+(?:number|date|time|duration|ordinal|spellout|choice|relativeTime|list)\b")
_PROSE = re.compile(r"[^\W\d_]{2}[,;]?\s++[^\W\d_]{2}|[^\W\d_][,;]\s")


class ProtectedSpan(NamedTuple):
    """A protected span: the characters [begin, end) of a text."""

    begin: int
    end: int
    kind: str
    is_ordered: bool = False
    """Whether programs fill the span, or a placeholder in it, by its order: true for %s and {}, false for %1$s and
    {name}."""


def protected_spans(text: str, patterns: Sequence[str] = ()) -> list[ProtectedSpan]:
    """Return the protected spans of a text, in order and without overlaps.

    A pattern is text in which each * stands for up to 100 characters of a line, as few as possible. At the end of the
    pattern, * stands for all characters up to the next white space.

    >>> [span.kind for span in protected_spans("See https://example.org/a_(b), %d/%d files by ORD-7.", ["ORD-*"])]
    ['address', 'printf', 'own']
    """
    matches = _own(tuple(patterns)).finditer(text) if patterns else ()
    own = [ProtectedSpan(*found.span(), "own", _is_ordered("own", found[0])) for found in matches if found[0]]
    known = list(_joined(text, _known(text))) if _PERHAPS.search(text) else []
    return sorted([*own, *_outside(known, own)]) if own else known


def ordered_spans(text: str) -> list[tuple[int, str]]:
    """Return the position and the characters of each protected span that programs fill by its order."""
    spans = protected_spans(text) if "%" in text or "{" in text else ()
    return [(span.begin, text[span.begin : span.end]) for span in spans if span.is_ordered]


def closing_braces(text: str) -> dict[int, int]:
    """Return the end of each pair of braces by the position of its opening brace; quoted braces do not count."""
    found, opened = dict[int, int](), list[int]()
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            found[opened.pop()] = brace.end()
    return found


def _outside(spans: Sequence[ProtectedSpan], own: Sequence[ProtectedSpan]) -> Iterator[ProtectedSpan]:
    """Yield the spans that do not overlap the spans of the user's own patterns; both sequences are in order."""
    rest = iter(own)
    next_own = next(rest, None)
    for span in spans:
        while next_own and next_own.end <= span.begin:
            next_own = next(rest, None)
        if not next_own or span.end <= next_own.begin:
            yield span


@cache  # compiled for the first text that may have a span: a command that sees none starts 6 ms sooner
def _any_kind() -> re.Pattern[str]:
    """Return the pattern of all kinds. Letters of other alphabets may touch a span, as they do in Chinese."""
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()), flags=re.ASCII)


def _known(text: str) -> Iterator[ProtectedSpan]:
    """Yield the spans of the kinds in `KINDS`."""
    place, closings = 0, None
    while begins := _BEGIN.search(text, place):
        place = begins.end()
        if not (found := _any_kind().match(text, begins.start())):
            continue
        kind, (begin, end) = str(found.lastgroup), found.span()
        if kind == "message":
            closings = closing_braces(text) if closings is None else closings
            end = closings.get(begin, begin)
        elif kind in _TRIMMED:
            end = _trimmed(text, begin, end)
        if _counts(kind, text[begin:end]):
            yield ProtectedSpan(begin, end, kind, _is_ordered(kind, text[begin:end]))
            place = end


def _counts(kind: str, found: str) -> bool:
    """Return whether characters that match the pattern of this kind are really a span."""
    if kind == "number":
        return sum(map(str.isdigit, found)) >= FEWEST_DIGITS
    if kind == "braces":  # words between braces are text
        return not _PROSE.search(found) or bool(_TYPED.match(found, 1))
    return bool(found)


def _is_ordered(kind: str, found: str) -> bool:
    """Return whether programs fill a span, or a placeholder in it, by its order."""
    if kind in _CONTAINERS:
        return bool(_FILLED.search(found))
    return kind == "printf" or (kind == "braces" and bool(_IN_ORDER.match(found)))


def _trimmed(text: str, begin: int, end: int) -> int:
    """Return the end of an address, before trailing punctuation; a bracket opened in the address may end it."""
    found = text[begin:end]
    opened = {closing: found.count(opening) - found.count(closing) for closing, opening in _CLOSINGS.items()}
    while end > begin + 1 and ((last := text[end - 1]) in ".,:;!?…'’»”*~" or opened.get(last, 0) < 0):
        if last in opened:
            opened[last] += 1
        end -= 1
    return end


def _joined(text: str, spans: Iterator[ProtectedSpan]) -> Iterator[ProtectedSpan]:
    """Yield the spans; neighbours without a space, bracket, quote, letter or digit between them become one span."""
    last: ProtectedSpan | None = None
    for span in spans:
        if last and {last.kind, span.kind} <= _JOINED and _JOINT.fullmatch(text, last.end, span.begin):
            last = last._replace(end=span.end, is_ordered=last.is_ordered or span.is_ordered)
        else:
            if last:
                yield last
            last = span
    if last:
        yield last


@cache
def _own(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one regular expression for the user's patterns; it takes linear time, because no wildcard backtracks."""
    return re.compile("|".join(map(_linear, sorted(patterns, key=len, reverse=True))))


def _linear(pattern: str) -> str:
    first, *rest = re.split(r"\*++", pattern)
    wild = (rf"(?>.{{0,{LONGEST_WILD}}}?{re.escape(part)})" if part else rf"\S{{0,{LONGEST_WILD}}}+" for part in rest)
    return re.escape(first) + "".join(wild)
