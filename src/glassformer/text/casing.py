"""Upper and lower case by the rules of each language, so that a word is found however it is written.

- German: ß is also ss, and SS in capitals.
- Turkish and Azeri: the capital of i is İ, and that of ı is I.
- Greek: σ is ς at the end of a word, and capitals have no accents.

Letters and their accents may be composed or decomposed, and invisible characters between letters do not count.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from glassformer.text.languages import primary
from glassformer.text.normalisation import plain

__all__ = ["CASINGS", "Folded", "LowerCase", "capitalised", "casing_of", "folded", "lower_case"]

CASINGS = ("", "tr")
"""A language for each way to pair small letters with capitals."""

_DOTLESS = ("az", "tr")
"""The languages that write i with and without a dot, in capitals, too."""
_DOT = "\u0307"
"""The dot that remains of İ in lower case."""
_GREEK_ACCENTS = re.compile("(?<=[\u0370-\u03ff\u1f00-\u1fff])[\u0300-\u036f]+")


class Folded(NamedTuple):
    """A text in which all spellings of a word in upper and lower case are equal, in any language."""

    text: str
    places: Sequence[int]
    """For each character, the index of the character of the original text from which it comes; at the end, the length
    of the original text."""


class LowerCase(NamedTuple):
    """A word in lower case."""

    accented: str
    """The word with its accents; equal words differ at most in their case."""
    bare: str
    """The word without the accents of its Greek letters, which are lost in capitals."""


def folded(text: str) -> Folded:
    """Return a folded text. Different words may become equal: `lower_case` tells them apart by a language's rules.

    >>> folded("Stra\u00adße I")
    Folded(text='strasse i', places=[0, 1, 2, 3, 5, 5, 6, 7, 8, 9])
    """
    if text.isascii():
        return Folded(text.lower(), range(len(text) + 1))
    parts, places, begin = list[str](), list[int](), 0
    while begin < len(text):
        end = begin + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        part = _folded_letter(text[begin]) if end == begin + 1 else _without_differences(text[begin:end])
        parts.append(part)
        places += [begin] * len(part)
        begin = end
    return Folded("".join(parts), [*places, len(text)])


def lower_case(word: str, language: str) -> LowerCase:
    """Return a word of a language (a BCP 47 tag, or "" if it is unknown) in lower case.

    >>> lower_case("IŞIK", "tr").accented, lower_case("IŞIK", "").accented, lower_case("ΝΟΜΟΣ", "el").accented
    ('ışık', 'işik', 'νομοσ')
    >>> lower_case("νόμος", "el")
    LowerCase(accented='νόμοσ', bare='νομοσ')
    """
    composed = plain(word)
    if casing_of(language):
        composed = composed.replace("İ", "i").replace("I", "ı")
    lower = unicodedata.normalize("NFD", composed.casefold()).replace(f"i{_DOT}", "i")
    bare = _GREEK_ACCENTS.sub("", lower)
    return LowerCase(unicodedata.normalize("NFC", lower), unicodedata.normalize("NFC", bare))


def casing_of(language: str) -> str:
    """Return the language in `CASINGS` that has the same capitals."""
    return "tr" if primary(language) in _DOTLESS else ""


def capitalised(word: str, language: str) -> str:
    """Return a word of a language with a capital as its first letter.

    >>> capitalised("istanbul", "tr"), capitalised("istanbul", "de"), capitalised("ǆ", "hr")
    ('İstanbul', 'Istanbul', 'ǅ')
    """
    first = "İ" if word[:1] == "i" and casing_of(language) else word[:1].title()
    return first + word[1:]


@lru_cache(maxsize=1 << 14)
def _folded_letter(letter: str) -> str:
    return _without_differences(letter)


def _without_differences(letter: str) -> str:
    return unicodedata.normalize("NFC", lower_case(letter, "").bare.replace("ı", "i"))
