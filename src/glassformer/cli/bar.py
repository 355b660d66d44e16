"""Bars of text for the terminal."""

__all__ = ["bar"]

_BLOCKS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """Return a bar that fills this share of `width` characters, drawn in eighths of a character."""
    eighths = round(8 * width * share)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
