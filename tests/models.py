"""Small random models, for tests and for files that tests write."""

from typing import Any

import torch

import glassformer as gf

PRIMES: dict[str, Any] = {
    "source_vocab_size": 19,
    "target_vocab_size": 23,
    "d_model": 11,
    "heads": 3,
    "d_k": 5,
    "d_v": 7,
    "d_ff": 13,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
"""Sizes that are all different, so that swapped axes cannot fit by accident."""


def random_model(**settings: Any) -> gf.Transformer:
    """Return a small model in evaluation mode, of prime sizes unless told otherwise, from torch's generator.

    Every parameter is random, including biases and norms, so that a forgotten or misplaced one changes the result.
    """
    model = gf.Transformer(gf.ModelConfig(**{**PRIMES, **settings})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model
