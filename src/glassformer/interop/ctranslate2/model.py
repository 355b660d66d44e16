"""Convert a model to CTranslate2, which stores the same matrices under different names.

Axes: L positions · D d_model.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from glassformer.bundle import Bundle
from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, MissingDependencyError, install_command
from glassformer.interop.activations import OF_CTRANSLATE2, foreign_names
from glassformer.interop.exporting import check_quantization
from glassformer.model.alignment import Alignment
from glassformer.model.config import ModelConfig
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import BOS_ID, EOS_ID, SPECIALS, UNK_ID

if TYPE_CHECKING:
    import numpy as np
    from ctranslate2.specs import TransformerSpec
    from numpy.typing import NDArray

__all__ = [
    "check_convertible",
    "heads_first",
    "import_ctranslate2",
    "position_table",
    "positions_of",
    "specification",
    "with_heads_in_order",
]

POSITIONS = 2048
"""Number of sinusoidal positions to write, which is enough for the longest source and output under default settings."""
EPSILON = 1e-5
"""The ε of layer norms."""

Weights = Mapping[str, "NDArray[np.float32]"]


def import_ctranslate2() -> Any:
    """Return the module `ctranslate2`, an optional dependency.

    Raises:
        MissingDependencyError: CTranslate2 is not installed.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise MissingDependencyError(f"CTranslate2 is not installed; {install_command('ctranslate2')}") from error
    return ctranslate2


def check_convertible(config: ModelConfig) -> None:
    """Refuse a model that CTranslate2 cannot express.

    Raises:
        ConfigError: d_k or d_v is not d_model / heads, CTranslate2 does not compute the activation, or the special
            tokens have ids other than 0, 1 and 2.
    """
    width = config.d_model / config.heads
    if config.d_k != width or config.d_v != width:
        raise ConfigError(
            f"model.d_k, model.d_v: expected d_model / heads = {width:g}, the only width that CTranslate2 supports, "
            f"got {config.d_k} and {config.d_v}; use the engine torch, or export --to onnx"
        )
    names = foreign_names(config.activation)
    if names.ctranslate2 is None:
        able = "huggingface or onnx" if names.hugging_face else "onnx"
        raise ConfigError(
            f"model.activation: expected one of {', '.join(OF_CTRANSLATE2.values())}, which CTranslate2 and Argos "
            f"compute, got {config.activation}; use the engine torch, or export --to {able}"
        )
    ids = (config.pad_id, config.bos_id, config.eos_id)
    if ids != (0, BOS_ID, EOS_ID):
        raise ConfigError(
            f"model.pad_id, bos_id, eos_id: expected 0, {BOS_ID}, {EOS_ID}, the only ids that can be converted, "
            f"got {ids}; use the engine torch, as no export can hold such a model"
        )


def positions_of(config: ModelConfig) -> int:
    """Return the number of positions to write: all rows of a learned table, or `POSITIONS`."""
    match config.positions:
        case "learned":
            return config.max_length
        case "interleaved" | "halves" | "none":
            return POSITIONS


def specification(bundle: Bundle, weights: Weights, quantization: Quantization) -> "TransformerSpec":
    """Return CTranslate2's specification of a model, ready to be saved.

    Raises:
        ConfigError: CTranslate2 cannot express the model, or the number format is unknown.
        MissingDependencyError: CTranslate2 is not installed.
    """
    config = bundle.model_config
    check_quantization(quantization, get_args(Quantization), "CTranslate2")
    check_convertible(config)
    specs = import_ctranslate2().specs
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=True,  # only this specification has final norms; a line below sets the real order
        no_final_norm=not config.final_norm,
        activation=specs.Activation(foreign_names(config.activation).ctranslate2),
    )
    match config.norm:
        case "post":
            spec.encoder.pre_norm = spec.decoder.pre_norm = False
        case "pre":
            spec.encoder.pre_norm = spec.decoder.pre_norm = True
    alignment = (bundle.alignment or Alignment.of_last_layer(config)).of_prediction
    _encoder(spec.encoder, weights, config)
    _decoder(
        spec.decoder, with_heads_in_order(weights, config, alignment.layer, heads_first(alignment, config)), config
    )
    _align(spec.decoder, alignment)
    spec.config.add_attribute("layer_norm_epsilon", EPSILON)
    for name, value in _SPECIAL_TOKENS.items():
        setattr(spec.config, name, value)
    spec.config.add_source_eos = bundle.source_tokenizer.eos_id == EOS_ID
    spec.register_source_vocabulary(_tokens(bundle.source_tokenizer))
    spec.register_target_vocabulary(_tokens(bundle.target_tokenizer))
    spec.validate()
    spec.optimize(quantization=quantization)
    return spec


_SPECIAL_TOKENS: Mapping[str, str | bool] = {
    "bos_token": SPECIALS[BOS_ID],
    "eos_token": SPECIALS[EOS_ID],
    "unk_token": SPECIALS[UNK_ID],
    "decoder_start_token": SPECIALS[BOS_ID],
    "add_source_bos": False,
}
"""The special tokens, which CTranslate2 adds by itself; its callers give only the tokens of texts."""


def position_table(kind: Literal["interleaved", "halves", "none"], length: int, d_model: int) -> "NDArray[np.float32]":
    """Return the position vectors (L, D) that the model adds to its embeddings."""
    import numpy as np
    import torch

    from glassformer.model.positions import sinusoids

    match kind:
        case "none":
            return np.zeros((length, d_model), np.float32)
        case "interleaved" | "halves":
            return np.asarray(sinusoids(length, d_model, kind, dtype=torch.float64), np.float32)


def _encoder(spec: Any, weights: Weights, config: ModelConfig) -> None:
    _embedding(spec, spec.embeddings[0], weights, config, "source")
    for number, layer in enumerate(spec.layer):
        name = f"encoder.layers.{number}"
        _self_attention(layer.self_attention, weights, f"{name}.self_attention")
        _feed_forward(layer.ffn, weights, f"{name}.feed_forward")
    if config.final_norm:
        _norm(spec.layer_norm, weights, "encoder.norm")


def _decoder(spec: Any, weights: Weights, config: ModelConfig) -> None:
    _embedding(spec, spec.embeddings, weights, config, "target")
    for number, layer in enumerate(spec.layer):
        name = f"decoder.layers.{number}"
        _self_attention(layer.self_attention, weights, f"{name}.self_attention")
        _cross_attention(layer.attention, weights, f"{name}.cross_attention", config.heads * config.d_k)
        _feed_forward(layer.ffn, weights, f"{name}.feed_forward")
    if config.final_norm:
        _norm(spec.layer_norm, weights, "decoder.norm")
    spec.projection.weight = _first(weights, "output.weight", "target.tokens.weight", "source.tokens.weight")
    if config.output_bias:
        spec.projection.bias = weights["output.bias"]


def heads_first(alignment: Alignment, config: ModelConfig) -> list[int]:
    """Return all heads of a layer, beginning with those that align words; CTranslate2 aligns by the first heads."""
    return [*alignment.heads, *(head for head in range(config.heads) if head not in alignment.heads)]


def with_heads_in_order(
    weights: Weights, config: ModelConfig, layer: int, heads: Sequence[int]
) -> "dict[str, NDArray[np.float32]]":
    """Return the weights with the heads of a layer's cross-attention in this order; the model computes the same."""
    name = f"decoder.layers.{layer}.cross_attention"
    widths = (config.d_k, config.d_k, config.d_v)  # the order in which a head's query, key and value are stored
    begins = (0, config.heads * config.d_k, 2 * config.heads * config.d_k)
    rows = [
        begin + head * width + place
        for begin, width in zip(begins, widths, strict=True)
        for head in heads
        for place in range(width)
    ]
    columns = [head * config.d_v + place for head in heads for place in range(config.d_v)]
    return {
        **weights,
        f"{name}.input_projection.weight": weights[f"{name}.input_projection.weight"][rows],
        f"{name}.input_projection.bias": weights[f"{name}.input_projection.bias"][rows],
        f"{name}.output_projection.weight": weights[f"{name}.output_projection.weight"][:, columns].copy(),
    }


def _align(spec: Any, alignment: Alignment) -> None:
    """Set the layer and the number of heads by which CTranslate2 aligns tokens.

    CTranslate2 aligns a token by the attention weights of the step that predicts it (shift 0). If the run's heads align
    better by the next step (shift 1), the best heads with shift 0 are used.
    """
    import numpy as np

    spec.alignment_layer, spec.alignment_heads = np.int16(alignment.layer), np.int16(len(alignment.heads))


def _embedding(spec: Any, embedding: Any, weights: Weights, config: ModelConfig, side: str) -> None:
    # The weights contain a tied matrix once, under the first of its names.
    embedding.weight = _first(weights, f"{side}.tokens.weight", "source.tokens.weight")
    spec.scale_embeddings = True
    spec.position_encodings.encodings = _table(weights, config, side)


def _table(weights: Weights, config: ModelConfig, side: str) -> "NDArray[np.float32]":
    match config.positions:
        case "learned":
            return weights[f"{side}.positions.table"]
        case "interleaved" | "halves" | "none" as kind:
            return position_table(kind, positions_of(config), config.d_model)


def _self_attention(spec: Any, weights: Weights, name: str) -> None:
    _norm(spec.layer_norm, weights, f"{name}_residual.norm")
    _linear(spec.linear[0], weights, f"{name}.input_projection")  # query, key and value in one matrix, as in our model
    _linear(spec.linear[1], weights, f"{name}.output_projection")


def _cross_attention(spec: Any, weights: Weights, name: str, queries: int) -> None:
    _norm(spec.layer_norm, weights, f"{name}_residual.norm")
    weight, bias = (weights[f"{name}.input_projection.{part}"] for part in ("weight", "bias"))
    for linear, part in zip(spec.linear, (slice(queries), slice(queries, None)), strict=False):
        linear.weight, linear.bias = weight[part], bias[part]
    _linear(spec.linear[2], weights, f"{name}.output_projection")


def _feed_forward(spec: Any, weights: Weights, name: str) -> None:
    _norm(spec.layer_norm, weights, f"{name}_residual.norm")
    _linear(spec.linear_0, weights, f"{name}.expand")
    _linear(spec.linear_1, weights, f"{name}.contract")


def _linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight, spec.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _first(weights: Weights, *names: str) -> "NDArray[np.float32]":
    return next(weights[name] for name in names if name in weights)


def _tokens(tokenizer: Tokenizer) -> list[str]:
    return tokenizer.tokens(range(len(tokenizer)))
