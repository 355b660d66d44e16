"""Several models as one `Step`: at each step, the mean of the probabilities that they give.

Axis letters: M models · R rows (hypotheses) · B sentences · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.step import Step
from glassformer.errors import DecodingError

__all__ = ["EnsembleStep", "mean_probability"]


class EnsembleStep:
    """The `Step` of an ensemble: p(y | so far) = (p₁ + … + p_M) / M. The state is one of each model, side by side.

    Probabilities are averaged, not their logarithms. Their mean sums to 1, so an ensemble is a model like any other and
    its log probabilities compare with those of one; and a token needs only one model that believes in it, where in the
    mean of logarithms any single model that gives it nearly 0 has a veto.

    Raises:
        DecodingError: there is no model, or they do not share their target vocabulary.
    """

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps: tuple[Any, ...] = tuple(steps)
        if not self._steps:
            raise DecodingError("an ensemble needs at least one model, got none")
        first = self._steps[0]
        for name in ("vocab_size", "pad_id", "bos_id", "eos_id"):
            values = [getattr(step, name) for step in self._steps]
            if len(set(values)) > 1:
                raise DecodingError(f"the models of an ensemble must agree on {name}, got {values}")
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
        """Return the states in which sentences that have not begun stand behind those of `state`."""
        return tuple(step.join(*pair) for step, *pair in zip(self._steps, state, newcomers, strict=True))


def mean_probability(log_probs: Float[Tensor, "M *any"]) -> Float[Tensor, "*any"]:
    """Return log((e^x₁ + … + e^x_M) / M) of M log probabilities; of equal ones exactly these.

    The largest is taken out before the exponential function, so that no probability is too small.
    """
    peak = log_probs.amax(0).clamp(min=torch.finfo(log_probs.dtype).min)  # −inf − −inf would be NaN
    return (log_probs - peak).exp().mean(0).log() + peak
