"""Attention masks: which query may attend to which key. All masks of the model are made here.

A mask is boolean; True means *may attend* (as in `torch.nn.functional.scaled_dot_product_attention`, and the opposite
of `torch.nn.MultiheadAttention`). Masks broadcast to (B, H, T, S).

Axes: B batch · H heads · T query positions · S key positions.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["causal_mask", "entry_mask", "padding_mask", "target_mask"]


def padding_mask(ids: Int[Tensor, "B S"], pad_id: int) -> Bool[Tensor, "B 1 1 S"]:
    """Return the mask that hides padding: every query may attend to every real position."""
    return (ids != pad_id)[:, None, None, :]  # (B, S) -> (B, 1, 1, S): the same for every head and query


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 T T"]:
    """Return the mask that hides the future: position i may attend to positions up to and including i.

    Paper: §3.2.3, third point.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]  # (T, T) -> (1, 1, T, T)


def target_mask(ids: Int[Tensor, "B T"], pad_id: int) -> Bool[Tensor, "B 1 T T"]:
    """Return the decoder's mask, which hides padding and the future."""
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1], ids.device)  # (B, 1, 1, T) & (1, 1, T, T)


def entry_mask(entered: Int[Tensor, "B"], length: int) -> Bool[Tensor, "B 1 1 S"]:
    """Return the mask that hides, for each sentence, the cache's positions before the sentence entered."""
    return (torch.arange(length, device=entered.device) >= entered[:, None])[:, None, None, :]
