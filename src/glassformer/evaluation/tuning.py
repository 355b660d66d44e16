"""Fit the weights of a sum of features, such as the log probabilities of several models, to a metric on a test set.

The weights minimise the *risk*: the expected metric of outputs that are drawn at random, with probabilities in
proportion to the exponential of their scores. The risk changes smoothly with the weights, whereas the metric of the
best outputs changes in jumps. A few items therefore cannot decide a weight. Every metric can be used, because
every metric is a function of sums of counts.

*Cross-fitting* gives a fair score without a second test set: each half of the items is ranked with weights fitted on
the other half.

Papers: Smith and Eisner 2006, "Minimum risk annealing for training log-linear models"; Och 2003, "Minimum error rate
training in statistical machine translation".
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.evaluation.metrics import Counted, References, metrics_named

__all__ = ["CandidateTable", "cross_fitted", "fit_weights", "oracle", "useful_weights"]

LARGEST_STEP, SMALLEST_STEP = 1.0, 1 / 32
"""The step by which a weight changes, at the beginning and at the end."""
STEPS = np.array([0, -1, 1, -2, 2, -4, 4])
"""The changes of a weight that are tried, as multiples of the step; of equally good changes, the first is made."""
LEAST_GAIN = 1e-6
"""Minimum improvement of a metric, in per cent, for which a weight changes."""
PENALTY = 0.01
"""Factor of the sum of squared weights, which is added to the risk (in per cent). Without this penalty, all weights
would grow without bound, and the risk would depend on a few items."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """The candidates of all items of a test set, padded to the same number. Axes: I items, C candidates, F features."""

    features: Matrix
    """(I, C, F)."""
    counts: Matrix
    """The counts of the metric for each candidate, (I, C, number of counts)."""
    there: NDArray[np.bool_]
    """Which candidates are not padding, (I, C)."""
    metric: Counted
    """The metric, which turns sums of counts into a value."""
    higher_is_better: bool

    @classmethod
    def of(
        cls,
        texts: Sequence[Sequence[str]],
        features: Sequence[Matrix],
        references: References,
        metric: str,
        language: str = "",
    ) -> "CandidateTable":
        """Return the table of these candidates; each item needs at least one candidate.

        Args:
            texts: the candidates of each item.
            features: the candidates' features, an array (candidates, F) for each item.
            references: the references of each item.
            metric: a name from `METRICS`.
            language: the tag of the references' language, as for `metrics_named`.

        Raises:
            ConfigError: the metric is unknown.
            DataError: the numbers of items and references differ, or are 0.
        """
        [counting] = metrics_named([metric], language)
        flat = [text for several in texts for text in several]
        repeated = [one for one, several in zip(references, texts, strict=True) for _ in several]
        counted = counting.count(flat, repeated)
        sizes = np.array([len(several) for several in texts])
        there = np.arange(sizes.max()) < sizes[:, None]
        table = np.zeros((*there.shape, features[0].shape[1])), np.zeros((*there.shape, counted.lines.shape[1]))
        table[0][there], table[1][there] = np.concatenate(features), counted.lines
        return cls(*table, there, counted, counting.higher_is_better)

    def part(self, items: slice) -> "CandidateTable":
        """Return the table of these items only."""
        rest = (self.metric, self.higher_is_better)
        return CandidateTable(self.features[items], self.counts[items], self.there[items], *rest)

    def best(self, weights: Matrix) -> NDArray[np.intp]:
        """Return the index of each item's best candidate, (I); of equally good candidates, the first."""
        chosen: NDArray[np.intp] = np.where(self.there, self.features @ weights, -np.inf).argmax(1)
        return chosen

    def value(self, chosen: NDArray[np.intp]) -> float:
        """Return the metric of the chosen candidates, in per cent; `chosen` has one index per item."""
        return self._valued(self.counts[np.arange(len(chosen)), chosen].sum(0))

    def is_better(self, weights: Sequence[float], other: Sequence[float]) -> bool:
        """Return whether the candidates chosen by `weights` have a better metric than those chosen by `other`."""
        value, against = (self.value(self.best(np.array(one))) for one in (weights, other))
        return value > against if self.higher_is_better else value < against

    def risk(self, weights: Matrix) -> float:
        """Return the expected metric of random candidates, in per cent, plus a penalty for large weights.

        The metric is negated if a higher value is better.
        """
        scores = np.where(self.there, self.features @ weights, -np.inf)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        value = self._valued(np.einsum("ic,ick->k", shares, self.counts))
        return (-value if self.higher_is_better else value) + PENALTY * float(weights @ weights)

    def _valued(self, sums: Matrix) -> float:
        return float(self.metric.values(sums[None])[0])


def fit_weights(table: CandidateTable, start: Sequence[float], held: Collection[int] = ()) -> tuple[float, ...]:
    """Return weights of the features with a low risk, found from the weights `start` by changing one weight at a time.

    The weights at the indices `held` do not change. The same arguments always give the same weights.
    """
    weights, step = np.array(start, np.float64), LARGEST_STEP
    free = [place for place in range(len(weights)) if place not in held]
    risk = table.risk(weights)
    while step >= SMALLEST_STEP:
        before = risk
        for place in free:
            tried = np.repeat(weights[None], len(STEPS), 0)
            tried[:, place] += step * STEPS
            risks = [risk, *(table.risk(one) for one in tried[1:])]
            best = int(np.argmin(risks))
            if risks[best] < risk - LEAST_GAIN:
                weights, risk = tried[best], risks[best]
        if risk > before - LEAST_GAIN:
            step /= 2
    return tuple(weights.tolist())


def useful_weights(table: CandidateTable, start: Sequence[float], held: Collection[int] = ()) -> tuple[float, ...]:
    """Return the result of `fit_weights`, or `start` if these weights choose better candidates.

    The risk can fall while the metric gets worse. For example, if the features of a weak model hardly distinguish good
    candidates from bad candidates, the weights with the lowest risk can have a negative weight for this model.
    """
    weights = fit_weights(table, start, held)
    return tuple(start) if table.is_better(start, weights) else weights


def cross_fitted(table: CandidateTable, start: Sequence[float], held: Collection[int] = ()) -> NDArray[np.intp]:
    """Return the index of each item's best candidate, with weights fitted on the half without this item.

    The weights at the indices `held` do not change.
    """
    halves = (slice(0, None, 2), slice(1, None, 2))
    chosen = np.zeros(len(table.there), np.intp)
    for half, other in zip(halves, reversed(halves), strict=True):
        if len(table.there[half]) and len(table.there[other]):
            weights = useful_weights(table.part(other), start, held)
            chosen[half] = table.part(half).best(np.array(weights))
    return chosen


def oracle(table: CandidateTable) -> float:
    """Return the metric, in per cent, if each item's candidate is chosen by the metric of this item alone."""
    values = table.metric.values(table.counts.reshape(-1, table.counts.shape[-1])).reshape(table.there.shape)
    worst = -np.inf if table.higher_is_better else np.inf
    values = np.where(table.there, values, worst)
    return table.value(values.argmax(1) if table.higher_is_better else values.argmin(1))
