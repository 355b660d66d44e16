"""The decoder's state between decoding steps, so that each step computes only the newest position.

A cache is an explicit value: each step takes a cache and returns a new cache, and the model keeps no state. During
decoding, sentences may leave the cache and new sentences may enter it. A sentence that enters late has zeros at the
positions before its entry; the mask hides these positions.

Axes: B sentences · R rows (hypotheses, sentence-major: R = B × hypotheses of a sentence) · H heads · T target positions
so far · S source positions · K, W width of a head's key, value.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.model.masks import entry_mask

__all__ = ["Cache", "KeyValues", "LayerCache"]


class KeyValues(NamedTuple):
    """The keys (…, H, S, K) and values (…, H, S, W) of an attention layer."""

    key: Float[Tensor, "rows H S K"]
    value: Float[Tensor, "rows H S W"]

    def select(self, index: Int[Tensor, "n"]) -> "KeyValues":
        """Return the keys and values of these rows, in this order."""
        return KeyValues(self.key[index], self.value[index])

    def padded(self, rows: int, before: int, behind: int) -> "KeyValues":
        """Return these tensors with zeros for `rows` more rows, and for `before` and `behind` more positions.

        The new rows come last. The new positions come before and behind the existing positions; negative numbers remove
        positions.
        """
        return KeyValues(*(F.pad(x, (0, 0, before, behind, 0, 0, 0, rows)) for x in self))


@dataclass(slots=True)
class LayerCache:
    """A decoder layer's keys and values: of the source for each sentence, and of the target so far for each row."""

    memory: KeyValues
    past: KeyValues | None = None

    def extend(self, key: Float[Tensor, "R H T K"], value: Float[Tensor, "R H T W"]) -> KeyValues:
        """Append the newest positions' keys and values; return the keys and values of all target positions."""
        if self.past is not None:
            # (R, H, T − 1, K) and (R, H, 1, K) -> (R, H, T, K)
            key, value = torch.cat([self.past.key, key], dim=2), torch.cat([self.past.value, value], dim=2)
        self.past = KeyValues(key, value)
        return self.past


@dataclass(frozen=True, slots=True)
class Cache:
    """The decoder's state: the cache of each layer, the source's mask, and the number of target positions so far."""

    layers: tuple[LayerCache, ...]
    memory_mask: Bool[Tensor, "B 1 1 S"]
    length: int = 0
    entered: Int[Tensor, "B"] | None = None
    """The position at which each sentence entered the cache; None = all at position 0."""
    padded: bool = True
    """Whether the source's mask hides any position; if not, cross-attention needs no mask."""

    @property
    def start(self) -> "int | Int[Tensor, 'R 1']":
        """The position of each row's next token in its own target."""
        return self.length if self.entered is None else self._of_rows(self.length - self.entered)[:, None]

    @property
    def target_mask(self) -> Bool[Tensor, "R 1 1 T"] | None:
        """The mask for each row's newest token, which hides the positions before the row's sentence entered."""
        return None if self.entered is None else entry_mask(self._of_rows(self.entered), self.length)

    def next(self, tokens: int) -> "Cache":
        """Return the cache for the next step: the same keys and values, and a length that is larger by `tokens`.

        Extending the returned cache leaves this cache unchanged.
        """
        layers = tuple(LayerCache(layer.memory, layer.past) for layer in self.layers)
        return replace(self, layers=layers, length=self.length + tokens)

    def select(self, rows: Int[Tensor, "rows"], sentences: Int[Tensor, "sentences"]) -> "Cache":
        """Return the cache of these rows (hypotheses) and these sentences, in this order."""
        same = torch.equal(sentences, torch.arange(self.memory_mask.shape[0], device=sentences.device))
        layers = tuple(
            LayerCache(
                layer.memory if same else layer.memory.select(sentences),
                layer.past and layer.past.select(rows),
            )
            for layer in self.layers
        )
        if same:
            return replace(self, layers=layers)
        entered = None if self.entered is None else self.entered[sentences]
        return replace(self, layers=layers, memory_mask=self.memory_mask[sentences], entered=entered)

    def join(self, others: "Cache") -> "Cache":
        """Return a cache of this cache's sentences followed by the sentences of `others`, which have no tokens yet.

        Each sentence of `others` gets as many rows as a sentence of this cache. Target and memory positions that no
        sentence needs any more are removed.
        """
        B, B2 = len(self.memory_mask), len(others.memory_mask)
        entered = self.memory_mask.new_zeros(B, dtype=torch.int64) if self.entered is None else self.entered
        gone = int(entered.min())
        entered = F.pad(entered, (0, B2), value=self.length) - gone
        widths = [int(cache.memory_mask.sum(-1).max()) for cache in (self, others)]
        missing = [max(widths) - cache.memory_mask.shape[-1] for cache in (self, others)]
        layers = tuple(
            LayerCache(
                _joined(layer.memory.padded(0, 0, missing[0]), other.memory.padded(0, 0, missing[1])),
                layer.past and layer.past.padded(rows=len(layer.past.key) // B * B2, before=-gone, behind=0),
            )
            for layer, other in zip(self.layers, others.layers, strict=True)
        )
        masks = [F.pad(cache.memory_mask, (0, more)) for cache, more in zip((self, others), missing, strict=True)]
        return Cache(layers, torch.cat(masks), self.length - gone, entered)

    def _of_rows(self, x: Int[Tensor, "B"]) -> Int[Tensor, "R"]:
        past = self.layers[0].past
        return x if past is None else x.repeat_interleave(len(past.key) // len(x))


def _joined(one: KeyValues, other: KeyValues) -> KeyValues:
    return KeyValues(*(torch.cat(pair) for pair in zip(one, other, strict=True)))
