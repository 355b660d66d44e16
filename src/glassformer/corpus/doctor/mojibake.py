"""Mojibake: UTF-8 that was read in another encoding and stored as UTF-8 again, such as "Ã¼" for "ü"."""

__all__ = ["repaired"]

_ENCODINGS = ("cp1252", "latin-1", "cp1250", "cp1251", "cp1253", "cp437")
"""Encodings in which UTF-8 is often read by mistake."""


def repaired(text: str) -> str:
    """Return the text that mojibake stands for, or the text itself if it is none.

    A text is mojibake if its bytes in another encoding are UTF-8. A text that has such bytes by chance, as "É»" has,
    usually has other letters, too, that are no UTF-8.
    """
    for encoding in () if text.isascii() else _ENCODINGS:
        try:
            return text.encode(encoding).decode()
        except UnicodeError:
            continue
    return text
