"""Quantization for decoding on CPUs: weights have fewer bits, so that each decoded token reads less memory.

Only the matrices of linear layers are quantized; embeddings, norms, attention and softmax stay in float32.

Axes: N rows, of any shape · I input width · O output width · P a part of the output width.
"""

from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.decoding.options import Quantization
from glassformer.errors import ConfigError, nearest, quoted
from glassformer.model.fast.linear import Linear
from glassformer.model.transformer import Transformer

__all__ = ["IntegerLinear", "RoundedLinear", "largest_weight", "quantise"]

FEWEST_PRODUCTS_INT8 = 2**21
"""Number of multiplications up to which quantizing the input x takes longer than it saves."""
WIDE = 32
"""How many numbers of a row PyTorch's product of a bf16 and an int8 matrix reads at a time."""


def quantise(model: Transformer, quantization: Quantization) -> Transformer:
    """Quantize a model's matrices in place and return the model, which can then decode on a CPU but not train.

    Raises:
        ConfigError: the model is not on the CPU in float32, or the quantization is unknown.
    """
    if quantization == "float32":
        return model
    if quantization not in QUANTIZED_LINEARS:
        raise ConfigError(
            f"quantization: expected float32, {' or '.join(QUANTIZED_LINEARS)} with PyTorch, got {quoted(quantization)}"
            f"{nearest(quantization, QUANTIZED_LINEARS)}; or use the engine ctranslate2"
        )
    trained = model.output.weight
    if trained.device.type != "cpu" or trained.dtype != torch.float32:
        raise ConfigError(
            f"quantization: expected a float32 model on the CPU for {quantization}, got a model on "
            f"{trained.device} in {trained.dtype}"
        )
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Linear):
                setattr(module, name, QUANTIZED_LINEARS[quantization](child))
    return model


class RoundedLinear(nn.Module):
    """A `Linear` whose weights, inputs and results are rounded to bf16; its sums are computed in float32."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.weight = linear.weight.detach().bfloat16()
        self.bias = None if linear.bias is None else linear.bias.detach().bfloat16()

    def forward(self, x: Float[Tensor, "*N I"]) -> Float[Tensor, "*N O"]:
        """Return x Wᵀ + b, approximately."""
        return F.linear(x.bfloat16(), self.weight, self.bias).float()

    def part(self, x: Float[Tensor, "*N I"], outputs: slice) -> Float[Tensor, "*N P"]:
        """Return only the chosen columns of x Wᵀ + b, approximately."""
        return self.of_columns(outputs)(x)

    def of_columns(self, outputs: slice | Int[Tensor, "P"]) -> Callable[[Tensor], Tensor]:
        """Return a function from x to these columns of x Wᵀ + b, approximately."""
        weight, bias = self.weight[outputs], None if self.bias is None else self.bias[outputs]
        return lambda x: F.linear(x.bfloat16(), weight, bias).float()


class IntegerLinear(nn.Module):
    """A `Linear` whose weights are integers up to ±`largest_weight()`, with a scale for each row of W.

    Each row of x is quantized to ±127, and the products of integers are summed exactly. For few rows and a
    small matrix, quantizing x would take longer than it saves, so x is rounded to bf16 instead. A row's result
    therefore depends on the number of rows (by less than the error of int8), but not on the contents of the other rows.
    """

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.weight, scale = _integers(linear.weight.detach(), largest_weight())
        self.scale = scale.t()  # (1, O)
        self.ones = torch.ones(len(scale), dtype=torch.bfloat16)
        self.bias = None if linear.bias is None else linear.bias.detach()
        fits = self.weight.shape[1] % WIDE == 0 and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
        self.small = FEWEST_PRODUCTS_INT8 if fits else 0
        self._parts: dict[tuple[int | None, int | None], tuple[Tensor, Tensor, Tensor, Tensor | None]] = {}

    def forward(self, x: Float[Tensor, "*N I"]) -> Float[Tensor, "*N O"]:
        """Return x Wᵀ + b, approximately."""
        return self.part(x, slice(None))

    def part(self, x: Float[Tensor, "*N I"], outputs: slice) -> Float[Tensor, "*N P"]:
        """Return only the chosen columns of x Wᵀ + b, approximately."""
        where = outputs.start, outputs.stop
        if where not in self._parts:
            self._parts[where] = self._columns(outputs)
        return self._product(x, *self._parts[where])

    def of_columns(self, outputs: Int[Tensor, "P"]) -> Callable[[Tensor], Tensor]:
        """Return a function from x to these columns of x Wᵀ + b, approximately."""
        columns = self._columns(outputs)
        return lambda x: self._product(x, *columns)

    def _columns(self, outputs: slice | Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        own = None if self.bias is None else self.bias[outputs]
        return self.weight[outputs], self.ones[outputs], self.scale[:, outputs], own

    def _product(self, x: Tensor, weight: Tensor, ones: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])  # (N, I)
        if rows.numel() * weight.shape[0] <= self.small:
            sums = torch._weight_int8pack_mm(rows.bfloat16(), weight, ones).float()
        else:
            integers, size = _integers(rows, 127)
            sums = torch._int_mm(integers, weight.t()).float().mul_(size)
        result = sums.mul_(scale) if bias is None else torch.addcmul(bias, sums, scale)  # (N, O)
        return result.view(*x.shape[:-1], -1)


QUANTIZED_LINEARS = {"bfloat16": RoundedLinear, "int8": IntegerLinear}


@cache
def largest_weight() -> int:
    """Return the largest integer for a weight: 127, or 64 if sums of larger products overflow in this process.

    Without VNNI, oneDNN adds 128 to each number of x and adds pairs of products in 16 bits: 2 · 255 · 64 still fits.
    Which instructions oneDNN uses depends on the processor and on variables such as `ONEDNN_MAX_CPU_ISA`, so only a
    product tells.
    """
    largest = torch.full((32, 32), 127, dtype=torch.int8)
    return 127 if int(torch._int_mm(largest, largest).min()) == 32 * 127**2 else 64


def _integers(x: Float[Tensor, "N I"], largest: int) -> tuple[Int8[Tensor, "N I"], Float[Tensor, "N 1"]]:
    """Return integers up to ±`largest` and a scale per row, such that integers · scale equals x up to rounding."""
    scale = x.abs().amax(-1, keepdim=True).div_(largest).clamp_min_(torch.finfo(x.dtype).tiny)
    return (x / scale).round_().to(torch.int8), scale
