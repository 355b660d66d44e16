"""Scores of translations against references, each with a signature that says how it was computed.

BLEU and chrF are computed by sacrebleu. For each line, a metric takes one hypothesis, and one or several equally valid
references. Texts are compared in Unicode's normal form C (NFC). Every metric is a function of counts summed over the
lines, so that significance tests can resample the lines (see `glassformer.evaluation.significance`).

Two metrics are called WER in the literature. "wer" counts the words to edit within lines, as in speech recognition.
"word_error" is the WER of the literature on pronunciation: each line is one word, and the value is the share of wrong
words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import ConfigError, DataError, nearest, quoted
from glassformer.evaluation.bleu_words import bleu_tokenizer

__all__ = [
    "METRICS",
    "Counted",
    "Metric",
    "References",
    "Score",
    "bleu",
    "chrf",
    "exact_match",
    "metrics_named",
    "score_texts",
    "sentence_scores",
    "word_error",
]

References = Sequence[str | Sequence[str]]
"""For each line, one reference or several references."""
Choices = Sequence[Sequence[str]]
"""For each line, at least one reference."""
Counts = NDArray[np.float64]
"""Counts that can be added: one row per line, or per set of lines whose rows were summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The value of a metric on a set of translations."""

    name: str
    """The metric's printed name: "BLEU", "chrF2", "exact", "WER (whole words)", "WER", "PER", "CER"."""
    value: float
    """The value in per cent, from 0 to 100; an error rate can exceed 100."""
    signature: str
    """How the value was computed; only values with equal signatures are comparable."""
    interval: tuple[float, float] | None = None
    """The 95 % confidence interval of the value, if it was computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A metric's counts for each line."""

    lines: Counts
    """One row per line."""
    values: Callable[[Counts], NDArray[np.float64]]
    """A function that returns the metric's value, in per cent, for each row of summed counts."""
    signature: str
    """How the lines were counted."""

    @property
    def value(self) -> float:
        """The metric's value over all lines."""
        return float(self.values(self.lines.sum(0, keepdims=True))[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric; calling it with hypotheses and references returns their `Score`."""

    name: str
    """The name printed in a score."""
    meaning: str
    """What the metric counts, in a few words."""
    higher_is_better: bool
    """False for error rates."""
    count_in: Callable[[Sequence[str], Choices], Counted]
    """The counting function, called with checked arguments."""

    def count(self, hypotheses: Sequence[str], references: References) -> Counted:
        """Return the metric's counts for each line.

        Raises:
            DataError: the numbers of hypotheses and references differ, or are 0.
        """
        choices = [list(map(_composed, several)) for several in _choices(hypotheses, references)]
        return self.count_in(list(map(_composed, hypotheses)), choices)

    def __call__(self, hypotheses: Sequence[str], references: References) -> Score:
        """Return the score.

        Raises:
            DataError: the numbers of hypotheses and references differ, or are 0.
        """
        counted = self.count(hypotheses, references)
        return Score(name=self.name, value=counted.value, signature=counted.signature)


def score_texts(
    hypotheses: Sequence[str],
    references: References,
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "exact"),
    language: str = "",
) -> list[Score]:
    """Return the scores of `metrics` (names from `METRICS`), in the same order.

    `language` is the tag of the references' language, as for `metrics_named`.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    return [metric(hypotheses, references) for metric in metrics_named(metrics, language)]


def metrics_named(names: Sequence[str], language: str = "") -> list["Metric"]:
    """Return the metrics with these names.

    Args:
        names: names from `METRICS`.
        language: the BCP 47 tag of the references' language, which decides how BLEU cuts texts into words. If the tag
            is "", the script of the references decides.

    Raises:
        ConfigError: a metric is unknown.
    """
    for name in names:
        if name not in METRICS:
            known = ", ".join(METRICS)
            raise ConfigError(f"metrics: expected some of {known}, got {quoted(name)}{nearest(name, METRICS)}")
    return [_bleu(language) if name == "bleu" else METRICS[name] for name in names]


def sentence_scores(hypotheses: Sequence[str], references: References, metric: str, language: str = "") -> list[float]:
    """Return the score of each single line, in per cent; for error rates, lower is better.

    `language` is the tag of the references' language, as for `metrics_named`. BLEU is smoothed, and only uses n-grams
    that are not longer than the hypothesis (sacrebleu's effective order).

    Raises:
        ConfigError: the metric is unknown.
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    wanted = _bleu(language, effective_order=True) if metric == "bleu" else metrics_named([metric])[0]
    counted = wanted.count(hypotheses, references)
    return [float(value) for value in counted.values(counted.lines)]


def bleu(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus BLEU, computed by sacrebleu with the tokenizer for the references' script.

    Raises:
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    return METRICS["bleu"](hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus chrF2, computed by sacrebleu.

    Raises:
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    return METRICS["chrf"](hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Return the share of lines whose hypothesis equals a reference, up to white space.

    For transliterated words, the literature calls this share accuracy.

    Raises:
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    return METRICS["exact"](hypotheses, references)


def word_error(hypotheses: Sequence[str], references: References) -> Score:
    """Return the share of lines whose hypothesis differs from all of the line's references: 100 − `exact_match`.

    Where each line is the pronunciation of one word, the literature calls this share WER.

    Raises:
        DataError: the numbers of hypotheses and references differ, or are 0.
    """
    return METRICS["word_error"](hypotheses, references)


def _count_equal(hypotheses: Sequence[str], choices: Choices, *, wrong: bool) -> Counted:
    """Return, for each line, whether it equals a reference, or, with `wrong`, whether it equals none."""
    equal = [
        hypothesis.split() in [reference.split() for reference in several]
        for hypothesis, several in zip(hypotheses, choices, strict=True)
    ]
    counts = np.array([(right != wrong, 1) for right in equal], dtype=np.float64)
    return Counted(lines=counts, values=_share, signature=_signature(choices, "line"))


def _count_edits(
    hypotheses: Sequence[str], choices: Choices, *, cut: Callable[[str], Sequence[str]], unit: str
) -> Counted:
    """Return, for each line, the number of edits to its closest reference, and the length of this reference."""
    closest = [
        _closest(cut(hypothesis), [cut(reference) for reference in several])
        for hypothesis, several in zip(hypotheses, choices, strict=True)
    ]
    counts = np.array(closest, dtype=np.float64)
    if not counts[:, 1].any():
        raise DataError(f"references: expected {unit}s, got blank lines only; choose another file")
    return Counted(lines=counts, values=_share, signature=_signature(choices, unit))


def _closest(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the number of edits to the closest reference, and the length of that reference."""
    from rapidfuzz.distance import Levenshtein

    distances = ((Levenshtein.distance(hypothesis, reference), -len(reference)) for reference in references)
    edits, negative_length = min(distances)
    return edits, -negative_length


def _count_by_sacrebleu(
    hypotheses: Sequence[str], choices: Choices, *, name: Literal["BLEU", "CHRF"], **options: Any
) -> Counted:
    """Return sacrebleu's counts: n-grams and lengths."""
    from sacrebleu import metrics

    metric: Any = getattr(metrics, name)(**options)
    # sacrebleu expects a list with the first reference of every line, a list with the second references, and so on,
    # with None for lines with fewer references. sacrebleu's own significance tests also use the two private methods
    # below.
    counts = metric._extract_corpus_statistics(hypotheses, list(zip_longest(*choices)))

    def values(sums: Counts) -> NDArray[np.float64]:
        rows = sums.astype(np.int64).tolist()
        return np.array([metric._compute_score_from_stats(row).score for row in rows], dtype=np.float64)

    return Counted(lines=np.array(counts, dtype=np.float64), values=values, signature=str(metric.get_signature()))


def _share(sums: Counts) -> NDArray[np.float64]:
    """Return the first count divided by the second, in per cent.

    The second count is 0 if all resampled references are blank.
    """
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)


def _signature(choices: Choices, unit: str) -> str:
    counts = {len(several) for several in choices}
    return f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|unit:{unit}|case:mixed|space:collapsed"


def _choices(hypotheses: Sequence[str], references: References) -> Choices:
    """Return the references of each line as a list, after checking that they can be scored."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"expected one reference per hypothesis, got {len(hypotheses)} hypotheses and {len(references)} "
            "references; align them line by line"
        )
    choices = [[reference] if isinstance(reference, str) else reference for reference in references]
    if not choices:
        raise DataError("expected at least one line to score, got no hypotheses and no references")
    for number, several in enumerate(choices, start=1):
        if not several:
            raise DataError(f"references, line {number}: expected at least one reference, got none")
    return choices


def _composed(text: str) -> str:
    return normalize("NFC", text)


def _bleu(language: str, **options: bool) -> Metric:
    """Return BLEU for references in this language; if `language` is "", the references' script decides."""

    def count(hypotheses: Sequence[str], choices: Choices) -> Counted:
        words = bleu_tokenizer(language, (reference for several in choices for reference in several))
        return _count_by_sacrebleu(hypotheses, choices, name="BLEU", tokenize=words, **options)

    return Metric(name="BLEU", meaning="n-grams of words", higher_is_better=True, count_in=count)


def _edits(name: str, unit: str, cut: Callable[[str], Sequence[str]]) -> Metric:
    """Return a metric: the edits (insertions, deletions, replacements) in all lines per unit of the references.

    If there are several references, the reference with the fewest edits counts, and if several have equally few edits,
    the longest of them counts. The rate exceeds 100 if hypotheses are much too long.
    """
    return Metric(
        name=name,
        meaning=f"{unit}s to edit within lines",
        higher_is_better=False,
        count_in=lambda hypotheses, choices: _count_edits(hypotheses, choices, cut=cut, unit=unit),
    )


METRICS: dict[str, Metric] = {
    "bleu": _bleu(""),
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
        meaning="lines that equal none of their references, where each line is one word",
        higher_is_better=False,
        count_in=lambda hypotheses, choices: _count_equal(hypotheses, choices, wrong=True),
    ),
    "wer": _edits("WER", "word", str.split),
    "per": _edits("PER", "symbol", str.split),
    "cer": _edits("CER", "character", lambda line: " ".join(line.split())),
}
"""The metrics, by the names that `evaluate` takes."""
