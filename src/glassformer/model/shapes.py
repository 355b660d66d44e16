"""The names and shapes of a model's weights, derived from its configuration. Needs no torch.

A weight shared by several parts is listed once, under its name in the first part.
"""

from collections.abc import Iterator

from glassformer.model.config import ModelConfig

__all__ = ["Shape", "weight_shapes"]

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]


def weight_shapes(config: ModelConfig) -> Named:
    """Yield the name and shape of each weight, in the order of `Transformer.named_parameters`."""
    yield from _embedding("source", config.source_vocab_size, config, tied=False)
    yield from _embedding("target", config.target_vocab_size, config, tied=config.tie_embeddings)
    for stack, layers, attentions in (
        ("encoder", config.encoder_layers, ("self_attention",)),
        ("decoder", config.decoder_layers, ("self_attention", "cross_attention")),
    ):
        for layer in range(layers):
            for attention in attentions:
                yield from _attention(f"{stack}.layers.{layer}.{attention}", config)
            yield from _feed_forward(f"{stack}.layers.{layer}.feed_forward", config)
        if config.final_norm:
            yield from _norm(f"{stack}.norm", config)
    if not config.tie_output:
        yield "output.weight", (config.target_vocab_size, config.d_model)
    if config.output_bias:
        yield "output.bias", (config.target_vocab_size,)


def _embedding(side: str, vocabulary: int, config: ModelConfig, *, tied: bool) -> Named:
    if not tied:
        yield f"{side}.tokens.weight", (vocabulary, config.d_model)
    match config.positions:
        case "learned":
            yield f"{side}.positions.table", (config.max_length, config.d_model)
        case "interleaved" | "halves" | "none":
            pass


def _attention(name: str, config: ModelConfig) -> Named:
    values = config.heads * config.d_v
    yield from _linear(f"{name}.input_projection", config.d_model, 2 * config.heads * config.d_k + values)
    yield from _linear(f"{name}.output_projection", values, config.d_model)
    yield from _norm(f"{name}_residual.norm", config)


def _feed_forward(name: str, config: ModelConfig) -> Named:
    yield from _linear(f"{name}.expand", config.d_model, config.d_ff)
    yield from _linear(f"{name}.contract", config.d_ff, config.d_model)
    yield from _norm(f"{name}_residual.norm", config)


def _linear(name: str, inputs: int, outputs: int) -> Named:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _norm(name: str, config: ModelConfig) -> Named:
    yield f"{name}.weight", (config.d_model,)
    yield f"{name}.bias", (config.d_model,)
