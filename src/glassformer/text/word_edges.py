"""Where words begin and end: which neighbouring characters join."""

import re

__all__ = ["edge_kind", "is_apart"]

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)
"""Letters of scripts that write words without spaces, or join particles to words: Thai, Lao, Burmese, Khmer, Japanese,
Chinese, Korean."""


def edge_kind(character: str) -> int:
    """Return 1 for a letter that joins with letters, 2 for a digit, and 0 for anything else, also for no character.

    >>> [edge_kind(character) for character in ("a", "7", "-", "\u4e2d", "")]
    [1, 2, 0, 0, 0]
    """
    if character.isdigit():
        return 2
    return 1 if (character.isalpha() or character == "_") and not _UNSPACED.match(character) else 0


def is_apart(text: str, begin: int, end: int) -> bool:
    """Return whether a part of a text does not join with the characters before and after it."""
    return _parted(text, begin) and _parted(text, end)


def _parted(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return True
    before = edge_kind(text[place - 1])
    return before == 0 or before != edge_kind(text[place])
