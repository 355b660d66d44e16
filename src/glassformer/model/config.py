"""The sizes and choices of a Transformer, checked on creation. Needs no torch."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from glassformer.errors import CheckpointVersionError, ConfigError, nearest, quoted, shortened
from glassformer.settings import Range, check_fields

__all__ = ["PRESETS", "Activation", "ModelConfig", "NormPlace", "PositionKind", "preset_fields"]

Activation = Literal["relu", "gelu", "silu"]
NormPlace = Literal["post", "pre"]
PositionKind = Literal["interleaved", "halves", "learned", "none"]

# The default of fields that __post_init__ fills in if the caller omits them. The types of these fields exclude None,
# because the fields always have a value after construction; with `int | None`, all code that reads these fields would
# have to rule out None. A descriptor with different types for reading and writing is not possible, because the slots
# would replace it.
_DERIVED: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The sizes and choices of a model; the defaults are the paper's base model (Table 3).

    Give `vocab_size` for one joint vocabulary, or `source_vocab_size` and `target_vocab_size` for two vocabularies.
    Fields whose default is derived, such as `d_k` and `d_v` (`d_model / heads`), always have a value after
    construction.

    Raises:
        ConfigError: a field has an impossible value or contradicts another field; the message names the field.
    """

    format_version: ClassVar[int] = 1

    vocab_size: Annotated[int | None, Range(1, 10**7)] = None
    """Entries of the joint vocabulary, special tokens included (the paper's is about 37 000)."""
    source_vocab_size: Annotated[int, Range(1, 10**7)] = _DERIVED
    """Entries of the source vocabulary; equal to `vocab_size` if that is given."""
    target_vocab_size: Annotated[int, Range(1, 10**7)] = _DERIVED
    """Entries of the target vocabulary; equal to `vocab_size` if that is given."""
    d_model: Annotated[int, Range(1, 2**16)] = 512
    """Width of the residual stream (3.1)."""
    heads: Annotated[int, Range(1, 2**12)] = 8
    """Number of heads in each attention layer, the paper's h (3.2.2)."""
    d_k: Annotated[int, Range(1, 2**16)] = _DERIVED
    """Width of a head's queries and keys; `d_model / heads` unless given (3.2.2; Table 3, rows A and B)."""
    d_v: Annotated[int, Range(1, 2**16)] = _DERIVED
    """Width of a head's values; `d_model / heads` unless given (3.2.2)."""
    d_ff: Annotated[int, Range(1, 2**20)] = 2048
    """Inner width of the feed-forward network (3.3)."""
    encoder_layers: Annotated[int, Range(1, 1000)] = 6
    """Number of encoder layers, the paper's N (3.1)."""
    decoder_layers: Annotated[int, Range(1, 1000)] = 6
    """Number of decoder layers, the paper's N (3.1)."""
    dropout: Annotated[float, Range(0, 0.999)] = 0.1
    """Dropout probability of each sub-layer's output, and of embedding + position; P_drop (5.4)."""
    attention_dropout: Annotated[float, Range(0, 0.999)] = 0.0
    """Dropout probability of the attention weights; the paper has none."""
    activation_dropout: Annotated[float, Range(0, 0.999)] = 0.0
    """Dropout probability of the feed-forward network's inner values; the paper has none."""
    activation: Activation = "relu"
    """Non-linearity of the feed-forward network; the paper's is relu (equation 2)."""
    norm: NormPlace = "post"
    """Place of the layer norm: "post", after the residual sum (the paper, 3.1), or "pre", before the sub-layer."""
    final_norm: bool = _DERIVED
    """End each stack with one more layer norm; by default, only with pre-norm. Imported models may differ."""
    positions: PositionKind = "interleaved"
    """Encoding of positions: sinusoids, "interleaved" (3.5) or in "halves"; a "learned" table (Table 3, row E); or
    "none"."""
    max_length: Annotated[int, Range(1, 10**7)] = 1024
    """Maximum sequence length with a "learned" table of positions; sinusoids have no limit."""
    tie_embeddings: bool = _DERIVED
    """Share one embedding matrix between source and target (3.4); by default, only with a joint vocabulary."""
    tie_output: bool = True
    """Use the target embedding's matrix as the output projection (3.4)."""
    output_bias: bool = False
    """Add a learned bias to each logit, as many imported models do and the paper does not."""
    pad_id: Annotated[int, Range(0, 10**7)] = 0
    """Id of the padding token; no position attends to padding."""
    bos_id: Annotated[int, Range(0, 10**7)] = 1
    """Id of the token that the decoder starts with."""
    eos_id: Annotated[int, Range(0, 10**7)] = 2
    """Id of the token that ends a sequence."""

    def __post_init__(self) -> None:
        """Derive the missing fields, then check all fields."""
        check_fields("model", self)
        if self.final_norm is None:
            object.__setattr__(self, "final_norm", self._has_final_norm())
        self._resolve_vocabularies()
        self._resolve_head_widths()
        self._check_special_ids()

    @property
    def longest(self) -> int:
        """Maximum sequence length: `max_length` with learned positions, otherwise unlimited (`sys.maxsize`)."""
        match self.positions:
            case "learned":
                return self.max_length
            case "interleaved" | "halves" | "none":
                return sys.maxsize

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> "ModelConfig":
        """Return the named preset, with its fields replaced by `overrides`.

        The names are `tiny`, `small`, `base`, `big`, and one for each row of the paper's Table 3 (`table3-A-h1` …).

        Raises:
            ConfigError: the preset or a field is unknown.

        >>> ModelConfig.preset("base", vocab_size=37000).d_k
        64
        """
        return cls.from_dict({**preset_fields(name), **overrides})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ModelConfig":
        """Return the configuration with these fields.

        Raises:
            ConfigError: a field is unknown; the message names the nearest known field.
        """
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"model.{shortened(name)}: unknown field{nearest(name, known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, including derived fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, text: str) -> "ModelConfig":
        """Return the configuration written by `to_json`.

        Raises:
            CheckpointVersionError: a newer version of glassformer wrote the text.
        """
        values = json.loads(text)
        version = values.pop("format_version")
        if version > cls.format_version:
            raise CheckpointVersionError(
                f"model configuration of format {version}: this glassformer reads formats up to {cls.format_version}; "
                "upgrade glassformer"
            )
        return cls.from_dict(values)

    def to_json(self) -> str:
        """Return all fields as JSON text, with the format's version."""
        return json.dumps({"format_version": self.format_version, **self.to_dict()}, indent=2)

    def _has_final_norm(self) -> bool:
        """Return whether the stacks end with a norm by default."""
        match self.norm:
            case "post":
                return False
            case "pre":
                return True

    def _resolve_vocabularies(self) -> None:
        sizes = (self.source_vocab_size, self.target_vocab_size)
        if self.vocab_size is not None:
            if any(size not in (None, self.vocab_size) for size in sizes):
                raise ConfigError(
                    f"model.vocab_size: expected the sizes of source and target {sizes}, got {self.vocab_size}; give "
                    "one joint size or two separate sizes"
                )
            sizes = (self.vocab_size, self.vocab_size)
        if None in sizes:
            raise ConfigError(
                "model.vocab_size: expected a positive integer, got nothing; set this size, or source_vocab_size and "
                "target_vocab_size"
            )
        object.__setattr__(self, "source_vocab_size", sizes[0])
        object.__setattr__(self, "target_vocab_size", sizes[1])
        if self.tie_embeddings is None:
            object.__setattr__(self, "tie_embeddings", self.vocab_size is not None)
        if self.tie_embeddings and sizes[0] != sizes[1]:
            raise ConfigError(
                f"model.tie_embeddings: expected vocabularies of equal size, got {sizes[0]} and {sizes[1]}; set it to "
                "false"
            )

    def _resolve_head_widths(self) -> None:
        for name in ("d_k", "d_v"):
            if getattr(self, name) is not None:
                continue
            if self.d_model % self.heads:
                raise ConfigError(
                    f"model.heads: expected a divisor of model.d_model = {self.d_model}, got {self.heads}; or give "
                    "model.d_k and model.d_v"
                )
            object.__setattr__(self, name, self.d_model // self.heads)

    def _check_special_ids(self) -> None:
        specials = (self.pad_id, self.bos_id, self.eos_id)
        last = min(self.source_vocab_size, self.target_vocab_size) - 1
        if max(specials) > last or len(set(specials)) < 3:
            raise ConfigError(
                f"model.pad_id, bos_id, eos_id: expected three different ids from 0 to {last}, the last id of the "
                f"vocabulary, got {specials}"
            )


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"d_model": 128, "heads": 8, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 2},
    "small": {"d_model": 256, "heads": 4, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3},
    "base": {},
    "big": {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3},
    # Table 3: what each row changes in the base model. Label smoothing only affects training, so the rows that vary it
    # change nothing here.
    "table3-base": {},
    "table3-A-h1": {"heads": 1, "d_k": 512, "d_v": 512},
    "table3-A-h4": {"heads": 4, "d_k": 128, "d_v": 128},
    "table3-A-h16": {"heads": 16, "d_k": 32, "d_v": 32},
    "table3-A-h32": {"heads": 32, "d_k": 16, "d_v": 16},
    "table3-B-dk16": {"d_k": 16},
    "table3-B-dk32": {"d_k": 32},
    "table3-C-N2": {"encoder_layers": 2, "decoder_layers": 2},
    "table3-C-N4": {"encoder_layers": 4, "decoder_layers": 4},
    "table3-C-N8": {"encoder_layers": 8, "decoder_layers": 8},
    "table3-C-d256": {"d_model": 256, "d_k": 32, "d_v": 32},
    "table3-C-d1024": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "table3-C-ff1024": {"d_ff": 1024},
    "table3-C-ff4096": {"d_ff": 4096},
    "table3-D-dropout0.0": {"dropout": 0.0},
    "table3-D-dropout0.2": {"dropout": 0.2},
    "table3-D-smoothing0.0": {},
    "table3-D-smoothing0.2": {},
    "table3-E-learned": {"positions": "learned"},
    "table3-big": {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3},
}


def preset_fields(name: str) -> Mapping[str, Any]:
    """Return the fields in which a preset differs from the paper's base model.

    Raises:
        ConfigError: the preset is unknown.
    """
    if name not in PRESETS:
        raise ConfigError(
            f"model.preset: expected the name of a preset, got {quoted(name)}{nearest(name, PRESETS)}; the presets are "
            f"{', '.join(PRESETS)}"
        )
    return PRESETS[name]
