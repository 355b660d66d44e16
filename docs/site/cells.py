"""The code cells of Chinese pages: comments, docstrings and printed lines, in Chinese by a table; the code stays."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from unicodedata import east_asian_width

from chapters import BOOK

TABLE = BOOK / "zh" / "code.toml"
WIDTH = 104
"""Columns of a line of comment; a Chinese character takes two."""
_NO_BREAK_BEFORE = "，。；：、！？）”"
_FIELD = re.compile(r"\S+(?: \S+)*")
"""A field of a printed table; fields stand at least two spaces apart."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, which may take several lines, or a docstring."""

    words: str
    first: int
    """Its first line and its last, counted from 0."""
    last: int
    start: int
    """The column at which it begins, and the one behind its end in the last line."""
    end: int
    is_docstring: bool = False


def comments(code: str) -> list[Comment]:
    """Return the comments and docstrings of a cell, in order. Neighbouring lines of comment are one comment."""
    found: list[Comment] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("# fmt:"):
            continue
        (row, start), end, words = token.start, token.end[1], token.string.lstrip("# ")
        before = found[-1] if found else None
        alone = not token.line[:start].strip()
        if before and alone and (before.last, before.start) == (row - 2, start):
            found[-1] = Comment(f"{before.words} {words}", before.first, row - 1, start, end)
        else:
            found.append(Comment(words, row - 1, row - 1, start, end))
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
            at = node.body[0]
            words = " ".join(text.split())
            found.append(Comment(words, at.lineno - 1, at.end_lineno - 1, at.col_offset, at.end_col_offset, True))
    return sorted(found, key=lambda one: one.first)


def chinese_code(code: str) -> str:
    """Return a cell's code with those of its comments and docstrings in Chinese that the table has."""
    lines, table = code.split("\n"), tables()["comments"]
    for one in reversed(comments(code)):
        if (chinese := table.get(one.words)) is None:
            continue
        # ast counts bytes, tokenize characters.
        first, last = lines[one.first], lines[one.last]
        before = first.encode()[: one.start].decode() if one.is_docstring else first[: one.start]
        after = last.encode()[one.end :].decode() if one.is_docstring else last[one.end :]
        if one.is_docstring:
            lines[one.first : one.last + 1] = [f'{before}"""{chinese}"""{after}']
        elif before.strip():
            lines[one.first] = f"{before}# {chinese}{after}"
        else:
            lines[one.first : one.last + 1] = [f"{before}# {line}" for line in _wrapped(chinese, WIDTH - one.start)]
    return "\n".join(lines)


def chinese_output(page: str, text: str) -> str:
    """Return what a cell has printed, line by line in Chinese where the table has the line, or fields of it.

    A row may also stand for a line together with the indented lines that continue it.
    """
    lines, made = text.split("\n"), list[str]()
    while lines:
        first = lines.pop(0)
        made.append(chinese_line(page, first))
        joined = first
        for parts, line in enumerate(lines, start=1) if made[-1] == first else ():
            if _indent(line) < max(_indent(first), 1):
                break
            joined += f" {line.strip()}"
            if (whole := _chinese(page, joined.strip())) is not None:
                first, rest = " " * _indent(first), " " * _indent(line)
                made[-1] = first + f"\n{rest}".join(_wrapped(whole, WIDTH - len(rest)))
                del lines[:parts]
                break
    return "\n".join(made)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@cache
def chinese_line(page: str, line: str) -> str:
    """Return a printed line in Chinese: as a whole, or else those of its fields that the table has."""
    if (whole := _chinese(page, line.strip())) is not None:
        return line[: _indent(line)] + whole
    return _fields(page, line)


def printed(code: str) -> set[str]:
    """Return the lines that a cell's calls of `print` name, with {} for each computed value, and the words in those."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    inside: list[str] = []
    text = ""
    for call in sorted(calls, key=lambda one: one.lineno):
        if ast.unparse(call.func) == "print":
            given = {one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)}
            words = [_text(argument, inside) for argument in call.args]
            text += given.get("sep", " ").join(words) + given.get("end", "\n")
    lines = [line.strip() for line in "\n".join([text, *inside]).splitlines()]
    return {line for line in lines if has_words(line)}


def has_words(text: str) -> bool:
    """Return whether a text has an English word; d_model, W_O, BLEU and shapes are names, which stay."""
    return any(re.fullmatch(r"[A-Za-z][a-z]+('[a-z]+)?", word) for word in re.findall(r"[\w']+", text))


def without_row(page: str, line: str) -> list[str]:
    """Return what a row should be added for: the line, its fields that have no row, or nothing."""
    if _chinese(page, line) is not None:
        return []
    fields = [field for field in _FIELD.findall(line) if has_words(field)]
    missing = [field for field in fields if _chinese(page, field) is None]
    return missing if len(missing) < len(fields) else [line]


@cache
def tables() -> dict[str, dict[str, str]]:
    """Return the rows: "comments", "printed", and what is printed on a page alone, by the page's name."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def pattern(english: str) -> re.Pattern[str]:
    """Return the pattern of a printed line, in which {} stands for any text."""
    return re.compile(re.escape(english).replace(r"\{\}", "(.*?)"))


@cache
def _rows(page: str) -> dict[str, str]:
    """Return the rows of printed lines that hold on a page."""
    return tables()["printed"] | tables().get(page, {})


@cache
def _patterns(page: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the printed lines with values; the most specific first, with the most letters of their own."""
    ordered = sorted(_rows(page), key=lambda english: -len(english.replace("{}", "")))
    return [(one, _rows(page)[english]) for english in ordered if "{}" in english for one in _both(english)]


def _both(english: str) -> list[re.Pattern[str]]:
    """Return a row's patterns: first, if values are neighbours, one for values that are padded with spaces."""
    any_text = pattern(english)
    padded = any_text.pattern.replace(r"(.*?)\ (.*?)", r"(.*? +)\ (.*?)")
    return [re.compile(padded), any_text] if "{} {}" in english else [any_text]


@cache
def _chinese(page: str, english: str) -> str | None:
    """Return the Chinese of a line or a field, without spaces at its ends; None if the table has no row."""
    if (chinese := _rows(page).get(english)) is not None:
        return chinese
    for one, chinese in _patterns(page):
        if match := one.fullmatch(english):
            # A value may have a row itself, such as the name of a model.
            return chinese.format(*(_value(page, part) for part in match.groups()))
    return None


def _value(page: str, part: str) -> str:
    chinese = _chinese(page, part.strip()) if part.strip() else part
    return _fields(page, part) if chinese is None else _refit(part, chinese)


def _fields(page: str, line: str) -> str:
    """Return a line with its fields in Chinese in their columns: heads of columns end, other fields begin as before."""
    is_head = not re.search(r"\d", line)
    made = line[: _indent(line)]
    for match in _FIELD.finditer(line):
        field = match[0] if (chinese := _chinese(page, match[0])) is None else chinese
        begin = match.end() - _columns(field) if is_head and made.strip() and chinese else match.start()
        made += " " * max(begin - _columns(made), 1 if made.strip() else 0) + field
    return made + line[len(line.rstrip()) :]


def _refit(english: str, chinese: str) -> str:
    """Return the Chinese with the spaces around the English; those at the right fill the same columns."""
    left = _indent(english)
    right = max(len(english) - left - _columns(chinese), 1) if english[-1:] == " " else 0
    return " " * left + chinese + " " * right


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a comment."""
    line = ""
    for part in re.findall(rf"[ -~]+ ?[{_NO_BREAK_BEFORE}]?|.[{_NO_BREAK_BEFORE}]*", text):
        if line and _columns(line + part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
    yield line.rstrip()


def _text(node: ast.expr, inside: list[str]) -> str:
    """Return what an expression prints, with {} for each value; words in the values are added to `inside`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=first, op=ast.Add(), right=second):
            return _text(first, inside) + _text(second, inside)
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, inside) for part in parts)
        case ast.FormattedValue(value=ast.Constant(value=str(text))):
            return f"  {text}  "
        case ast.FormattedValue(value=value):
            return _text(value, inside)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return text
        case ast.IfExp(body=first, orelse=second) | ast.BoolOp(values=[first, second]):
            inside += [_text(first, inside), _text(second, inside)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[one]):
            inside.append(_text(one, inside))
        case ast.Call(func=ast.Name(id="fill") | ast.Attribute(attr="fill"), args=[one, *_]) | ast.Starred(value=one):
            return _text(one, inside)
        case ast.GeneratorExp(elt=one) | ast.ListComp(elt=one):
            inside.append(_text(one, inside))
    return "{}"
