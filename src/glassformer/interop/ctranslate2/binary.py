"""Read `model.bin`, the model file of CTranslate2, whose own Python package can only write it.

The file may be damaged or malicious. Every size is therefore checked against the file before memory is allocated, and
the file is mapped into memory instead of read.

Layout, little-endian: version (u32); name of the specification; revision (u32); number of variables (u32), each with
name, rank (u8), dimensions (u32 each), type (u8), number of bytes (u32), data; number of aliases (u32), each with alias
and name. A text is stored as its length + 1 (u16), its UTF-8 bytes, and NUL. Up to version 3, a variable has the width
of its numbers in bytes (u8) and their count (u32) in place of the type and the number of bytes. Versions 1 and 2 have
no aliases, and version 1 also lacks the specification and the revision. (`Model::load` in CTranslate2's
`src/models/model.cc`.)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CheckpointError, ConfigError, quoted
from glassformer.system.files import check_regular

__all__ = [
    "BINARY_VERSION",
    "HEADS",
    "CTranslate2Binary",
    "CTranslate2Variable",
    "Variables",
    "attribute",
    "read_binary",
]

_MODEL = "model.bin"
BINARY_VERSION = 6
"""The version of the layout above, which CTranslate2 has written since 3.0."""
HEADS = {"TransformerSpec": 0, "TransformerBase": 8, "TransformerBig": 16, "": 8}
"""The names of a Transformer's specification, each with the number of heads for files that do not contain this
number."""
_REVISION = 7
"""The last known revision of the specification."""
MOST_VARIABLES = 200_000
"""Maximum number of variables, and of aliases; a model of 1 000 + 1 000 layers has 66 000 variables."""
LONGEST_NAME = 200
"""Maximum length of a variable's name, in bytes."""
HIGHEST_RANK = 3
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
"""CTranslate2's number formats, in the order of their numbers in the file."""
_TYPES_BY_WIDTH = {1: "int8", 2: "int16", 4: "float32"}
"""The number formats before version 4, by the width of a number in bytes."""
INT16_SCALE = np.float32(1000)
"""The scale of a 16-bit matrix without scale in the file, as in version 1."""


@dataclass(frozen=True, slots=True, eq=False)
class CTranslate2Variable:
    """A variable of `model.bin`; its numbers are mapped from the file, and read when they are used."""

    name: str
    """The variable's first name in the file; its aliases refer to the same object."""
    kind: str
    """The number format, one of float32, int8, int16, int32, float16 and bfloat16."""
    numbers: NDArray[Any]
    """The numbers as stored; bfloat16 numbers are given as uint16, because NumPy has no bfloat16."""
    scale: NDArray[np.float32] | None = None
    """The factors by which the numbers of an 8-bit or 16-bit matrix were multiplied: one per row, or one for all
    rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; () for an attribute of the model."""
        return self.numbers.shape

    def floats(self) -> NDArray[np.float32]:
        """Return a float32 copy of the numbers, with 8-bit and 16-bit matrices dequantized.

        Raises:
            CheckpointError: a number is not finite.
        """
        with np.errstate(all="ignore"):  # the check below reports overflows
            if self.kind == "bfloat16":
                result = (self.numbers.astype(np.uint32) << 16).view(np.float32)
            else:
                result = self.numbers.astype(np.float32)
            if self.scale is not None:
                # Use the reciprocal in float32, as CTranslate2 does, so that the products have the same bits.
                inverse = np.float32(1) / self.scale.astype(np.float32)
                result *= inverse.reshape(-1, *[1] * (result.ndim - 1)) if inverse.ndim else inverse
        if not np.isfinite(result).all():
            raise CheckpointError(
                f"{_MODEL}: expected finite numbers in {self.name}, got nan or inf; convert the model again"
            )
        return result

    def equals(self, other: "CTranslate2Variable") -> bool:
        """Return whether two variables hold the same numbers; files before version 3 have copies instead of aliases."""
        return self is other or (
            (self.kind, self.shape) == (other.kind, other.shape)
            and np.array_equal(self.numbers, other.numbers)
            and np.array_equal(np.asarray(self.scale), np.asarray(other.scale))
        )


Variables = Mapping[str, CTranslate2Variable]


class CTranslate2Binary(NamedTuple):
    """The content of `model.bin`."""

    version: int
    """The version of the layout."""
    specification: str
    """The name of the specification; "" in version 1."""
    revision: int
    """The revision of the specification, on which the names of variables depend."""
    variables: Variables
    """The variables by name, aliases included."""


def read_binary(path: Path) -> CTranslate2Binary:
    """Return the content of `model.bin`.

    The numbers are only mapped, so the file must exist as long as they are used.

    Raises:
        CheckpointError: the file is missing or damaged, or has an unknown version.
        ConfigError: the model is not a Transformer with an encoder and a decoder.
    """
    check_regular(path)
    try:
        data = np.asarray(np.memmap(path, np.uint8, "r"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error  # ValueError: the file is empty
        raise CheckpointError(f"cannot read {path}: {reason}; copy the file again") from error
    cursor = _Cursor(path, data)
    version, specification, revision = _versions(cursor)
    raw: dict[str, tuple[str, NDArray[Any]]] = {}
    for _ in range(cursor.count("variables")):
        name = cursor.text()
        if name in raw:
            raise cursor.damaged(f"the variable {quoted(name)} occurs twice")
        raw[name] = cursor.array(name, version)
    variables = {name: _with_scale(cursor, name, raw) for name in raw}
    for _ in range(cursor.count("aliases") if version >= 3 else 0):
        alias, name = cursor.text(), cursor.text()
        if alias in variables or name not in variables:
            raise cursor.damaged(f"{quoted(alias)} cannot be an alias of {quoted(name)}")
        variables[alias] = variables[name]
        # CTranslate2 itself adds the aliases of scales and zeros.
        variables |= {alias + end: variables[name + end] for end in ("_scale", "_zero") if name + end in variables}
    if left := cursor.left:
        raise cursor.damaged(f"expected the end of the file, got {left:,} more bytes")
    return CTranslate2Binary(version, specification, revision, variables)


def attribute(variables: Variables, name: str, default: float) -> float:
    """Return the value of an attribute, which is stored as a variable without dimensions.

    Raises:
        CheckpointError: the variable is not one number.
    """
    if name not in variables:
        return default
    if (shape := variables[name].shape) != ():
        raise CheckpointError(f"{_MODEL}: expected one number in {name}, got shape {shape}; convert the model again")
    return float(variables[name].floats())


def _versions(cursor: "_Cursor") -> tuple[int, str, int]:
    """Return the version of the layout, the name of the specification and its revision."""
    if not 1 <= (version := cursor.number(4)) <= BINARY_VERSION:
        raise CheckpointError(
            f"{cursor.path}: expected binary version 1 to {BINARY_VERSION}, which CTranslate2 up to 4.8 writes, "
            f"got {version}; convert the model with such a version"
        )
    if version == 1:
        return 1, "", 1
    if (name := cursor.text()) not in HEADS:
        raise ConfigError(
            f"{cursor.path}: expected a TransformerSpec, a Transformer with encoder and decoder, got {quoted(name)}; "
            "only such a model can be imported"
        )
    if not 1 <= (revision := cursor.number(4)) <= _REVISION:
        raise CheckpointError(
            f"{cursor.path}: expected revision 1 to {_REVISION} of {name}, which CTranslate2 up to 4.8 writes, "
            f"got {revision}; convert the model with such a version"
        )
    return version, name, revision


def _with_scale(cursor: "_Cursor", name: str, raw: Mapping[str, tuple[str, NDArray[Any]]]) -> CTranslate2Variable:
    kind, numbers = raw[name]
    if (
        kind not in ("int8", "int16") or not numbers.ndim or "/" not in name
    ):  # outside the layers, int8 holds text, such as a token
        return CTranslate2Variable(name, kind, numbers)
    missing = ("float32", np.asarray(INT16_SCALE)) if kind == "int16" else ("", np.empty(0))
    scale_kind, scale = raw.get(f"{name}_scale", missing)
    if scale_kind != "float32" or scale.shape not in ((), numbers.shape[:1]):
        raise cursor.damaged(f"{quoted(name)} holds {kind} numbers without a fitting scale")
    return CTranslate2Variable(name, kind, numbers, scale)


class _Cursor:
    """A position in `model.bin`, from which values are read; reading beyond the file's end raises CheckpointError."""

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        self.path, self._data, self._at = path, data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def damaged(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.path} is damaged: {what}; copy the file again, or convert the model again")

    def take(self, size: int, what: str) -> NDArray[np.uint8]:
        if size > self.left:
            raise self.damaged(f"expected {size:,} bytes for {what} at byte {self._at:,}, got {self.left:,}")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size, "a number").tobytes(), "little")

    def count(self, what: str) -> int:
        if (count := self.number(4)) > MOST_VARIABLES:
            raise self.damaged(f"expected at most {MOST_VARIABLES:,} {what}, got {count:,}")
        return count

    def text(self) -> str:
        size = self.number(2)
        if not 1 < size <= LONGEST_NAME:
            raise self.damaged(
                f"expected a name of 1 to {LONGEST_NAME - 1} bytes at byte {self._at:,}, got {size - 1:,}"
            )
        content = self.take(size, "a name").tobytes()
        try:
            text = content[:-1].decode()
        except UnicodeDecodeError as error:
            raise self.damaged(f"the name {quoted(content)} is not UTF-8") from error
        if content[-1] or not text.isprintable():
            raise self.damaged(f"{quoted(content)} is not a name")
        return text

    def array(self, name: str, version: int) -> tuple[str, NDArray[Any]]:
        """Return the number format and the numbers of a variable, as a view of the file."""
        if (rank := self.number(1)) > HIGHEST_RANK:
            raise self.damaged(f"expected at most {HIGHEST_RANK} dimensions of {quoted(name)}, got {rank}")
        shape = tuple(self.number(4) for _ in range(rank))
        kinds = dict(enumerate(_TYPES)) if version >= 4 else _TYPES_BY_WIDTH
        if (number := self.number(1)) not in kinds:
            expected_kinds = ", ".join(map(str, kinds))
            raise self.damaged(f"expected a number format of {expected_kinds} for {quoted(name)}, got {number}")
        kind = kinds[number]
        dtype = np.dtype("uint16" if kind == "bfloat16" else kind).newbyteorder("<")
        expected = math.prod(shape) * dtype.itemsize
        size = self.number(4) * (1 if version >= 4 else dtype.itemsize)
        if size != expected or not expected:
            raise self.damaged(f"expected {expected:,} bytes for {quoted(name)} of shape {shape}, got {size:,}")
        return kind, self.take(size, name).view(dtype).reshape(shape)
