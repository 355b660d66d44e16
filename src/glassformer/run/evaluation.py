"""Whole evaluations: a model's translations of a test set, or of its built-in task's splits, with their scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.errors import ConfigError
from glassformer.evaluation.items import Items, read_items
from glassformer.evaluation.metrics import References, Score, chosen
from glassformer.evaluation.metrics import evaluate as score_texts
from glassformer.evaluation.significance import evaluate as score_texts_with_intervals
from glassformer.recipes.configuration import Configuration
from glassformer.tasks import TASKS, Example
from glassformer.text.corpus import Corpus
from glassformer.text.files import files_of, format_of
from glassformer.translator import Translation, Translator

__all__ = ["SplitResult", "corpus_of", "evaluate", "evaluate_splits", "held_out", "validation_items"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """How a model does on one split of its built-in task."""

    name: str
    sentences: int
    exact: float
    """Sentences whose translation equals the reference, in %."""
    bleu: float
    pairs: dict[str, tuple[float, int]]
    """Of minimal pairs, by kind: how many have both members right, in %, and how many pairs there are."""


def evaluate_splits(translator: Translator, **options: Any) -> Iterator[SplitResult]:
    """Yield the result of each split of a run's built-in task, training left out. `options` go to `translate`.

    Raises:
        ConfigError: the run was not trained on a built-in task.
    """
    configuration = translator.bundle.configuration
    if not configuration.data.task:
        raise ConfigError("the run has a corpus of its own: give SRC and REF, its test set")
    for name, examples in _splits(configuration):
        yield _evaluate_split(translator, name, examples, options)


def held_out(configuration: Configuration) -> dict[str, Items]:
    """Return what a run can be tested on, by name: the splits of its built-in task, or its test or validation files.

    Raises:
        ConfigError: its configuration names no such files.
        DataError: they cannot be read.
    """
    data = configuration.data
    if data.task:
        pairs = {name: [(one.source, one.target) for one in split] for name, split in _splits(configuration)}
        return {name: Items.of(split, group=False) for name, split in pairs.items()}
    for name in ("test", "valid"):
        sources, references = getattr(data, f"{name}_source"), getattr(data, f"{name}_target")
        if sources:
            corpus = Corpus.of(sources, references, data.directory, data.source_column, data.target_column)
            return {name: read_items(corpus)}
    raise ConfigError("the run's configuration names no test or validation files: give SRC and REF, or a .tsv file")


def validation_items(configuration: Configuration, pairs: Sequence[tuple[str, str]]) -> Items:
    """Return the items of a run's validation pairs, as many as `training.metric_lines`, as `evaluate` would group them.

    Pairs from files that hold both sides, such as dictionaries, are grouped by their source before the first are taken,
    so that none lacks a reference.
    """
    data = configuration.data
    target = data.valid_target if data.valid_source else data.target
    items = Items.of(pairs, group=not data.task and not target)
    return items.first(configuration.training.metric_lines)


def corpus_of(source: str, reference: str | None, configuration: Configuration | None = None) -> Corpus:
    """Return the corpus of a file that holds both sides, or of two; columns are those of a run's own files.

    Raises:
        ConfigError: one file does not hold both sides.
        DataError: a file does not exist.
    """
    if reference is not None:
        return Corpus.of(source, reference)
    if format_of(source) == "lines":
        raise ConfigError(f"give both SRC and REF, or one file that holds both (.tsv, .jsonl): got only {source}")
    data = configuration.data if configuration else None
    if data is None or format_of(source) not in {format_of(file) for file in files_of(data.source)}:
        return Corpus.of(source)
    return Corpus.of(source, "", "", data.source_column, data.target_column)


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: References,
    metrics: Sequence[str],
    *,
    intervals: bool = False,
    **options: Any,
) -> tuple[list[Score], list[Translation]]:
    """Return the scores of a translator's output against references, and the translations themselves.

    Args:
        translator: the model.
        sources: what is translated, one a line.
        references: for each source one, or several of which any is right.
        metrics: names of `METRICS`.
        intervals: whether the scores have their 95 % intervals.
        options: those of `Translator.translate`.

    Raises:
        ConfigError: there is no such metric.
        DataError: there are not as many references as sources.
    """
    chosen(metrics)  # before hours of translating
    translations = translator.translate(sources, **options)
    score = score_texts_with_intervals if intervals else score_texts
    return score([one.text for one in translations], references, metrics=metrics), translations


def _splits(configuration: Configuration) -> Iterator[tuple[str, list[Example]]]:
    """Yield the splits of a built-in task that are not trained on."""
    splits = TASKS[configuration.data.task](configuration.run.seed).splits
    yield from ((name, examples) for name, examples in splits.items() if name != "train")


def _evaluate_split(
    translator: Translator, name: str, examples: Sequence[Example], options: dict[str, Any]
) -> SplitResult:
    sources, references = [one.source for one in examples], [one.target for one in examples]
    [exact, bleu], translations = evaluate(translator, sources, references, ["exact", "bleu"], **options)
    pairs: dict[str, dict[int, bool]] = {}
    for example, translation in zip(examples, translations, strict=True):
        if example.pair is not None:
            both = pairs.setdefault(example.kind, {})
            both[example.pair] = both.get(example.pair, True) and translation.text == example.target
    shares = {kind: (100 * sum(both.values()) / len(both), len(both)) for kind, both in pairs.items()}
    return SplitResult(name=name, sentences=len(examples), exact=exact.value, bleu=bleu.value, pairs=shares)
