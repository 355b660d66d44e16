"""The active sentences of a search: finished sentences leave, and waiting ones enter.

Axis letters: B active sentences · R rows.
"""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.decoding.queued_step import QueuedStep
from glassformer.decoding.step import Step

__all__ = ["Active"]


class Active:
    """The active sentences, each at its own position, and the state that the `Step` keeps for them."""

    def __init__(self, step: Step[Any], total: int) -> None:
        self._step, self._total, self._entered = step, total, 0
        self.sentences = torch.arange(0, device=step.device)
        self.positions = self.sentences
        """Index of each sentence's next token, from 0."""
        self._state: Any = None

    def advance(self, tokens: Int[Tensor, "R"]) -> Tensor:
        """Return the log probabilities (R, V) of each row's next token."""
        log_probs, self._state = self._step.advance(tokens, self._state)
        return log_probs

    def keep(self, places: Int[Tensor, "B2"], rows: Int[Tensor, "R2"] | None = None) -> None:
        """Keep the sentences at these ascending indices, now one token longer; drop the others.

        `rows` are the rows to keep; by default, each sentence has one row and keeps it.
        """
        all_stay = len(places) == len(self.sentences)
        if not all_stay:
            self.sentences, self.positions = self.sentences[places], self.positions[places]
        self.positions = self.positions + 1
        if not len(places):
            self._state = None
        elif rows is not None or not all_stay:
            self._state = self._step.select(self._state, rows=places if rows is None else rows, sentences=places)

    def admit(self) -> int:
        """Admit waiting sentences after the active ones, as memory allows; return the number admitted."""
        if self._entered == self._total:
            return 0
        if isinstance(self._step, QueuedStep):
            self._state, count = self._step.admit(self._state, self.sentences, self._entered)
        else:
            self._state, count = self._step.start(), self._total
        newcomers = torch.arange(self._entered, self._entered + count, device=self.sentences.device)
        self.sentences = torch.cat([self.sentences, newcomers])
        self.positions = torch.cat([self.positions, torch.zeros_like(newcomers)])
        self._entered += count
        return count
