"""Source and target out of the lines of one file: columns of TSV, fields of JSONL."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from glassformer.errors import DataError, nearest

__all__ = ["column_numbers", "split_columns", "split_fields"]

Place = Callable[[int], str]
"""Gives file and line of the n-th of the lines, for a message."""


def column_numbers(header: bytes, columns: Sequence[int | str], file: str) -> list[int]:
    """Return where the columns of these names are, by the first line of a file.

    Raises:
        DataError: the line has no such column, or two of them.
    """
    names = header.decode(errors="replace").split("\t")
    for column in columns:
        if isinstance(column, str) and names.count(column) != 1:
            near = "" if column in names else nearest(column, names)
            raise DataError(
                f"{file}, line 1: expected one column named {column!r}{near}, got {names}: correct the name, or give "
                "the column's number from 0"
            )
    return [names.index(column) if isinstance(column, str) else column for column in columns]


def split_columns(lines: Sequence[bytes], columns: Sequence[int], place: Place) -> list[list[bytes]]:
    """Return the cells of each column, between tab characters; those of a blank line are empty.

    Raises:
        DataError: a line has too few columns.
    """
    rows = [line.split(b"\t") for line in lines]
    wanted = max(columns) + 1
    for number, row in enumerate(rows):
        if len(row) < wanted:
            if lines[number].decode(errors="replace").strip():
                raise DataError(
                    f"{place(number)}: expected at least {wanted} columns between tab characters, got {len(row)}: "
                    "correct the line, or choose other columns"
                )
            rows[number] = [b""] * wanted
    return [[row[column] for row in rows] for column in columns]


def split_fields(lines: Sequence[bytes], fields: Sequence[str], place: Place) -> list[list[bytes]]:
    r"""Return the texts of each field of JSON objects, one a line; "a.b" is field b of field a.

    A line feed within a text becomes U+2028, so that a text stays one line; the fields of a blank line are empty.

    Raises:
        DataError: a line is not a JSON object, or lacks a field, or the field is no text.
    """
    paths = [field.split(".") for field in fields]
    texts: list[list[bytes]] = [[] for _ in fields]
    for number, line in enumerate(lines):
        value = _parsed(line, number, place)
        for field, path, column in zip(fields, paths, texts, strict=True):
            column.append(b"" if value is None else _encoded(_field(value, field, path, number, place)))
    return texts


def _parsed(line: bytes, number: int, place: Place) -> dict[str, Any] | None:
    """Return the object of a line, or None if the line is blank; bytes that are no UTF-8 stay recognisable."""
    text = line.decode(errors="surrogateescape")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place(number)}: expected a JSON object, got {_shown(text)} ({error})") from error
    if not isinstance(value, dict):
        raise DataError(f"{place(number)}: expected a JSON object, got {_shown(text)}: correct the line")
    return value


def _field(value: dict[str, Any], field: str, path: Sequence[str], number: int, place: Place) -> str:
    found: Any = value
    for name in path:
        if not isinstance(found, dict) or name not in found:
            names = list(found) if isinstance(found, dict) else []
            raise DataError(
                f"{place(number)}: expected a field {field!r}, got an object with {', '.join(names) or 'no fields'}"
                f"{nearest(name, names)}: correct the line, or choose other columns"
            )
        found = found[name]
    if not isinstance(found, str):
        raise DataError(f"{place(number)}: expected text in the field {field!r}, got {_shown(repr(found))}")
    return found


def _encoded(text: str) -> bytes:
    text = text.replace("\r\n", "\n").replace("\n", "\u2028")
    try:
        return text.encode()
    except UnicodeEncodeError:
        # An escaped half of a surrogate pair, or bytes that were no UTF-8: neither is UTF-8, and the reader will see.
        return text.encode(errors="surrogatepass")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
