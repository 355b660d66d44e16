"""Decode many sentences in a changing batch: finished sentences leave, and waiting ones enter.

Axis letters: B active sentences · R rows · V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.step import JoinableStep

__all__ = ["QueuedStep"]


class QueuedStep:
    """A `Step` over a queue of sentences, longest first; `budget` bounds its memory for any number of sentences.

    Args:
        step_of: Function that returns a `JoinableStep` for a range of sentences.
        sizes: Number of source positions per sentence, in descending order.
        budget: Maximum number of source positions to decode at a time, including padding. A sentence longer than the
            budget is decoded alone.
    """

    def __init__(self, step_of: Callable[[range], JoinableStep[Any]], sizes: Sequence[int], budget: int) -> None:
        self._step_of, self._sizes, self._budget = step_of, sizes, budget
        self._step = step_of(range(1))
        self.vocab_size, self.device = self._step.vocab_size, self._step.device
        self.bos_id, self.eos_id, self.pad_id = self._step.bos_id, self._step.eos_id, self._step.pad_id

    def start(self) -> Any:
        """Return the state of all sentences, ignoring the budget; searches call `admit` instead."""
        return self._step_of(range(len(self._sizes))).start()

    def admit(self, state: Any, active: Int[Tensor, "B"], entered: int) -> tuple[Any, int]:
        """Return the state with waiting sentences added, and how many were admitted; `entered` were admitted before.

        No sentence is admitted while the active sentences fill more than three quarters of the budget, because encoding
        few sentences takes about as long as encoding many.
        """
        places = max(self._budget // self._sizes[int(active[0]) if len(active) else entered], 1)
        free = places - len(active)
        if 4 * free < places:
            return state, 0
        count = min(free, len(self._sizes) - entered)
        newcomers = self._step_of(range(entered, entered + count)).start()
        return self._step.join(state, newcomers) if len(active) else newcomers, count

    def advance(self, tokens: Int[Tensor, "R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """Return the log probabilities of each row's next token, and the state after `tokens`."""
        return self._step.advance(tokens, state)

    def select(self, state: Any, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> Any:
        """Return the state of these rows and sentences."""
        return self._step.select(state, rows, sentences)
