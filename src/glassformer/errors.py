"""Every error that glassformer raises on purpose.

Each class stands for one thing that a caller could do about it, and is a builtin besides, so that code that knows
nothing of glassformer can catch it too::

    GlassformerError(Exception)
    ├── ConfigError(ValueError)              a setting is unknown, impossible or contradicts another
    ├── ShapeError(ValueError)               a tensor or a sequence has the wrong shape or length
    ├── VocabularyError(ValueError)          a token or an id that the vocabulary does not have
    ├── DataError(ValueError)                a corpus cannot be read: the message names file and line
    ├── CheckpointError(ValueError)          a run or a weights file is missing, damaged or of another model
    │   └── CheckpointVersionError           it was written by a newer glassformer
    ├── DivergenceError(ArithmeticError)     a training went wrong: the loss is no number, or climbs back
    ├── DecodingError(RuntimeError)          a search was asked for what it cannot do
    └── MissingDependencyError(ImportError)  an optional package is needed: the message names the extra
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "CheckpointError",
    "CheckpointVersionError",
    "ConfigError",
    "DataError",
    "DecodingError",
    "DivergenceError",
    "GlassformerError",
    "MissingDependencyError",
    "ShapeError",
    "VocabularyError",
    "nearest",
    "quoted",
    "shortened",
]

QUOTED = 100
"""Characters of a user's text that a message quotes at most."""


class GlassformerError(Exception):
    """The root of all of them: the command line turns it into one line and exit status 1."""


class ConfigError(GlassformerError, ValueError):
    """A setting is unknown, impossible or contradicts another: names the field, the value and what is allowed."""


class ShapeError(GlassformerError, ValueError):
    """A tensor or a sequence has the wrong shape or length: names the argument, what was expected and what came."""


class VocabularyError(GlassformerError, ValueError):
    """A token or an id that the vocabulary does not have, or a vocabulary that cannot be made."""


class DataError(GlassformerError, ValueError):
    """A corpus cannot be read: names the file and, where there is one, the line."""


class CheckpointError(GlassformerError, ValueError):
    """A run directory or a weights file is missing, damaged, or belongs to another model."""


class CheckpointVersionError(CheckpointError):
    """A run was written in a newer format than this version of glassformer reads."""


class DivergenceError(GlassformerError, ArithmeticError):
    """A training went wrong, and going on would only spoil the weights: says since when, and what to change."""


class DecodingError(GlassformerError, RuntimeError):
    """A search was asked for what it cannot do."""


class MissingDependencyError(GlassformerError, ImportError):
    """An optional package is needed: names the extra to install."""


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the allowed word nearest to `word`, or "" when none is near."""
    matches = get_close_matches(word, list(allowed), n=1, cutoff=0.5) if len(word) <= QUOTED else []
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def quoted(value: object) -> str:
    """Return a value as a message shows it: the way Python writes it, of at most 100 characters."""
    return shortened(repr(value[:QUOTED] if isinstance(value, str | bytes) else value))


def shortened(text: str) -> str:
    """Return a text, or its beginning and its last character when it has more than 100.

    >>> shortened("'" + "a" * 200 + "'") == "'" + "a" * 97 + "…'"
    True
    """
    return text if len(text) <= QUOTED else f"{text[: QUOTED - 2]}…{text[-1]}"
