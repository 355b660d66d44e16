"""The residual connection around every sub-layer: only this module decides the order of norm, dropout and sum.

Axes: B batch · T positions · D d_model.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.model.config import NormPlace
from glassformer.model.fast.dropout import Dropout
from glassformer.model.taps import Tap

__all__ = ["Residual"]


class Residual(nn.Module):
    """x + Dropout(Sublayer(x)), with the norm after the sum ("post") or before the sub-layer ("pre").

    Paper: §3.1 and §5.4 have post-norm, LayerNorm(x + Sublayer(x)). Pre-norm differs: x + Sublayer(LayerNorm(x)).
    """

    def __init__(self, norm: nn.Module, place: NormPlace, dropout: float, tap: Tap) -> None:
        super().__init__()
        match place:
            case "post":
                self.pre = False
            case "pre":
                self.pre = True
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.tap = tap  # the sub-layer's tap, so the names of these points begin with the sub-layer's path

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T D"]:
        """Return the residual stream after this sub-layer."""
        x = self.tap("input", x)
        if self.pre:  # pre-norm: no norm rescales the stream itself, so gradients reach every layer unscaled
            normed = self.tap("normed", self.norm(x))
            return self.tap("added", self.add(x, sublayer(normed)))
        added = self.tap("added", self.add(x, sublayer(x)))
        return self.tap("normed", self.norm(added))

    def add(self, x: Float[Tensor, "B T D"], share: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return x + Dropout(share), where `share` is the sub-layer's output.

        This is a method so that `watch/inspection/mistakes.py` can replace it by a faulty function.
        """
        added: Tensor = x + self.dropout(share)
        return added

    if TYPE_CHECKING:
        __call__ = forward
