"""The result of a search (`Hypothesis`), and the formulas for its score and its maximum length. Needs no torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import DecodingConfig

__all__ = [
    "EXTRA_LENGTH",
    "Hypothesis",
    "length_penalty",
    "max_length",
    "penalty_of",
    "score_of",
    "score_text",
]

T = TypeVar("T")

EXTRA_LENGTH = DecodingConfig().extra_length
"""How many tokens longer than its source an output may be if there are no settings of a run, as in a self-test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A finished output of a search."""

    tokens: tuple[int, ...]
    """Token ids without `<bos>`, with the final `<eos>`."""
    token_log_probs: tuple[float, ...]
    """Log probability (natural logarithm, ≤ 0) of each token; scoring the output as a given target returns the same
    values."""
    log_prob: float
    """Sum of `token_log_probs`, rounded once (`math.fsum`)."""
    score: float
    """The value by which beam search ranks hypotheses: `score_of(log_prob, …)`."""

    @classmethod
    def ending_with(
        cls, eos_id: int, tokens: Sequence[int], token_log_probs: Sequence[float], settings: DecodingConfig
    ) -> "Hypothesis":
        """Return the hypothesis of the tokens up to and including the first `eos_id`; later entries are ignored."""
        length = tokens.index(eos_id) + 1
        log_prob = math.fsum(token_log_probs[:length])
        return cls(
            tokens=tuple(tokens[:length]),
            token_log_probs=tuple(token_log_probs[:length]),
            log_prob=log_prob,
            score=score_of(log_prob, penalty_of(length, settings)),
        )

    @classmethod
    def unscored(cls, tokens: Sequence[int], log_prob: float = math.nan, score: float = math.nan) -> "Hypothesis":
        """Return a hypothesis without the log probabilities of its tokens."""
        return cls(tokens=tuple(tokens), token_log_probs=(), log_prob=log_prob, score=score)


# The function `length_penalty` is the paper's formula; the setting `length_penalty` is the exponent in this formula.


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, where the length includes `<eos>`; alpha = 0 gives 1 for every length.

    Paper: §6.1, after Wu et al. 2016, equation 14.
    """
    return math.pow((5 + length) / 6, alpha)


def penalty_of(length: int, settings: DecodingConfig) -> float:
    """Return the length penalty of an output of this length, including `<eos>`.

    Every score, and every search that prunes hypotheses, uses this function and `score_of`. CONTRIBUTING.md lists the
    files to change for a different formula.
    """
    return length_penalty(length, settings.length_penalty)


def score_of(log_prob: T, penalty: T) -> T:
    """Return the score of a finished or unfinished hypothesis: its log probability divided by its length penalty."""
    score: T = log_prob / penalty  # type: ignore[operator]  # T is float or Tensor; this module must not import torch
    return score


def score_text(log_prob: str, length: str, settings: DecodingConfig) -> str:
    """Return the formula of the score as text, with the given log probability and length inserted."""
    return f"{log_prob} / ((5 + {length}) / 6)^{settings.length_penalty:g}"


def max_length(config: ModelConfig, source_length: int, extra_length: int) -> int:
    """Return the maximum length of an output for a source of this length, both including `<eos>`. Paper: §6.1."""
    return min(source_length + extra_length, config.longest)
