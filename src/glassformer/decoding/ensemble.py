"""Ensembles: several models act as one `Step`, which averages their probabilities at each step.

Axis letters: M models · R rows (hypotheses) · B sentences · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.step import Step
from glassformer.errors import DecodingError, quoted

__all__ = ["EnsembleStep", "mean_probability"]


class EnsembleStep:
    """The `Step` of an ensemble: p(y | so far) = (p₁ + … + p_M) / M. The state is the tuple of the models' states.

    The probabilities are averaged, not their logarithms. The average sums to 1, so an ensemble is a model too, and its
    log probabilities are comparable with those from a single model. One confident model suffices to choose a token. If
    logarithms were averaged instead of probabilities, a single model with a probability near 0 could veto a token.

    Raises:
        DecodingError: no model is given, or the models differ in their target vocabulary.
    """

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps: tuple[Any, ...] = tuple(steps)
        if not self._steps:
            raise DecodingError("ensemble: expected at least one model, got none")
        first = self._steps[0]
        for name in ("vocab_size", "pad_id", "bos_id", "eos_id"):
            values = [getattr(step, name) for step in self._steps]
            if len(set(values)) > 1:
                raise DecodingError(f"ensemble: expected models with the same {name}, got {quoted(values)}")
        self.vocab_size, self.device = first.vocab_size, first.device
        self.bos_id, self.eos_id, self.pad_id = first.bos_id, first.eos_id, first.pad_id

    def start(self) -> tuple[Any, ...]:
        """Return the states of all models."""
        return tuple(step.start() for step in self._steps)

    def advance(self, tokens: Int[Tensor, "R"], state: tuple[Any, ...]) -> tuple[Float[Tensor, "R V"], tuple[Any, ...]]:
        """Return the log of the mean probability of each row's next token, and the states after `tokens`."""
        pairs = [step.advance(tokens, one) for step, one in zip(self._steps, state, strict=True)]
        return mean_probability(torch.stack([log_probs for log_probs, _ in pairs])), tuple(one for _, one in pairs)

    def select(self, state: tuple[Any, ...], rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> tuple[Any, ...]:
        """Return the states of these rows and sentences."""
        return tuple(step.select(one, rows, sentences) for step, one in zip(self._steps, state, strict=True))

    def join(self, state: tuple[Any, ...], newcomers: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the states with new sentences appended to the sentences of `state`."""
        return tuple(step.join(*pair) for step, *pair in zip(self._steps, state, newcomers, strict=True))


def mean_probability(log_probs: Float[Tensor, "M *any"]) -> Float[Tensor, "*any"]:
    """Return log((e^x₁ + … + e^x_M) / M) for M log probabilities x. If all x are equal, the result is exactly x₁.

    The maximum is subtracted before the exponential, so that small probabilities do not underflow.
    """
    peak = log_probs.amax(0).clamp(min=torch.finfo(log_probs.dtype).min)  # finite, because −inf − −inf would be NaN
    return (log_probs - peak).exp().mean(0).log() + peak
