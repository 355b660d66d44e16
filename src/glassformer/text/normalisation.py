"""Normalisation: the first step of every tokenizer, and the only step that changes characters of the text."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Literal
from unicodedata import category, is_normalized, normalize

from glassformer.text.word_edges import UNSPACED, UNSPACED_MARKS

__all__ = ["PLAIN_STEPS", "SPACE_MARK", "Normalisation", "is_normal", "normalisation_of", "normalise", "plain"]

Normalisation = Literal["plain", "spaces"]
"""How a tokenizer normalises texts: in Unicode's normal form C without invisible characters, or only their white
space."""

SPACE_MARK = "▁"
"""The character that stands for a space inside a token, in all tokenizers; in a text, this character counts as a
space."""

_Steps = tuple[tuple[str, str], ...]

_REMOVED = "\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""Soft hyphens, marks of the writing direction, word joiners and byte order marks."""

# A zero-width space separates words only between two letters of scripts without spaces. Before a combining mark it is
# removed before the composition, so that the mark reaches its letter. After a letter it is judged after the
# composition, which may reorder the letter's marks. Any other order could change a normalised text again.
PLAIN_STEPS: tuple[_Steps, _Steps] = (
    ((f"[{_REMOVED}]", ""), ("\u2011", "-"), (f"\u200b+(?!\u200b|(?![{UNSPACED_MARKS}])[{UNSPACED}])", "")),
    ((f"(?<![{UNSPACED}])\u200b", ""),),
)
"""The replacements of "plain" before the composition to Unicode's normal form C, and after it: each is a regular
expression and its replacement. The white space comes last."""
_JAMO = range(0x1100, 0x1200)
"""The letters of which a Korean syllable is composed."""


def normalise(text: str, normalisation: Normalisation = "spaces") -> str:
    """Return `text` with one space in place of every run of white space, and no space at its ends.

    White space is what `str.split` splits at, including no-break spaces, tabs and line separators. `SPACE_MARK` counts
    as white space, because a token could not distinguish it from a space.

    With "plain", the function `plain` comes first. With "spaces", nothing else changes.
    """
    if is_normal(text):
        return text
    match normalisation:
        case "plain":
            text = plain(text)
        case "spaces":
            pass
    return " ".join(text.replace(SPACE_MARK, " ").split())


def plain(text: str) -> str:
    """Return a text in Unicode's normal form C (NFC), without invisible characters that do not change its letters.

    Soft hyphens (U+00AD), word joiners (U+2060), byte order marks (U+FEFF) and marks of the writing direction are
    removed. A zero-width space (U+200B) stays only between two letters of scripts without spaces between words. U+2011
    becomes a hyphen. White space, the case of letters, zero-width joiners and non-joiners, and variation selectors do
    not change.

    >>> plain("Ka\u00adter fu\u0308r e\u2011mail")
    'Kater für e-mail'
    """
    before, after = map(_compiled, PLAIN_STEPS)
    return _replaced(_composed(_replaced(text, before)), after)


def _composed(text: str) -> str:
    """Return a text in Unicode's normal form C; runs of more than 30 marks stay as they are."""
    parts = _long_runs().split(text)
    return "".join(part if place % 2 else normalize("NFC", part) for place, part in enumerate(parts))


@cache
def _long_runs() -> re.Pattern[str]:
    """Return the pattern of a run of more than 30 characters that may be combining marks.

    Sorting marks takes time that grows with the square of their number. In Unicode's Stream-Safe Text Format, a letter
    has at most 30.
    """
    return re.compile(r"([^\w\x00-\x7f]{31,})")


@cache  # compiled for the first text that is not normal: a command that reads none starts some 20 ms sooner
def _compiled(steps: _Steps) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in steps)


def _replaced(text: str, steps: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in steps:
        text = pattern.sub(replacement, text)
    return text


def is_normal(text: str) -> bool:
    """Return True only if every normalisation leaves a text unchanged and the text can be encoded as UTF-8.

    The check is quick, and may also return False for a text that `normalise` leaves unchanged. To check many texts
    together, join them with single spaces: if the joined text is normal, each of the texts is normal.
    """
    # `str.isprintable` is false for surrogates, for all white space except the plain space, and for all invisible
    # characters that "plain" removes.
    return (
        text.isprintable() and "  " not in text and (text.isascii() or _is_composed(text)) and text == text.strip(" ")
    )


def _is_composed(text: str) -> bool:
    has_others = "\u2011" in text or SPACE_MARK in text or _long_runs().search(text)
    return not has_others and is_normalized("NFC", text)


def normalisation_of(tokens: Iterable[str]) -> Normalisation:
    """Return the normalisation of a vocabulary that was stored or imported without the name of its normalisation.

    Such a vocabulary was trained on texts with normal white space. It is "plain" if the tokens show that "plain" leaves
    these texts unchanged: no token has a character that "plain" removes, replaces or composes.
    """
    characters = set("".join(tokens))
    return "spaces" if any(map(_may_change, characters)) else "plain"


def _may_change(character: str) -> bool:
    """Return whether "plain" changes a character, or composes it with the character before it."""
    return not character.isascii() and (
        character != SPACE_MARK
        and (
            normalise(character, "plain") != character or category(character).startswith("M") or ord(character) in _JAMO
        )
    )
