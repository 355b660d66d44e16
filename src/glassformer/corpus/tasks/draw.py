"""Random choices, with a record: the grammar's rules make every choice with a `Draw`.

Only `random.Random.random` is used, because it gives the same numbers in every version of Python. Tests replace the
random choices by a walk through all choices, which enumerates the sentences of the grammar.

>>> Draw("any seed").choose(("a", "b", "c")) == Draw("any seed").choose(("a", "b", "c"))
True
"""

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from glassformer.corpus.tasks.world.words import Noun

__all__ = ["Draw", "Table"]

T = TypeVar("T")


class Table(Generic[T]):
    """Options with weights: `Table((THE, 9), (A, 1))`."""

    __slots__ = ("cumulative", "options", "total")

    def __init__(self, *rows: tuple[T, float]) -> None:
        self.options = tuple(option for option, _ in rows)
        self.cumulative = tuple(accumulate(weight for _, weight in rows))
        self.total = self.cumulative[-1]


class Draw:
    """A stream of random choices from a seed, with a record of the chosen nouns and word combinations."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random
        self.nouns: list[Noun] = []
        self.combinations: list[tuple[str, ...]] = []

    def forget(self) -> None:
        """Clear the record, for the next sentence."""
        self.nouns = []
        self.combinations = []

    def note(self, *words: str) -> None:
        """Record a combination of words: an adjective and its noun; subject, verb and place."""
        self.combinations.append(words)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random() < probability

    def choose(self, options: Sequence[T]) -> T:
        """Return one of the options with equal probability."""
        return options[int(self._random() * len(options))]

    def pick(self, table: Table[T]) -> T:
        """Return one of a table's options with probability proportional to its weight."""
        return table.options[bisect(table.cumulative, self._random() * table.total)]
