"""Evaluate a model: translate a test set, or the splits of its built-in task, and score the translations."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from glassformer.bundle import Bundle
from glassformer.corpus.files import files_of, format_of, unread
from glassformer.corpus.readers import Corpus, TextPairs
from glassformer.corpus.tasks import TASKS, Example
from glassformer.errors import ConfigError, shortened
from glassformer.evaluation.items import Items, read_items
from glassformer.evaluation.metrics import METRICS, References, Score, metrics_named, score_texts
from glassformer.evaluation.significance import score_texts_with_intervals
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.corpora import corpus_for
from glassformer.training.reports import Measured
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

if TYPE_CHECKING:
    from glassformer.model.transformer import Transformer

__all__ = [
    "SplitResult",
    "corpus_of",
    "evaluate",
    "evaluate_splits",
    "held_out",
    "score_outputs",
    "validation_items",
    "validation_metric",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """A model's result on one split of its built-in task."""

    name: str
    sentences: int
    exact: float
    """Share of the sentences whose translation equals the reference, in %."""
    bleu: float
    pairs: dict[str, tuple[float, int]]
    """For each kind of minimal pair: the share of pairs with both translations right, in %, and the number of pairs."""


def evaluate_splits(translator: Translator, **options: Any) -> Iterator[SplitResult]:
    """Yield the result of each split of a run's built-in task, except the training split.

    `options` are passed to `Translator.translate`.

    Raises:
        ConfigError: the run was not trained on a built-in task.
    """
    configuration = translator.bundle.configuration
    if not configuration.data.task:
        raise ConfigError("the run was trained on a corpus, not on a built-in task: give a test set as SRC and REF")
    for name, examples in _splits(configuration):
        yield _evaluate_split(translator, name, examples, options)


def held_out(configuration: Configuration) -> dict[str, Items]:
    """Return the test sets of a run by name: the splits of its built-in task, or its test or validation files.

    Raises:
        ConfigError: the configuration names no test or validation files.
        DataError: the files cannot be read.
    """
    data = configuration.data
    if data.task:
        pairs = {name: [(one.source, one.target) for one in split] for name, split in _splits(configuration)}
        return {name: Items.of(split, group=False) for name, split in pairs.items()}
    for split in ("test", "valid"):
        if corpus := corpus_for(data, split):
            return {split: read_items(corpus)}
    raise ConfigError("the run's configuration names no test or validation files: give SRC and REF, or a .tsv file")


def validation_items(
    configuration: Configuration, pairs: Sequence[tuple[str, str]], *, most: int | None = None
) -> Items:
    """Return the first items of the validation pairs, grouped as `glassformer evaluate` groups pairs.

    There are at most `most` items; the default is `training.metric_lines`.

    Pairs from files that hold both sides, such as dictionaries, are grouped by source before the first items are taken,
    so that no item lacks a reference.
    """
    data = configuration.data
    target = data.valid_target if data.valid_source else data.target
    items = Items.of(pairs, group=not data.task and not target)
    return items.first(configuration.training.metric_lines if most is None else most)


def corpus_of(source: str, reference: str | None, configuration: Configuration | None = None) -> Corpus:
    """Return the corpus of two files, or of one file with both sides.

    A single file in the format of the run's own files is read with the run's columns.

    Raises:
        ConfigError: a single file does not hold both sides.
        DataError: a file does not exist.
    """
    if reference is not None:
        return Corpus.of(source, reference)
    if format_of(source) == "lines":
        raise ConfigError(
            "expected SRC and REF, or one file that holds both sides (.tsv, .jsonl), got only "
            f"{shortened(source)}; {unread(source) or 'give REF as well'}"
        )
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
    """Return the scores of a translator's output against references, and the translations.

    Args:
        translator: the model.
        sources: the sentences to translate.
        references: one reference per source, or several equally valid ones.
        metrics: names from `METRICS`.
        intervals: whether to add 95 % confidence intervals to the scores.
        options: options of `Translator.translate`.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the number of references differs from the number of sources.
    """
    metrics_named(metrics)  # reports an unknown metric before hours of translating
    translations = translator.translate(sources, guards=False, **options)
    outputs, language = [one.text for one in translations], translator.bundle.configuration.data.target_language
    return score_outputs(outputs, references, metrics, language=language, intervals=intervals), translations


def score_outputs(
    outputs: Sequence[str],
    references: References,
    metrics: Sequence[str],
    *,
    language: str = "",
    intervals: bool = False,
) -> list[Score]:
    """Return the scores of outputs against references, as `evaluate` computes them.

    `language` is the tag of the references' language, as for `metrics_named`.

    Raises:
        ConfigError: a metric is unknown.
        DataError: the number of references differs from the number of outputs.
    """
    score = score_texts_with_intervals if intervals else score_texts
    return score(outputs, references, metrics=metrics, language=language)


def _splits(configuration: Configuration) -> Iterator[tuple[str, list[Example]]]:
    """Yield the splits of a built-in task except the training split."""
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


def validation_metric(
    bundle: Bundle, valid: TextPairs, on_progress: OnProgress
) -> "Callable[[Transformer], Measured] | None":
    """Return a function that scores a model's greedy translations of the first validation lines.

    The function reports to `on_progress` before it translates. Return None if `training.metric` is "none", or if there
    are no validation pairs.
    """
    settings = bundle.configuration.training
    if settings.metric == "none" or not valid:
        return None
    items, score_of = validation_items(bundle.configuration, valid), METRICS[settings.metric]

    def measure(model: "Transformer") -> Measured:
        on_progress(ProgressReport(stage=f"scoring translations of {len(items.sources):,} validation texts"))
        translator = Translator(bundle, model)
        [score], _ = evaluate(translator, items.sources, items.references, [settings.metric], beam_size=1)
        return Measured(score.name, score.value, higher_is_better=score_of.higher_is_better)

    return measure
