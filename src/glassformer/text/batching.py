"""Encoded sentence pairs, and batches of pairs of about equal length.

B: pairs of a batch · S: source positions · T: target positions. Padding is id 0.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import BOS_ID, PAD_ID

__all__ = [
    "Batch",
    "Examples",
    "Position",
    "Resample",
    "batches",
    "make_batch",
    "plan_batches",
    "stream",
]

Ids = NDArray[np.integer[Any]]
Rows = NDArray[np.int64]

WINDOW = 32768
"""Pairs are sorted by length within so many random ones: few enough to mix anew each epoch, enough to pad little."""
BLOCK = 1024
"""Of a corpus larger than a window, so many neighbours stay together in the shuffle: a disk likes to read runs."""

Resample = Callable[[Sequence[Ids], Sequence[Ids], int], tuple[Sequence[Ids], Sequence[Ids]]]
"""Cuts the sources and targets of some pairs into tokens anew; the same seed gives the same tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Encoded sentence pairs."""

    source: Sequence[Ids]
    """The ids of each source sentence, `<eos>` at the end."""
    target: Sequence[Ids]
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

    @property
    def places(self) -> int:
        """The number of ids of both sides, padding included."""
        return self.source.size + self.target_output.size

    def share(self, number: int, count: int) -> "Batch":
        """Return every `count`-th pair from number `number` on: one of so many shares of about equal size."""
        rows = slice(number, None, count)
        return Batch(
            source=self.source[rows],
            target_input=self.target_input[rows],
            target_output=self.target_output[rows],
            rows=self.rows[rows],
        )


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the endless stream of batches: which one comes next."""

    epoch: int = 0
    """Passes over the examples that are complete."""
    window: int = 0
    """Windows of this epoch that are complete."""
    batch: int = 0
    """Batches of this window that are done."""


def stream(
    examples: Examples,
    batch_tokens: int,
    *,
    seed: int,
    start: Position = Position(),
    resample: Resample | None = None,
) -> Iterator[tuple[Batch, Position]]:
    """Yield batches without end, epoch after epoch, each with the position behind it.

    From whatever `start`, the batches are those that follow there in the stream from the beginning; no window before it
    is looked at. `resample` cuts the texts of each window anew, by draws that depend on `seed` and the window alone.
    Neither side of a batch has more than `batch_tokens` ids, padding included, unless it is a single longer pair.
    """
    here = start
    while len(examples):
        window = _Window.read(examples, batch_tokens, seed, here.epoch, here.window, resample)
        last = (here.window + 1) * WINDOW >= len(examples)
        following = Position(here.epoch + 1) if last else Position(here.epoch, here.window + 1)
        for batch in range(here.batch, len(window.plan)):
            after = replace(here, batch=batch + 1) if batch + 1 < len(window.plan) else following
            yield window.batch(batch), after
        here = following


def batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[Batch]:
    """Yield an epoch's batches from number `start` on: every example once, in an order that `seed` and `epoch` decide.

    Neither side of a batch has more than `batch_tokens` ids, padding included, unless it is a single longer pair.
    """
    for rows in plan_batches(examples, batch_tokens, seed=seed, epoch=epoch)[start:]:
        yield make_batch(examples, rows)


def plan_batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int) -> list[Rows]:
    """Return which examples make up each batch of an epoch, without building the batches."""
    count = math.ceil(len(examples) / WINDOW)
    windows = (_Window.read(examples, batch_tokens, seed, epoch, window) for window in range(count))
    return [window.rows[places] for window in windows for places in window.plan]


def make_batch(examples: Examples, rows: Rows) -> Batch:
    """Return the batch of these examples."""
    return _batch([examples.source[row] for row in rows], [examples.target[row] for row in rows], rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """Pairs that are sorted by length together, and how batches are cut from them.

    A corpus that is larger than a window is cut into blocks of neighbours. Each epoch shuffles these and puts windows
    together from them; inside a window the pairs are shuffled, sorted by length, cut into batches, and these shuffled.
    """

    rows: Rows
    """Which examples they are."""
    sources: Sequence[Ids]
    targets: Sequence[Ids]
    plan: list[Rows]
    """For each batch the places of its pairs in this window."""

    @classmethod
    def read(
        cls, examples: Examples, batch_tokens: int, seed: int, epoch: int, window: int, resample: Resample | None = None
    ) -> "_Window":
        """Return a window of an epoch; `resample` cuts its texts anew before it is cut into batches."""
        runs = _runs(len(examples), seed, epoch, window)
        sources: Sequence[Ids] = [ids for run in runs for ids in examples.source[run.start : run.stop]]
        targets: Sequence[Ids] = [ids for run in runs for ids in examples.target[run.start : run.stop]]
        if resample:
            sources, targets = resample(sources, targets, _resampling_seed(seed, epoch, window))
        random = np.random.default_rng([seed, epoch] if len(examples) <= WINDOW else [seed, epoch, window])
        plan = _plan(_lengths(sources), _lengths(targets), batch_tokens, random)
        return cls(np.concatenate([np.arange(run.start, run.stop) for run in runs]), sources, targets, plan)

    def batch(self, number: int) -> Batch:
        """Return a batch of the plan."""
        places = self.plan[number].tolist()
        return _batch([self.sources[one] for one in places], [self.targets[one] for one in places], self.rows[places])


def _runs(count: int, seed: int, epoch: int, window: int) -> list[range]:
    """Return the rows of a window: of a small corpus all, of a large one its share of the shuffled blocks."""
    if count <= WINDOW:
        return [range(count)]
    blocks = np.random.default_rng([seed, epoch]).permutation(math.ceil(count / BLOCK))
    share = WINDOW // BLOCK
    mine = np.sort(blocks[window * share : (window + 1) * share])
    return [range(BLOCK * block, min(BLOCK * (block + 1), count)) for block in mine.tolist()]


def _resampling_seed(seed: int, epoch: int, window: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, window]).generate_state(1)[0])


def _plan(sources: Rows, targets: Rows, batch_tokens: int, random: np.random.Generator) -> list[Rows]:
    """Return which of the pairs with these lengths make up each batch."""
    shuffled = random.permutation(len(sources))
    longer = np.maximum(sources, targets)[shuffled]
    by_length = np.lexsort((targets[shuffled], longer))
    plan = list(_cut(shuffled[by_length], longer[by_length], batch_tokens))
    return [plan[place] for place in random.permutation(len(plan))]


def _batch(sources: Sequence[Ids], targets: Sequence[Ids], rows: Rows) -> Batch:
    target_output = _padded(targets)
    target_input = np.full_like(target_output, BOS_ID)
    # One place to the right of the output, and padding where that has padding.
    target_input[:, 1:] = np.where(target_output[:, 1:] == PAD_ID, PAD_ID, target_output[:, :-1])
    return Batch(source=_padded(sources), target_input=target_input, target_output=target_output, rows=rows)


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
