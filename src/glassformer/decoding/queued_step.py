"""Decode many sentences in a changing batch: finished sentences leave, and waiting sentences enter.

Axis letters: B active sentences · R rows · V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.decoding.step import JoinableStep, Step

__all__ = ["Active", "QueuedStep"]


class QueuedStep:
    """A `Step` over a queue of sentences, longest first; `budget` bounds the memory, however many sentences wait.

    Args:
        step_of: Function that returns a `JoinableStep` for a range of sentences.
        sizes: Number of source positions per sentence, in descending order.
        budget: Maximum number of source positions to decode at a time, including padding. A sentence longer than the
            budget is decoded alone.
    """

    def __init__(self, step_of: Callable[[range], JoinableStep[Any]], sizes: Sequence[int], budget: int) -> None:
        self._step_of, self._sizes, self._budget = step_of, sizes, budget
        self._step = step_of(range(1))
        # these methods are the same for every batch of sentences
        self.advance, self.select = self._step.advance, self._step.select
        self.vocab_size, self.device = self._step.vocab_size, self._step.device
        self.bos_id, self.eos_id, self.pad_id = self._step.bos_id, self._step.eos_id, self._step.pad_id

    def start(self) -> Any:
        """Return the state of all sentences, ignoring the budget; searches call `admit` instead."""
        return self._step_of(range(len(self._sizes))).start()

    def admit(self, state: Any, active: Int[Tensor, "B"], entered: int) -> tuple[Any, int]:
        """Return the state with waiting sentences added, and their number; `entered` sentences were admitted earlier.

        No sentence is admitted while the active sentences fill more than three quarters of the budget, because encoding
        few sentences takes about as long as encoding many.
        """
        # sizes descend, so all sentences are padded to the size of the first one
        places = max(self._budget // self._sizes[int(active[0]) if len(active) else entered], 1)
        free = places - len(active)
        if 4 * free < places:
            return state, 0
        count = min(free, len(self._sizes) - entered)
        newcomers = self._step_of(range(entered, entered + count)).start()
        return self._step.join(state, newcomers) if len(active) else newcomers, count


class Active:
    """The active sentences, each at its own position, and the state of the `Step` for these sentences."""

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
        """Keep the sentences at these ascending indices, now one token longer; drop all other sentences.

        `rows` are the rows to keep. By default, each sentence has one row, and this row is kept.
        """
        all_stay = len(places) == len(self.sentences)
        if not all_stay:
            self.sentences, self.positions = self.sentences[places], self.positions[places]
        self.positions = self.positions + 1
        if not len(places):
            self._state = None  # frees the memory of this batch before the next batch is encoded
        elif rows is not None or not all_stay:
            self._state = self._step.select(self._state, rows=places if rows is None else rows, sentences=places)

    def admit(self) -> int:
        """Append waiting sentences to the active sentences as memory allows; return how many were appended."""
        if self._entered == self._total:
            return 0
        if isinstance(self._step, QueuedStep):
            self._state, count = self._step.admit(self._state, self.sentences, self._entered)
        else:  # a step without a queue decodes all its sentences at once
            self._state, count = self._step.start(), self._total
        newcomers = torch.arange(self._entered, self._entered + count, device=self.sentences.device)
        self.sentences = torch.cat([self.sentences, newcomers])
        self.positions = torch.cat([self.positions, torch.zeros_like(newcomers)])
        self._entered += count
        return count
