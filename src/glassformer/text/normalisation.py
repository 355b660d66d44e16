"""Normalisation: the first step of every tokenizer, and the only step that changes characters of the text."""

__all__ = ["SPACE_MARK", "is_normal", "normalise"]

SPACE_MARK = "▁"
"""The character that stands for a space inside a token, in all tokenizers; in a text, this character counts as a
space."""


def normalise(text: str) -> str:
    """Return `text` with one space in place of every run of white space, and no space at its ends.

    White space is what `str.split` splits at, including no-break spaces, tabs and line separators. `SPACE_MARK` counts
    as white space, because a token could not distinguish it from a space. Nothing else changes: letters keep their
    case, and accented letters stay composed or decomposed.
    """
    return text if is_normal(text) else " ".join(text.replace(SPACE_MARK, " ").split())


def is_normal(text: str) -> bool:
    """Return True only if `normalise` leaves a text unchanged and the text can be encoded as UTF-8.

    The check is quick, and may also return False for a text that `normalise` leaves unchanged. To check many texts
    together, join them with single spaces: if the joined text is normal, each of the texts is normal.
    """
    # `str.isprintable` is false for surrogates and for all white space except the plain space.
    return text.isprintable() and "  " not in text and SPACE_MARK not in text and text == text.strip(" ")
