"""Greedy search: the most probable token at each step. Sampling uses the same loop, `follow`, but chooses tokens at
random.

Axis letters: B active sentences · V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints, no_output
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.decoding.queued_step import Active
from glassformer.decoding.step import State, Step, widest
from glassformer.recipes.configuration import DecodingConfig

__all__ = ["Choose", "follow", "greedy"]

Choose = Callable[[Float[Tensor, "B V"], Int[Tensor, "B"], Int[Tensor, "B"]], Int[Tensor, "B"]]
"""A function (log probabilities, sentence of each row, position of each row) → the next token of each row."""


def greedy(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
    **settings: Any,
) -> list[Hypothesis]:
    """Return, for each sentence, the hypothesis that has the most probable token at each step.

    Takes the arguments of `beam_search` except `n_best` and `watch`. Of the settings, only `length_penalty` is used, to
    compute `score`.

    Raises:
        ConfigError: a setting is out of range.
        DecodingError: a maximum length is below 1, a prefix is too long or invalid, or a sentence has no possible
            output.
    """
    decoding, constraints = DecodingConfig(**settings), Constraints.of(step, max_lengths, prefixes)
    return follow(step, _most_probable, constraints, decoding)


def _most_probable(
    log_probs: Float[Tensor, "B V"], _sentences: Int[Tensor, "B"], _positions: Int[Tensor, "B"]
) -> Int[Tensor, "B"]:
    return log_probs.argmax(-1)


@torch.inference_mode()
def follow(step: Step[State], choose: Choose, constraints: Constraints, settings: DecodingConfig) -> list[Hypothesis]:
    """Return one hypothesis per sentence, made of the tokens that `choose` picks."""
    B, longest = constraints.forced.shape
    if not B:
        return []
    active = Active(step, B)
    newest = torch.full((active.admit(),), step.bos_id, device=step.device)
    # Allocated once. Small tensors allocated at each step would fragment the memory that the growing state frees; for
    # outputs of a thousand tokens, this fragmentation took gigabytes.
    tokens = torch.full_like(constraints.forced, step.pad_id)
    token_log_probs = torch.zeros_like(constraints.forced, dtype=widest(step.device))
    while len(newest):
        log_probs = active.advance(newest)
        sentences, positions = active.sentences, active.positions
        constraints.apply_(log_probs, sentences, positions)
        newest = choose(log_probs, sentences, positions)
        tokens[sentences, positions] = newest
        token_log_probs[sentences, positions] = (
            log_probs.gather(1, newest[:, None]).squeeze(1).to(token_log_probs.dtype)
        )

        # If a sentence has no possible token, `newest` is arbitrary. The second condition ends such a sentence, too.
        going = ((newest != step.eos_id) & (positions < longest - 1)).nonzero().squeeze(1)
        active.keep(going)
        newest = newest[going]
        if count := active.admit():
            newest = F.pad(newest, (0, count), value=step.bos_id)

    for sentence, log_prob in enumerate(token_log_probs.sum(1).tolist()):
        if not log_prob > -math.inf:  # also true for NaN
            raise no_output(sentence)
    paths = zip(tokens.tolist(), token_log_probs.tolist(), strict=True)
    return [Hypothesis.ending_with(step.eos_id, *both, settings) for both in paths]
