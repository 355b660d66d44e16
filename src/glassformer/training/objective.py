"""What training minimises: the cross-entropy of the next token against a smoothed target.

The logits of a whole batch, (tokens, vocabulary), are by far the largest tensor of a training step. They are never
kept: the loss and its gradient are worked out together, some rows at a time, over the real target positions only.

Axes: N target positions (padding left out) · D d_model · V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from glassformer.errors import ConfigError

__all__ = ["Loss", "smoothed_cross_entropy"]

ROWS = 256
"""Rows of logits that exist at a time: small enough to stay in a core's cache, large enough for a fast product."""


class Loss(NamedTuple):
    """Sums over the target's tokens, in nats: what is minimised, and −log p of the reference (for perplexity)."""

    smoothed: Float[Tensor, ""]
    plain: Float[Tensor, ""]


def smoothed_cross_entropy(
    hidden: Float[Tensor, "N D"], weight: Float[Tensor, "V D"], target: Int[Tensor, "N"], smoothing: float
) -> Loss:
    """Return the loss of logits = hidden · weightᵀ, summed over positions.

    The smoothed target puts 1 − ε on the reference and spreads ε/V over all V entries, as
    `torch.nn.functional.cross_entropy` does. The products are computed in the dtype of autocast where that is on;
    softmax and sums in float32 or better.

    Raises:
        ConfigError: smoothing is not in [0, 1).

    Paper: §5.4.
    """
    if not 0.0 <= smoothing < 1.0:
        raise ConfigError(f"smoothing = {smoothing!r}: expected a number in [0, 1)")
    arguments = hidden, weight, target, smoothing, _product_dtype(hidden)
    # torch has no annotations for apply.
    return Loss(*_SmoothedCrossEntropy.apply(*arguments))  # type: ignore[no-untyped-call]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """With p = softmax(z) and y the smoothed target: loss = −Σ y log p, and its gradient by z is p − y."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        rows, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
        precise = torch.promote_types(hidden.dtype, torch.float32)
        wanted = any(ctx.needs_input_grad)
        hidden_grad = torch.empty_like(rows) if wanted else None
        weight_grad = torch.zeros_like(weight, dtype=precise) if wanted else None
        smoothed = torch.zeros((), dtype=precise, device=hidden.device)
        plain = torch.zeros_like(smoothed)
        for part in range(0, len(rows), ROWS):
            chunk, reference = rows[part : part + ROWS], target[part : part + ROWS, None]
            log_probs = (chunk @ matrix.t()).to(precise).log_softmax(-1)  # (rows, V)
            correct = log_probs.gather(1, reference).sum()
            plain -= correct
            smoothed -= (1 - smoothing) * correct + smoothing * log_probs.mean(-1).sum()
            if hidden_grad is not None and weight_grad is not None:
                grad = log_probs.exp_().sub_(smoothing / weight.shape[0])
                grad.scatter_add_(1, reference, torch.full_like(reference, smoothing - 1, dtype=precise))
                grad = grad.to(dtype)
                hidden_grad[part : part + ROWS] = grad @ matrix
                weight_grad += grad.t() @ chunk
        ctx.save_for_backward(hidden_grad, weight_grad)
        ctx.dtypes = hidden.dtype, weight.dtype
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden_grad, weight_grad = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        return (hidden_grad * grad).to(hidden_dtype), (weight_grad * grad).to(weight_dtype), None, None, None


def _product_dtype(hidden: Tensor) -> torch.dtype:
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
