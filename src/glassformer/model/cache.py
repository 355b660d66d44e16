"""What a decoder keeps from step to step, so that each new token costs one position instead of all.

A cache is a value: a step takes one and returns the next, and nothing is kept inside the model.

Axes: B sentences · R rows (hypotheses, sentence-major: R = B × hypotheses of a sentence) · H heads · T target positions
so far · S source positions · K, W width of a head's key, value.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Cache", "KeyValues", "LayerCache"]


class KeyValues(NamedTuple):
    """The keys (…, H, S, K) and values (…, H, S, W) that an attention looks at."""

    key: Float[Tensor, "rows H S K"]
    value: Float[Tensor, "rows H S W"]

    def select(self, index: Int[Tensor, "n"]) -> "KeyValues":
        """Return the keys and values of these rows, in this order."""
        return KeyValues(self.key[index], self.value[index])


@dataclass(slots=True)
class LayerCache:
    """One decoder layer's share: keys and values of the target so far, per row, and of the source, per sentence."""

    memory: KeyValues
    past: KeyValues | None = None

    def extend(self, key: Float[Tensor, "R H T K"], value: Float[Tensor, "R H T W"]) -> KeyValues:
        """Append the newest positions' keys and values, and return all."""
        if self.past is not None:
            key, value = torch.cat([self.past.key, key], dim=2), torch.cat([self.past.value, value], dim=2)
        self.past = KeyValues(key, value)
        return self.past


@dataclass(frozen=True, slots=True)
class Cache:
    """The state of a decoding: one share for each decoder layer, the source's mask, and how many tokens were fed."""

    layers: tuple[LayerCache, ...]
    memory_mask: Bool[Tensor, "B 1 1 S"]
    length: int = 0

    def next(self, tokens: int) -> "Cache":
        """Return a cache that holds the same and may be extended by so many tokens; this one stays as it is."""
        layers = tuple(LayerCache(layer.memory, layer.past) for layer in self.layers)
        return Cache(layers, self.memory_mask, self.length + tokens)

    def select(self, rows: Int[Tensor, "rows"], sentences: Int[Tensor, "sentences"]) -> "Cache":
        """Return the cache of these rows (of hypotheses) and these sentences, in this order."""
        same = torch.equal(sentences, torch.arange(self.memory_mask.shape[0], device=sentences.device))
        layers = tuple(
            LayerCache(
                layer.memory if same else layer.memory.select(sentences),
                layer.past and layer.past.select(rows),
            )
            for layer in self.layers
        )
        return Cache(layers, self.memory_mask if same else self.memory_mask[sentences], self.length)
