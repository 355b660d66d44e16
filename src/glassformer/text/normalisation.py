"""What every tokenizer does to a text before it cuts it: the one place where characters of the input are changed."""

__all__ = ["SPACE_MARK", "is_normal", "normalise"]

SPACE_MARK = "▁"
"""Stands for a space inside tokens, in all tokenizers; in a text it is read as a space."""


def normalise(text: str) -> str:
    """Return `text` with every run of white space as one space, and none at its ends.

    White space is what `str.split` takes for it: no-break spaces, tabs and line separators too. `SPACE_MARK` counts as
    white space, because a token could not tell it from a space. Nothing else is changed: letters keep their case and
    their accents the way they are composed.
    """
    return text if is_normal(text) else " ".join(text.replace(SPACE_MARK, " ").split())


def is_normal(text: str) -> bool:
    """Return whether `normalise` would certainly leave a text as it is, and it can be encoded as UTF-8.

    Many texts with single spaces between them are looked at in one go: each of them is normal if the whole is.
    """
    # Of white space and surrogates, `str.isprintable` lets nothing pass but the plain space.
    return text.isprintable() and "  " not in text and SPACE_MARK not in text and text == text.strip(" ")
