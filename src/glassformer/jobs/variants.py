"""Evaluate a model on variants of a test set: how well it translates what other people write."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import metrics_named
from glassformer.evaluation.variants import variants_of
from glassformer.jobs.evaluation import score_outputs
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = ["VariantResult", "evaluate_variants"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """How well a model translates a variant of a test set, beside the same sources as they are."""

    name: str
    lines: int
    """Number of lines of the variant."""
    score: float
    """The metric of the outputs; all letters count as lower case."""
    ordinary: float
    """The same for the sources as they are."""
    suspicious: float
    """Share of the outputs that are suspicious, from 0 to 1."""
    ordinary_suspicious: float
    """The same for the sources as they are."""


def evaluate_variants(translator: Translator, items: Items, metric: str, **options: Any) -> Iterator[VariantResult]:
    """Yield the result of each variant of a test set that changes some of its sources.

    Args:
        translator: the model.
        items: the test set.
        metric: a name from `METRICS`.
        options: options of `Translator.translate`.

    Raises:
        ConfigError: the metric is unknown.
    """
    metrics_named([metric])
    language = translator.bundle.configuration.data.target_language

    def judged(found: Sequence[Translation], references: Sequence[Sequence[str]]) -> tuple[float, float]:
        lowered = [[one.lower() for one in some] for some in references]
        [score] = score_outputs([one.text.lower() for one in found], lowered, [metric], language=language)
        return score.value, sum(one.status == "suspicious" for one in found) / len(found)

    ordinary = translator.translate(items.sources, log_probs=False, **options)
    for variant in variants_of(items):
        found = translator.translate(variant.items.sources, log_probs=False, **options)
        score, suspicious = judged(found, variant.items.references)
        there = [(ordinary[place], items.references[place]) for place in variant.ordinary]
        before, before_suspicious = judged([one for one, _ in there], [some for _, some in there])
        yield VariantResult(
            name=variant.name,
            lines=len(found),
            score=score,
            ordinary=before,
            suspicious=suspicious,
            ordinary_suspicious=before_suspicious,
        )
