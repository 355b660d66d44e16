"""The names of the activations in the files of other programs."""

from collections.abc import Mapping
from typing import NamedTuple, get_args

from glassformer.model.config import Activation

__all__ = ["OF_CTRANSLATE2", "OF_HUGGING_FACE", "ForeignNames", "foreign_names"]


class ForeignNames(NamedTuple):
    """An activation as other programs name it."""

    ctranslate2: int | None
    """The number in a model.bin, as in `ctranslate2.specs.Activation`; None if CTranslate2 does not compute it."""
    hugging_face: tuple[str, ...]
    """The names in a config.json of transformers, of which exports write the first; empty if transformers does not
    compute it."""


def foreign_names(activation: Activation) -> ForeignNames:
    """Return the names of an activation."""
    match activation:
        case "relu":
            return ForeignNames(ctranslate2=0, hugging_face=("relu",))
        case "gelu":
            return ForeignNames(ctranslate2=3, hugging_face=("gelu",))
        case "silu":
            return ForeignNames(ctranslate2=2, hugging_face=("swish", "silu"))


OF_CTRANSLATE2: Mapping[int, Activation] = {
    number: one for one in get_args(Activation) if (number := foreign_names(one).ctranslate2) is not None
}
"""The activations that CTranslate2 computes, by their numbers."""
OF_HUGGING_FACE: Mapping[str, Activation] = {
    name: one for one in get_args(Activation) for name in foreign_names(one).hugging_face
}
"""The activations that transformers computes, by their names."""
