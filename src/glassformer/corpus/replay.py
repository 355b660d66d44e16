"""Replay: epochs that mix new pairs with pairs of an earlier corpus, so that fine-tuning forgets less of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.batching import Examples, IdArray

__all__ = ["ReplayedExamples", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedExamples(Examples):
    """New pairs, to which each epoch adds pairs of an earlier corpus; the length is the number of new pairs."""

    replay: Examples
    """The pairs of the earlier corpus."""
    share: float
    """Share of an epoch's pairs that come from the earlier corpus, in [0, 1)."""

    @property
    def replayed(self) -> int:
        """Number of replayed pairs of an epoch."""
        return round(len(self) * self.share / (1 - self.share)) if len(self.replay) else 0

    def of_epoch(self, seed: int, epoch: int) -> Examples:
        """Return an epoch's pairs: all new pairs, then the replayed ones, drawn by `seed` and `epoch` alone."""
        rows = drawn(len(self.replay), self.replayed, seed, epoch)
        return Examples(
            source=_Joined(self.source, self.replay.source, rows), target=_Joined(self.target, self.replay.target, rows)
        )


def drawn(count: int, wanted: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return `wanted` ascending rows of `count`; how often two rows occur differs by at most one."""
    if not wanted:
        return np.zeros(0, np.int64)
    whole, rest = divmod(wanted, count)
    # The last numbers keep this stream of random numbers apart from the one that orders the batches.
    some = np.random.default_rng([seed, epoch, 0, 1]).choice(count, rest, replace=False)
    return np.sort(np.concatenate([np.repeat(np.arange(count), whole), some]))


@dataclass(frozen=True, slots=True, eq=False)
class _Joined(Sequence[IdArray]):
    """The sentences of `new`, then the sentences of `old` in these rows."""

    new: Sequence[IdArray]
    old: Sequence[IdArray]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.new) + len(self.rows)

    @overload
    def __getitem__(self, row: SupportsIndex) -> IdArray: ...

    @overload
    def __getitem__(self, row: slice) -> list[IdArray]: ...

    def __getitem__(self, row: SupportsIndex | slice) -> IdArray | list[IdArray]:
        if isinstance(row, slice):
            begin, end, _ = row.indices(len(self))
            first = len(self.new)
            old = self.rows[max(begin - first, 0) : max(end - first, 0)].tolist()
            return [*self.new[begin : min(end, first)], *(self.old[one] for one in old)]
        place = range(len(self))[row]
        return self.new[place] if place < len(self.new) else self.old[int(self.rows[place - len(self.new)])]
