"""The feed-forward network: the same two-layer network applied to each position separately.

Axes: B batch · T positions · D d_model · F d_ff.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.config import Activation
from glassformer.model.fast.dropout import Dropout
from glassformer.model.fast.linear import Linear
from glassformer.model.points import FEED_FORWARD, RESIDUAL, names
from glassformer.model.taps import Tap

__all__ = ["ACTIVATIONS", "FeedForward"]

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2. Paper: §3.3, equation 2. A setting replaces ReLU by another activation."""

    POINTS = names(RESIDUAL, FEED_FORWARD)

    def __init__(self, d_model: int, d_ff: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.expand = Linear(d_model, d_ff)
        self.contract = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)
        self.tap = Tap()
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return the network's output at each position."""
        hidden = self.tap("hidden", self.expand(x))  # (B, T, D) -> (B, T, F)
        activated = self.tap("activated", self.dropout(self.activation(hidden)))
        return self.tap("output", self.contract(activated))  # (B, T, F) -> (B, T, D)

    if TYPE_CHECKING:
        __call__ = forward
