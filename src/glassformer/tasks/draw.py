"""Chance, and the record of what it chose: every choice that a rule makes goes through a `Draw`.

Only `random.Random.random` is used, which gives the same numbers in every version of Python. A test replaces the
draw by one that walks through all choices, and so enumerates the grammar.

>>> Draw("any seed").choose(("a", "b", "c")) == Draw("any seed").choose(("a", "b", "c"))
True
"""

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from glassformer.tasks.words import Noun

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
    """A stream of choices from a seed, with the nouns and the combinations of words that it brought about."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random
        self.nouns: list[Noun] = []
        self.combinations: list[tuple[str, ...]] = []

    def forget(self) -> None:
        """Begin the record anew, for the next sentence."""
        self.nouns = []
        self.combinations = []

    def note(self, *words: str) -> None:
        """Record that these words were put together: an adjective and its noun; subject, verb and place."""
        self.combinations.append(words)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random() < probability

    def choose(self, options: Sequence[T]) -> T:
        """Return one of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def pick(self, table: Table[T]) -> T:
        """Return one of the options of a table, by weight."""
        return table.options[bisect(table.cumulative, self._random() * table.total)]
