"""The residual connection around every sub-layer: the only place that knows the order of norm, dropout and sum.

Axes: B batch · T positions · D d_model.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.config import Norm
from glassformer.model.dropout import Dropout
from glassformer.model.taps import Tap

__all__ = ["RESIDUAL_POINTS", "Residual", "final_norm"]

RESIDUAL_POINTS = ("input", "added", "normed")


class Residual(nn.Module):
    """x + Dropout(Sublayer(x)), with the layer norm after the sum ("post") or before the sub-layer ("pre").

    Paper: §3.1 and §5.4 have post-norm, LayerNorm(x + Sublayer(x)). Pre-norm differs: x + Sublayer(LayerNorm(x)). In
    both, what is added back is x as it came. LayerNorm divides by √(biased variance + 1e-5).
    Values pass through the sub-layer's own tap, so that they are named after it.
    """

    def __init__(self, d_model: int, norm: Norm, dropout: float, tap: Tap) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.tap = tap

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        """Return the stream after the sub-layer has added its share."""
        x = self.tap("input", x)
        if self.pre:
            normed = self.tap("normed", self.norm(x))
            return self.tap("added", x + self.dropout(sublayer(normed)))
        added = self.tap("added", x + self.dropout(sublayer(x)))
        return self.tap("normed", self.norm(added))

    if TYPE_CHECKING:
        __call__ = forward


def final_norm(d_model: int, norm: Norm) -> nn.Module:
    """Return what ends a stack: a layer norm in pre-norm, whose last sum is not normalised yet."""
    return nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
