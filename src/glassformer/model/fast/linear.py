"""Products with a learned matrix, x Wᵀ + b, computed by the fastest library on this machine.

Axes: N rows, of any shape · I input width · O output width · P a part of the output width.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from glassformer.system.machine import is_intel

__all__ = ["Linear", "linear", "transposed_product"]

FEWEST_PRODUCTS = 2**20
"""Minimum number of multiplications for which oneDNN is faster; for fewer, as in decoding a single sentence, calling
oneDNN costs more than it saves."""
FEW_ROWS = range(2, 9)
"""Numbers of rows, such as the paths of a beam, for which MKL is faster if the weight is the left matrix."""
WIDE_OUTPUT = 8192
"""Minimum output width, such as a large vocabulary, for which MKL is faster with few rows in that order."""


class Linear(nn.Linear):
    """`torch.nn.Linear`, up to twice as fast in float32 on some CPUs."""

    def forward(self, x: Float[Tensor, "*N I"]) -> Float[Tensor, "*N O"]:
        """Return x Wᵀ + b."""
        return linear(x, self.weight, self.bias)

    def part(self, x: Float[Tensor, "*N I"], outputs: slice) -> Float[Tensor, "*N P"]:
        """Return only these columns of x Wᵀ + b, computed from the corresponding rows of W."""
        return linear(x, self.weight[outputs], None if self.bias is None else self.bias[outputs])

    def of_columns(self, outputs: Int[Tensor, "P"]) -> Callable[[Tensor], Tensor]:
        """Return a function from x to these columns of x Wᵀ + b; the corresponding rows of W are copied once."""
        weight, bias = self.weight[outputs], None if self.bias is None else self.bias[outputs]
        return lambda x: linear(x, weight, bias)


def linear(x: Float[Tensor, "*N I"], weight: Float[Tensor, "O I"], bias: Tensor | None = None) -> Float[Tensor, "*N O"]:
    """Return x Wᵀ + b, equal to `torch.nn.functional.linear` up to one float32 rounding.

    Only the library differs. PyTorch multiplies float32 matrices on CPUs with MKL, which uses only half the width of
    AVX-512 on processors not made by Intel. On these processors, this function uses oneDNN, which is part of PyTorch
    and uses the full width. On Intel processors, MKL is faster.
    """
    if _onednn_is_faster(x, weight):
        if not torch.is_grad_enabled():
            return _product(x, weight, bias)
        result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]  # torch does not annotate `apply`
        return result
    if len(weight) >= WIDE_OUTPUT and not torch.is_grad_enabled() and _few_rows_are_slow(x, weight):
        return _few_rows(x, weight, bias)
    return F.linear(x, weight, bias)


def transposed_product(a: Float[Tensor, "N O"], b: Float[Tensor, "N I"]) -> Float[Tensor, "O I"]:
    """Return aᵀ b, which is the gradient of a weight.

    oneDNN copies its first operand, which is slow for a wide transposed matrix, so the narrower matrix comes first.
    """
    if not _onednn_is_faster(a, b.t()):
        return a.t() @ b
    return _product(a.t(), b.t()) if a.shape[1] <= b.shape[1] else _product(b.t(), a.t()).t()


def _onednn_is_faster(x: Tensor, weight: Tensor) -> bool:
    return (
        x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.numel() * weight.shape[0] >= FEWEST_PRODUCTS
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and not is_intel()
        and torch.backends.mkldnn.is_available()
        and not torch.is_autocast_enabled("cpu")
    )


def _few_rows_are_slow(x: Tensor, weight: Tensor) -> bool:
    return (
        x[..., 0].numel() in FEW_ROWS
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and not is_intel()
        and not torch.is_autocast_enabled("cpu")
    )


def _few_rows(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return (W xᵀ)ᵀ + b, which reads a wide W twice as fast as x Wᵀ does."""
    rows = x.flatten(0, -2).t()  # (I, N)
    columns = weight @ rows if bias is None else torch.addmm(bias[:, None], weight, rows)
    return columns.t().contiguous().view(*x.shape[:-1], -1)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Linear(torch.autograd.Function):
    """oneDNN's product with the gradient that PyTorch lacks: ∂x = ∂y W, ∂W = ∂yᵀ x, ∂b = the sum of the rows of ∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        rows = grad.flatten(0, -2)  # (N, O)
        return (
            _product(grad, weight.t()) if wanted[0] else None,
            transposed_product(rows, x.flatten(0, -2)) if wanted[1] else None,
            rows.sum(0) if wanted[2] else None,
        )
