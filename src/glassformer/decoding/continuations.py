"""The best ways for hypotheses to go on, found without sorting whole vocabularies.

Axis letters: B sentences · K hypotheses of each · V vocabulary · G blocks of the vocabulary · C continuations.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Continuations", "best_continuations"]

BLOCKS = (128, 160, 192, 224, 256, 96, 64)
"""How many tokens a block may have. A vocabulary that none of these divides is filled up to blocks of the first."""


class Continuations(NamedTuple):
    """C ways to go on for each of B sentences, best first: the hypothesis of row `rows`, then the token `tokens`."""

    log_probs: Float[Tensor, "B C"]
    """Of the whole hypothesis, the new token included; −inf when it is impossible."""
    rows: Int[Tensor, "B C"]
    """Which of the B·K hypotheses goes on, one of its own sentence."""
    tokens: Int[Tensor, "B C"]
    token_log_probs: Float[Tensor, "B C"]

    def first(self, count: int) -> "Continuations":
        """Return the best ones of each sentence."""
        return Continuations(*(field[:, :count] for field in self))

    def pick(self, places: Int[Tensor, "B C2"]) -> "Continuations":
        """Return the continuations at these places of each sentence."""
        return Continuations(*(field.gather(1, places) for field in self))


def best_continuations(log_probs: Float[Tensor, "R V"], so_far: Float[Tensor, "B K"], count: int) -> Continuations:
    """Return each sentence's `count` continuations of highest log probability, or all K·V when there are fewer.

    The best `count` tokens lie in the `count` blocks with the highest peaks. Only those blocks are searched: several
    times faster than `topk` over K·V. NaN counts as impossible.
    """
    (B, K), V = so_far.shape, log_probs.shape[1]
    size = next((size for size in BLOCKS if V % size == 0), BLOCKS[0])
    G = -(-V // size)
    full = log_probs if V % size == 0 else F.pad(log_probs, (0, G * size - V), value=-torch.inf)
    blocks = full.view(B * K * G, size)

    peaks = _nan_to_impossible(blocks.amax(-1).view(B, K, G) + so_far[..., None]).flatten(1)
    first = torch.arange(0, len(blocks), K * G, device=log_probs.device)[:, None]  # of each sentence
    highest = first + peaks.topk(min(count, K * G)).indices  # (B, C), counted over all blocks: row · G + block
    sums = _nan_to_impossible(blocks[highest] + so_far.take(highest // G)[..., None]).flatten(1)  # (B, C · size)
    best_sums, best = sums.topk(min(count, K * V))
    block = highest.gather(1, best // size)
    rows = block // G
    tokens = (block % G * size + best % size).clamp(max=V - 1)  # beyond V nothing is possible
    return Continuations(best_sums, rows, tokens, log_probs[rows, tokens])


def _nan_to_impossible(log_probs: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return log_probs.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
