"""What a search asks of a model: one more token, please. Anything that keeps to this protocol can be decoded.

Axis letters: B sentences · R rows, B × the hypotheses per sentence, those of a sentence side by side · V vocabulary.
"""

from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["JoinableStep", "State", "Step"]

State = TypeVar("State")


@runtime_checkable
class Step(Protocol[State]):
    """A model that has read its B source sentences and is ready to write, token by token.

    The state is opaque to the searches: what `start` gave goes into `advance`, and so on. It has *rows*, one for each
    hypothesis, and *sentences*: what depends on the source alone (cross-attention keys and values) is kept once for a
    sentence and shared by its rows, which is why `select` is told about both.
    """

    @property
    def vocab_size(self) -> int:
        """Number of tokens V: ids are 0 to V − 1."""

    @property
    def bos_id(self) -> int:
        """Id of the token that is fed first and never chosen."""

    @property
    def eos_id(self) -> int:
        """Id of the token that ends a hypothesis."""

    @property
    def pad_id(self) -> int:
        """Id of the token that fills the ends of shorter sequences and is never chosen."""

    @property
    def device(self) -> torch.device:
        """Where the tensors of the search are to live."""

    def start(self) -> State:
        """Return the state before any token, with one row for each sentence."""

    def advance(self, tokens: Int[Tensor, "R"], state: State) -> tuple[Float[Tensor, "R V"], State]:
        """Return the log probabilities (natural logarithm) of each row's next token, and the state after `tokens`.

        The first call feeds `bos_id` to every row. A row that stands for no hypothesis (a sentence may have fewer than
        another) is fed any token. The log probabilities, float32 or float64, belong to the search from then on, which
        writes −inf into them: return a fresh tensor, not a view of something that is read again.
        """

    def select(self, state: State, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> State:
        """Return the state whose row i is the old row `rows[i]` and whose sentence j is the old `sentences[j]`.

        Rows may be repeated, dropped and reordered within their sentence, and their number per sentence may change;
        sentences may only be dropped. Each of the remaining sentences has equally many rows, in order of sentences.
        """


@runtime_checkable
class JoinableStep(Step[State], Protocol[State]):
    """A step whose state can take in sentences of another step of the same model."""

    def join(self, state: State, newcomers: State) -> State:
        """Return the state in which sentences that have not begun, one row each, stand behind those of `state`.

        Each of them gets as many rows as a sentence of `state` has; the first is for the hypothesis without a token,
        the others are for none.
        """
