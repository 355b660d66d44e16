"""Compare two systems on one test set: scores, significance of the difference, and outputs that differ most."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from glassformer.errors import ConfigError
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import metrics_named
from glassformer.evaluation.significance import Comparison, compare_texts, differences
from glassformer.jobs.evaluation import held_out
from glassformer.recipes.configuration import Configuration
from glassformer.translator import Translator

__all__ = ["Disagreement", "SystemComparison", "compare_outputs", "compare_runs", "shared_test_sets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A source sentence that two systems translate differently."""

    source: str
    references: tuple[str, ...]
    """The references, which are equally valid."""
    outputs: tuple[str, str]
    """The outputs of the first system and of the second system."""
    edits: tuple[float, float]
    """Character edits from each output to its closest reference, per character of that reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemComparison:
    """The comparison of two systems on one test set."""

    name: str
    """The name of the test set, or "" if the caller gave no name."""
    lines: int
    """Number of lines in the test set."""
    sources: int
    """Number of items; for grouped corpora, lines with the same source form one item."""
    metrics: tuple[Comparison, ...]
    """One comparison per metric."""
    differing: int
    """Number of items for which one system's output is nearer to the references than the other system's output."""
    disagreements: tuple[Disagreement, ...]
    """The items that differ most, largest difference first."""


def compare_runs(
    first: Translator,
    second: Translator,
    items: Items,
    metrics: Sequence[str],
    *,
    name: str = "",
    examples: int = 5,
    seed: int = 1,
    **options: Any,
) -> SystemComparison:
    """Return the comparison of two models.

    `options` are passed to `Translator.translate`, and the other arguments to `compare_outputs`.

    Raises:
        ConfigError: a metric is unknown.
    """
    metrics_named(metrics)  # reports an unknown metric before hours of translating
    a, b = ([one.text for one in run.translate(items.sources, guards=False, **options)] for run in (first, second))
    language = first.bundle.configuration.data.target_language
    return compare_outputs(a, b, items, metrics, language=language, name=name, examples=examples, seed=seed)


def compare_outputs(
    first: Sequence[str],
    second: Sequence[str],
    items: Items,
    metrics: Sequence[str],
    *,
    language: str = "",
    name: str = "",
    examples: int = 5,
    seed: int = 1,
) -> SystemComparison:
    """Return the comparison of two systems, given one output per item from each.

    Args:
        first: outputs of the first system.
        second: outputs of the second system.
        items: the sources of the test set with their references.
        metrics: names from `METRICS`.
        language: the tag of the references' language, as for `metrics_named`.
        name: name of the test set.
        examples: number of disagreements to return.
        seed: seed of the significance tests.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the number of outputs differs from the number of items.
    """
    compared = compare_texts(first, second, items.references, metrics=metrics, language=language, seed=seed)
    found = differences(first, second, items.references)
    most = [
        Disagreement(
            source=items.sources[one.line],
            references=items.references[one.line],
            outputs=(first[one.line], second[one.line]),
            edits=one.edits,
        )
        for one in islice(found, examples)
    ]
    return SystemComparison(
        name=name,
        lines=len(items.places),
        sources=len(items.sources),
        metrics=tuple(compared),
        differing=len(found),
        disagreements=tuple(most),
    )


def shared_test_sets(first: Configuration, second: Configuration) -> dict[str, Items]:
    """Return the test sets that both runs can be evaluated on, by name.

    Raises:
        ConfigError: the runs name different test sets, or no test sets.
        DataError: a test set cannot be read.
    """
    sets = held_out(first)
    if held_out(second) != sets:
        raise ConfigError("the runs have different test sets: give SRC and REF, or a .tsv file, to compare them on")
    return sets
