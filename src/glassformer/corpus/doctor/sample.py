"""A sample of a corpus, for questions that some thousand pairs answer, such as which languages the sides have."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from glassformer.corpus.doctor.case import Pairs

__all__ = ["MOST_SAMPLED", "PairSample"]

MOST_SAMPLED = 4000
"""Maximum number of pairs in a sample."""


class PairSample:
    """A sample of the pairs that are kept, which does not depend on their order: those with the smallest hashes.

    A pair that repeats another is in the sample once.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, bytes, bytes]] = {}
        self._largest = 2**64

    def add(self, pairs: "Pairs") -> None:
        """Add the pairs of a block that no problem has left out."""
        hashes: NDArray[np.uint64] = pairs.fingerprints[:, 0]
        for index in np.flatnonzero(pairs.alive & (hashes < self._largest)).tolist():
            source, target = (side[index] for side in pairs.lines)
            self._found.setdefault(int(hashes[index]), (pairs.first + index, source, target))
        if len(self._found) > MOST_SAMPLED:
            smallest = sorted(self._found)[:MOST_SAMPLED]
            self._found = {one: self._found[one] for one in smallest}
            self._largest = smallest[-1]

    @cached_property
    def _rows(self) -> list[tuple[int, bytes, bytes]]:
        return sorted(self._found.values())

    @property
    def numbers(self) -> list[int]:
        """The numbers of the pairs in the corpus, from 0, ascending."""
        return [number for number, _, _ in self._rows]

    @cached_property
    def sides(self) -> tuple[Sequence[str], Sequence[str]]:
        """The source texts and the target texts. Use this after all pairs have been read."""
        return [source.decode(errors="replace") for _, source, _ in self._rows], [
            target.decode(errors="replace") for _, _, target in self._rows
        ]
