"""Scores of translations against references. Every score carries the signature that makes it comparable.

BLEU and chrF are sacrebleu's. Every metric takes the hypotheses, one a line, and for each line its reference, or
several references of which any is right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from glassformer.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

__all__ = ["METRICS", "References", "Score", "bleu", "chrf", "error_rate", "evaluate", "exact_match"]

References = Sequence[str | Sequence[str]]
"""For each line one reference, or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a metric says about a set of translations."""

    name: str
    """The metric's name as it is written: "BLEU", "chrF2", "exact", "WER", "PER", "CER"."""
    value: float
    """In per cent: from 0 to 100, except that an error rate can be higher."""
    signature: str
    """How it was computed: two values compare only when their signatures agree."""


def evaluate(
    hypotheses: Sequence[str], references: References, *, metrics: Sequence[str] = ("bleu", "chrf", "exact")
) -> list[Score]:
    """Return the scores of `metrics`, names of `METRICS`, in their order.

    Raises:
        ConfigError: there is no such metric.
        DataError: not as many hypotheses as references, or nothing to score.
    """
    for name in metrics:
        if name not in METRICS:
            raise ConfigError(f"metrics: expected some of {', '.join(METRICS)}, got {name!r}{nearest(name, METRICS)}")
    return [METRICS[name](hypotheses, references) for name in metrics]


def bleu(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus BLEU, by sacrebleu with its default tokenisation (13a).

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    from sacrebleu.metrics.bleu import BLEU

    return _sacrebleu(BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References) -> Score:
    """Return the corpus chrF2, by sacrebleu.

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    from sacrebleu.metrics.chrf import CHRF

    return _sacrebleu(CHRF(), hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: References) -> Score:
    """Return the share of lines whose hypothesis is equal to a reference, differences in white space aside.

    For pronunciations, where a line is the phones of one word, 100 − this is what the literature calls word error rate.

    Raises:
        DataError: not as many hypotheses as references, or nothing to score.
    """
    choices = _choices(hypotheses, references)
    right = sum(
        hypothesis.split() in [reference.split() for reference in several]
        for hypothesis, several in zip(hypotheses, choices, strict=True)
    )
    return Score(name="exact", value=100 * right / len(choices), signature=_signature(choices))


UNITS: dict[str, tuple[str, Callable[[str], Sequence[str]]]] = {
    "words": ("WER", str.split),
    "symbols": ("PER", str.split),
    "characters": ("CER", lambda line: " ".join(line.split())),
}


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
    name, cut = UNITS[unit]
    choices = _choices(hypotheses, references)
    edits = length = 0
    for hypothesis, several in zip(hypotheses, choices, strict=True):
        nearest_edits, nearest_length = _closest(cut(hypothesis), [cut(reference) for reference in several])
        edits += nearest_edits
        length += nearest_length
    if not length:
        raise DataError(f"references: expected {unit}, got blank lines only: is it the right file?")
    return Score(name=name, value=100 * edits / length, signature=_signature(choices))


def _closest(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the edits to the closest reference, and its length."""
    from rapidfuzz.distance import Levenshtein

    distances = ((Levenshtein.distance(hypothesis, reference), -len(reference)) for reference in references)
    edits, negative_length = min(distances)
    return edits, -negative_length


METRICS: dict[str, Callable[[Sequence[str], References], Score]] = {
    "bleu": bleu,
    "chrf": chrf,
    "exact": exact_match,
    "wer": partial(error_rate, unit="words"),
    "per": partial(error_rate, unit="symbols"),
    "cer": partial(error_rate, unit="characters"),
}
"""The metrics by the names that `evaluate` takes."""


def _choices(hypotheses: Sequence[str], references: References) -> list[Sequence[str]]:
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


def _signature(choices: Sequence[Sequence[str]]) -> str:
    counts = {len(several) for several in choices}
    return f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}|case:mixed|space:collapsed"


def _sacrebleu(metric: "BLEU | CHRF", hypotheses: Sequence[str], references: References) -> Score:
    choices = _choices(hypotheses, references)
    # sacrebleu wants the first references of all lines, then the second ones, …, None where a line has fewer.
    streams = list(zip_longest(*choices))
    score = metric.corpus_score(hypotheses, streams)
    return Score(name=score.name, value=score.score, signature=str(metric.get_signature()))
