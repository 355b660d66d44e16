"""What a search returns, how long it may be, and how it is scored. Needs no torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from glassformer.errors import DecodingError
from glassformer.model.config import ModelConfig

__all__ = ["EXTRA_LENGTH", "PAPER_ALPHA", "Hypothesis", "length_penalty", "max_length"]

PAPER_ALPHA = 0.6
"""The paper's exponent of the length penalty (§6.1)."""
EXTRA_LENGTH = 50
"""An output may be so many tokens longer than its source. Paper: §6.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One finished output of a search."""

    tokens: tuple[int, ...]
    """Token ids without `<bos>`, with the final `<eos>`."""
    token_log_probs: tuple[float, ...]
    """Log probability (natural logarithm, ≤ 0) of each token, as forced rescoring would give it."""
    log_prob: float
    """Sum of `token_log_probs`, rounded once (`math.fsum`)."""
    score: float
    """What beam search ranks by: `log_prob` divided by the length penalty."""

    @classmethod
    def ending_with(
        cls, eos_id: int, tokens: Sequence[int], token_log_probs: Sequence[float], alpha: float
    ) -> "Hypothesis":
        """Return the hypothesis that goes as far as the first `eos_id` of `tokens`; what is behind it is padding."""
        length = tokens.index(eos_id) + 1
        log_prob = math.fsum(token_log_probs[:length])
        return cls(
            tokens=tuple(tokens[:length]),
            token_log_probs=tuple(token_log_probs[:length]),
            log_prob=log_prob,
            score=log_prob / length_penalty(length, alpha),
        )


def length_penalty(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, with `<eos>` counted in the length; 1 for every length when alpha is 0.

    Paper: §6.1, after Wu et al. 2016, equation 14.

    Raises:
        DecodingError: alpha is not a number from −100 to 100.
    """
    if not abs(alpha) <= 100:
        raise DecodingError(f"length_penalty must be from −100 to 100, got {alpha}: the paper's value is {PAPER_ALPHA}")
    return math.pow((5 + length) / 6, alpha)


def max_length(config: ModelConfig, source_length: int) -> int:
    """Return how many tokens an output may have, `<eos>` included, for a source of so many, `<eos>` included."""
    return min(source_length + EXTRA_LENGTH, config.longest)
