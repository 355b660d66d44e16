"""Turns of threads that share one model: between two tokens of a search, other questions are answered."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.step import Step

__all__ = ["StepInTurns", "Turns"]


class Turns:
    """A lock that threads get in the order in which they ask; with a plain lock, one thread could take all turns."""

    def __init__(self) -> None:
        self._changed, self._queue = threading.Condition(), deque[object]()

    def __len__(self) -> int:
        """Return the number of threads that have the turn or wait for it."""
        return len(self._queue)

    @contextmanager
    def next(self) -> Iterator[None]:
        """Wait for the turn, and keep it until the end of the context."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._queue[0] is ticket)
            yield
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()


class StepInTurns:
    """A `Step` whose model computes in turns; between two turns, other threads may use and change the model.

    Args:
        turn: Function that returns a context for one turn, which always yields the same step.
    """

    def __init__(self, turn: Callable[[], AbstractContextManager[Step[Any]]]) -> None:
        self._turn = turn
        with turn() as step:
            self.vocab_size, self.device = step.vocab_size, step.device
            self.bos_id, self.eos_id, self.pad_id = step.bos_id, step.eos_id, step.pad_id
            self.select = step.select  # selecting rows needs no turn, because it only touches the search's own state

    def start(self) -> Any:
        """Return the state before any token, with one row per sentence."""
        with self._turn() as step:
            return step.start()

    def advance(self, tokens: Int[Tensor, "R"], state: Any) -> tuple[Float[Tensor, "R V"], Any]:
        """Return the log probabilities of each row's next token, and the state after `tokens`."""
        with self._turn() as step:
            return step.advance(tokens, state)
