"""Extract source and target from the lines of one file: from TSV columns or JSONL fields."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from glassformer.errors import DataError, nearest, quoted, shortened

__all__ = ["column_numbers", "one_line", "split_columns", "split_fields"]

Place = Callable[[int], str]
"""A function that returns the file and line number of the n-th line, for messages."""


def column_numbers(header: bytes, columns: Sequence[int | str], file: str) -> list[int]:
    """Return the indices of the columns with these names; `header` is the first line of the file.

    Raises:
        DataError: a name is not among the columns, or occurs twice.
    """
    names = header.decode(errors="replace").split("\t")
    for column in columns:
        if isinstance(column, str) and names.count(column) != 1:
            near = "" if column in names else nearest(column, names)
            raise DataError(
                f"{file}, line 1: expected one column named {quoted(column)}{near}, got {quoted(names)}; "
                "correct the name, or give the column's number from 0"
            )
    return [names.index(column) if isinstance(column, str) else column for column in columns]


def split_columns(lines: Sequence[bytes], columns: Sequence[int], place: Place) -> list[list[bytes]]:
    """Return the cells of each column, split at tab characters; the cells of a blank line are empty.

    Raises:
        DataError: a line has too few columns.
    """
    rows = [line.split(b"\t") for line in lines]
    wanted = max(columns) + 1
    for number, row in enumerate(rows):
        if len(row) < wanted:
            if lines[number].decode(errors="replace").strip():
                raise DataError(
                    f"{place(number)}: expected at least {wanted} columns between tab characters, got {len(row)}; "
                    "correct the line, or choose different columns"
                )
            rows[number] = [b""] * wanted
    return [[row[column] for row in rows] for column in columns]


def split_fields(lines: Sequence[bytes], fields: Sequence[str], place: Place) -> list[list[bytes]]:
    r"""Return the texts of some fields of JSON objects, given one object per line; "a.b" is field b of field a.

    A line feed within a text becomes U+2028, so that each text is a single line. The fields of a blank line are empty.

    Raises:
        DataError: a line is not a JSON object, a field is missing, or its value is not text.
    """
    paths = [field.split(".") for field in fields]
    texts: list[list[bytes]] = [[] for _ in fields]
    for number, line in enumerate(lines):
        value = _parsed(line, number, place)
        for field, path, column in zip(fields, paths, texts, strict=True):
            column.append(b"" if value is None else _encoded(_field(value, field, path, number, place)))
    return texts


def _parsed(line: bytes, number: int, place: Place) -> dict[str, Any] | None:
    """Return the object of a line, or None if the line is blank; bytes that are not UTF-8 become lone surrogates."""
    text = line.decode(errors="surrogateescape")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
        raise DataError(
            f"{place(number)}: expected a JSON object, got {quoted(text)} ({why}); correct the line"
        ) from error
    if not isinstance(value, dict):
        raise DataError(f"{place(number)}: expected a JSON object, got {quoted(text)}; correct the line")
    return value


def _field(value: dict[str, Any], field: str, path: Sequence[str], number: int, place: Place) -> str:
    found: Any = value
    for name in path:
        if not isinstance(found, dict) or name not in found:
            names = list(found) if isinstance(found, dict) else []
            got = shortened(", ".join(names) or "no fields")
            raise DataError(
                f"{place(number)}: expected a field {quoted(field)}, got an object with {got}{nearest(name, names)}; "
                "correct the line, or choose different columns"
            )
        found = found[name]
    if not isinstance(found, str):
        raise DataError(
            f"{place(number)}: expected text in the field {quoted(field)}, got {quoted(found)}; correct the line"
        )
    return found


def one_line(text: str) -> str:
    """Return a text with U+2028 in place of each line feed."""
    return text.replace("\r\n", "\n").replace("\n", "\u2028")


def _encoded(text: str) -> bytes:
    text = one_line(text)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Invalid bytes and unpaired surrogates are both kept here: later checks report them as invalid UTF-8.
        return text.encode(errors="surrogatepass")
