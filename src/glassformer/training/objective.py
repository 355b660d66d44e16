"""The training objective: the cross-entropy of the next token against a smoothed target.

The logits of a whole batch, (tokens, vocabulary), would be by far the largest tensor of a training step. These logits
are never stored as a whole: the loss and its gradient are computed together, a few rows at a time, and only at target
positions that are not padding.

Axes: N target positions (padding left out) · R rows (N or 2N) · D d_model · V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from glassformer.errors import ConfigError
from glassformer.model.fast.linear import linear, transposed_product

__all__ = ["Loss", "smoothed_cross_entropy"]

ROWS = 512
"""Number of rows of logits computed at a time: few enough for memory, but enough for fast matrix products."""
ABSENT = -1e8
"""An output bias below this number removes its entry from the vocabulary, because no hidden state can outweigh the
bias."""


class Loss(NamedTuple):
    """Sums over target tokens, in nats: the loss that training minimises, and −log p of the reference."""

    smoothed: Float[Tensor, ""]
    plain: Float[Tensor, ""]


def smoothed_cross_entropy(
    hidden: Float[Tensor, "R D"],
    weight: Float[Tensor, "V D"],
    target: Int[Tensor, "N"],
    smoothing: float,
    r_drop: float = 0.0,
    bias: Float[Tensor, "V"] | None = None,
) -> Loss:
    """Return the loss of logits = hidden · weightᵀ + bias, summed over positions.

    The smoothed target puts 1 − ε on the reference and spreads ε/V over all V entries, as
    `torch.nn.functional.cross_entropy` does. Where autocast is on, products and probabilities have autocast's dtype;
    sums have float32 or better.

    With R = 2N, `hidden` holds the output of two passes with different dropout over the same positions, one after the
    other. The minimised loss is then the mean of both passes' losses, plus α/2 = `r_drop`/2 times the mean of the two
    divergences between the passes (Wu et al. 2021, R-Drop, equation 4, divided by 2).

    An entry whose bias is below `ABSENT`, such as `<bos>` in imported models, is treated as if it were not in the
    vocabulary: it gets no share of ε and no gradient. `target` must not contain such an entry.

    Raises:
        ConfigError: smoothing is not in [0, 1).

    Paper: §5.4.
    """
    if bias is not None and bool((bias.detach() < ABSENT).any()):
        present = bias.detach() >= ABSENT
        weight, bias, target = weight[present], bias[present], (present.cumsum(0) - 1)[target]
    if not 0.0 <= smoothing < 1.0:
        raise ConfigError(f"smoothing: expected a number in [0, 1), got {smoothing!r}")
    arguments = hidden, weight, bias, target, smoothing, r_drop, _product_dtype(hidden)
    # the code below chooses all dtypes itself; autocast would compute the softmax in float32
    with torch.autocast(hidden.device.type, enabled=False):
        sums: tuple[Tensor, Tensor] = _SmoothedCrossEntropy.apply(*arguments)  # type: ignore[no-untyped-call]  # torch does not annotate `apply`
    return Loss(*sums)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """With p = softmax(z) and the smoothed target y, the loss is −Σ y log p, and its gradient by z is p − y."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        r_drop: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        passes = 2 if r_drop else 1
        count, vocabulary = len(target), len(weight)
        rows = hidden.detach().to(dtype).view(passes, count, hidden.shape[1])
        precise = torch.promote_types(hidden.dtype, torch.float32)
        matrix = weight.detach().to(dtype)
        added = None if bias is None else bias.detach().to(dtype)
        hidden_grad = torch.empty_like(rows) if any(ctx.needs_input_grad) else None
        weight_grad = None
        bias_grad = None if bias is None else torch.zeros_like(bias, dtype=precise)
        # The mean of the logits of a row is row · mean_entry + mean_bias; mean_entry is (D,).
        mean_entry = matrix.mean(0, dtype=precise)
        mean_bias = 0.0 if added is None else added.mean(dtype=precise)
        means = (rows.to(precise) @ mean_entry + mean_bias)[..., None]  # (passes, N, 1)
        smoothed = -(smoothing * means).sum() / passes
        plain = torch.zeros_like(smoothed)
        for start in range(0, count, ROWS):
            part = slice(start, start + ROWS)
            chunk = rows[:, part].flatten(0, 1)  # (passes · rows, D)
            logits = linear(chunk, matrix, added)  # (passes · rows, V)
            losses, grad = _loss_and_gradient(logits, target[part].repeat(passes), smoothing, r_drop)
            smoothed += losses.smoothed
            plain += losses.plain
            if hidden_grad is not None:
                hidden_grad[:, part] = linear(grad, matrix.t()).view(passes, -1, hidden.shape[1])
                more = transposed_product(grad, chunk)  # (V, D), in the memory layout that is faster
                weight_grad = more.to(precise) if weight_grad is None else weight_grad.add_(more)
                if bias_grad is not None:
                    bias_grad += grad.sum(0, dtype=precise)
            del logits, grad  # freed now, so that the next part reuses the same memory in the processor's cache
        if hidden_grad is not None:
            # The smoothed target's share of the gradient is the same for all entries, so it is subtracted once, here,
            # and not from each probability.
            share = torch.tensor(smoothing / passes, dtype=precise)
            hidden_grad -= share * mean_entry
            if weight_grad is None:  # there were no rows
                weight_grad = torch.zeros_like(weight, dtype=precise)
            weight_grad -= (share / vocabulary * rows.to(precise)).sum((0, 1))
            if bias_grad is not None:
                bias_grad -= smoothing * count / vocabulary
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
        return of_hidden, of_weight, of_bias, None, None, None, None


def _loss_and_gradient(logits: Tensor, target: Tensor, smoothing: float, r_drop: float) -> tuple[Loss, Tensor]:
    """Return the loss of these logits z (R, V) and its gradient, both without the part that is equal for all entries.

    The probabilities are rounded to the dtype of the logits. In bf16, this rounding changes a probability by 0.2 % at
    most, far less than the earlier rounding of the logits has changed the probability. log Σ exp z equals z − log p for
    every entry. log Σ exp z is computed from the entry with the largest p, because the largest p has the smallest
    relative error.
    """
    passes = 2 if r_drop else 1
    precise = torch.promote_types(logits.dtype, torch.float32)
    reference = target[:, None]
    correct = logits.gather(1, reference).to(precise)  # (R, 1)
    probs = logits.softmax(-1, dtype=precise if r_drop else None)
    largest, its_prob = (some.amax(-1, keepdim=True).to(precise) for some in (logits, probs))
    log_total = largest - its_prob.log()  # (R, 1)
    plain = (log_total - correct).sum() / passes
    smoothed = (log_total.sum() - ((1 - smoothing) * correct).sum()) / passes
    apart: Tensor | float = 0.0
    if r_drop:
        ratio = torch.sub(*logits.to(precise).chunk(2)) - torch.sub(*log_total.chunk(2))  # log(p/q) of the two passes
        divergence, apart = _divergence(probs.view(2, *ratio.shape), ratio)
        smoothed, apart = smoothed + r_drop / 4 * divergence, r_drop / 4 * apart.flatten(0, 1)
    probs.scatter_(1, reference, ((correct - log_total).exp() - (1 - smoothing)).to(probs.dtype))
    gradient = probs.div_(passes).add_(apart) if r_drop else probs
    return Loss(smoothed, plain), gradient.to(logits.dtype)


def _divergence(probs: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Return KL(p‖q) + KL(q‖p), summed over rows, and its gradient with respect to the logits.

    `probs` (2, rows, V) holds p and q; `ratio` is log(p/q), (rows, V).
    """
    ratios = torch.stack([ratio, -ratio])
    divergence = (probs * ratios).sum(-1, keepdim=True)  # (2, rows, 1): the divergence of each pass from the other
    return divergence.sum(), probs * (ratios - divergence) + probs - probs.flip(0)


def _product_dtype(hidden: Tensor) -> torch.dtype:
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
