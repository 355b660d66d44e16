"""The residual connection around every sub-layer: only this module decides the order of norm, dropout and sum.

Axes: B batch · T positions · D d_model.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.config import Norm
from glassformer.model.dropout import Dropout
from glassformer.model.taps import Tap

__all__ = ["Residual"]


class Residual(nn.Module):
    """x + Dropout(Sublayer(x)), with the layer norm after the sum ("post") or before the sub-layer ("pre").

    Paper: §3.1 and §5.4 have post-norm, LayerNorm(x + Sublayer(x)). Pre-norm differs: x + Sublayer(LayerNorm(x)). Both
    add the unchanged x. LayerNorm divides by √(biased variance + 1e-5). Values pass through the sub-layer's tap, so
    that their full names begin with the sub-layer's path.
    """

    def __init__(self, d_model: int, norm: Norm, dropout: float, tap: Tap) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.tap = tap

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        """Return the residual stream after this sub-layer."""
        x = self.tap("input", x)
        if self.pre:
            normed = self.tap("normed", self.norm(x))
            return self.tap("added", self.add(x, sublayer(normed)))
        added = self.tap("added", self.add(x, sublayer(x)))
        return self.tap("normed", self.norm(added))

    def add(self, x: Float[Tensor, "B T D"], share: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return x + Dropout(share), where `share` is the sub-layer's output.

        This is a method so that `inspection/mistakes.py` can replace it by a faulty function.
        """
        added: Tensor = x + self.dropout(share)
        return added

    if TYPE_CHECKING:
        __call__ = forward
