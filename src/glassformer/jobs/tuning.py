"""Tune a combination: fit the weights of a run and the models that rescore its outputs, on a validation set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.built_in import refuse_built_in
from glassformer.bundle import Bundle
from glassformer.corpus.analogy import LEXICON, save_lexicon
from glassformer.errors import DataError
from glassformer.evaluation.items import Items, default_metrics
from glassformer.evaluation.significance import Comparison, compare_texts
from glassformer.evaluation.tuning import CandidateTable, cross_fitted, oracle, useful_weights
from glassformer.jobs.preparation import read_texts
from glassformer.jobs.prepared.folder import prepared_folder
from glassformer.translating.combination import Combination, CombinationWeights
from glassformer.translating.rescoring import Candidates
from glassformer.translator import Translator

__all__ = ["Tuned", "keep_lexicon", "tune"]

FEWEST_ITEMS = 20
"""Minimum number of items to fit weights on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A tuned combination, and its gain over the run alone."""

    combination: Combination
    """The combination with weights fitted on all items."""
    comparison: Comparison
    """Comparison of the run alone with the combination (with cross-fitted weights), by the tuned metric."""
    oracle: float
    """The metric, in per cent, if the combination always chose the best candidate."""
    items: int
    """Number of items that the combination was tuned on."""
    outputs: tuple[str, ...]
    """The combination's output for each item, with cross-fitted weights."""


def tune(translator: Translator, combination: Combination, items: Items, metric: str | None = None) -> Tuned:
    """Fit the weights of a combination on some items, and return the tuned combination. It is not saved.

    A weight for the output's length is fitted only if it gains more than chance would. Otherwise, the weight would
    adapt to the length of these references, and other texts may have shorter or longer references.

    Args:
        translator: the translator of the combination, from `Translator.load`.
        combination: the models to combine.
        items: sources with references, which no model was trained on.
        metric: a name from `METRICS`; by default, the first of `default_metrics`.

    Raises:
        ConfigError: the metric is unknown, or no model rescores the run's outputs.
        DataError: there are too few items that can be translated.
    """
    chosen, language = metric or default_metrics(items)[0], translator.bundle.configuration.data.target_language
    found = translator.candidates(items.sources)
    places = [place for place, one in enumerate(found) if one.texts]
    if len(places) < FEWEST_ITEMS:
        raise DataError(
            f"tuning: expected at least {FEWEST_ITEMS} texts that can be translated, got {len(places)}; give more texts"
        )
    kept, references = [found[place] for place in places], [items.references[place] for place in places]
    table = CandidateTable.of([one.texts for one in kept], [one.features for one in kept], references, chosen, language)
    equal = CombinationWeights.equal(len(combination.rescore))
    start, length = equal.vector, (equal.place_of_length,)
    plain, weighed = (_outputs(kept, cross_fitted(table, start, held)) for held in (length, ()))
    [gain] = compare_texts(plain, weighed, references, metrics=[chosen], language=language)
    outputs, held = (weighed, ()) if gain.better == 2 else (plain, length)
    [comparison] = compare_texts(
        [one.texts[0] for one in kept], outputs, references, metrics=[chosen], language=language
    )
    every = [""] * len(found)
    for place, output in zip(places, outputs, strict=True):
        every[place] = output
    weights = CombinationWeights.of(_without_idle(table, useful_weights(table, start, held)))
    limit = oracle(table)
    return Tuned(
        combination=replace(
            combination,
            beam_size=translator.bundle.configuration.decoding.beam_size,
            weights=weights,
            tuned={**_summary(comparison), "oracle": limit, "items": len(places)},
        ),
        comparison=comparison,
        oracle=limit,
        items=len(places),
        outputs=tuple(every),
    )


def keep_lexicon(run: Path) -> Path:
    """Return the file of a run's lexicon; if the file is missing, make the lexicon from the run's training pairs.

    Raises:
        ConfigError: the run was imported, without training pairs.
        DataError: the training files cannot be read.
        CheckpointError: the run or its prepared corpus is damaged, or the file cannot be written.
    """
    refuse_built_in(run, "lexicon")
    path = run / LEXICON
    if not path.exists():
        configuration = Bundle.load(run).configuration
        configuration = replace(configuration, run=replace(configuration.run, directory=str(run)))
        save_lexicon(path, read_texts(configuration, prepared_folder(configuration)).train)
    return path


def _outputs(found: Sequence[Candidates], chosen: NDArray[np.intp]) -> list[str]:
    """Return the chosen candidate of each item."""
    return [one.texts[place] for one, place in zip(found, chosen.tolist(), strict=True)]


def _without_idle(table: CandidateTable, weights: Sequence[float]) -> list[float]:
    """Return the weights, with weight 0 for features whose values are all 0, such as lexicon features without a
    lexicon.
    """
    used = np.abs(table.features).max((0, 1)) > 0
    return [weight if use else 0.0 for weight, use in zip(weights, used.tolist(), strict=True)]


def _summary(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data: the metric, its value for the run and for the combination, and the p-value."""
    values = asdict(comparison)
    return {"metric": values["name"], "run": values["first"], "combination": values["second"], "p": values["p_value"]}
