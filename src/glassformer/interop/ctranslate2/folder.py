"""Read a CTranslate2 folder, which CTranslate2's own Python package cannot: it only writes.

The folder holds `model.bin`, `config.json` and the vocabularies. All of them may be damaged or malicious: every size is
checked against the file before anything is allocated, and `model.bin` is mapped into memory, not read.

Layout of `model.bin`, little-endian: version (u32); name of the specification; revision (u32); number of variables
(u32), each with name, rank (u8), dimensions (u32 each), type (u8), bytes (u32), data; number of aliases (u32), each
with alias and name. A text is its length + 1 (u16), UTF-8, NUL. (`_serialize` in CTranslate2's `specs/model_spec.py`.)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CheckpointError, ConfigError, VocabularyError, quoted
from glassformer.system.files import check_regular, read_any_json, read_bytes

__all__ = ["CTranslate2Folder", "CTranslate2Variable", "read_ctranslate2"]

_MODEL = "model.bin"
BINARY_VERSION = 6
"""The version of the layout above, which CTranslate2 writes since 3.0."""
_SPECIFICATION, _REVISIONS = "TransformerSpec", (5, 6, 7)
"""The kind of model, and the revisions of its names of variables that mean the same."""
MOST_VARIABLES = 200_000
"""Most variables or aliases that are read; a model of 1000 + 1000 layers has 66,000."""
LONGEST_NAME = 200
"""Longest name of a variable that is read, in bytes."""
HIGHEST_RANK = 3
_TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
"""CTranslate2's number formats, by their numbers in the file."""


@dataclass(frozen=True, slots=True, eq=False)
class CTranslate2Variable:
    """A variable of `model.bin`: its numbers as the file stores them, not yet read from the disk."""

    name: str
    """Its first name in the file; aliases are the same object."""
    kind: str
    """The number format, one of float32, int8, int16, int32, float16 and bfloat16."""
    numbers: NDArray[Any]
    """The numbers; those in bfloat16 as uint16, because NumPy has no such format."""
    scale: NDArray[np.float32] | None = None
    """What the numbers of an 8-bit or 16-bit matrix were multiplied by: one per row, or one for all."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; () for an attribute of the model."""
        return self.numbers.shape

    def floats(self) -> NDArray[np.float32]:
        """Return a float32 copy of the numbers, with 8-bit and 16-bit matrices dequantized.

        Raises:
            CheckpointError: a number is not finite.
        """
        with np.errstate(all="ignore"):  # what overflows is found below
            if self.kind == "bfloat16":
                result = (self.numbers.astype(np.uint32) << 16).view(np.float32)
            else:
                result = self.numbers.astype(np.float32)
            if self.scale is not None:
                # The reciprocal in float32, as CTranslate2 computes it, so that the products are the same bits.
                inverse = np.float32(1) / self.scale.astype(np.float32)
                result *= inverse.reshape(-1, *[1] * (result.ndim - 1)) if inverse.ndim else inverse
        if not np.isfinite(result).all():
            raise CheckpointError(f"{_MODEL}: expected finite numbers in {self.name}, got nan or inf; convert it again")
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CTranslate2Folder:
    """A model as CTranslate2 stores it."""

    variables: Mapping[str, CTranslate2Variable]
    """The variables by name, aliases included."""
    config: Mapping[str, Any]
    """The content of `config.json`."""
    source: tuple[str, ...]
    """The tokens of the source, by CTranslate2's id."""
    target: tuple[str, ...]
    """The tokens of the target, by CTranslate2's id."""


def read_ctranslate2(folder: Path) -> CTranslate2Folder:
    """Return the model in a folder of CTranslate2. The weights are only mapped: the folder must stay while it is used.

    Raises:
        CheckpointError: a file is missing or damaged, or written in another version of the format.
        ConfigError: the model is not a Transformer with an encoder and a decoder.
        VocabularyError: a vocabulary is not a list of tokens.
    """
    config = read_any_json(folder / "config.json")
    if not isinstance(config, dict):
        raise CheckpointError(f"{folder / 'config.json'}: expected an object, got {quoted(config)}; copy it again")
    variables = _variables(folder / _MODEL)
    shared = _tokens(folder, "shared")
    source, target = (shared, shared) if shared else (_tokens(folder, "source"), _tokens(folder, "target"))
    for side, tokens in (("source", source), ("target", target)):
        if not tokens:
            raise CheckpointError(
                f"{folder} has neither shared_vocabulary.json nor {side}_vocabulary.json; copy the whole folder"
            )
    return CTranslate2Folder(variables=variables, config=config, source=source, target=target)


def _tokens(folder: Path, name: str) -> tuple[str, ...]:
    """Return a vocabulary, or () if the folder has none of this name."""
    path = folder / f"{name}_vocabulary.json"
    if path.exists():
        tokens = read_any_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise VocabularyError(f"{path}: expected a list of tokens; copy the file again")
    else:
        path = path.with_suffix(".txt")
        if not path.exists():
            return ()
        tokens = _lines(path)
    try:
        "".join(tokens).encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(f"{path}: a token holds half a surrogate pair; convert the model again") from error
    return tuple(tokens)


def _lines(path: Path) -> list[str]:
    try:
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise VocabularyError(f"{path} cannot be read: {error}; copy the file again") from error
    # A token may end with a carriage return, unless all lines do (as CTranslate2 reads the file).
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _variables(path: Path) -> dict[str, CTranslate2Variable]:
    check_regular(path)
    try:
        data = np.asarray(np.memmap(path, np.uint8, "r"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error  # ValueError: an empty file
        raise CheckpointError(f"cannot read {path}: {reason}; copy the file again") from error
    cursor = _Cursor(path, data)
    _check_versions(cursor)
    raw: dict[str, tuple[str, NDArray[Any]]] = {}
    for _ in range(cursor.count("variables")):
        name = cursor.text()
        if name in raw:
            raise cursor.damaged(f"the variable {quoted(name)} occurs twice")
        raw[name] = cursor.array(name)
    variables = {name: _with_scale(cursor, name, raw) for name in raw}
    for _ in range(cursor.count("aliases")):
        alias, name = cursor.text(), cursor.text()
        if alias in variables or name not in variables:
            raise cursor.damaged(f"{quoted(alias)} cannot be an alias of {quoted(name)}")
        variables[alias] = variables[name]
        # CTranslate2 makes these two by itself.
        variables |= {alias + end: variables[name + end] for end in ("_scale", "_zero") if name + end in variables}
    if left := cursor.left:
        raise cursor.damaged(f"expected its end, got {left:,} more bytes")
    return variables


def _check_versions(cursor: "_Cursor") -> None:
    if (version := cursor.number(4)) != BINARY_VERSION:
        raise CheckpointError(
            f"{cursor.path}: expected binary version {BINARY_VERSION}, which CTranslate2 has written since 3.0, got "
            f"{version}; convert the original model again with CTranslate2 3.0 or newer"
        )
    if (name := cursor.text()) != _SPECIFICATION:
        raise ConfigError(
            f"{cursor.path}: expected a {_SPECIFICATION}, a Transformer with encoder and decoder, got {quoted(name)}; "
            "only such a model can be imported"
        )
    if (revision := cursor.number(4)) not in _REVISIONS:
        raise CheckpointError(
            f"{cursor.path}: expected revision {_REVISIONS[0]} to {_REVISIONS[-1]} of {_SPECIFICATION}, got "
            f"{revision}; convert the original model again with CTranslate2 3.0 or newer"
        )


def _with_scale(cursor: "_Cursor", name: str, raw: Mapping[str, tuple[str, NDArray[Any]]]) -> CTranslate2Variable:
    kind, numbers = raw[name]
    if kind not in ("int8", "int16") or not numbers.ndim:
        return CTranslate2Variable(name, kind, numbers)
    scale_kind, scale = raw.get(f"{name}_scale", ("", np.empty(0)))
    if scale_kind != "float32" or scale.shape not in ((), numbers.shape[:1]):
        raise cursor.damaged(f"{quoted(name)} holds {kind} numbers without a fitting scale")
    return CTranslate2Variable(name, kind, numbers, scale)


class _Cursor:
    """A place in `model.bin` from which values are taken, each only if the file has enough bytes for it."""

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

    def array(self, name: str) -> tuple[str, NDArray[Any]]:
        """Return the number format and the numbers of a variable, as a view of the file."""
        if (rank := self.number(1)) > HIGHEST_RANK:
            raise self.damaged(f"expected at most {HIGHEST_RANK} dimensions of {quoted(name)}, got {rank}")
        shape = tuple(self.number(4) for _ in range(rank))
        if (number := self.number(1)) >= len(_TYPES):
            raise self.damaged(f"expected a number format from 0 to {len(_TYPES) - 1} for {quoted(name)}, got {number}")
        kind = _TYPES[number]
        dtype = np.dtype("uint16" if kind == "bfloat16" else kind).newbyteorder("<")
        size, expected = self.number(4), math.prod(shape) * dtype.itemsize
        if size != expected or not expected:
            raise self.damaged(f"expected {expected:,} bytes for {quoted(name)} of shape {shape}, got {size:,}")
        return kind, self.take(size, name).view(dtype).reshape(shape)
