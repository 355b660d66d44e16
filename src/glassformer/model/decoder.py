"""The decoder: every target position attends to the target so far, then to the source, to predict the next token.

Axes: B sentences · R rows (R = B unless a beam is decoded) · T target positions · P attended positions, including
positions in the cache · S source positions · D d_model.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.cache import LayerCache
from glassformer.model.feed_forward import FeedForward
from glassformer.model.points import DECODER, names
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap

__all__ = ["Decoder", "DecoderLayer"]


class Decoder(nn.Module):
    """A stack of layers over the target; `norm` comes after the last layer, as in the encoder. Paper: §3.1."""

    POINTS = names(DECODER)

    def __init__(self, layers: Iterable["DecoderLayer"], norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.tap = Tap()

    def start(self, memory: Float[Tensor, "B S D"]) -> tuple[LayerCache, ...]:
        """Return an empty cache for each layer, with the layer's keys and values of the memory."""
        # Computed once for each source: the memory does not change while the target grows.
        return tuple(
            LayerCache(layer.cross_attention.key_value(memory)) for layer in cast("Iterable[DecoderLayer]", self.layers)
        )

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        mask: Bool[Tensor, "#R 1 T P"] | None,
        caches: tuple[LayerCache, ...],
        memory_mask: Bool[Tensor, "B 1 1 S"] | None,
    ) -> Float[Tensor, "R T D"]:
        """Return the residual stream after all layers; extend each layer's cache by the positions of x."""
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, mask, cache, memory_mask)
        return self.tap("output", self.norm(x))

    if TYPE_CHECKING:
        __call__ = forward


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, cross-attention to the memory, feed-forward. Paper: Figure 1 right."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        residual: Callable[[Tap], Residual],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_attention_residual = residual(self_attention.tap)
        self.cross_attention = cross_attention
        self.cross_attention_residual = residual(cross_attention.tap)
        self.feed_forward = feed_forward
        self.feed_forward_residual = residual(feed_forward.tap)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        mask: Bool[Tensor, "#R 1 T P"] | None,
        cache: LayerCache,
        memory_mask: Bool[Tensor, "B 1 1 S"] | None,
    ) -> Float[Tensor, "R T D"]:
        """Return the residual stream after the three sub-layers; cross-attention reads the memory from the cache."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, mask, cache=cache))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory_mask, memory=cache.memory))
        return self.feed_forward_residual(x, self.feed_forward)

    if TYPE_CHECKING:
        __call__ = forward
