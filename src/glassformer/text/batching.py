"""Encoded sentence pairs, and batches of pairs of about equal length.

B: pairs of a batch · S: source positions · T: target positions. Padding is id 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import BOS_ID, PAD_ID

__all__ = ["Batch", "Examples", "batches", "make_batch", "plan_batches"]

Ids = NDArray[np.signedinteger[Any]]
Rows = NDArray[np.int64]

# Pairs are sorted by length within so many random ones: few enough to mix them anew each epoch, enough to pad little.
WINDOW = 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Encoded sentence pairs."""

    source: list[Ids]
    """The ids of each source sentence, `<eos>` at the end."""
    target: list[Ids]
    """The ids of each target sentence, `<eos>` at the end."""

    @classmethod
    def encode(
        cls, pairs: Iterable[tuple[str, str]], source: Tokenizer, target: Tokenizer, *, max_length: int
    ) -> tuple["Examples", list[int]]:
        """Return the encoded pairs, and the places in `pairs` (from 0) of those that were left out.

        A pair is left out when a side has more than `max_length` ids, `<eos>` included.
        """
        sources, targets, too_long = [], [], []
        for place, (source_text, target_text) in enumerate(pairs):
            source_ids = [*source.encode(source_text), source.eos_id]
            target_ids = [*target.encode(target_text), target.eos_id]
            if max(len(source_ids), len(target_ids)) > max_length:
                too_long.append(place)
            else:
                sources.append(np.array(source_ids, dtype=np.int32))
                targets.append(np.array(target_ids, dtype=np.int32))
        return cls(source=sources, target=targets), too_long

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Sentence pairs of about equal length, padded to rectangles."""

    source: Rows
    """(B, S) source ids, each row with `<eos>` and padding at its end."""
    target_input: Rows
    """(B, T) what the decoder reads: `<bos>`, then the target without `<eos>`, then padding."""
    target_output: Rows
    """(B, T) what the decoder shall say: the target with `<eos>`, then padding."""
    rows: Rows
    """(B) which examples these are."""

    @property
    def source_tokens(self) -> int:
        """The number of source ids that are no padding, `<eos>` included."""
        return int(np.count_nonzero(self.source != PAD_ID))

    @property
    def target_tokens(self) -> int:
        """The number of target ids that are no padding, `<eos>` included: what a loss per token is divided by."""
        return int(np.count_nonzero(self.target_output != PAD_ID))


def batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[Batch]:
    """Yield an epoch's batches from number `start` on: every example once, in an order that `seed` and `epoch` decide.

    Neither side of a batch has more than `batch_tokens` ids, padding included, unless it is a single longer pair.
    """
    for rows in plan_batches(examples, batch_tokens, seed=seed, epoch=epoch)[start:]:
        yield make_batch(examples, rows)


def plan_batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int) -> list[Rows]:
    """Return which examples make up each batch of an epoch, without building the batches."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(examples))
    sources, targets = _lengths(examples.source), _lengths(examples.target)
    plan: list[Rows] = []
    for begin in range(0, len(order), WINDOW):
        window = order[begin : begin + WINDOW]
        longer = np.maximum(sources[window], targets[window])
        by_length = np.lexsort((targets[window], longer))
        plan += _cut(window[by_length], longer[by_length], batch_tokens)
    return [plan[place] for place in random.permutation(len(plan))]


def make_batch(examples: Examples, rows: Rows) -> Batch:
    """Return the batch of these examples."""
    target_output = _padded([examples.target[row] for row in rows])
    target_input = np.full_like(target_output, BOS_ID)
    # One place to the right of the output, and padding where that has padding.
    target_input[:, 1:] = np.where(target_output[:, 1:] == PAD_ID, PAD_ID, target_output[:, :-1])
    source = _padded([examples.source[row] for row in rows])
    return Batch(source=source, target_input=target_input, target_output=target_output, rows=rows)


def _lengths(sentences: Sequence[Ids]) -> Rows:
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))


def _cut(rows: Rows, lengths: Rows, batch_tokens: int) -> Iterator[Rows]:
    """Yield runs of rows, whose lengths ascend, so that none is larger than `batch_tokens` when padded."""
    begin = 0
    for end, length in enumerate(lengths.tolist()):
        if begin < end and (end + 1 - begin) * length > batch_tokens:
            yield rows[begin:end]
            begin = end
    yield rows[begin:]


def _padded(sentences: Sequence[Ids]) -> Rows:
    lengths = _lengths(sentences)
    padded = np.full((len(sentences), lengths.max()), PAD_ID, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(sentences)
    return padded
