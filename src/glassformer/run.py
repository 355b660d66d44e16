"""Whole jobs, composed from the parts: train with validation, average, evaluate."""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from glassformer.bundle import CONFIG, WEIGHTS, Bundle, put_weights, save_weights, write_safely
from glassformer.errors import ConfigError
from glassformer.evaluation.metrics import Score
from glassformer.evaluation.metrics import evaluate as score_texts
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import Configuration, DataConfig, TrainingConfig
from glassformer.recipes.toml import load, model_config
from glassformer.tasks import TASKS, Example
from glassformer.text.batching import Examples
from glassformer.text.corpus import ParallelCorpus, read_parallel, read_tsv
from glassformer.text.tokenizer import Tokenizer, train_tokenizers
from glassformer.text.vectors import read_vectors
from glassformer.training.allocator import keep_memory
from glassformer.training.checkpoint import Checkpoints, average_weights
from glassformer.training.loop import (
    CheckpointReport,
    EndReport,
    Measured,
    Report,
    StepReport,
    ValidationReport,
    badness,
    steps,
    validation_loss,
)
from glassformer.training.optimiser import make_optimiser
from glassformer.training.snapshots import Snapshots
from glassformer.translator import Translation, Translator

__all__ = [
    "AverageReport",
    "PreparedReport",
    "SplitResult",
    "Summary",
    "average",
    "evaluate",
    "evaluate_splits",
    "read_log",
    "train",
    "training_run",
]

Pairs = Sequence[tuple[str, str]]

CHECKPOINTS, METRICS, SNAPSHOTS = "checkpoints", "metrics.jsonl", "snapshots"
ERROR_RATES = ("wer", "per", "cer")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedReport:
    """The corpus is read, the tokenizers are there, the model is made: training begins."""

    folder: Path
    train_pairs: int
    valid_pairs: int
    dropped: dict[str, int]
    """Pairs that are left out, counted by reason."""
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    resumed_step: int
    """The step from which an earlier start of this run goes on; 0 = a new run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageReport:
    """The mean of the last checkpoints was validated, and is kept if it is better than the best so far."""

    checkpoints: int
    loss: float
    metric: Measured | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a training came to."""

    folder: Path
    steps: int
    seconds: float
    reason: Literal["steps", "minutes", "patience", "stopped"]
    valid_loss: float | None
    """−log p per target token of the weights that are kept, in nats."""
    metric: Measured | None


RunReport = PreparedReport | Report | AverageReport
Change = Callable[[Transformer], AbstractContextManager[object]]


def train(
    configuration: Configuration | str | Path,
    *,
    overrides: Iterable[str] = (),
    data: str | Path | None = None,
    on_report: Callable[[RunReport], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    change: Change = nullcontext,
) -> Summary:
    """Train what a configuration (an object, a TOML file, or the name of a recipe) describes; return the run's summary.

    A run that was stopped goes on where its last checkpoint was written. `on_report` sees everything that happens, as
    it happens; once `stop()` is true, the run writes a checkpoint and ends. `change(model)` is a context in which the
    model is trained and validated, such as `lambda model: gf.inspection.plant(model, "no_scale")`; what it changes is
    not kept with the weights, so that whoever loads them has to change the model likewise.

    Raises:
        ConfigError: a setting is unknown or impossible, or the folder holds another run.
        DataError: the corpus cannot be read.
        CheckpointError: something could not be written or read back.
    """
    if not isinstance(configuration, Configuration):
        configuration = load(configuration, overrides, data)
    elif data is not None or list(overrides):
        raise ConfigError("overrides and data belong to a configuration file: change the object instead")
    last: dict[type, Any] = {}
    for report in training_run(configuration, stop, change):
        on_report(report)
        last[type(report)] = report
    end: EndReport = last[EndReport]
    folder = last[PreparedReport].folder
    loss, metric = _best(folder / METRICS)
    return Summary(
        folder=folder, steps=end.step, seconds=end.seconds, reason=end.reason, valid_loss=loss, metric=metric
    )


def training_run(
    configuration: Configuration, stop: Callable[[], bool] = lambda: False, change: Change = nullcontext
) -> Iterator[RunReport]:
    """Yield all that happens in a training run, from reading the corpus to the last checkpoint."""
    if not configuration.run.directory:
        raise ConfigError("run.directory is missing: say in which folder the run shall be kept")
    keep_memory()
    settings, folder = configuration.training, Path(configuration.run.directory)
    corpora = _read_corpora(configuration)
    bundle = _prepare(configuration, folder, corpora.train)
    encoder = (bundle.source_tokenizer, bundle.target_tokenizer)
    train_examples, too_long = Examples.encode(corpora.train, *encoder, max_length=configuration.data.max_length)
    valid_examples, _ = Examples.encode(corpora.valid, *encoder, max_length=configuration.data.max_length)
    _check_validation(settings, valid_examples)

    torch.manual_seed(configuration.run.seed)
    model = Transformer(bundle.model_config)
    _load_embeddings(model, bundle)
    _keep(bundle)
    optimiser = make_optimiser(model, settings)
    checkpoints = Checkpoints(folder / CHECKPOINTS, settings.keep_checkpoints)
    state = checkpoints.restore(model, optimiser)
    snapshots = Snapshots(folder / SNAPSHOTS, settings.snapshots)
    snapshots.forget_after(state.step if state else 0)
    yield PreparedReport(
        folder=folder,
        train_pairs=len(train_examples),
        valid_pairs=len(valid_examples),
        dropped={**corpora.dropped, "longer than data.max_length": len(too_long)},
        source_vocabulary=len(bundle.source_tokenizer),
        target_vocabulary=len(bundle.target_tokenizer),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        resumed_step=state.step if state else 0,
    )
    metric = _metric(bundle, corpora.valid)
    log = _Log(folder / METRICS, settings.log_every, state.step if state else 0)
    reports = steps(
        model,
        train_examples,
        settings,
        seed=configuration.run.seed,
        optimiser=optimiser,
        state=state,
        valid=valid_examples,
        metric=metric,
        checkpoints=checkpoints,
        stop=stop,
    )
    with change(model):
        for report in reports:
            if _keeps_weights(report, folder, validated=len(valid_examples) > 0):
                save_weights(model, folder / WEIGHTS)
            if isinstance(report, StepReport) and snapshots.due(report.step):
                snapshots.save(model, report.step)
            ended = isinstance(report, EndReport) and report.reason != "stopped"
            if ended and settings.average and not log.has_average(report.step):
                averaged = _average_if_better(bundle, checkpoints, valid_examples, metric, change)
                log.write(averaged, report.step)
                yield averaged
            log.write(report, report.step)
            yield report


def average(run: str | Path, last: int, output: str | Path | None = None) -> Path:
    """Write a model whose weights are the mean of a run's last checkpoints, and return its folder.

    The run itself stays as it is; the folder is RUN/averaged-LAST unless `output` is given.

    Raises:
        CheckpointError: the run is not there, or a checkpoint cannot be read.
        ConfigError: it has fewer checkpoints.

    Paper: §6.1.
    """
    bundle = Bundle.load(run)
    paths = Checkpoints(bundle.folder / CHECKPOINTS, last).paths()
    if not 1 <= last <= len(paths):
        raise ConfigError(f"--last {last}: the run has {len(paths)} checkpoints; training.keep_checkpoints keeps more")
    averaged = replace(bundle, folder=Path(output) if output else bundle.folder / f"averaged-{last}")
    model = Transformer(bundle.model_config)
    put_weights(model, average_weights(paths[-last:]), f"the mean of {last} checkpoints")
    averaged.save(model)
    return averaged.folder


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
    for name, examples in TASKS[configuration.data.task](configuration.run.seed).splits.items():
        if name != "train":
            yield _evaluate_split(translator, name, examples, options)


def evaluate(
    translator: Translator, sources: Sequence[str], references: Sequence[str], metrics: Sequence[str], **options: Any
) -> tuple[list[Score], list[Translation]]:
    """Return the scores of a translator's output against references, and the translations themselves.

    `options` are those of `Translator.translate`.
    """
    translations = translator.translate(sources, **options)
    return score_texts([one.text for one in translations], references, metrics=metrics), translations


@dataclass(frozen=True, slots=True)
class _Corpora:
    train: Pairs
    valid: Pairs
    dropped: dict[str, int]


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


def _read_corpora(configuration: Configuration) -> _Corpora:
    data = configuration.data
    if data.task:
        return _task_corpora(data.task, configuration.run.seed)
    corpus = _read(data, data.source, data.target)
    pairs = list(zip(corpus.source, corpus.target, strict=True))
    dropped = {reason: len(lines) for reason, lines in corpus.dropped.items()}
    if data.valid_source:
        held_out = _read(data, data.valid_source, data.valid_target)
        return _Corpora(pairs, list(zip(held_out.source, held_out.target, strict=True)), dropped)
    random.Random(configuration.run.seed).shuffle(pairs)
    count = min(data.valid_lines, len(pairs) // 10)
    return _Corpora(pairs[count:], pairs[:count], dropped)


def _task_corpora(name: str, seed: int) -> _Corpora:
    if name not in TASKS:
        raise ConfigError(f"data.task = {name!r}: expected one of {', '.join(TASKS)}")
    splits = TASKS[name](seed).splits
    train, valid = ([(one.source, one.target) for one in splits[split]] for split in ("train", "valid"))
    return _Corpora(train, valid, {})


def _read(data: DataConfig, source: str, target: str) -> ParallelCorpus:
    folder = Path(data.directory)
    return read_parallel(folder / source, folder / target) if target else read_tsv(folder / source)


def _prepare(configuration: Configuration, folder: Path, pairs: Pairs) -> Bundle:
    """Return the run's bundle, not yet written: that of the folder, or a new one, with new tokenizers."""
    if (folder / CONFIG).exists():
        there = Bundle.load(folder)
        _check_same_run(there, configuration)
        return replace(there, configuration=configuration)
    source, target = train_tokenizers(
        (source for source, _ in pairs), (target for _, target in pairs), configuration.tokenizer
    )
    return _bundle(configuration, folder, source, target)


def _keep(bundle: Bundle) -> None:
    """Write the bundle, but not over the tokenizers of a run that goes on."""
    if (bundle.folder / CONFIG).exists():
        bundle.save_configuration()
    else:
        bundle.save()


def _bundle(configuration: Configuration, folder: Path, source: Tokenizer, target: Tokenizer) -> Bundle:
    return Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, len(source), len(target)),
        source_tokenizer=source,
        target_tokenizer=target,
    )


def _check_same_run(bundle: Bundle, configuration: Configuration) -> None:
    """Refuse to go on with a run of other data, words or sizes: how long and how it is trained may change."""
    model = model_config(configuration, len(bundle.source_tokenizer), len(bundle.target_tokenizer))
    there = {**_identity(bundle.configuration), "model": bundle.model_config.to_dict()}
    here = {**_identity(configuration), "model": model.to_dict()}
    for section, values in here.items():
        for name, value in values.items():
            if value != there[section][name]:
                raise ConfigError(
                    f"{bundle.folder} holds a run with {section}.{name} = {there[section][name]!r}, not {value!r}: "
                    "choose another run.directory, or delete that folder"
                )


def _identity(configuration: Configuration) -> dict[str, dict[str, Any]]:
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "tokenizer", "embeddings")}
    del sections["data"]["directory"]  # the corpus may have been moved
    return {**sections, "run": {"seed": configuration.run.seed}}


def _load_embeddings(model: Transformer, bundle: Bundle) -> None:
    config = bundle.configuration.embeddings
    both = bundle.configuration.tokenizer.joint and not bundle.model_config.tie_embeddings
    sides = (
        ("source", config.source, model.source, bundle.source_tokenizer),
        ("target", config.target or (config.source if both else ""), model.target, bundle.target_tokenizer),
    )
    for name, path, embedding, tokenizer in sides:
        if not path:
            continue
        vectors, found = read_vectors(path, tokenizer.tokens(range(len(tokenizer))))
        if vectors.shape[1] != bundle.model_config.d_model:
            raise ConfigError(
                f"embeddings.{name} = {path!r} has vectors of width {vectors.shape[1]}, but model.d_model = "
                f"{bundle.model_config.d_model}: make them equal"
            )
        embedding.load_vectors(torch.from_numpy(vectors), torch.from_numpy(found), freeze=config.freeze)


def _check_validation(settings: TrainingConfig, valid: Examples) -> None:
    """Refuse settings that mean nothing without validation."""
    for name in ("average", "patience"):
        if getattr(settings, name) and not len(valid):
            raise ConfigError(
                f"training.{name} = {getattr(settings, name)} needs validation pairs, and the corpus is too small to "
                "hold any out: give data.valid_source and data.valid_target, or leave it out"
            )


def _metric(bundle: Bundle, valid: Pairs) -> Callable[[Transformer], Measured] | None:
    """Return what scores a model's greedy translations of the first validation lines."""
    settings = bundle.configuration.training
    if settings.metric == "none" or not valid:
        return None
    sources, references = zip(*valid[: settings.metric_lines], strict=True)

    def measure(model: Transformer) -> Measured:
        [score], _ = evaluate(Translator(bundle, model), sources, references, [settings.metric], beam_size=1)
        return Measured(score.name, score.value, higher_is_better=settings.metric not in ERROR_RATES)

    return measure


def _average_if_better(
    bundle: Bundle,
    checkpoints: Checkpoints,
    valid: Examples,
    metric: Callable[[Transformer], Measured] | None,
    change: Change,
) -> AverageReport:
    settings = bundle.configuration.training
    paths = checkpoints.paths()[-settings.average :]
    best, mean = bundle.model(), Transformer(bundle.model_config).eval()
    put_weights(mean, average_weights(paths), f"the mean of {len(paths)} checkpoints")

    def validated(model: Transformer) -> tuple[float, Measured | None]:
        with change(model):
            return validation_loss(model, valid, settings.batch_tokens), metric and metric(model)

    (old_loss, old_measured), (loss, measured) = validated(best), validated(mean)
    kept = badness(loss, measured, settings) < badness(old_loss, old_measured, settings)
    if kept:
        save_weights(mean, bundle.folder / WEIGHTS)
    return AverageReport(checkpoints=len(paths), loss=loss, metric=measured, kept=kept)


def _keeps_weights(report: Report, folder: Path, *, validated: bool) -> bool:
    """Return whether the weights of this moment are the run's best so far."""
    if isinstance(report, ValidationReport):
        return report.best
    return isinstance(report, CheckpointReport) and not (validated and (folder / WEIGHTS).exists())


class _Log:
    """metrics.jsonl: one JSON object a line, for every `every`-th update and all else that happens."""

    def __init__(self, path: Path, every: int, resumed_step: int) -> None:
        self.path, self.every = path, every
        # What came after the checkpoint from which the run goes on will come again, and so will its end.
        kept = [line for line in read_log(path) if line["step"] <= resumed_step and line["type"] != "end"]
        write_safely(path, lambda temporary: temporary.write_text("".join(f"{json.dumps(line)}\n" for line in kept)))

    def has_average(self, step: int) -> bool:
        """Return whether the mean of the checkpoints was already validated at this step."""
        return any((line["type"], line["step"]) == ("average", step) for line in read_log(self.path))

    def write(self, report: Report | AverageReport, step: int) -> None:
        """Append what a report says."""
        if isinstance(report, StepReport) and step % self.every:
            return
        values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(report).items()}
        kind = type(report).__name__.removesuffix("Report").lower()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"type": kind, "step": step, **values}) + "\n")


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl; one that is not whole, because the process was killed, is passed over."""
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def _best(path: Path) -> tuple[float | None, Measured | None]:
    """Return what the weights that are kept were validated with, over all starts of the run."""
    for line in reversed(read_log(path)):
        if line.get("best") or line.get("kept"):
            return line["loss"], line["metric"] and Measured(*line["metric"])
    return None, None
