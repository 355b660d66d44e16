"""What a training will take, worked out without training: parameters, floating-point operations, memory, time."""

import time
from dataclasses import dataclass

import torch

from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig

__all__ = ["Estimate", "count_parameters", "estimate", "forward_flops", "matrix_speed"]

_SHARE_OF_MATRIX_SPEED = 0.5
"""Share of this machine's speed in matrix products that a whole training step reaches (measured: 0.5 to 0.6)."""
_BYTES = 4
_COPIES = 4
"""Of each weight a training keeps: itself, its gradient, and Adam's two means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a configuration takes."""

    parameters: int
    flops_per_step: float
    """Floating-point operations of an update (forward and backward; a multiplication and an addition are two)."""
    steps: int
    """Updates in all; 0 when only the time is limited."""
    total_flops: float
    weights_bytes: int
    """Of the model file."""
    training_bytes: int
    """Of weights, gradients, Adam's means and one batch's activations."""
    matrix_flops_per_second: float
    """What this machine does in large float32 matrix products, measured just now."""
    seconds: float
    """Of all steps, at half of that speed."""


def estimate(config: ModelConfig, training: TrainingConfig, sentence_length: int = 16) -> Estimate:
    """Return what this training takes on this machine; batches are full, sentences `sentence_length` tokens long."""
    parameters, speed = count_parameters(config), matrix_speed()
    tokens = training.batch_tokens * training.accumulate
    # The backward pass is two products for each one of the forward pass.
    per_step = 3.0 * forward_flops(config, source=sentence_length, target=sentence_length) * tokens / sentence_length
    per_second = speed * _SHARE_OF_MATRIX_SPEED
    steps = training.last_step if training.steps or not training.minutes else 0
    return Estimate(
        parameters=parameters,
        flops_per_step=per_step,
        steps=steps,
        total_flops=per_step * steps if steps else per_second * training.minutes * 60,
        weights_bytes=_BYTES * parameters,
        training_bytes=_BYTES * (_COPIES * parameters + _activations(config, training.batch_tokens, sentence_length)),
        matrix_flops_per_second=speed,
        seconds=per_step * steps / per_second if steps else training.minutes * 60,
    )


def count_parameters(config: ModelConfig) -> int:
    """Return the number of weights, shared ones counted once; nothing is allocated."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


def forward_flops(config: ModelConfig, source: int, target: int) -> float:
    """Return the floating-point operations of one sentence pair's forward pass: all matrix products in it."""
    d, query, value = config.d_model, config.heads * config.d_k, config.heads * config.d_v
    own = 2 * d * (2 * query + 2 * value)  # one position's Q, K, V and W_O
    inner = 2 * 2 * d * config.d_ff

    def mixing(queries: int, keys: int) -> int:
        return 2 * queries * keys * (query + value)  # Q Kᵀ and weights · V

    encoder = source * (own + inner) + mixing(source, source)
    decoder = target * (own + inner) + mixing(target, target)
    cross = target * 2 * d * (query + value) + source * 2 * d * (query + value) + mixing(target, source)
    output = target * 2 * d * config.target_vocab_size
    return float(config.encoder_layers * encoder + config.decoder_layers * (decoder + cross) + output)


def matrix_speed(seconds: float = 0.5) -> float:
    """Return this machine's floating-point operations per second in a float32 matrix product, timed for so long."""
    left, right = torch.randn(2048, 512), torch.randn(512, 2048)
    left @ right
    count, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < seconds:
        left @ right
        count += 1
    return 2.0 * left.shape[0] * left.shape[1] * right.shape[1] * count / spent


def _activations(config: ModelConfig, tokens: int, sentence_length: int) -> int:
    """Return roughly how many values of a batch wait for the backward pass: what enters and leaves sub-layers."""
    query, value = config.heads * config.d_k, config.heads * config.d_v
    attention = 2 * query + 2 * value + 3 * config.d_model + 2 * config.heads * sentence_length
    feed_forward = 2 * config.d_ff + 3 * config.d_model
    sublayers = config.encoder_layers * (attention + feed_forward)
    sublayers += config.decoder_layers * (2 * attention + feed_forward)
    return tokens * (sublayers + 6 * config.d_model)
