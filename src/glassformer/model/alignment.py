"""The attention heads that align words. Needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from glassformer.errors import ConfigError, quoted, shortened
from glassformer.model.config import ModelConfig

__all__ = ["Alignment"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The heads of one decoder layer whose mean cross-attention aligns target tokens to source tokens."""

    layer: int
    """The decoder layer, from 0."""
    heads: tuple[int, ...]
    """The heads, from 0, in ascending order."""
    shift: int = 0
    """The step whose weights belong to a target token: 0 = the step that predicts the token; 1 = the next step, which
    reads the token."""
    agreement: float = 0.0
    """Share of the compared target words (0–1) for which these heads and a word aligner choose the same source word."""
    pairs: int = 0
    """Number of sentence pairs on which the heads were compared with a word aligner; 0 = not compared."""
    unshifted: "Alignment | None" = None
    """The best heads with shift 0, for engines that do not support shift 1; None if `shift` is 0."""

    @classmethod
    def of_last_layer(cls, config: ModelConfig) -> "Alignment":
        """Return all heads of a model's last layer, for models whose heads have not been compared."""
        return cls(layer=config.decoder_layers - 1, heads=tuple(range(config.heads)))

    @classmethod
    def from_json(cls, values: Mapping[str, Any], config: ModelConfig) -> "Alignment":
        """Return the alignment of a model from the content of alignment.json.

        Raises:
            ConfigError: a value is missing or has the wrong type, or the model does not have the layer or a head.
        """
        match values:
            case {
                "layer": int(layer),
                "heads": [*heads],
                "shift": 0 | 1 as shift,
                "agreement": float() | int() as agreement,
                "pairs": int(pairs),
            }:
                _check_heads(layer, heads, config)
                of_prediction = values.get("unshifted")
                return cls(
                    layer=layer,
                    heads=tuple(heads),
                    shift=shift,
                    agreement=agreement,
                    pairs=pairs,
                    unshifted=cls.from_json(of_prediction, config) if isinstance(of_prediction, dict) else None,
                )
            case _:
                got = shortened(str(values))
                raise ConfigError(f"expected layer, heads, shift (0 or 1), agreement and pairs, got {got}")

    def to_json(self) -> dict[str, Any]:
        """Return the content of alignment.json."""
        values = {**asdict(self), "heads": list(self.heads)}
        del values["unshifted"]
        return values | ({"unshifted": self.unshifted.to_json()} if self.unshifted else {})

    @property
    def of_prediction(self) -> "Alignment":
        """The heads that align words best with shift 0, that is, by the step that predicts each token."""
        return self.unshifted or self

    @property
    def module(self) -> str:
        """The full name of the cross-attention module."""
        return f"decoder.layers.{self.layer}.cross_attention"

    def shifted(self, rows: Sequence[T]) -> tuple[T, ...]:
        """Return the row of attention weights of each target token, given the rows of all decoding steps.

        With shift 1, `<eos>` has the row of the last step, because `<eos>` is not the input of any step.
        """
        return (*rows[self.shift :], *rows[len(rows) - self.shift :])


def _check_heads(layer: int, heads: Sequence[Any], config: ModelConfig) -> None:
    if not 0 <= layer < config.decoder_layers:
        raise ConfigError(f"layer: expected a number from 0 to {config.decoder_layers - 1}, got {layer}")
    known = set(range(config.heads))
    if not heads or not all(isinstance(head, int) and head in known for head in heads) or sorted({*heads}) != [*heads]:
        raise ConfigError(
            f"heads: expected different numbers from 0 to {config.heads - 1} in ascending order, got {quoted(heads)}"
        )
