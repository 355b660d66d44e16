"""Training as a whole job: the corpus is read, tokenizers are made, the model is trained, validated and kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import CONFIG, WEIGHTS, Bundle, save_weights
from glassformer.errors import ConfigError
from glassformer.evaluation.metrics import METRICS as SCORES
from glassformer.machine import device_of, keep_memory
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import Configuration, TrainingConfig
from glassformer.recipes.toml import load, model_config
from glassformer.run.averaging import average_if_better
from glassformer.run.corpus import Prepared, prepare
from glassformer.run.evaluation import evaluate, validation_items
from glassformer.run.lock import locked
from glassformer.run.log import METRICS, Log, best
from glassformer.run.reports import PreparedReport, RunReport, Summary
from glassformer.text.batching import Examples
from glassformer.text.resampling import Resampler
from glassformer.text.storage import clear_temporaries
from glassformer.text.vectors import read_vectors
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints, TrainingState, use_weights
from glassformer.training.loop import CheckpointReport, EndReport, Measured, Report, StepReport, ValidationReport, steps
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided
from glassformer.training.snapshots import SNAPSHOTS, Snapshots
from glassformer.translator import Translator

__all__ = ["train", "training_run"]

Pairs = Sequence[tuple[str, str]]
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
    for report in training_run(configuration, stop, change, on_report):
        on_report(report)
        last[type(report)] = report
    end: EndReport = last[EndReport]
    folder = last[PreparedReport].folder
    loss, metric = best(folder / METRICS)
    return Summary(
        folder=folder, steps=end.step, seconds=end.seconds, reason=end.reason, valid_loss=loss, metric=metric
    )


def training_run(
    configuration: Configuration,
    stop: Callable[[], bool] = lambda: False,
    change: Change = nullcontext,
    on_progress: Callable[[RunReport], object] = lambda _: None,
) -> Iterator[RunReport]:
    """Yield all that happens in a training run, from the first step to the last checkpoint.

    What happens before, while the corpus is made ready, `on_progress` is told.
    """
    if not configuration.run.directory:
        raise ConfigError("run.directory is missing: say in which folder the run shall be kept")
    keep_memory()
    folder = Path(configuration.run.directory)
    with locked(folder):
        for place in (folder, folder / SNAPSHOTS):
            clear_temporaries(place)
        yield from _training_run(prepare(configuration, on_progress), folder, stop, change)


def _training_run(prepared: Prepared, folder: Path, stop: Callable[[], bool], change: Change) -> Iterator[RunReport]:
    device = device_of(prepared.configuration.training.device)
    bundle = _bundle(prepared, folder, device)
    configuration, settings = bundle.configuration, bundle.configuration.training
    _check_validation(settings, prepared.valid)

    torch.manual_seed(configuration.run.seed)
    model = Transformer(bundle.model_config)
    if settings.init_std:
        _initialise(model, settings.init_std)
    _load_embeddings(model, bundle)
    model.to(device)  # drawn on the CPU, so that it starts alike everywhere
    _keep(bundle)
    optimiser = make_optimiser(model, settings)
    average = MovingAverage(model, settings.ema) if settings.ema else None
    checkpoints = Checkpoints(folder / CHECKPOINTS, settings.keep_checkpoints)
    state = checkpoints.restore(model, optimiser, average)
    snapshots = Snapshots(folder / SNAPSHOTS, settings.snapshots)
    snapshots.forget_after(state.step if state else 0)
    if state and not len(prepared.valid):  # it may have been killed between a checkpoint and this
        use_weights(checkpoints.paths()[-1], folder / WEIGHTS)
    yield PreparedReport(
        folder=folder,
        train_pairs=len(prepared.train),
        valid_pairs=len(prepared.valid),
        dropped=prepared.dropped,
        source_vocabulary=len(bundle.source_tokenizer),
        target_vocabulary=len(bundle.target_tokenizer),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        chosen=prepared.chosen,
        resumed_step=state.step if state else 0,
    )
    metric = _metric(bundle, prepared.valid_pairs)
    log = Log(folder / METRICS, settings.log_every, state or TrainingState())
    checkpoints.before = log.sync
    reports = steps(
        model,
        prepared.train,
        settings,
        seed=configuration.run.seed,
        optimiser=optimiser,
        state=state,
        valid=prepared.valid,
        metric=metric,
        checkpoints=checkpoints,
        average=average,
        resample=_resampler(prepared),
        stop=stop,
    )
    with closing(reports), change(model):
        for report in reports:
            _keep_weights(report, model, folder, validated=len(prepared.valid) > 0)
            if isinstance(report, StepReport) and snapshots.due(report.step):
                snapshots.save(model, report.step)
            ended = isinstance(report, EndReport) and report.reason != "stopped"
            if ended and settings.average and not log.has_average(report.step):
                averaged = average_if_better(bundle, checkpoints, prepared.valid, metric, change)
                log.write(averaged, report.step)
                yield averaged
            log.write(report, report.step)
            yield report


def _bundle(prepared: Prepared, folder: Path, device: torch.device) -> Bundle:
    """Return the run's bundle, not yet written; of a folder that holds a run, only if it is the same run."""
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    there = Bundle.load(folder) if (folder / CONFIG).exists() else None
    settings = prepared.configuration.training
    if there and settings.precision == "auto":  # it goes on in the one that it began with, so that it is the same run
        settings = replace(settings, precision=there.configuration.training.precision)
    configuration = replace(prepared.configuration, training=decided(settings, device))
    bundle = Bundle(
        folder=folder,
        configuration=configuration,
        model_config=model_config(configuration, len(source), len(target)),
        source_tokenizer=source,
        target_tokenizer=target,
    )
    if there:
        _check_same_run(there, bundle)
    return bundle


def _keep(bundle: Bundle) -> None:
    """Write the bundle, but not over the tokenizers of a run that goes on."""
    if (bundle.folder / CONFIG).exists():
        bundle.save_configuration()
    else:
        bundle.save()


def _resampler(prepared: Prepared) -> Resampler | None:
    """Return what cuts the texts of each batch anew, if that is asked for."""
    configuration, sides = prepared.configuration, (prepared.source_tokenizer, prepared.target_tokenizer)
    amount = configuration.tokenizer.sampling
    return Resampler(*sides, amount, configuration.data.max_length) if amount else None


def _check_same_run(there: Bundle, here: Bundle) -> None:
    """Refuse to go on with a run of other data, words or sizes: how long and how it is trained may change."""
    for section, values in _identity(here).items():
        for name, value in values.items():
            before = _identity(there)[section][name]
            if value != before:
                raise ConfigError(
                    f"{here.folder} holds a run with {section}.{name} = {before!r}, not {value!r}: choose another "
                    "run.directory, or delete that folder"
                )
    for side in ("source", "target"):
        old, new = getattr(there, f"{side}_tokenizer"), getattr(here, f"{side}_tokenizer")
        if old.tokens(range(len(old))) != new.tokens(range(len(new))):
            raise ConfigError(
                f"{here.folder} holds a run with another {side} vocabulary than the prepared corpus: choose another "
                "run.directory, or delete data.prepared"
            )


def _identity(bundle: Bundle) -> dict[str, dict[str, Any]]:
    configuration = bundle.configuration
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "tokenizer", "embeddings")}
    del sections["data"]["directory"], sections["data"]["prepared"]  # the corpus may have been moved
    return {**sections, "run": {"seed": configuration.run.seed}, "model": bundle.model_config.to_dict()}


@torch.no_grad()
def _initialise(model: Transformer, std: float) -> None:
    """Draw all matrices anew, from a normal distribution; biases and norms stay as they are."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.normal_(0.0, std)


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
    items, score_of = validation_items(bundle.configuration, valid), SCORES[settings.metric]

    def measure(model: Transformer) -> Measured:
        translator = Translator(bundle, model)
        [score], _ = evaluate(translator, items.sources, items.references, [settings.metric], beam_size=1)
        return Measured(score.name, score.value, higher_is_better=score_of.higher_is_better)

    return measure


def _keep_weights(report: Report, model: Transformer, folder: Path, *, validated: bool) -> None:
    """Make the weights of this moment the run's, if they are its best; without validation, those of a checkpoint."""
    if isinstance(report, ValidationReport) and report.best:
        save_weights(model, folder / WEIGHTS)
    if isinstance(report, CheckpointReport) and not (validated and (folder / WEIGHTS).exists()):
        use_weights(report.path, folder / WEIGHTS)
