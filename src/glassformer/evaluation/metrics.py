"""Scores of translations against references. Every score carries the signature that makes it comparable.

BLEU and chrF are sacrebleu's. Every metric takes the hypotheses, one a line, and for each line its reference, or
several references of which any is right. Every metric is a function of counts that are summed over the lines, so that
the lines can be drawn anew (see `glassformer.evaluation.significance`).

Two metrics go by the name WER. "wer" counts the words to edit within lines, as for recognised speech. "word_error" is
what the literature on pronunciation calls WER: a line is one word, and the share of words that are wrong is counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import ConfigError, DataError, nearest

__all__ = [
    "METRICS",
    "Counted",
    "Metric",
    "References",
    "Score",
    "bleu",
    "chosen",
    "chrf",
    "error_rate",
    "evaluate",
    "exact_match",
    "sentence_scores",
    "word_error",
]

References = Sequence[str | Sequence[str]]
"""For each line one reference, or several."""
Choices = Sequence[Sequence[str]]
"""For each line its references, at least one."""
Counts = NDArray[np.float64]
"""Numbers that add up: a row for each line, or for each set of lines whose rows were summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a metric says about a set of translations."""

    name: str
    """The metric's name as it is written: "BLEU", "chrF2", "exact", "WER (whole words)", "WER", "PER", "CER"."""
    value: float
    """In per cent: from 0 to 100, except that an error rate can be higher."""
    signature: str
    """How it was computed: two values compare only when their signatures agree."""
    interval: tuple[float, float] | None = None
    """In which the values of 95 % of samples of the lines lie, where it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a metric has counted in each line."""

    lines: Counts
    """A row for each line."""
    values: Callable[[Counts], NDArray[np.float64]]
    """The metric's value for each row of sums over lines, in per cent."""
    signature: str
    """How it was counted."""

    @property
    def value(self) -> float:
        """The metric's value for all lines."""
        return float(self.values(self.lines.sum(0, keepdims=True))[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: called with hypotheses and references, it gives their `Score`."""

    name: str
    """How it is written in a score."""
    meaning: str
    """What it counts, in a few words."""
    higher_is_better: bool
    """False for error rates."""
    count_in: Callable[[Sequence[str], Choices], Counted]
    """What does the counting, once it is sure that there is something to count."""

    def count(self, hypotheses: Sequence[str], references: References) -> Counted:
        """Return what is counted in each line.

        Raises:
            DataError: not as many hypotheses as references, or nothing to score.
        """
        return self.count_in(hypotheses, _choices(hypotheses, references))

    def __call__(self, hypotheses: Sequence[str], references: References) -> Score:
        """Return the score.

        Raises:
            DataError: not as many hypotheses as references, or nothing to score.
        """
        counted = self.count(hypotheses, references)
        return Score(name=self.name, value=counted.value, signature=counted.signature)


def evaluate(
    hypotheses: Sequence[str], references: References, *, metrics: Sequence[str] = ("bleu", "chrf", "exact")
) -> list[Score]:
    """Return the scores of `metrics`, names of `METRICS`, in their order.

    Raises:
        ConfigError: there is no such metric.
        DataError: not as many hypotheses as references, or nothing to score.
    """
    return [metric(hypotheses, references) for metric in chosen(metrics)]


def chosen(names: Sequence[str]) -> list["Metric"]:
    """Return the metrics of these names.

    Raises:
        ConfigError: there is no such metric.
    """
    for name in names:
        if name not in METRICS:
            raise ConfigError(f"metrics: expected some of {', '.join(METRICS)}, got {name!r}{nearest(name, METRICS)}")
    return [METRICS[name] for name in names]


def sentence_scores(hypotheses: Sequence[str], references: References, metric: str) -> list[float]:
    """Return the score of each line by itself, in per cent; of an error rate the lower is the better.

    BLEU is smoothed, and takes n-grams only as long as the hypothesis has any (sacrebleu's effective order).

    Raises:
        ConfigError: there is no such metric.
        DataError: not as many hypotheses as references, or nothing to score.
    """
    [wanted] = chosen([metric])
    if metric == "bleu":
        wanted = replace(wanted, count_in=partial(_count_by_sacrebleu, name="BLEU", effective_order=True))
    counted = wanted.count(hypotheses, references)
    return [float(value) for value in counted.values(counted.lines)]


def bleu(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus BLEU, by sacrebleu with its default tokenisation (13a).

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    return METRICS["bleu"](hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus chrF2, by sacrebleu.

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    return METRICS["chrf"](hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Return the share of lines whose hypothesis is equal to a reference, differences in white space aside.

    For transliterated words this is what the literature calls accuracy.

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    return METRICS["exact"](hypotheses, references)


def word_error(hypotheses: Sequence[str], references: References) -> Score:
    """Return the share of lines whose hypothesis equals none of its references: 100 − `exact_match`.

    Where a line is the pronunciation of one word, the literature calls this WER: the share of words that are wrong.

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    return METRICS["word_error"](hypotheses, references)


def error_rate(
    hypotheses: Sequence[str], references: References, *, unit: Literal["words", "symbols", "characters"] = "words"
) -> Score:
    """Return the edits (insertions, deletions, replacements) from hypotheses to references per unit of the references.

    Of several references the closest counts: the one with the fewest edits, of those the longest. Summed over all lines
    before the division, so that long lines count for more. More than 100 when the hypotheses are too long.

    Args:
        hypotheses: one a line.
        references: for each line one, or several of which any is right.
        unit: "words" between white space (WER); "symbols" between white space (PER: the same count under its name for
            lines of phones or letters); "characters", single spaces included (CER).

    Raises:
        DataError: not as many hypotheses as references, nothing to score, or references without any unit.
    """
    return METRICS[UNITS[unit]](hypotheses, references)


UNITS = {"words": "wer", "symbols": "per", "characters": "cer"}


def _count_equal(hypotheses: Sequence[str], choices: Choices, *, wrong: bool) -> Counted:
    """Count the lines that equal a reference, or those that equal none."""
    equal = [
        hypothesis.split() in [reference.split() for reference in several]
        for hypothesis, several in zip(hypotheses, choices, strict=True)
    ]
    counts = np.array([(right != wrong, 1) for right in equal], dtype=np.float64)
    return Counted(lines=counts, values=_share, signature=_signature(choices, "line"))


def _count_edits(
    hypotheses: Sequence[str], choices: Choices, *, cut: Callable[[str], Sequence[str]], unit: str
) -> Counted:
    """Count the edits to the closest reference of each line, and its length."""
    closest = [
        _closest(cut(hypothesis), [cut(reference) for reference in several])
        for hypothesis, several in zip(hypotheses, choices, strict=True)
    ]
    counts = np.array(closest, dtype=np.float64)
    if not counts[:, 1].any():
        raise DataError(f"references: expected {unit}s, got blank lines only: is it the right file?")
    return Counted(lines=counts, values=_share, signature=_signature(choices, unit))


def _closest(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the edits to the closest reference, and its length."""
    from rapidfuzz.distance import Levenshtein

    distances = ((Levenshtein.distance(hypothesis, reference), -len(reference)) for reference in references)
    edits, negative_length = min(distances)
    return edits, -negative_length


def _count_by_sacrebleu(
    hypotheses: Sequence[str], choices: Choices, *, name: Literal["BLEU", "CHRF"], **options: bool
) -> Counted:
    """Count what sacrebleu counts: n-grams and lengths."""
    from sacrebleu import metrics

    metric: Any = getattr(metrics, name)(**options)
    # sacrebleu wants the first references of all lines, then the second ones, …, None where a line has fewer. Its own
    # significance tests use the methods below as we do.
    counts = metric._extract_corpus_statistics(hypotheses, list(zip_longest(*choices)))

    def values(sums: Counts) -> NDArray[np.float64]:
        rows = sums.astype(np.int64).tolist()
        return np.array([metric._compute_score_from_stats(row).score for row in rows], dtype=np.float64)

    return Counted(lines=np.array(counts, dtype=np.float64), values=values, signature=str(metric.get_signature()))


def _share(sums: Counts) -> NDArray[np.float64]:
    """Return the first count per second, in per cent; drawn lines may all be blank and have no units at all."""
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)


def _signature(choices: Choices, unit: str) -> str:
    counts = {len(several) for several in choices}
    return f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|unit:{unit}|case:mixed|space:collapsed"


def _choices(hypotheses: Sequence[str], references: References) -> Choices:
    """Return the references of each line as a list, once it is sure that they can be scored."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"got {len(hypotheses)} hypotheses and {len(references)} references: expected as many, line by line"
        )
    choices = [[reference] if isinstance(reference, str) else reference for reference in references]
    if not choices:
        raise DataError("got no hypotheses and no references: expected at least one line to score")
    for number, several in enumerate(choices, start=1):
        if not several:
            raise DataError(f"references, line {number}: expected at least one reference, got none")
    return choices


def _edits(name: str, unit: str, cut: Callable[[str], Sequence[str]]) -> Metric:
    return Metric(
        name=name,
        meaning=f"{unit}s to edit within lines",
        higher_is_better=False,
        count_in=lambda hypotheses, choices: _count_edits(hypotheses, choices, cut=cut, unit=unit),
    )


METRICS: dict[str, Metric] = {
    "bleu": Metric(
        name="BLEU",
        meaning="n-grams of words",
        higher_is_better=True,
        count_in=lambda hypotheses, choices: _count_by_sacrebleu(hypotheses, choices, name="BLEU"),
    ),
    "chrf": Metric(
        name="chrF2",
        meaning="n-grams of characters",
        higher_is_better=True,
        count_in=lambda hypotheses, choices: _count_by_sacrebleu(hypotheses, choices, name="CHRF"),
    ),
    "exact": Metric(
        name="exact",
        meaning="lines that equal a reference (accuracy)",
        higher_is_better=True,
        count_in=lambda hypotheses, choices: _count_equal(hypotheses, choices, wrong=False),
    ),
    "word_error": Metric(
        name="WER (whole words)",
        meaning="lines that equal no reference, where each is one word",
        higher_is_better=False,
        count_in=lambda hypotheses, choices: _count_equal(hypotheses, choices, wrong=True),
    ),
    "wer": _edits("WER", "word", str.split),
    "per": _edits("PER", "symbol", str.split),
    "cer": _edits("CER", "character", lambda line: " ".join(line.split())),
}
"""The metrics by the names that `evaluate` takes."""
