"""How a model translates validation sentences that are written as other people write them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from glassformer.evaluation.items import Items, default_metrics
from glassformer.evaluation.metrics import METRICS
from glassformer.evaluation.variants import VARIANTS
from glassformer.jobs.variants import VariantResult, evaluate_variants
from glassformer.translator import Translator

__all__ = ["Tried", "tried"]

MOST_LINES = 200
FEWEST_LINES = 20
MOST_TRIED_SECONDS = 30.0
SHARE_OF_TRAINING = 0.1
"""Share of the training time that the variants may take."""
LONGER_LINES = 1.5
"""How much longer a line of a variant takes than an ordinary one, on average: some are joined from several."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The results of the variants that were tried; none if there was time for too few sentences."""

    results: tuple[VariantResult, ...]
    lines: int
    """Number of validation sentences of which the variants were made."""
    measure: str
    """The name of the metric."""


def tried(translator: Translator, items: Items, *, training: float, a_line: float) -> Tried:
    """Return how the first sentences, in other spellings, are translated by greedy search.

    Args:
        translator: the model.
        items: the validation set.
        training: the time that the training took, in seconds; 0 = unknown.
        a_line: the time that the translation of a sentence takes, in seconds.
    """
    seconds = min(MOST_TRIED_SECONDS, SHARE_OF_TRAINING * training) if training else MOST_TRIED_SECONDS
    lines = min(MOST_LINES, len(items.sources), int(seconds / (a_line * LONGER_LINES * (len(VARIANTS) + 1))))
    metric, ends, results = default_metrics(items)[0], time.perf_counter() + seconds, tuple[VariantResult, ...]()
    if lines >= FEWEST_LINES:
        results = tuple(_before(ends, evaluate_variants(translator, items.first(lines), metric, beam_size=1)))
    return Tried(results, lines, METRICS[metric].name)


def _before(ends: float, results: Iterator[VariantResult]) -> Iterator[VariantResult]:
    """Yield results as long as time is left."""
    for one in results:
        yield one
        if time.perf_counter() > ends:
            return
