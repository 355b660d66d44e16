"""Epochs that mix the pairs of two corpora, such as a new corpus and an earlier corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.batching import Examples, IdArray

__all__ = ["MixedExamples", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedExamples(Examples):
    """Pairs to which each epoch adds pairs of another corpus; the length does not count the added pairs."""

    other: Examples
    """The pairs of the other corpus."""
    share: float
    """Share of an epoch's pairs that come from the other corpus, in [0, 1)."""

    @property
    def added(self) -> int:
        """Number of pairs that an epoch adds."""
        return round(len(self) * self.share / (1 - self.share)) if len(self.other) else 0

    def of_epoch(self, seed: int, epoch: int) -> Examples:
        """Return an epoch's pairs: all own pairs, then the added pairs, which depend only on `seed` and `epoch`."""
        rows = drawn(len(self.other), self.added, seed, epoch)
        source, target = _Joined(self.source, self.other.source, rows), _Joined(self.target, self.other.target, rows)
        return Examples(source=source, target=target)


def drawn(count: int, wanted: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Draw `wanted` of `count` rows, in ascending order; any two rows occur equally often, or one occurs once more."""
    if not wanted:
        return np.zeros(0, np.int64)
    whole, rest = divmod(wanted, count)
    # The trailing 0 and 1 make this random stream independent of the random stream that orders the batches.
    some = np.random.default_rng([seed, epoch, 0, 1]).choice(count, rest, replace=False)
    return np.sort(np.concatenate([np.repeat(np.arange(count), whole), some]))


@dataclass(frozen=True, slots=True, eq=False)
class _Joined(Sequence[IdArray]):
    """A sequence of the arrays in `own`, followed by the chosen rows of `other`."""

    own: Sequence[IdArray]
    other: Sequence[IdArray]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.own) + len(self.rows)

    @overload
    def __getitem__(self, row: SupportsIndex) -> IdArray: ...

    @overload
    def __getitem__(self, row: slice) -> list[IdArray]: ...

    def __getitem__(self, row: SupportsIndex | slice) -> IdArray | list[IdArray]:
        if isinstance(row, slice):
            begin, end, _ = row.indices(len(self))
            first = len(self.own)
            other = self.rows[max(begin - first, 0) : max(end - first, 0)].tolist()
            return [*self.own[begin : min(end, first)], *(self.other[one] for one in other)]
        place = range(len(self))[row]
        return self.own[place] if place < len(self.own) else self.other[int(self.rows[place - len(self.own)])]
