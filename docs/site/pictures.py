"""The pictures and computed sentences of Chinese pages: their words, and a font for them."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from html import escape, unescape

from cells import chinese_code
from chapters import BOOK

TABLE = BOOK / "zh" / "pictures.toml"
CHINESE_FONTS = "Noto Sans CJK SC, PingFang SC, Microsoft YaHei"

_WORDS = re.compile(
    r"(?P<before><(?P<tag>text|title|p)\b[^>]*>)(?P<words>[^<>]+)(?P<after></(?P=tag)>)"
    r'|(?P<attribute>\baria-label=")(?P<value>[^"]+)(?P<end>")'
)
_FENCE = re.compile(r"^(```(\w*)\n)(.*?)(^```)$", flags=re.MULTILINE | re.DOTALL)
"""A fenced block of Markdown: its language and its lines."""
_NAMED = {"alt", "title", "x_label", "y_label", "row_label", "column_label", "xlabel", "ylabel", "label"}
_DRAWN = {"bars", "curves", "picture", "player", "set_title", "set_xlabel", "set_ylabel", "Box", "Markdown"}
"""Functions whose positional arguments are, or are named by, words that the reader sees."""


@cache
def _table(page: str) -> list[tuple[re.Pattern[str], str]]:
    """Return each English label of a page as a pattern, in which {} stands for any text, with its Chinese label."""
    tables = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    rows = tables["common"] | tables.get(page, {})
    # The most specific labels first: those with the most letters of their own.
    ordered = sorted(rows, key=lambda english: -len(english.replace("{}", "")))
    return [(re.compile(re.escape(english).replace(r"\{\}", "(.+?)")), rows[english]) for english in ordered]


def chinese_label(page: str, english: str) -> str | None:
    """Return the Chinese label on this page, or None if the table has none, as for the words of a sentence."""
    for pattern, chinese in _table(page):
        if match := pattern.fullmatch(english):
            # The text in place of {} may be a label itself, such as the name of a model in a legend.
            return chinese.format(*(chinese_label(page, part) or part for part in match.groups()))
    return None


def chinese_picture(page: str, html: str) -> str:
    """Return the HTML of a picture, or of a player, with its words in Chinese where the table has them."""
    if "<svg" not in html:
        return html

    def translated(match: re.Match[str]) -> str:
        before, words, after = match.group("before", "words", "after")
        if words is None:
            before, words, after = match.group("attribute", "value", "end")
        chinese = chinese_label(page, unescape(words).strip())
        return match[0] if chinese is None else before + escape(chinese) + after

    html = html.replace("font-family: system-ui, sans-serif", f"font-family: system-ui, {CHINESE_FONTS}, sans-serif")
    return _WORDS.sub(translated, html)


def chinese_markdown(page: str, text: str) -> str:
    """Return the text that a cell has computed, with each line in Chinese that the table has; code keeps its code."""
    made, end = "", 0
    for fence in _FENCE.finditer(text):
        code = chinese_code(fence[3]) if fence[2] == "python" else fence[3]
        made += _chinese_lines(page, text[end : fence.start()]) + fence[1] + code + fence[4]
        end = fence.end()
    return made + _chinese_lines(page, text[end:])


def _chinese_lines(page: str, text: str) -> str:
    return "\n".join(chinese_label(page, line) or line for line in text.split("\n"))


def labels(code: str) -> set[str]:
    """Return the English words that a cell's code names for its reader, with {} for each value in an f-string."""
    found: set[str] = set()
    for call in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        function = ast.unparse(call.func)
        name = function.rpartition(".")[2]
        if function.startswith("pictures.") or name in {*_DRAWN, "plot", "axhline", "axvline", "scatter", "set"}:
            for keyword in call.keywords:
                found |= set(_texts(keyword.value)) if keyword.arg in _NAMED else set()
        for argument in call.args if name in _DRAWN else ():
            found |= set(_texts(argument))
    lines = {line for text in found for line in text.splitlines()}
    return {line for line in lines if re.search(r"[A-Za-z]{2}", line) and not re.search(r"^```|\.py$", line)}


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts of a string, of an f-string, of a list, or of the keys of a dictionary."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
            yield from (*_texts(first), *_texts(second))
        case ast.List(elts=parts) | ast.Dict(keys=parts):
            for part in parts:
                yield from _texts(part) if part is not None else ()
        case ast.DictComp(key=part) | ast.ListComp(elt=part):
            yield from _texts(part)
