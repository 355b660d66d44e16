"""Where words begin and end: which neighbouring characters belong to one word."""

import re
import unicodedata

__all__ = [
    "UNSPACED",
    "UNSPACED_MARKS",
    "edge_kind",
    "end_of_letters",
    "is_apart",
    "is_combining",
    "is_of_word",
    "is_unspaced",
    "space_between",
]

UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces between words (Thai, Lao, Burmese, Khmer, Japanese, Chinese), for use inside
the square brackets of a regular expression."""
UNSPACED_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a"
)
"""The combining marks among these letters."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_HANGUL = re.compile("[\uac00-\ud7af]")
"""The letters of Korean. Korean words end with particles, so that a term may be only a part of a word."""


def is_unspaced(character: str) -> bool:
    """Return whether a character is a letter of a script without spaces between words.

    >>> [is_unspaced(character) for character in ("a", "\u4e2d", "\ud55c", "")]
    [False, True, False, False]
    """
    return bool(_UNSPACED.match(character))


def space_between(source: str, place: int, before: str, after: str) -> str:
    """Return what stands between the translations of two sentences that touch at a place of their source.

    It is a space if the second sentence is in a script without spaces, and its translation is not.

    >>> [space_between("\u4e00\u3002\u4e8c\u3002", 2, "One.", after) for after in ("Two.", "\u4e8c\u3002")]
    [' ', '']
    >>> space_between("One.Two.", 4, "Eins.", "Zwei.")
    ''
    """
    changes = is_unspaced(source[place : place + 1]) and after[:1].isalnum() and not is_unspaced(after[0])
    return " " if before and changes else ""


def is_of_word(character: str) -> bool:
    """Return whether a character is a letter, a digit, or a combining mark, such as a vowel of Thai or Hindi."""
    return character.isalnum() or is_combining(character)


def is_combining(character: str) -> bool:
    """Return whether a character is a combining mark, which belongs to the letter before it.

    >>> [is_combining(character) for character in ("\u0e35", "\u0301", "a", "")]
    [True, True, False, False]
    """
    return unicodedata.category(character or " ") in ("Mc", "Mn") and not "\ufe00" <= character <= "\ufe0f"


def end_of_letters(text: str, begin: int, end: int) -> int:
    """Return the end of a part of a text, not counting what follows its last letter or digit.

    Combining marks on this last letter or digit belong to it.

    >>> end_of_letters("the cat.)", 4, 9), end_of_letters(".)", 0, 2)
    (7, 0)
    """
    last = end
    while last > begin and not text[last - 1].isalnum():
        last -= 1
    while begin < last < end and is_combining(text[last]):
        last += 1
    return last


def edge_kind(character: str) -> int:
    """Return 1 for a combining mark or a letter that joins with other letters, 2 for a digit, 0 otherwise and for "".

    >>> [edge_kind(character) for character in ("a", "7", "-", "\u4e2d", "")]
    [1, 2, 0, 0, 0]
    """
    if character.isdigit():
        return 2
    joins = character.isalpha() or character == "_" or is_combining(character)
    return int(joins and not is_unspaced(character) and not _HANGUL.match(character))


def is_apart(text: str, begin: int, end: int) -> bool:
    """Return whether a part of a text does not join with the characters directly before and after it."""
    return _parted(text, begin) and _parted(text, end)


def _parted(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return True
    before = edge_kind(text[place - 1])
    return before == 0 or before != edge_kind(text[place])
