"""Regular English forms: plurals, "a" or "an", comparatives, and words written together.

>>> english_plural("box"), english_plural("cherry"), an("umbrella"), english_text(("the", "girl", "'s", "cat"))
('boxes', 'cherries', 'an', "the girl's cat")
"""

from collections.abc import Iterable

__all__ = ["an", "english_plural", "english_text"]

_NO_SPACE_BEFORE = ("n't", "'s", ",", ".")


def english_plural(noun: str) -> str:
    """Return the regular plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def an(following: str) -> str:
    """Return "an" before a word that begins with a vowel, otherwise "a"."""
    return "an" if following[0] in "aeiou" else "a"


def english_text(words: Iterable[str]) -> str:
    """Return the words as English text: "n't", commas and full stops are joined to the word before them."""
    text = " ".join(words)
    for word in _NO_SPACE_BEFORE:
        text = text.replace(f" {word}", word)
    return text
