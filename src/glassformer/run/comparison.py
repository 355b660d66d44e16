"""Two systems on one test set: how they score, whether they differ by more than chance, and where they differ most."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from glassformer.errors import ConfigError
from glassformer.evaluation.items import Items
from glassformer.evaluation.metrics import chosen
from glassformer.evaluation.significance import Comparison, compare, differences
from glassformer.recipes.configuration import Configuration
from glassformer.run.evaluation import held_out
from glassformer.translator import Translator

__all__ = ["Disagreement", "SystemComparison", "compare_outputs", "compare_runs", "shared_test_sets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A source on which two systems differ."""

    source: str
    references: tuple[str, ...]
    """Any of them is right."""
    outputs: tuple[str, str]
    """Of both systems."""
    edits: tuple[float, float]
    """Of each output: characters to edit to the closest reference, per character of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemComparison:
    """How two systems compare on one test set."""

    name: str
    """The name of the test set; "" where it was given."""
    lines: int
    """How many lines it has."""
    sources: int
    """How many items: different sources, where lines with the same source are one."""
    metrics: tuple[Comparison, ...]
    """By each metric."""
    differing: int
    """How many items have different outputs, one of which is nearer to its references."""
    disagreements: tuple[Disagreement, ...]
    """Those that differ most."""


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
    """Return how two models compare. `options` go to `translate`; the rest is that of `compare_outputs`.

    Raises:
        ConfigError: there is no such metric.
    """
    chosen(metrics)  # before hours of translating
    a, b = ([one.text for one in run.translate(items.sources, **options)] for run in (first, second))
    return compare_outputs(a, b, items, metrics, name=name, examples=examples, seed=seed)


def compare_outputs(
    first: Sequence[str],
    second: Sequence[str],
    items: Items,
    metrics: Sequence[str],
    *,
    name: str = "",
    examples: int = 5,
    seed: int = 1,
) -> SystemComparison:
    """Return how two systems compare, given what each makes of every item.

    Args:
        first: the outputs of one system.
        second: those of the other.
        items: what they translated, with its references.
        metrics: names of `METRICS`.
        name: the name of the test set.
        examples: how many disagreements are wanted.
        seed: seeds the draws of the tests.

    Raises:
        ConfigError: there is no such metric.
        DataError: there are not as many outputs as items.
    """
    compared = compare(first, second, items.references, metrics=metrics, seed=seed)
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
    """Return what both runs can be tested on, by name.

    Raises:
        ConfigError: they name other test sets, or none.
        DataError: these cannot be read.
    """
    sets = held_out(first)
    if held_out(second) != sets:
        raise ConfigError("the runs have other test sets: give SRC and REF, or a .tsv file, to compare them on")
    return sets
