"""JSON messages: of i18next, of Flutter (ARB) and of browser extensions (Chrome)."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from glassformer.documents.chunks import Unit
from glassformer.documents.messages import message_unit
from glassformer.errors import DataError
from glassformer.system.files import parse_json

__all__ = ["json_units"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


def json_units(document: str) -> list[Unit]:
    """Return the messages of a JSON file: its texts, or those under "message" in a file of Chrome.

    Keys are not translated, nor are the values of keys that begin with "@" (ARB's descriptions).

    Raises:
        DataError: the file is not JSON.
    """
    text = document.removeprefix("\ufeff")
    try:
        content = parse_json(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DataError(f"{place}: expected JSON, got an error ({error.msg}); correct the line") from error
    except ValueError as error:
        raise DataError(f"line 1: expected JSON, got an error ({error}); correct the file") from error
    is_chrome, keeps_ascii = _is_chrome(content), "\\u" in document and document.isascii()
    found = []
    for path, begin, end in _texts(document):
        if (path[-1:] == ["message"] and len(path) == 2) if is_chrome else not any(_is_about(key) for key in path):
            found.append(_unit(document, begin, end, keeps_ascii))
    return [unit for unit in found if unit]


def _is_chrome(content: Any) -> bool:
    entries = list(content.values()) if isinstance(content, dict) else []
    return bool(entries) and all(isinstance(entry, dict) and isinstance(entry.get("message"), str) for entry in entries)


def _is_about(key: str | None) -> bool:
    return key is not None and key.startswith("@")


def _texts(document: str) -> Iterator[tuple[list[str | None], int, int]]:
    """Yield the path of keys of each text that is not a key (None in a list), and its characters with their quotes."""
    path: list[str | None] = []
    expects_key: list[bool] = []
    for token in _TOKEN.finditer(document):
        match token[0]:
            case "{" | "[":
                path.append(None)
                expects_key.append(token[0] == "{")
            case "}" | "]":
                path.pop()
                expects_key.pop()
            case ",":
                expects_key[-1] = path[-1] is not None
            case ":":
                expects_key[-1] = False
            case text if expects_key and expects_key[-1]:
                path[-1] = json.loads(text, strict=False)
            case _:
                yield [*path], token.start(), token.end()


def _unit(document: str, begin: int, end: int, keeps_ascii: bool) -> Unit | None:
    text = json.loads(document[begin:end], strict=False)
    unit = message_unit(text, begin, end)
    return unit and replace(unit, compose=lambda content, _: json.dumps(content, ensure_ascii=keeps_ascii))
