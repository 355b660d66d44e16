"""The corpus doctor's expected findings, computed simply: everything in memory, line by line."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

from glassformer.corpus.cleaning import CleaningConfig

WHITE_CONTROLS = "\t\n\v\f\r\x85"
SEPARATORS = "\v\f\r\x85\u2028\u2029"


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a plain file, without line ends and without a byte order mark at its beginning."""
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    ended = [line.removesuffix(b"\r") for line in lines[:-1]]
    return ended if lines[-1] == b"" else [*ended, lines[-1]]


def text_of(line: bytes) -> str | None:
    """Return a line's text, or None if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def has_control_characters(text: str) -> bool:
    return any(unicodedata.category(letter) == "Cc" and letter not in WHITE_CONTROLS for letter in text)


def reason_of(
    source: bytes, target: bytes, cleaning: CleaningConfig, held_out: set[tuple[bytes, bytes]], seen: set[object]
) -> str | None:
    """Return the reason for dropping a pair, or None."""
    texts = [text_of(source), text_of(target)]
    if None in texts:
        return "invalid_utf8"
    if any(not text.strip() for text in texts):
        return "blank"
    if cleaning.control_characters == "drop" and any(map(has_control_characters, texts)):
        return "control_characters"
    shorter, longer = sorted(map(len, texts))
    if cleaning.max_characters and longer > cleaning.max_characters:
        return "too_long"
    if cleaning.max_ratio and longer + 5 > cleaning.max_ratio * (shorter + 5):
        return "length_ratio"
    if cleaning.copies == "drop" and source == target:
        return "copy"
    if cleaning.leakage == "drop" and (source, target) in held_out:
        return "leakage"
    if cleaning.duplicates == "drop" and (source, target) in seen:
        return "duplicate"
    seen.add((source, target))
    return None


def examine(
    pairs: Iterable[tuple[bytes, bytes]], cleaning: CleaningConfig, held_out: Iterable[tuple[bytes, bytes]] = ()
) -> list[str | None]:
    """Return, for each pair, the reason for dropping the pair, or None if the pair is kept."""
    seen: set[object] = set()
    others = set(held_out)
    return [reason_of(source, target, cleaning, others, seen) for source, target in pairs]


def pairs_with_separators(pairs: Iterable[tuple[bytes, bytes]]) -> list[int]:
    """Return the numbers (from 1) of pairs with a character at which `str.splitlines` would split the line."""
    found = []
    for number, pair in enumerate(pairs, start=1):
        if any(letter in line.decode(errors="ignore") for line in pair for letter in SEPARATORS):
            found.append(number)
    return found
