"""Every error that glassformer raises on purpose.

Errors that a caller would handle in different ways have different classes. Each class also inherits from a built-in
exception, so that code that does not know glassformer can catch its errors::

    GlassformerError(Exception)
    ├── ConfigError(ValueError)              a setting is unknown, impossible or contradicts another
    ├── ShapeError(ValueError)               a tensor or a sequence has the wrong shape or length
    ├── VocabularyError(ValueError)          a token or an id is not in the vocabulary, or no vocabulary can be made
    ├── DataError(ValueError)                a corpus cannot be read: the message names file and line
    ├── CheckpointError(ValueError)          a run or a weights file is missing, damaged or of a different model
    │   └── CheckpointVersionError           the run was written by a newer glassformer
    ├── RankError(RuntimeError)              a process of a distributed training run was killed, hangs or fails
    ├── DivergenceError(ArithmeticError)     training diverged: the loss is not a number, or rises and stays high
    ├── DecodingError(RuntimeError)          a search cannot do what was asked
    └── MissingDependencyError(ImportError)  an optional package is needed: the message names the extra
"""

import errno
from collections.abc import Iterable, Sequence
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
    "RankError",
    "ShapeError",
    "VocabularyError",
    "counted",
    "either",
    "install_command",
    "nearest",
    "quoted",
    "remedy",
    "shortened",
]

QUOTED = 100
"""Maximum number of characters that a message quotes from a user's text."""
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.EROFS: "choose a folder on a file system that can be written",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "change the permissions, or choose a different path"),
    errno.ENAMETOOLONG: "choose a shorter name",
    **dict.fromkeys((errno.EEXIST, errno.EISDIR, errno.ENOTDIR), "choose a different path"),
    errno.EFBIG: "raise the limit (`ulimit -f`), or choose a file system that allows larger files",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (`ulimit -n`)"),
    errno.EIO: "check the disk",
}
"""What to do after a system error whose number alone says so."""


class GlassformerError(Exception):
    """The base class of all glassformer errors; the command line prints such an error in one line and exits with 1."""


class ConfigError(GlassformerError, ValueError):
    """A setting is unknown, impossible or contradicts another; the message names field, value and valid values."""


class ShapeError(GlassformerError, ValueError):
    """A tensor or a sequence has a wrong shape or length; the message names the argument and both shapes."""


class VocabularyError(GlassformerError, ValueError):
    """A token or an id is not in the vocabulary, or a vocabulary cannot be made."""


class DataError(GlassformerError, ValueError):
    """A corpus cannot be read; the message names the file and, if it is known, the line."""


class CheckpointError(GlassformerError, ValueError):
    """A run directory or a weights file is missing, damaged, or belongs to a different model."""


class CheckpointVersionError(CheckpointError):
    """A run was written in a newer format than this version of glassformer can read."""


class RankError(GlassformerError, RuntimeError):
    """A process (rank) of a training run that was started by torchrun failed, or does not answer."""


class DivergenceError(GlassformerError, ArithmeticError):
    """Training diverged, and continuing would spoil the weights; the message names the step and settings to change."""


class DecodingError(GlassformerError, RuntimeError):
    """A search cannot do what was asked."""


class MissingDependencyError(GlassformerError, ImportError):
    """An optional package is needed; the message names the extra to install."""


def install_command(extra: str) -> str:
    """Return the part of a message that says how to install an optional dependency."""
    return f"run `pip install --constraint constraints.txt '.[{extra}]'` in the checkout of glassformer"


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the allowed word nearest to `word`, or "" if none is similar."""
    matches = get_close_matches(word, list(allowed), n=1, cutoff=0.6) if len(word) <= QUOTED else []
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "step"), counted(1535, "step")
    ('1 step', '1,535 steps')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def either(words: Sequence[str]) -> str:
    """Return words as alternatives.

    >>> either(["de", "en", "fr"])
    'de, en or fr'
    """
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def remedy(error: BaseException, otherwise: str) -> str:
    """Return what to do after an error: what fits the number of a system error, or else `otherwise`.

    >>> remedy(OSError(errno.ENOSPC, "No space left on device"), "copy the file again")
    'free some space'
    """
    return _REMEDIES.get(error.errno or 0, otherwise) if isinstance(error, OSError) else otherwise


def quoted(value: object) -> str:
    """Return a value as a message shows it: its `repr`, shortened to 100 characters."""
    return shortened(repr(value[:QUOTED] if isinstance(value, str | bytes) else value))


def shortened(text: str) -> str:
    """Return a text of up to 100 characters unchanged, and a longer text as its beginning, "…" and its last character.

    >>> shortened("'" + "a" * 200 + "'") == "'" + "a" * 97 + "…'"
    True
    """
    return text if len(text) <= QUOTED else f"{text[: QUOTED - 2]}…{text[-1]}"
