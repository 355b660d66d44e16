"""The protocol between a search and a model: feed a token, get the next log probabilities.

Axis letters: B sentences · R rows (B × hypotheses per sentence, sentence-major) · V vocabulary.
"""

from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["JoinableStep", "State", "Step", "widest"]

State = TypeVar("State")


@runtime_checkable
class Step(Protocol[State]):
    """A model that generates the outputs of B source sentences token by token.

    A search passes the state from call to call and does not look into it. The state has *rows*, one per hypothesis, and
    *sentences*. Values that depend only on the source (cross-attention keys and values) are kept once per sentence and
    shared by the sentence's rows, so `select` receives both rows and sentences.
    """

    @property
    def vocab_size(self) -> int:
        """Number of tokens V; ids are 0 to V − 1."""

    @property
    def bos_id(self) -> int:
        """Id of the token that is fed first and never chosen."""

    @property
    def eos_id(self) -> int:
        """Id of the token that ends a hypothesis."""

    @property
    def pad_id(self) -> int:
        """Id of the token that pads shorter sequences and is never chosen."""

    @property
    def device(self) -> torch.device:
        """Device of the search's tensors."""

    def start(self) -> State:
        """Return the state before any token, with one row per sentence."""

    def advance(self, tokens: Int[Tensor, "R"], state: State) -> tuple[Float[Tensor, "R V"], State]:
        """Return the log probabilities (natural logarithm) of each row's next token, and the state after `tokens`.

        The first call feeds `bos_id` to every row. Sentences may have different numbers of hypotheses; unused rows are
        fed arbitrary tokens. The log probabilities are float32 or float64. The search writes −inf into this tensor, so
        return a new tensor, not a view of a tensor that the model uses again.
        """

    def select(self, state: State, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> State:
        """Return the state whose row i is the old row `rows[i]` and whose sentence j is the old `sentences[j]`.

        Rows may be repeated, dropped and reordered within their sentence, and their number per sentence may change.
        Sentences may only be dropped. All remaining sentences have the same number of rows, in the order of sentences.
        """


@runtime_checkable
class JoinableStep(Step[State], Protocol[State]):
    """A step to whose state the sentences of another step of the same model can be added."""

    def join(self, state: State, newcomers: State) -> State:
        """Return `state` with the sentences of `newcomers` appended; each sentence of `newcomers` has one row.

        In the result, each new sentence has as many rows as a sentence of `state`: the first row is the empty
        hypothesis of the sentence, and the other rows are unused.
        """


def widest(device: torch.device) -> torch.dtype:
    """Return the widest floating-point type of a device: float64, or float32 for "mps", which has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64
