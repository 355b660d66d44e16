"""Sampling: at each step a token drawn by its probability, reproducibly.

Axis letters: B sentences still being written · L the longest of the maximal lengths · V vocabulary.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.constraints import Constraints
from glassformer.decoding.greedy_search import follow
from glassformer.decoding.hypothesis import PAPER_ALPHA, Hypothesis
from glassformer.decoding.step import State, Step
from glassformer.errors import DecodingError

__all__ = ["draw", "sample"]

SEEDS = 2**32  # torch's generator on the CPU looks at no more bits of its seed


def sample(
    step: Step[State],
    *,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    prefixes: Sequence[Sequence[int]] | None = None,
    length_penalty: float = PAPER_ALPHA,
) -> list[Hypothesis]:
    """Return for each sentence a hypothesis drawn token by token; the same seed draws the same, whatever the batch.

    Args:
        step: The model and its sources.
        max_lengths: For each sentence, how many tokens it may have, counting `<eos>`.
        seeds: For each sentence, the seed of its own random numbers, an integer taken modulo 2³².
        temperature: Divides the log probabilities before the draw: below 1 sharpens, above 1 flattens.
        top_k: Draw from the `top_k` most probable tokens only; 0 draws from all.
        top_p: Draw from the most probable tokens that together have at least this share (of what `top_k` leaves).
        prefixes: For each sentence, the tokens that it has to begin with.
        length_penalty: The exponent α in `score`.

    `log_prob` is that of the model itself, at temperature 1 and with no token left out.

    Raises:
        DecodingError: a setting is out of its range, a prefix does not fit, or a sentence has no output.
    """
    _check_settings(temperature, top_k, top_p)
    constraints = Constraints.of(step, max_lengths, prefixes)
    heights = _heights(seeds, max_lengths).to(step.device)

    def by_lot(log_probs: Tensor, sentences: Tensor, positions: Tensor) -> Tensor:
        return draw(log_probs, heights[sentences, positions], temperature=temperature, top_k=top_k, top_p=top_p)

    return follow(step, by_lot, constraints, alpha=length_penalty)


def draw(
    log_probs: Float[Tensor, "B V"], heights: Float[Tensor, "B"], *, temperature: float, top_k: int, top_p: float
) -> Int[Tensor, "B"]:
    """Return the token at which each row's cumulative probability reaches its height, a random number in (0, 1]."""
    temperature = max(temperature, torch.finfo(log_probs.dtype).tiny)
    peaks = log_probs.amax(1, keepdim=True)  # subtracted first, so that no temperature is too small
    weights = ((log_probs - peaks) / temperature).softmax(1).nan_to_num_()  # NaN: no token is possible
    tokens = None
    if 0 < top_k < weights.shape[1]:
        weights, tokens = weights.topk(top_k)
    elif top_p < 1:
        weights, tokens = weights.sort(dim=1, descending=True, stable=True)

    cumulative = weights.cumsum(1)
    last = torch.searchsorted(cumulative, top_p * cumulative[:, -1:])  # of the nucleus
    share = cumulative.gather(1, last)
    # What is reached lies where the cumulative probability rises: never a token of probability 0, never behind `last`.
    drawn = torch.searchsorted(cumulative, heights[:, None].to(share) * share)
    return (drawn if tokens is None else tokens.gather(1, drawn)).squeeze(1)


def _heights(seeds: Sequence[int], max_lengths: Sequence[int]) -> Float[Tensor, "B L"]:
    """Return random numbers in (0, 1], one for each position, each sentence's from a generator of its own."""
    if len(seeds) != len(max_lengths):
        raise DecodingError(f"got {len(seeds)} seeds for {len(max_lengths)} sentences: give each sentence its own")
    heights = torch.ones(len(seeds), max(max_lengths, default=0), dtype=torch.float64)
    for row, seed, length in zip(heights, seeds, max_lengths, strict=True):
        generator = torch.Generator().manual_seed(seed % SEEDS)
        row[:length] -= torch.rand(length, generator=generator, dtype=torch.float64)
    return heights


def _check_settings(temperature: float, top_k: int, top_p: float) -> None:
    if not 0 < temperature < math.inf:
        raise DecodingError(
            f"temperature must be above 0 and finite, got {temperature}: 1 leaves the probabilities as they are; "
            "for the most probable token use greedy search"
        )
    if top_k < 0:
        raise DecodingError(f"top_k must be at least 0, got {top_k}: 0 draws from all tokens")
    if not 0 < top_p <= 1:
        raise DecodingError(f"top_p must be above 0 and at most 1, got {top_p}: 1 draws from all tokens")
