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
    "BLOCK",
    "Batch",
    "Examples",
    "Position",
    "Resample",
    "batches",
    "make_batch",
    "plan_batches",
    "stream",
]

IdArray = NDArray[np.integer[Any]]
Rows = NDArray[np.int64]

SORTED_PAIRS = 32768
"""Number of random pairs that are sorted by length together: few enough for varied batches, enough for low padding."""
BLOCK = 1024
"""Number of neighbouring pairs that stay together when a large corpus is shuffled, for fast reading from disk."""

Resample = Callable[[Sequence[IdArray], Sequence[IdArray], int], tuple[Sequence[IdArray], Sequence[IdArray]]]
"""A function that encodes the sources and targets of some pairs again. The same seed gives the same tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Encoded sentence pairs."""

    source: Sequence[IdArray]
    """The ids of each source sentence, ending with `<eos>`."""
    target: Sequence[IdArray]
    """The ids of each target sentence, ending with `<eos>`."""

    @classmethod
    def encode(
        cls, pairs: Iterable[tuple[str, str]], source: Tokenizer, target: Tokenizer, *, max_length: int
    ) -> tuple["Examples", list[int]]:
        """Return the encoded pairs, and the indices of the pairs that are left out because they are too long.

        A pair is too long if a side has more than `max_length` ids, including `<eos>`.
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

    def of_epoch(self, seed: int, epoch: int) -> "Examples":  # noqa: ARG002  # subclasses use the parameters
        """Return the pairs of an epoch."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Sentence pairs of about equal length, padded to rectangles."""

    source: Rows
    """(B, S) source ids; each row ends with `<eos>`, then padding."""
    target_input: Rows
    """(B, T) the decoder's input: `<bos>`, then the target without `<eos>`, then padding."""
    target_output: Rows
    """(B, T) the decoder's expected output: the target with `<eos>`, then padding."""
    rows: Rows
    """(B) indices of the examples."""

    @property
    def source_tokens(self) -> int:
        """The number of source ids without padding, including `<eos>`."""
        return int(np.count_nonzero(self.source != PAD_ID))

    @property
    def target_tokens(self) -> int:
        """The number of target ids without padding, including `<eos>`. The loss per token is divided by this number."""
        return int(np.count_nonzero(self.target_output != PAD_ID))

    @property
    def places(self) -> int:
        """The number of ids on both sides, including padding."""
        return self.source.size + self.target_output.size

    def share(self, number: int, count: int) -> "Batch":
        """Return one of `count` shares of about equal size: every `count`-th pair, beginning with pair `number`."""
        rows = slice(number, None, count)
        return Batch(
            source=self.source[rows],
            target_input=self.target_input[rows],
            target_output=self.target_output[rows],
            rows=self.rows[rows],
        )


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in the endless stream of batches: the next batch to yield."""

    epoch: int = 0
    """Number of complete passes over the examples."""
    window: int = 0
    """Number of complete windows in the epoch."""
    batch: int = 0
    """Number of finished batches in the window."""


def stream(
    examples: Examples,
    batch_tokens: int,
    *,
    seed: int,
    start: Position = Position(),
    resample: Resample | None = None,
) -> Iterator[tuple[Batch, Position]]:
    """Yield batches without end, epoch after epoch, each batch with the position that follows it.

    A stream with a later `start` yields the same batches as the whole stream does after that position, and does not
    read earlier windows. `resample` encodes the texts of each window again, with a random seed that depends only on
    `seed` and the window.
    Neither side of a batch has more than `batch_tokens` ids, including padding, unless the batch is a single longer
    pair.
    """
    for here, following, window in _windows(examples, batch_tokens, seed, start, resample):
        for batch in range(here.batch, len(window.plan)):
            after = replace(here, batch=batch + 1) if batch + 1 < len(window.plan) else following
            yield window.batch(batch), after


def _windows(
    examples: Examples, batch_tokens: int, seed: int, start: Position, resample: Resample | None
) -> Iterator[tuple[Position, Position, "_Window"]]:
    """Yield windows without end, each as a tuple: the window's position, the next window's position, and the window."""
    here = start
    while len(examples):
        pairs = examples.of_epoch(seed, here.epoch)
        last = (here.window + 1) * SORTED_PAIRS >= len(pairs)
        following = Position(here.epoch + 1) if last else Position(here.epoch, here.window + 1)
        yield here, following, _Window.read(pairs, batch_tokens, seed, here.epoch, here.window, resample)
        here = following


def batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[Batch]:
    """Yield an epoch's batches from batch number `start`: each example once, in an order given by `seed` and `epoch`.

    Neither side of a batch has more than `batch_tokens` ids, including padding, unless the batch is a single longer
    pair.
    """
    for rows in plan_batches(examples, batch_tokens, seed=seed, epoch=epoch)[start:]:
        yield make_batch(examples, rows)


def plan_batches(examples: Examples, batch_tokens: int, *, seed: int, epoch: int) -> list[Rows]:
    """Return the indices of the examples of each batch of an epoch, without building the batches."""
    count = math.ceil(len(examples) / SORTED_PAIRS)
    windows = (_Window.read(examples, batch_tokens, seed, epoch, window) for window in range(count))
    return [window.rows[places] for window in windows for places in window.plan]


def make_batch(examples: Examples, rows: Rows) -> Batch:
    """Return the batch of these examples."""
    return _batch([examples.source[row] for row in rows], [examples.target[row] for row in rows], rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """A group of pairs that are sorted by length and cut into batches, and the plan of these batches.

    A corpus larger than a window is split into blocks of neighbouring pairs. Each epoch shuffles the blocks and builds
    windows from the blocks. Within a window, the pairs are shuffled, sorted by length and cut into batches, and the
    batches are shuffled.
    """

    rows: Rows
    """Indices of the window's examples."""
    sources: Sequence[IdArray]
    targets: Sequence[IdArray]
    plan: list[Rows]
    """For each batch, the indices of its pairs within the window."""

    @classmethod
    def read(
        cls, examples: Examples, batch_tokens: int, seed: int, epoch: int, window: int, resample: Resample | None = None
    ) -> "_Window":
        """Return a window of an epoch; `resample` encodes the window's texts again before the batches are planned."""
        runs = _runs(len(examples), seed, epoch, window)
        sources: Sequence[IdArray] = [ids for run in runs for ids in examples.source[run.start : run.stop]]
        targets: Sequence[IdArray] = [ids for run in runs for ids in examples.target[run.start : run.stop]]
        if resample:
            sources, targets = resample(sources, targets, _resampling_seed(seed, epoch, window))
        random = np.random.default_rng([seed, epoch] if len(examples) <= SORTED_PAIRS else [seed, epoch, window])
        plan = _plan(_lengths(sources), _lengths(targets), batch_tokens, random)
        rows = np.concatenate([np.arange(run.start, run.stop) for run in runs])
        return cls(rows, sources, targets, plan)

    def batch(self, number: int) -> Batch:
        """Return a planned batch."""
        places = self.plan[number].tolist()
        return _batch([self.sources[one] for one in places], [self.targets[one] for one in places], self.rows[places])


def _runs(count: int, seed: int, epoch: int, window: int) -> list[range]:
    """Return the rows of a window: all rows of a small corpus, or a share of a large corpus's shuffled blocks."""
    if count <= SORTED_PAIRS:
        return [range(count)]
    blocks = np.random.default_rng([seed, epoch]).permutation(math.ceil(count / BLOCK))
    share = SORTED_PAIRS // BLOCK
    mine = np.sort(blocks[window * share : (window + 1) * share])
    return [range(BLOCK * block, min(BLOCK * (block + 1), count)) for block in mine.tolist()]


def _resampling_seed(seed: int, epoch: int, window: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, window]).generate_state(1)[0])


def _plan(sources: Rows, targets: Rows, batch_tokens: int, random: np.random.Generator) -> list[Rows]:
    """Return the indices of each batch's pairs, given the pairs' lengths."""
    shuffled = random.permutation(len(sources))
    longer = np.maximum(sources, targets)[shuffled]
    by_length = np.lexsort((targets[shuffled], longer))
    plan = list(_cut(shuffled[by_length], longer[by_length], batch_tokens))
    return [plan[place] for place in random.permutation(len(plan))]


def _batch(sources: Sequence[IdArray], targets: Sequence[IdArray], rows: Rows) -> Batch:
    target_output = _padded(targets)
    target_input = np.full_like(target_output, BOS_ID)
    # The decoder's input is the output shifted right by one position; padding stays where it is in the output.
    target_input[:, 1:] = np.where(target_output[:, 1:] == PAD_ID, PAD_ID, target_output[:, :-1])
    return Batch(source=_padded(sources), target_input=target_input, target_output=target_output, rows=rows)


def _lengths(sentences: Sequence[IdArray]) -> Rows:
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))


def _cut(rows: Rows, lengths: Rows, batch_tokens: int) -> Iterator[Rows]:
    """Cut rows, sorted by ascending length, into runs that have at most `batch_tokens` ids each when padded."""
    begin = 0
    for end, length in enumerate(lengths.tolist()):
        if begin < end and (end + 1 - begin) * length > batch_tokens:
            yield rows[begin:end]
            begin = end
    yield rows[begin:]


def _padded(sentences: Sequence[IdArray]) -> Rows:
    lengths = _lengths(sentences)
    padded = np.full((len(sentences), lengths.max()), PAD_ID, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(sentences)
    return padded
