"""Equation 1 in one step: by PyTorch's fused kernel, or, for few keys in training on CPUs, by a faster function.

Axes: B batch · H heads · T query positions · S key positions · K width of a head's query and key · W width of a head's
value · N = B · H.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from glassformer.model.fast.dropout import dropout_factors

__all__ = ["weighted_values"]

FEW_KEYS = {2: 256, 4: 48, 8: 48}
"""Maximum number of keys for which `_FewKeys` is faster than PyTorch's fused kernel; by bytes per number: 2 for bf16
and fp16, 4 for float32, 8 for float64."""

VECTOR = 16
"""Minimum row length for which PyTorch computes a softmax with vector instructions; a shorter row takes ten times as
long for each number."""


def weighted_values(
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S W"],
    mask: Bool[Tensor, "#B #H #T #S"] | None,
    p: float,
) -> Float[Tensor, "B H T W"]:
    """Return the weighted values of `model.attention.attention`, with dropout of the weights with probability p.

    With few keys, the result can be differentiated only once. Paper: §3.2.1, equation 1.
    """
    # The faster function is used only in training: decoding always uses PyTorch's kernel, so that outputs do not depend
    # on the size of the batch.
    if query.device.type == "cpu" and torch.is_grad_enabled() and key.shape[-2] <= FEW_KEYS[query.dtype.itemsize]:
        result: Tensor = _FewKeys.apply(query, key, value, mask, p)  # type: ignore[no-untyped-call]  # torch does not annotate `apply`
        return result
    return F.scaled_dot_product_attention(query, key, value, mask, p)


class _FewKeys(torch.autograd.Function):
    """Equation 1 and its gradient, in few passes over the weights.

    Before matrix products, the scores, the weights and their gradients are rounded to the inputs' dtype; the softmax is
    computed in float32 or better. With weights a = softmax(s) and their gradient g, the gradient of the scores s is a
    (g − Σ ag).
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float) -> Tensor:
        rows, keys = query.shape[:-1], key.shape[2]  # (B, H, T), S
        key, value = _stacked(key), _stacked(value)
        query = _stacked(query) * key.shape[-1] ** -0.5
        scores = torch.bmm(query, key.mT).view(*rows, keys)
        weights = _softmax(scores, None if mask is None else ~mask)
        factors = dropout_factors(weights.shape, p, value.dtype) if p else None
        rounded = weights.to(value.dtype)
        dropped = (rounded if factors is None else rounded * factors).view(len(key), -1, keys)
        ctx.save_for_backward(query, key, value, weights, factors, dropped)
        return torch.bmm(dropped, value).view(*rows, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, factors, dropped = ctx.saved_tensors
        heads = weights.shape[:2]
        grad = _stacked(grad)
        of_weights = torch.bmm(grad, value.mT).view(weights.shape)
        if factors is not None:
            of_weights.mul_(factors)
        of_scores = of_weights.to(weights.dtype) * weights
        of_scores.sub_(weights * of_scores.sum(-1, keepdim=True))
        of_scores = of_scores.to(key.dtype).view(dropped.shape)
        of_query = torch.bmm(of_scores, key) * key.shape[-1] ** -0.5
        grads = of_query, torch.bmm(of_scores.mT, query), torch.bmm(dropped.mT, grad)
        return *(one.view(*heads, *one.shape[1:]) for one in grads), None, None


def _stacked(x: Float[Tensor, "B H P V"]) -> Float[Tensor, "N P V"]:
    """Return the matrices of all heads, contiguous in memory, one after another."""
    return x.contiguous().view(-1, *x.shape[2:])


def _softmax(scores: Float[Tensor, "B H T S"], hidden: Bool[Tensor, "#B #H #T #S"] | None) -> Float[Tensor, "B H T S"]:
    """Return the softmax of each row over the keys that are not hidden; a row without such keys becomes zeros."""
    precise, keys = torch.promote_types(scores.dtype, torch.float32), scores.shape[-1]
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    if keys < VECTOR:
        scores = F.pad(scores, (0, VECTOR - keys), value=-math.inf)
    weights = scores.softmax(-1, dtype=precise)[..., :keys].contiguous()
    return weights if hidden is None else weights.masked_fill_(hidden, 0.0)
