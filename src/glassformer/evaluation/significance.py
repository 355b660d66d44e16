"""How sure a score is, and whether two systems differ by more than chance.

Both questions are answered by drawing the lines of the test set anew. *Bootstrap*: as many lines as there are, drawn
with replacement, give another score; 95 % of such scores lie in the interval. For two systems the same lines are drawn
(paired), and the interval is that of the difference. *Approximate randomisation*: if the systems were equally good, it
would not matter which of them wrote which output; so the outputs of each line change sides by the toss of a coin, and
the p-value is how often the difference is then as large as it was.

sacrebleu's own tests (`sacrebleu.significance`) draw the same way, and where no two draws tie they give the same
p-value. Here a draw that ties with the real difference counts against it, as it must: where two systems differ in a
single line, every toss gives the same difference, and p is 1 (theirs is 0.0001). Counts of whole words tie often.

Papers: Koehn 2004, "Statistical significance tests for machine translation evaluation"; Riezler and Maxwell 2005,
"On some pitfalls in automatic evaluation and significance testing for MT".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.evaluation.metrics import Counted, Counts, References, Score, chosen

__all__ = ["Comparison", "Difference", "bootstrap", "compare", "differences", "evaluate", "randomisation"]

SAMPLES = 1000
"""How often lines are drawn for an interval."""
TOSSES = 10_000
"""How often outputs change sides for a p-value."""
LEVEL = 0.05
"""Equal systems are called different in this share of tests."""
TIE = 1e-9
"""Differences that are closer than this are equal: the same fraction may be rounded in two ways."""
TOGETHER = 2**20
"""How many coins are tossed at once: bounds memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two systems by one metric."""

    name: str
    """The metric's name, as in a `Score`."""
    first: float
    """The value of the first system, in per cent."""
    second: float
    """The value of the second."""
    low: float
    """Lower end of the 95 % interval of `difference`, by paired bootstrap."""
    high: float
    """Its upper end."""
    p_value: float
    """How probable so large a difference is between equally good systems, by approximate randomisation."""
    higher_is_better: bool
    """False for error rates."""
    signature: str
    """How the values were computed."""

    @property
    def difference(self) -> float:
        """The second value less the first."""
        return self.second - self.first

    @property
    def better(self) -> int:
        """1 or 2: which system is better beyond chance; 0: that cannot be told."""
        if self.p_value >= LEVEL or not self.difference:
            return 0
        return 2 if (self.difference > 0) == self.higher_is_better else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A line on which two systems differ."""

    line: int
    """Its number among the lines that were compared, from 0."""
    edits: tuple[float, float]
    """Of each system's output: characters to edit to the closest reference, per character of it."""


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str],
    samples: int = SAMPLES,
    seed: int = 1,
) -> list[Score]:
    """Return the scores of `metrics` with their 95 % intervals.

    Raises:
        ConfigError: there is no such metric.
        DataError: not as many hypotheses as references, or nothing to score.
    """
    scores = []
    for metric in chosen(metrics):
        counted = metric.count(hypotheses, references)
        interval = bootstrap(counted, samples=samples, seed=seed)
        signature = f"{counted.signature}|bs:{samples}|seed:{seed}"
        scores.append(Score(name=metric.name, value=counted.value, signature=signature, interval=interval))
    return scores


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str],
    samples: int = SAMPLES,
    tosses: int = TOSSES,
    seed: int = 1,
) -> list[Comparison]:
    """Return how two systems compare, by each metric of these names. The same seed gives the same numbers.

    Args:
        first: the hypotheses of one system, one a line.
        second: those of the other.
        references: for each line one, or several of which any is right.
        metrics: names of `METRICS`.
        samples: how many bootstrap samples an interval comes from.
        tosses: how often outputs change sides for a p-value, which is at least 1 / (tosses + 1).
        seed: seeds the draws.

    Raises:
        ConfigError: there is no such metric.
        DataError: not as many hypotheses as references, or nothing to score.
    """
    comparisons = []
    for metric in chosen(metrics):
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
    """Return the 95 % interval of a value; with `other`, of its value less that of `counted`, from the same lines."""
    sums = np.array([weights @ counted.lines for weights in _draws(len(counted.lines), samples, seed)])
    values = counted.values(sums)
    if other is not None:
        sums = np.array([weights @ other.lines for weights in _draws(len(other.lines), samples, seed)])
        values = other.values(sums) - values
    low, high = np.quantile(values, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def randomisation(first: Counted, second: Counted, *, tosses: int = TOSSES, seed: int = 1) -> float:
    """Return the two-sided p-value of the difference between two systems: (ties and exceedings + 1) / (tosses + 1).

    Only lines on which the counts differ are tossed for: the others do not change whichever side they are on.
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
    """Return the lines whose outputs are not equally far from their references, those that differ most first."""
    [cer] = chosen(["cer"])
    rates = [_rates(cer.count(outputs, references)) for outputs in (first, second)]
    edits = list(zip(*(rate.tolist() for rate in rates), strict=True))
    found = [Difference(line=line, edits=both) for line, both in enumerate(edits) if both[0] != both[1]]
    return sorted(found, key=lambda one: -abs(one.edits[0] - one.edits[1]))


def _rates(counted: Counted) -> NDArray[np.float64]:
    return counted.values(counted.lines) / 100


def _draws(lines: int, samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield how often each line is drawn."""
    chance = np.random.default_rng(seed)
    for _ in range(samples):
        yield np.bincount(chance.integers(lines, size=lines), minlength=lines)


def _tosses(lines: int, tosses: int, seed: int) -> Iterator[Counts]:
    """Yield blocks of tosses, a row each: 1 where a line changes sides."""
    chance = np.random.default_rng(seed)
    block = max(1, TOGETHER // max(lines, 1))
    for start in range(0, tosses, block):
        yield chance.integers(2, size=(min(block, tosses - start), lines)).astype(np.float64)
