"""The training objective: the cross-entropy of the next token against a smoothed target.

The logits of a whole batch, (tokens, vocabulary), would be by far the largest tensor of a training step. They are never
stored whole: loss and gradient are computed together, a few rows at a time, at the real target positions only.

Axes: N target positions (padding left out) · R rows (N or 2N) · D d_model · V vocabulary · K tokens of the teachers.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from glassformer.errors import ConfigError
from glassformer.model.linear import linear, transposed_product

__all__ = ["Loss", "Teachers", "smoothed_cross_entropy"]

ROWS = 512
"""Rows of logits computed at a time: few enough for memory, enough for fast products."""
ABSENT = -1e8
"""An output bias below this number takes its entry out of the vocabulary: no hidden state outweighs it."""


class Loss(NamedTuple):
    """Sums over the target's tokens, in nats: the minimised loss, and −log p of the reference (for perplexity)."""

    smoothed: Float[Tensor, ""]
    plain: Float[Tensor, ""]


class Teachers(NamedTuple):
    """What teachers expect at each target position: some tokens, and all others with equal probabilities."""

    ids: Int[Tensor, "N K"]
    shares: Float[Tensor, "N K"]
    """How much more probable each of these tokens is than the others, ≥ 0; with the others, the sum is 1."""
    trust: Float[Tensor, "N"]
    """The weight of the teachers beside the reference, from 0 to 1."""


def smoothed_cross_entropy(
    hidden: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    target: Int[Tensor, "N"],
    smoothing: float,
    r_drop: float = 0.0,
    bias: Float[Tensor, "V"] | None = None,
    teachers: Teachers | None = None,
) -> Loss:
    """Return the loss of logits = hidden · weightᵀ + bias, summed over positions.

    The smoothed target puts 1 − ε on the reference and spreads ε/V over all V entries, as
    `torch.nn.functional.cross_entropy` does. The products are computed in the dtype of autocast where it is on;
    softmax and sums in float32 or better.

    With R = 2N, `hidden` holds the output of two passes with different dropout over the same positions, one after the
    other. The minimised loss is then the mean of both plus α/2 = `r_drop`/2 times the mean of their divergences from
    each other (Wu et al. 2021, R-Drop, equation 4, divided by 2).

    With `teachers`, the target is the mean of the smoothed target and the teachers' distribution, weighted by `trust`
    (Hinton et al. 2015, §2; Kim and Rush 2016, §3.1).

    An entry whose bias is below `ABSENT`, as imported models have one for `<bos>`, is left out as if the vocabulary did
    not contain it: it gets no share of ε and no gradient. `target` must not contain such an entry.

    Raises:
        ConfigError: smoothing is not in [0, 1).

    Paper: §5.4.
    """
    if bias is not None and bool((bias.detach() < ABSENT).any()):
        present = bias.detach() >= ABSENT
        place = present.cumsum(0) - 1
        weight, bias, target = weight[present], bias[present], place[target]
        if teachers is not None:
            shares = teachers.shares * present[teachers.ids]
            teachers = teachers._replace(ids=place[teachers.ids].clamp(min=0), shares=shares)
    if not 0.0 <= smoothing < 1.0:
        raise ConfigError(f"smoothing: expected a number in [0, 1), got {smoothing!r}")
    expected = _target(target, smoothing, teachers, torch.promote_types(hidden.dtype, torch.float32))
    arguments = hidden, weight, bias, expected, r_drop, _product_dtype(hidden)
    # torch does not annotate `apply`.
    return Loss(*_SmoothedCrossEntropy.apply(*arguments))  # type: ignore[no-untyped-call]


class _Target(NamedTuple):
    """The distributions that the loss compares with: some entries' own shares, and a share spread over all entries."""

    ids: Int[Tensor, "N E"]
    """The entries with a share of their own; the first one is the reference."""
    shares: Float[Tensor, "N E"]
    even: Float[Tensor, "N 1"]
    """The share that is spread over the vocabulary."""


def _target(reference: Tensor, smoothing: float, teachers: Teachers | None, dtype: torch.dtype) -> _Target:
    """Return the smoothed target, mixed with what the teachers expect, if there are teachers."""
    ids = reference[:, None]
    if teachers is None:
        own, even = (torch.full_like(ids, share, dtype=dtype) for share in (1 - smoothing, smoothing))
        return _Target(ids, own, even)
    trust = teachers.trust[:, None].to(dtype)
    expected = teachers.shares.to(dtype)
    shares = torch.cat([(1 - smoothing) * (1 - trust), trust * expected], 1)
    even = smoothing * (1 - trust) + trust * (1 - expected.sum(1, keepdim=True))
    return _Target(torch.cat([ids, teachers.ids], 1), shares, even)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """With p = softmax(z) and y the expected distribution: loss = −Σ y log p, and its gradient by z is p − y."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: _Target,
        r_drop: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        passes = 2 if r_drop else 1
        count = len(target.ids)
        rows = hidden.detach().to(dtype).view(passes, count, hidden.shape[1])
        matrix = weight.detach().to(dtype)
        added = None if bias is None else bias.detach().to(dtype)
        precise = torch.promote_types(hidden.dtype, torch.float32)
        wanted = any(ctx.needs_input_grad)
        hidden_grad = torch.empty_like(rows) if wanted else None
        weight_grad = None
        bias_grad = None if bias is None else torch.zeros_like(bias, dtype=precise)
        # The mean of a row's logits is the row's product with mean_entry, (D,), plus mean_bias.
        mean_entry = matrix.mean(0, dtype=precise)
        mean_bias = 0.0 if added is None else added.mean(dtype=precise)
        smoothed = torch.zeros((), dtype=precise, device=hidden.device)
        plain = torch.zeros_like(smoothed)
        for part in range(0, count, ROWS):
            chunk = rows[:, part : part + ROWS]  # (passes, rows, D)
            ids, shares, even = (one[part : part + ROWS] for one in target)
            ids = ids.expand(passes, -1, -1)  # (passes, rows, E)
            logits = linear(chunk, matrix, added)  # (passes, rows, V)
            expected = logits.gather(-1, ids).to(precise)
            mean = (chunk.to(precise) @ mean_entry + mean_bias)[..., None]  # (passes, rows, 1)
            probs, log_total = _softmax(logits, precise)
            plain += (log_total.sum() - expected[..., 0].sum()) / passes
            smoothed += (log_total.sum() - (shares * expected).sum() - (even * mean).sum()) / passes
            apart = None
            if r_drop:
                ratio = (logits[0].to(precise) - logits[1]).sub_(log_total[0] - log_total[1])
                divergence, apart = _divergence(probs, ratio)
                smoothed += r_drop / 4 * divergence
            if hidden_grad is not None:
                grad = probs.sub_(even / weight.shape[0])
                grad.scatter_add_(-1, ids, -shares.expand(passes, -1, -1))
                if apart is not None:
                    grad.div_(passes).add_(apart, alpha=r_drop / 4)
                grad = grad.to(dtype).flatten(0, 1)  # (passes · rows, V)
                hidden_grad[:, part : part + ROWS] = linear(grad, matrix.t()).view_as(chunk)
                more = transposed_product(grad, chunk.flatten(0, 1))  # (V, D)
                weight_grad = more.to(precise) if weight_grad is None else weight_grad.add_(more)
                if bias_grad is not None:
                    bias_grad += grad.sum(0, dtype=precise)
        if hidden_grad is not None and weight_grad is None:  # no rows
            weight_grad = torch.zeros_like(weight, dtype=precise)
        ctx.save_for_backward(None if hidden_grad is None else hidden_grad.flatten(0, 1), weight_grad, bias_grad)
        ctx.dtypes = hidden.dtype, weight.dtype
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden_grad, weight_grad, bias_grad = ctx.saved_tensors
        hidden_dtype, weight_dtype = ctx.dtypes
        of_hidden, of_weight = (hidden_grad * grad).to(hidden_dtype), (weight_grad * grad).to(weight_dtype)
        of_bias = None if bias_grad is None else (bias_grad * grad).to(weight_dtype)
        return of_hidden, of_weight, of_bias, None, None, None


def _softmax(logits: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the softmax p of each row of logits z, (…, V), and log Σ exp z, (…, 1).

    The latter equals z − log p for every entry; the largest entry is used, because its p has the smallest relative
    error.
    """
    probs = logits.softmax(-1, dtype=dtype)
    return probs, logits.amax(-1, keepdim=True) - probs.amax(-1, keepdim=True).log()


def _divergence(probs: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Return KL(p‖q) + KL(q‖p), summed, of the two rows p and q of `probs` (2, rows, V), and its gradient by the
    logits.

    `ratio` is log(p/q), (rows, V).
    """
    ratios = torch.stack([ratio, -ratio])
    divergence = (probs * ratios).sum(-1, keepdim=True)  # (2, rows, 1), each from the other
    return divergence.sum(), probs * (ratios - divergence) + probs - probs.flip(0)


def _product_dtype(hidden: Tensor) -> torch.dtype:
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
