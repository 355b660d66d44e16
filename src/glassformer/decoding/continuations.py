"""The best ways for hypotheses to go on, found without sorting whole vocabularies.

Axis letters: B sentences · K hypotheses of each · V vocabulary · G blocks of the vocabulary · C continuations.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Continuations", "best_continuations"]

BLOCK = 128


class Continuations(NamedTuple):
    """C ways to go on for each of B sentences, best first: the hypothesis of row `rows`, then the token `tokens`."""

    log_probs: Float[Tensor, "B C"]
    """Of the whole hypothesis, the new token included; −inf when it is impossible."""
    rows: Int[Tensor, "B C"]
    """Which of the B·K hypotheses goes on, one of its own sentence."""
    tokens: Int[Tensor, "B C"]
    token_log_probs: Float[Tensor, "B C"]

    def pick(self, places: Int[Tensor, "B C2"]) -> "Continuations":
        """Return the continuations at these places of each sentence."""
        return Continuations(*(field.gather(1, places) for field in self))


def best_continuations(log_probs: Float[Tensor, "R V"], so_far: Float[Tensor, "B K"], count: int) -> Continuations:
    """Return each sentence's `count` continuations of highest log probability, or all K·V when there are fewer.

    The best `count` tokens lie in the `count` blocks with the highest peaks. Only those blocks are searched, and the
    rest of the vocabulary that fills no block: several times faster than `topk` over K·V. NaN counts as impossible.
    """
    (B, K), V = so_far.shape, log_probs.shape[1]
    G = V // BLOCK
    row = torch.arange(B * K, device=log_probs.device).view(B, K)
    blocks = log_probs[:, : G * BLOCK].unflatten(1, (G, BLOCK))
    rest = F.pad(log_probs[:, G * BLOCK :], (0, BLOCK - V % BLOCK), value=-torch.inf).view(B, K, BLOCK)

    peaks = _nan_to_impossible(blocks.amax(-1).view(B, K, G) + so_far[..., None]).flatten(1)
    highest = row[:, :1] * G + peaks.topk(min(count, K * G)).indices  # (B, C), counted over all rows: row · G + block
    rows, block = highest // G, highest % G
    searched = torch.cat([blocks[rows, block], rest], dim=1)  # (B, C + K, BLOCK)
    rows = torch.cat([rows, row], dim=1)
    starts = torch.cat([block * BLOCK, torch.full_like(row, G * BLOCK)], dim=1)

    sums = _nan_to_impossible(searched + so_far.take(rows)[..., None]).flatten(1)
    best_sums, best = sums.topk(min(count, K * V))
    rows, starts = (x.gather(1, best // BLOCK) for x in (rows, starts))
    tokens = (starts + best % BLOCK).clamp(max=V - 1)  # beyond V is padding, which is impossible as any token
    return Continuations(best_sums, rows, tokens, log_probs[rows, tokens])


def _nan_to_impossible(log_probs: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return log_probs.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)
