"""Greedy search: at each step the most probable token. The loop is shared with sampling, which chooses otherwise.

Axis letters: B sentences still being written · V vocabulary.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.active import Active
from glassformer.decoding.constraints import Constraints, no_output
from glassformer.decoding.hypothesis import PAPER_ALPHA, Hypothesis
from glassformer.decoding.step import State, Step

__all__ = ["Choose", "follow", "greedy"]

Choose = Callable[[Float[Tensor, "B V"], Int[Tensor, "B"], Int[Tensor, "B"]], Int[Tensor, "B"]]
"""(log probabilities, which sentence each row is, at which position) → the token that each row goes on with."""


def greedy(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
    length_penalty: float = PAPER_ALPHA,
) -> list[Hypothesis]:
    """Return for each sentence the hypothesis that always goes on with the most probable token.

    The arguments are those of `beam_search`; the length penalty touches `score` only.

    Raises:
        DecodingError: a maximal length is below 1, a prefix does not fit, or a sentence has no output.
    """
    constraints = Constraints.of(step, max_lengths, prefixes)
    return follow(step, lambda log_probs, *_: log_probs.argmax(-1), constraints, alpha=length_penalty)


@torch.inference_mode()
def follow(step: Step[State], choose: Choose, constraints: Constraints, *, alpha: float) -> list[Hypothesis]:
    """Return for each sentence the one hypothesis that `choose` leads to."""
    B, longest = constraints.forced.shape
    if not B:
        return []
    active = Active(step, B)
    newest = torch.full((active.admit(),), step.bos_id, device=step.device)
    # Written into from step to step: small tensors that were kept would lie in the holes that the growing state leaves,
    # which could not be used again, and a thousand tokens took gigabytes.
    tokens = torch.full_like(constraints.forced, step.pad_id)
    token_log_probs = torch.zeros_like(constraints.forced, dtype=torch.float64)
    while len(newest):
        log_probs = active.advance(newest)
        sentences, positions = active.sentences, active.positions
        constraints.apply_(log_probs, sentences, positions)
        newest = choose(log_probs, sentences, positions)
        tokens[sentences, positions] = newest
        token_log_probs[sentences, positions] = log_probs.gather(1, newest[:, None]).squeeze(1).double()

        going = ((newest != step.eos_id) & (positions < longest - 1)).nonzero().squeeze(1)
        active.keep(going)
        newest = newest[going]
        if count := active.admit():
            newest = F.pad(newest, (0, count), value=step.bos_id)

    for sentence, log_prob in enumerate(token_log_probs.sum(1).tolist()):
        if not log_prob > -math.inf:
            raise no_output(sentence)
    paths = zip(tokens.tolist(), token_log_probs.tolist(), strict=True)
    return [Hypothesis.ending_with(step.eos_id, *both, alpha) for both in paths]
