"""Sampling: at each step, draw a random token by its probability, reproducibly.

Axis letters: B active sentences · L the largest maximum length · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints
from glassformer.decoding.greedy_search import follow
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.decoding.step import State, Step, widest
from glassformer.errors import DecodingError
from glassformer.recipes.configuration import DecodingConfig

__all__ = ["draw", "sample"]

SEEDS = 2**32  # torch's CPU generator only uses this many bits of its seed


def sample(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
    **settings: Any,
) -> list[Hypothesis]:
    """Return, for each sentence, a hypothesis drawn token by token; a seed gives the same draws in any batch.

    Args:
        step: The model and its sources.
        max_lengths: For each sentence, its maximum number of tokens, including `<eos>`.
        seeds: For each sentence, the seed of its random numbers, an integer taken modulo 2³².
        prefixes: For each sentence, the tokens that its output must begin with.
        settings: Settings of `DecodingConfig` by name: `temperature`, `top_k`, `top_p` (a share of the probability that
            `top_k` leaves), and `length_penalty` for `score`.

    A hypothesis's `log_prob` is its log probability at temperature 1 and over all tokens.

    Raises:
        ConfigError: a setting is out of range.
        DecodingError: a prefix is too long or invalid, or a sentence has no possible output.
    """
    decoding, constraints = DecodingConfig(**settings), Constraints.of(step, max_lengths, prefixes)
    heights = _heights(seeds, max_lengths).to(step.device, widest(step.device))

    def by_lot(log_probs: Tensor, sentences: Tensor, positions: Tensor) -> Tensor:
        return draw(
            log_probs,
            heights[sentences, positions],
            temperature=decoding.temperature,
            top_k=decoding.top_k,
            top_p=decoding.top_p,
        )

    return follow(step, by_lot, constraints, decoding)


def draw(
    log_probs: Float[Tensor, "B V"], heights: Float[Tensor, "B"], *, temperature: float, top_k: int, top_p: float
) -> Int[Tensor, "B"]:
    """Return, for each row, the first token at which the cumulative probability reaches the row's height.

    The heights are random numbers in (0, 1], so each token is drawn with its probability. `temperature`, `top_k` and
    `top_p` change the probabilities before the draw.
    """
    temperature = max(temperature, torch.finfo(log_probs.dtype).tiny)
    peaks = log_probs.amax(1, keepdim=True)  # subtracted first, so that small temperatures do not overflow
    weights = ((log_probs - peaks) / temperature).softmax(1).nan_to_num_()  # NaN where no token is possible
    tokens = None
    if 0 < top_k < weights.shape[1]:  # topk sorts, which `top_p` needs
        weights, tokens = weights.topk(top_k)
    elif top_p < 1:
        weights, tokens = weights.sort(dim=1, descending=True, stable=True)

    cumulative = weights.cumsum(1)
    last = torch.searchsorted(cumulative, top_p * cumulative[:, -1:])  # the last token of the nucleus
    share = cumulative.gather(1, last)
    # The cumulative probability increases at the drawn token, so the token has a probability above 0 and is among the
    # tokens that `top_p` allows.
    drawn = torch.searchsorted(cumulative, heights[:, None].to(share) * share)
    return (drawn if tokens is None else tokens.gather(1, drawn)).squeeze(1)


def _heights(seeds: Sequence[int], max_lengths: Sequence[int]) -> Float[Tensor, "B L"]:
    """Return random numbers in (0, 1], one per position, from a separate generator for each sentence."""
    if len(seeds) != len(max_lengths):
        raise DecodingError(f"seeds: expected a seed for each of {len(max_lengths)} sentences, got {len(seeds)}")
    # on the CPU, so that a seed gives the same numbers on every device
    heights = torch.ones(len(seeds), max(max_lengths, default=0), dtype=torch.float64, device="cpu")
    for row, seed, length in zip(heights, seeds, max_lengths, strict=True):
        generator = torch.Generator().manual_seed(seed % SEEDS)
        row[:length] -= torch.rand(length, generator=generator, dtype=torch.float64, device="cpu")
    return heights
