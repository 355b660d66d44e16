"""Whether the targets of a corpus are translations of their sources.

Half of the pairs say which target words each source word is found with (IBM model 1, without positions); the other half
is judged by it, and then the other way round. A pair's score is the mean, over its target words, of how much likelier
its best source word makes the word. Each target is also scored with another source, whose target has the same number of
words. A pair that is no translation has a score like these, and if 20 % of the pairs are none, the lowest scores are 20
% as frequent as there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from glassformer.text.word_edges import UNSPACED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

__all__ = ["Fit", "fit_of"]

LEAST_JUDGED = 200
"""Minimum number of pairs that can be judged; with fewer, nothing is said."""
LOWEST = 0.25
"""Share of the scores with another source that count as lowest."""

_ROUNDS = 5
_SMOOTHING = 0.3
"""Added to the count of each source word, so that a pair of words found once is no rule."""
_ANY = 0.1
"""Probability that a target word does not depend on the source."""
_SAME = 0.5
"""Probability of a target word that is also in the source, such as a name or a number."""
_KNOWN = 3
"""A word is judged if it is in at least so many of the pairs that were counted, and a pair if it has as many such words
on each side. Country names, each in one pair, cannot be judged."""
_LONGEST = 40
"""Maximum number of words that are read of a line."""

_WORD = re.compile(r"\w+")
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the targets of some pairs fit their sources."""

    misfits: float
    """Estimated share of the pairs whose target is not a translation of the source, 0 to 1."""
    judged: int
    """Number of pairs that were judged."""
    worst: tuple[int, ...]
    """Indices of the pairs that fit worst, worst first."""


def fit_of(sources: Sequence[str], targets: Sequence[str]) -> Fit | None:
    """Return how well targets fit their sources, or None if too few pairs can be judged."""
    if len(sources) < LEAST_JUDGED:
        return None
    source, target = _Side.of(sources), _Side.of(targets)
    same = np.array([target.numbers.get(word, -1) for word in source.numbers], np.int64)
    count = len(sources)
    true, other = np.full(count, np.nan), np.full(count, np.nan)
    for half in (0, 1):
        judged = np.arange(half, count, 2)
        words = _Words(source, target, same, np.arange(1 - half, count, 2))
        by_length = sorted(judged, key=lambda pair: len(target.lines[pair]))
        true[judged] = [words.score(source.lines[pair], target.lines[pair]) for pair in judged]
        for pair, neighbour in zip(by_length, by_length[1:] + by_length[:1], strict=True):
            other[pair] = words.score(source.lines[pair], target.lines[neighbour])
    scored = np.flatnonzero(~np.isnan(true))
    other = other[~np.isnan(other)]
    if min(len(scored), len(other)) < LEAST_JUDGED:
        return None
    limit = np.quantile(other, LOWEST)
    worst = scored[np.argsort(true[scored], kind="stable")]
    share = (true[scored] <= limit).mean() / (other <= limit).mean()
    return Fit(min(float(share), 1.0), len(scored), tuple(worst[true[worst] <= limit].tolist()))


@dataclass(frozen=True, slots=True)
class _Side:
    lines: "list[Numbers]"
    """The different words of each line, by number."""
    numbers: dict[str, int]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Side":
        numbers: dict[str, int] = {}
        lines = [
            np.array([numbers.setdefault(word, len(numbers)) for word in dict.fromkeys(words[:_LONGEST])], np.int64)
            for words in _words(texts)
        ]
        return cls(lines, numbers)


def _words(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of each text, or its characters if texts are single words or have no spaces between words."""
    folded = [text.casefold() for text in texts]
    spaced = [text.split() for text in folded]
    if sum(map(len, spaced)) < 2 * len(texts):
        return [list(text) for text in folded]
    if sum(len(_WITHOUT_SPACES.findall(text)) for text in folded) > 0.3 * sum(map(len, folded)):
        return [list("".join(words)) for words in spaced]
    return [_WORD.findall(text) or words for text, words in zip(folded, spaced, strict=True)]


class _Words:
    """Which target words some pairs have with which source words."""

    def __init__(self, source: _Side, target: _Side, same: "Numbers", pairs: "Numbers") -> None:
        self.same, self.targets = same, len(target.numbers)
        sources, targets = ([side.lines[pair] for pair in pairs] for side in (source, target))
        self.source_counts, self.target_counts = (
            np.bincount(np.concatenate([*lines, np.zeros(0, np.int64)]), minlength=len(side.numbers))
            for lines, side in ((sources, source), (targets, target))
        )
        self.frequency = (self.target_counts + 0.5) / (self.target_counts.sum() + 0.5 * self.targets)
        self.cells, self.probability = self._fitted(sources, targets)

    def _fitted(self, sources: "list[Numbers]", targets: "list[Numbers]") -> "tuple[Numbers, NDArray[np.float64]]":
        """Return pairs of words as source × targets + target, ascending, and for each p(target | source)."""
        cells = np.concatenate([np.zeros(0, np.int64), *map(self._cells, sources, targets)])
        widths = np.repeat([len(one) for one in sources], [len(one) for one in targets])
        owners = np.repeat(np.arange(len(widths)), widths)
        found, kinds = np.unique(cells, return_inverse=True)
        probability = np.ones(len(found))
        for _ in range(_ROUNDS):
            share = probability[kinds]
            share /= np.bincount(owners, share)[owners]
            counts = np.bincount(kinds, share, len(found))
            of_source = found // max(self.targets, 1)
            probability = counts / (np.bincount(of_source, counts)[of_source] + _SMOOTHING)
        return found, probability

    def _cells(self, source: "Numbers", target: "Numbers") -> "Numbers":
        """Return all pairs of the words of two lines, target by target."""
        cells: Numbers = (source[None] * self.targets + target[:, None]).ravel()
        return cells

    def score(self, source: "Numbers", target: "Numbers") -> float:
        """Return how much likelier the source makes the target's words, as a mean of logarithms; NaN = unknown."""
        source, target = source[self.source_counts[source] >= _KNOWN], target[self.target_counts[target] >= _KNOWN]
        if min(len(source), len(target)) < _KNOWN:
            return float("nan")
        cells = self._cells(source, target)
        places = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        given = np.where(self.cells[places] == cells, self.probability[places], 0.0).reshape(len(target), -1)
        given = np.maximum(given, _SAME * (self.same[source][None] == target[:, None]))
        return float(np.log((1 - _ANY) * given.max(1) / self.frequency[target] + _ANY).mean())
