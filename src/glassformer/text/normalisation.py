"""Normalisation, the first step of every tokenizer: the only place where characters of the input change."""

__all__ = ["SPACE_MARK", "is_normal", "normalise"]

SPACE_MARK = "▁"
"""Stands for a space inside tokens, in all tokenizers; inside a text it counts as a space."""


def normalise(text: str) -> str:
    """Return `text` with one space for every run of white space, and no space at its ends.

    White space is what `str.split` splits at, including no-break spaces, tabs and line separators. `SPACE_MARK` counts
    as white space, because a token could not distinguish it from a space. Nothing else changes: letters keep their
    case, and accents their composition.
    """
    return text if is_normal(text) else " ".join(text.replace(SPACE_MARK, " ").split())


def is_normal(text: str) -> bool:
    """Return whether `normalise` certainly leaves a text unchanged, and the text can be encoded as UTF-8.

    To check many texts together, join them with single spaces: each of them is normal if the whole is.
    """
    # Among white space and surrogates, `str.isprintable` accepts only the plain space.
    return text.isprintable() and "  " not in text and SPACE_MARK not in text and text == text.strip(" ")
