"""The encoder: every source position gathers information from all other source positions, layer after layer.

Axes: B batch · S source positions · D d_model.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.feed_forward import FeedForward
from glassformer.model.points import ENCODER, names
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap

__all__ = ["Encoder", "EncoderLayer"]


class Encoder(nn.Module):
    """A stack of layers, whose output is the memory. Paper: §3.1.

    `norm` comes after the last layer. The paper has no norm there, but pre-norm needs a final norm, because pre-norm
    layers do not normalise their sums.
    """

    POINTS = names(ENCODER)

    def __init__(self, layers: Iterable["EncoderLayer"], norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.tap = Tap()

    def forward(self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"]) -> Float[Tensor, "B S D"]:
        """Return the memory of a source: one vector per position."""
        for layer in self.layers:
            x = layer(x, mask)  # (B, S, D) everywhere, so that every layer can add to the same residual stream
        return self.tap("output", self.norm(x))

    if TYPE_CHECKING:
        __call__ = forward


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its residual connection. Paper: §3.1, Figure 1 left."""

    def __init__(
        self, self_attention: MultiHeadAttention, feed_forward: FeedForward, residual: Callable[[Tap], Residual]
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = residual(self_attention.tap)
        self.feed_forward = feed_forward
        self.feed_forward_residual = residual(feed_forward.tap)

    def forward(self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"]) -> Float[Tensor, "B S D"]:
        """Return the residual stream after both sub-layers."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, mask))
        return self.feed_forward_residual(x, self.feed_forward)

    if TYPE_CHECKING:
        __call__ = forward
