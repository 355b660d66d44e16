"""Weights of fewer bits, for decoding on CPUs: less to read from memory for each token.

Only the matrices of the products are changed; embeddings, norms, attention and softmax stay in float32.

Axes: N rows, of any shape · I input width · O output width · P part of it.
"""

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.decoding.engine import Quantization
from glassformer.errors import ConfigError, nearest
from glassformer.model.linear import Linear
from glassformer.model.transformer import Transformer

__all__ = ["IntegerLinear", "RoundedLinear", "quantise"]


def quantise(model: Transformer, quantization: Quantization) -> Transformer:
    """Put matrices of this kind into a model and return it: it can then decode on a CPU, but not be trained.

    Raises:
        ConfigError: the model is not on the CPU in float32, or there is no such kind.
    """
    if quantization == "float32":
        return model
    if quantization not in KINDS:
        raise ConfigError(
            f"quantization = {quantization!r}: PyTorch has float32, {' and '.join(KINDS)} here"
            f"{nearest(quantization, KINDS)}; or use the engine ctranslate2"
        )
    trained = model.output.weight
    if trained.device.type != "cpu" or trained.dtype != torch.float32:
        raise ConfigError(
            f"quantization = {quantization!r} is for models on the CPU in float32, and this one is on "
            f"{trained.device} in {trained.dtype}"
        )
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Linear):
                setattr(module, name, KINDS[quantization](child))
    return model


class RoundedLinear(nn.Module):
    """A `Linear` whose weights, inputs and results are rounded to bf16; sums are those of float32."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.weight = linear.weight.detach().bfloat16()
        self.bias = None if linear.bias is None else linear.bias.detach().bfloat16()

    def forward(self, x: Float[Tensor, "*N I"]) -> Float[Tensor, "*N O"]:
        """Return x Wᵀ + b, about."""
        return F.linear(x.bfloat16(), self.weight, self.bias).float()

    def part(self, x: Float[Tensor, "*N I"], outputs: slice) -> Float[Tensor, "*N P"]:
        """Return these outputs alone."""
        bias = None if self.bias is None else self.bias[outputs]
        return F.linear(x.bfloat16(), self.weight[outputs], bias).float()


class IntegerLinear(nn.Module):
    """A `Linear` with integers from −127 to 127, and a scale for each row of W; each row of x becomes the like.

    Their products are summed up exactly, and a row's result does not depend on what stands beside it.
    """

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.weight, self.scale = _integers(linear.weight.detach())
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Float[Tensor, "*N I"]) -> Float[Tensor, "*N O"]:
        """Return x Wᵀ + b, about."""
        return self.part(x, slice(None))

    def part(self, x: Float[Tensor, "*N I"], outputs: slice) -> Float[Tensor, "*N P"]:
        """Return these outputs alone."""
        rows, scale = _integers(x.flatten(0, -2))
        sums = torch._int_mm(rows, self.weight[outputs].t())  # (N, P), int32
        result = sums * scale * self.scale[outputs].t()
        if self.bias is not None:
            result += self.bias[outputs]
        return result.view(*x.shape[:-1], -1)


KINDS = {"bfloat16": RoundedLinear, "int8": IntegerLinear}


def _integers(x: Float[Tensor, "N I"]) -> tuple[Int8[Tensor, "N I"], Float[Tensor, "N 1"]]:
    """Return integers and, for each row, the scale that makes them x again, but for rounding."""
    scale = x.abs().amax(-1, keepdim=True).div_(127).clamp_min_(torch.finfo(x.dtype).tiny)
    return (x / scale).round_().to(torch.int8), scale
