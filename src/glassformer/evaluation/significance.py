"""Confidence intervals of scores, and significance tests of the difference between two systems.

Both methods resample the lines of the test set. *Bootstrap*: each sample draws as many lines as the test set has, with
replacement, and gives a score; the interval contains 95 % of these scores. For two systems, the same lines are drawn
for both (paired), and the interval is an interval of the difference. *Approximate randomisation*: if the systems were
equally good, it would not matter which system wrote which output. Therefore, a coin toss per line decides whether the
two outputs are swapped. The p-value is the share of such randomised assignments whose difference is at least as large
as the real difference.

sacrebleu's own tests (`sacrebleu.significance`) resample in the same way, and give the same p-value if no assignment
has exactly the real difference (a tie). Here, a tie counts as at least as large, as the definition of the p-value
requires. If two systems differ in a single line, every assignment gives the same difference, and p is 1 (sacrebleu
gives 0.0001). Ties are frequent for metrics that count whole words.

Papers: Koehn 2004, "Statistical significance tests for machine translation evaluation"; Riezler and Maxwell 2005,
"On some pitfalls in automatic evaluation and significance testing for MT".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.evaluation.metrics import Counted, Counts, References, Score, metrics_named

__all__ = [
    "Comparison",
    "Difference",
    "bootstrap",
    "compare_texts",
    "differences",
    "randomisation",
    "score_texts_with_intervals",
]

SAMPLES = 1000
"""Number of bootstrap samples per interval."""
TOSSES = 10_000
"""Number of randomised assignments per p-value."""
LEVEL = 0.05
"""Significance level: the share of tests that find a difference between equally good systems."""
TIE = 1e-9
"""Tolerance within which two differences count as equal, because rounding may change equal fractions."""
TOSSED_TOGETHER = 2**20
"""Maximum number of coins tossed in one block, to bound memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two systems by one metric."""

    name: str
    """The metric's name, as in a `Score`."""
    first: float
    """The value of the first system, in per cent."""
    second: float
    """The value of the second system, in per cent."""
    low: float
    """Lower end of the 95 % interval of `difference`, by paired bootstrap."""
    high: float
    """Upper end of the 95 % interval of `difference`."""
    p_value: float
    """Probability that equally good systems differ at least this much, by approximate randomisation."""
    higher_is_better: bool
    """False for error rates."""
    signature: str
    """How the values were computed."""

    @property
    def difference(self) -> float:
        """The second value minus the first."""
        return self.second - self.first

    @property
    def better(self) -> int:
        """The system that is significantly better, 1 or 2; 0 = neither."""
        if self.p_value >= LEVEL or not self.difference:
            return 0
        return 2 if (self.difference > 0) == self.higher_is_better else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line on which two systems differ."""

    line: int
    """Index of the line among the compared lines, from 0."""
    edits: tuple[float, float]
    """For each of the two outputs, character edits to its closest reference, per character of that reference."""


def score_texts_with_intervals(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str],
    language: str = "",
    samples: int = SAMPLES,
    seed: int = 1,
) -> list[Score]:
    """Return the scores of `metrics` with their 95 % intervals.

    `language` is the tag of the references' language, as for `metrics_named`.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    scores = []
    for metric in metrics_named(metrics, language):
        counted = metric.count(hypotheses, references)
        interval = bootstrap(counted, samples=samples, seed=seed)
        signature = f"{counted.signature}|bs:{samples}|seed:{seed}"
        scores.append(Score(name=metric.name, value=counted.value, signature=signature, interval=interval))
    return scores


def compare_texts(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str],
    language: str = "",
    samples: int = SAMPLES,
    tosses: int = TOSSES,
    seed: int = 1,
) -> list[Comparison]:
    """Return the comparison of two systems by each of these metrics; the same seed gives the same numbers.

    Args:
        first: hypotheses of the first system, one per line.
        second: hypotheses of the second system.
        references: for each line, one or several equally valid references.
        metrics: names from `METRICS`.
        language: the tag of the references' language, as for `metrics_named`.
        samples: number of bootstrap samples per interval.
        tosses: number of randomised assignments per p-value, which is at least 1 / (tosses + 1).
        seed: seed of the random draws.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    comparisons = []
    for metric in metrics_named(metrics, language):
        a, b = metric.count(first, references), metric.count(second, references)
        low, high = bootstrap(a, b, samples=samples, seed=seed)
        comparison = Comparison(
            name=metric.name,
            first=a.value,
            second=b.value,
            low=low,
            high=high,
            p_value=randomisation(a, b, tosses=tosses, seed=seed),
            higher_is_better=metric.higher_is_better,
            signature=f"{a.signature}|bs:{samples}|ar:{tosses}|seed:{seed}",
        )
        comparisons.append(comparison)
    return comparisons


def bootstrap(
    counted: Counted, other: Counted | None = None, *, samples: int = SAMPLES, seed: int = 1
) -> tuple[float, float]:
    """Return the 95 % interval of the value of `counted`, by bootstrap.

    With `other`, return the interval of the difference, `other` minus `counted`, by paired bootstrap.
    """
    sums = np.array([weights @ counted.lines for weights in _draws(len(counted.lines), samples, seed)])
    values = counted.values(sums)
    if other is not None:
        sums = np.array([weights @ other.lines for weights in _draws(len(other.lines), samples, seed)])
        values = other.values(sums) - values
    low, high = np.quantile(values, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def randomisation(first: Counted, second: Counted, *, tosses: int = TOSSES, seed: int = 1) -> float:
    """Return the two-sided p-value: (number of tosses that reach the real difference + 1) / (tosses + 1).

    Only lines whose counts differ are swapped at random, because swapping equal counts changes nothing.
    """
    differ = (first.lines != second.lines).any(1)
    change = (first.lines - second.lines)[differ]
    totals = first.lines.sum(0), second.lines.sum(0)
    bound = abs(first.value - second.value) - TIE
    reached = 0
    for sides in _tosses(len(change), tosses, seed):
        moved = sides @ change
        values = first.values(totals[0] - moved), second.values(totals[1] + moved)
        reached += int((np.abs(values[0] - values[1]) >= bound).sum())
    return (reached + 1) / (tosses + 1)


def differences(first: Sequence[str], second: Sequence[str], references: References) -> list[Difference]:
    """Return the lines where one output is closer to a reference than the other output, largest difference first."""
    [cer] = metrics_named(["cer"])
    rates = [_rates(cer.count(outputs, references)) for outputs in (first, second)]
    edits = list(zip(*(rate.tolist() for rate in rates), strict=True))
    found = [Difference(line=line, edits=both) for line, both in enumerate(edits) if both[0] != both[1]]
    return sorted(found, key=lambda one: -abs(one.edits[0] - one.edits[1]))


def _rates(counted: Counted) -> NDArray[np.float64]:
    return counted.values(counted.lines) / 100


def _draws(lines: int, samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield, for each sample, how often each line is drawn."""
    chance = np.random.default_rng(seed)
    for _ in range(samples):
        yield np.bincount(chance.integers(lines, size=lines), minlength=lines)


def _tosses(lines: int, tosses: int, seed: int) -> Iterator[Counts]:
    """Yield blocks of tosses, one row per toss, with 1 for each line whose two outputs are swapped."""
    chance = np.random.default_rng(seed)
    block = max(1, TOSSED_TOGETHER // max(lines, 1))
    for start in range(0, tosses, block):
        yield chance.integers(2, size=(min(block, tosses - start), lines)).astype(np.float64)
