"""The best continuations of hypotheses, found without sorting whole vocabularies.

Axis letters: B sentences · K hypotheses per sentence · V vocabulary · G blocks of the vocabulary · C continuations.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Continuations", "best_continuations"]

BLOCKS = (128, 160, 192, 224, 256, 96, 64)
"""Possible block sizes; a vocabulary that none of them divides is padded to blocks of the first size."""


class Continuations(NamedTuple):
    """The C best continuations of each of B sentences: the token in `tokens`, appended to the hypothesis in `rows`."""

    log_probs: Float[Tensor, "B C"]
    """Log probability of the whole hypothesis, including the new token; −inf if the continuation is impossible."""
    rows: Int[Tensor, "B C"]
    """Index of the continued hypothesis among all B·K hypotheses; it belongs to the same sentence."""
    tokens: Int[Tensor, "B C"]
    token_log_probs: Float[Tensor, "B C"]

    def first(self, count: int) -> "Continuations":
        """Return the best `count` continuations of each sentence."""
        return Continuations(*(field[:, :count] for field in self))

    def pick(self, places: Int[Tensor, "B C2"]) -> "Continuations":
        """Return the continuations at these indices, for each sentence."""
        return Continuations(*(field.gather(1, places) for field in self))


def best_continuations(log_probs: Float[Tensor, "R V"], so_far: Float[Tensor, "B K"], count: int) -> Continuations:
    """Return each sentence's `count` continuations with the highest log probability, or all K·V if `count` is larger.

    The best `count` continuations lie in the `count` blocks with the highest maxima. Searching only these blocks is
    several times as fast as `topk` over all K·V continuations. A continuation whose log probability is NaN counts as
    impossible.
    """
    (B, K), V = so_far.shape, log_probs.shape[1]
    size = next((size for size in BLOCKS if V % size == 0), BLOCKS[0])
    G = -(-V // size)
    full = log_probs if V % size == 0 else F.pad(log_probs, (0, G * size - V), value=-torch.inf)
    blocks = full.view(B * K * G, size)

    peaks = _nan_to_impossible(blocks.amax(-1).view(B, K, G) + so_far[..., None]).flatten(1)
    first = torch.arange(0, len(blocks), K * G, device=log_probs.device)[:, None]  # the first block of each sentence
    highest = first + peaks.topk(min(count, K * G)).indices  # (B, C): indices over all blocks, row · G + block
    sums = _nan_to_impossible(blocks[highest] + so_far.take(highest // G)[..., None]).flatten(1)  # (B, C · size)
    best_sums, best = sums.topk(min(count, K * V))
    block = highest.gather(1, best // size)
    rows = block // G
    # padding beyond V is impossible, so its token only needs to be a valid index
    tokens = (block % G * size + best % size).clamp(max=V - 1)
    # read instead of computed from sums, whose rounding would differ from the scoring of a given target
    return Continuations(best_sums, rows, tokens, log_probs[rows, tokens])


def _nan_to_impossible(log_probs: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return log_probs.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)  # by default, −inf would become a finite number
