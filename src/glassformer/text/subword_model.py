"""Reader for a sentencepiece model file: its pieces with their scores and types, and its normalisation.

The field numbers are from sentencepiece's `sentencepiece_model.proto`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from glassformer.system.protobuf import fields, float_of

__all__ = ["SubwordModel", "read_subword_model"]

# The types of pieces in sentencepiece's ModelProto, and the types of models in its TrainerSpec.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordModel:
    """The content of a sentencepiece model file."""

    pieces: Mapping[str, tuple[float, int]]
    """The score and the type of each piece, in the order of the model's ids."""
    kind: int
    """`UNIGRAM`, `BPE`, or another number of TrainerSpec."""
    characters: bytes
    """The normalisation's replacements of characters, in sentencepiece's format; empty if no character is replaced."""
    prefix: bool
    """Whether a space is put before each text."""
    trimmed: bool
    """Whether each run of spaces becomes one space, and spaces at the ends of a text are removed."""
    escaped: bool
    """Whether pieces contain "▁" in place of a space."""
    suffix: bool
    """Whether a space belongs to the piece before it (by default, to the piece after it)."""
    denormalised: bool
    """Whether characters are replaced when pieces are joined."""


def read_subword_model(model: bytes) -> SubwordModel:
    """Return the content of a sentencepiece model.

    Raises:
        ValueError: the bytes are not a Protocol Buffers message.
    """
    pieces: dict[str, tuple[float, int]] = {}
    # Fields 2, 3 and 5 are TrainerSpec, NormalizerSpec and the normaliser for joining.
    parts: dict[int, dict[int, Any]] = {2: {}, 3: {}, 5: {}}
    for number, value in fields(model):
        if number == 1:
            piece = {1: b"", 2: bytes(4), 3: NORMAL, **dict(fields(cast(bytes, value)))}
            pieces[cast(bytes, piece[1]).decode()] = (float_of(piece[2]), cast(int, piece[3]))
        elif number in parts:
            parts[number] = dict(fields(cast(bytes, value)))
    trainer, normaliser, joining = parts.values()
    return SubwordModel(
        pieces=pieces,
        kind=trainer.get(3, UNIGRAM),
        characters=normaliser.get(2, b""),
        prefix=bool(normaliser.get(3, 1)),
        trimmed=bool(normaliser.get(4, 1)),
        escaped=bool(normaliser.get(5, 1)),
        suffix=bool(trainer.get(24, 0)),
        denormalised=bool(joining.get(2, b"")),
    )
