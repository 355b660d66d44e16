"""Train a model from a configuration: prepare the corpus, train, validate, and keep the best weights."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from glassformer.bundle import CONFIG, WEIGHTS, Bundle, load_weights, save_weights
from glassformer.corpus.batching import Examples
from glassformer.corpus.files import is_url
from glassformer.corpus.readers import TextPairs
from glassformer.corpus.resampling import Resampler
from glassformer.corpus.vectors import read_vectors
from glassformer.errors import CheckpointError, ConfigError, DataError, quoted
from glassformer.evaluation.guards import GUARDS
from glassformer.evaluation.metrics import METRICS
from glassformer.jobs.averaging import average_if_better
from glassformer.jobs.calibration import CALIBRATED_TEXTS, calibrate, fewest_texts, forget_guards
from glassformer.jobs.evaluation import evaluate, validation_items
from glassformer.jobs.log import METRICS_FILE, Log, best
from glassformer.jobs.manifest import MANIFEST
from glassformer.jobs.preparation import Prepared, prepare, prepared_folder
from glassformer.jobs.replay import with_replay
from glassformer.jobs.run_reports import (
    AlignmentReport,
    CalibrationReport,
    PreparedReport,
    ProgressReport,
    RunReport,
    Summary,
)
from glassformer.jobs.shortlists import keep_shortlist
from glassformer.jobs.starting_run import START, check_start, keep_start
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import NOT_CONTENT, Configuration, TrainingConfig
from glassformer.recipes.toml import load, model_config
from glassformer.system.files import clear_temporaries, hash_of_file, hash_of_folder
from glassformer.system.locks import locked
from glassformer.system.machine import device_of, keep_memory
from glassformer.training.alignment_heads import COMPARED_PAIRS, choose_alignment
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints, TrainingState, restore_from, use_weights
from glassformer.training.distributed import joined
from glassformer.training.gradients import products_to_keep
from glassformer.training.loop import steps
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided
from glassformer.training.ranks import Ranks
from glassformer.training.reports import (
    CheckpointReport,
    EndReport,
    Measured,
    StepReport,
    TrainingReport,
    ValidationReport,
)
from glassformer.training.snapshots import SNAPSHOTS, Snapshots
from glassformer.translator import Translator

__all__ = ["train", "training_run"]

Change = Callable[[Transformer], AbstractContextManager[object]]

CALIBRATION_SHARE = 0.05
"""Maximum time to calibrate the guards at the end, as a share of the training time."""
CALIBRATION_SECONDS = (2.0, 120.0)
"""Bounds on this time, whatever the training time."""


def train(
    configuration: Configuration | str | Path,
    *,
    overrides: Iterable[str] = (),
    data: str | Path | None = None,
    on_report: Callable[[RunReport], object] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    change: Change = nullcontext,
) -> Summary:
    """Train the model of a configuration (an object, a TOML file or a recipe's name); return the run's summary.

    A stopped run resumes from its last checkpoint. `on_report` receives each report as it happens. Once `stop()`
    returns True, the run writes a checkpoint and ends. `change(model)` is a context in which the model is trained and
    validated, such as `lambda model: gf.inspection.plant(model, "no_scale")`. The change is not saved with the weights,
    so apply it again after loading them.

    Raises:
        ConfigError: a setting is unknown or impossible, or the folder holds another run.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written or read back.
        RankError: one of the processes that torchrun started failed.
    """
    if not isinstance(configuration, Configuration):
        configuration = load(configuration, overrides, data)
    elif data is not None or list(overrides):
        raise ConfigError("overrides and data need a configuration file or a recipe: change the Configuration instead")
    last: dict[type, Any] = {}
    for report in training_run(configuration, stop, change, on_report):
        on_report(report)
        last[type(report)] = report
    end: EndReport = last[EndReport]
    folder = last[PreparedReport].folder
    loss, metric = best(folder / METRICS_FILE)
    return Summary(
        folder=folder, steps=end.step, seconds=end.seconds, reason=end.reason, valid_loss=loss, metric=metric
    )


def training_run(
    configuration: Configuration,
    stop: Callable[[], bool] = lambda: False,
    change: Change = nullcontext,
    on_progress: Callable[[RunReport], object] = lambda _: None,
) -> Iterator[RunReport]:
    """Yield the reports of a training run, from the first step to the last checkpoint.

    `on_progress` receives the earlier reports, on the preparation of the corpus.
    """
    if not configuration.run.directory:
        raise ConfigError("run.directory: expected a folder, got nothing; set it to the folder for this run")
    configuration.training.check_limit()
    folder = Path(configuration.run.directory)
    with joined(configuration.training) as ranks, locked(folder) if ranks.leads else nullcontext():
        with ranks.in_turn():
            if ranks.leads:
                for place in (folder, folder / SNAPSHOTS):
                    clear_temporaries(place)
            else:
                _check_shared(configuration)
            prepared = prepare(configuration, on_progress, whole=not ranks.leads)
            keep_memory(products_to_keep(prepared.train))
            device = ranks.place(device_of(configuration.training.device, "training.device"))
            prepared = with_replay(prepared, on_progress, whole=not ranks.leads)
            bundle = _bundle(prepared, folder, device)
            _check_validation(bundle.configuration.training, prepared.valid)
            if ranks.leads and configuration.training.start_from:
                keep_start(bundle)
            model = _initial_model(bundle).to(device)  # drawn on the CPU, for the same weights on every device
            if ranks.leads:
                _keep(bundle)
                keep_shortlist(bundle, prepared.train, on_progress)
        ranks.check_same(f"{prepared.folder / MANIFEST}", lambda: hash_of_file(prepared.folder / MANIFEST))
        yield from _reports(prepared, bundle, model, ranks, stop, change)


def _reports(
    prepared: Prepared, bundle: Bundle, model: Transformer, ranks: Ranks, stop: Callable[[], bool], change: Change
) -> Iterator[RunReport]:
    configuration, settings, folder = bundle.configuration, bundle.configuration.training, bundle.folder
    checkpoints = Checkpoints(folder / CHECKPOINTS, settings.keep_checkpoints)
    optimiser = make_optimiser(model, settings)
    average = MovingAverage(model, settings.ema) if settings.ema else None
    state = _restored(checkpoints, ranks, model, optimiser, average)
    snapshots = Snapshots(folder / SNAPSHOTS, settings.snapshots)
    if ranks.leads:
        snapshots.forget_after(state.step if state else 0)
    if ranks.leads and state and not len(prepared.valid):  # the run may have been killed right after a checkpoint
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
    reports = steps(
        model,
        prepared.train,
        settings,
        seed=configuration.run.seed,
        optimiser=optimiser,
        state=state,
        valid=prepared.valid,
        metric=metric,
        checkpoints=checkpoints if ranks.leads else None,
        average=average,
        resample=_resampler(prepared),
        stop=stop,
        ranks=ranks,
    )
    if not ranks.leads:
        with closing(reports), change(model):
            yield from reports
        with ranks.in_turn():  # rank 0 may be averaging checkpoints
            return
    log = Log(folder / METRICS_FILE, settings.log_every, state or TrainingState())
    checkpoints.before_naming = log.sync
    with closing(reports), change(model):
        for report in reports:
            _keep_weights(report, model, folder, validated=len(prepared.valid) > 0)
            if isinstance(report, StepReport) and snapshots.due(report.step):
                snapshots.save(model, report.step)
            with ranks.in_turn() if isinstance(report, EndReport) else nullcontext():
                ended = report if isinstance(report, EndReport) and report.reason != "stopped" else None
                if ended and settings.average and not log.has("average", report.step):
                    averaged = average_if_better(bundle, checkpoints, prepared.valid, metric, change)
                    log.write(averaged, report.step)
                    yield averaged
                if (
                    ended
                    and not log.has("alignment", report.step)
                    and (aligned := _aligned(bundle, prepared.valid_pairs, change))
                ):
                    log.write(aligned, report.step)
                    yield aligned
                if ended and not (folder / GUARDS).exists():
                    yield from _calibrated(bundle, prepared.valid_pairs, change, _until(ended.seconds, stop))
                log.write(report, report.step)
            yield report


def _check_shared(configuration: Configuration) -> None:
    """Raise an error if this machine does not see the files that rank 0 has written."""
    folder = Path(configuration.run.directory)
    prepared = () if is_url(configuration.data.prepared) else (prepared_folder(configuration) / MANIFEST,)
    for path in (folder / CONFIG, *prepared):
        if not path.exists():
            raise CheckpointError(
                f"{path} was written by rank 0, but does not exist on this machine; set run.directory and "
                "data.prepared to folders that all machines share"
            )


def _restored(
    checkpoints: Checkpoints, ranks: Ranks, model: Transformer, optimiser: Optimizer, average: MovingAverage | None
) -> TrainingState | None:
    """Load the checkpoint from which the run resumes; rank 0 chooses it, and all ranks load the same one."""

    def latest() -> tuple[TrainingState, Path] | None:
        state = checkpoints.restore(model, optimiser, average)
        return (state, checkpoints.paths()[-1]) if state else None

    restored = ranks.decide(latest)
    if not restored:
        return None
    state, path = restored
    if not ranks.leads:
        state = restore_from(path, model, optimiser, average)
    ranks.check_same(str(path), lambda: hash_of_folder(path))
    return state


def _bundle(prepared: Prepared, folder: Path, device: torch.device) -> Bundle:
    """Return the run's bundle, not yet written; raise an error if the folder holds a different run."""
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    there = Bundle.load(folder) if (folder / CONFIG).exists() else None
    settings = prepared.configuration.training
    if there and settings.precision == "auto":  # a resumed run keeps its first precision
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
        check_start(bundle)
    return bundle


def _keep(bundle: Bundle) -> None:
    """Write the bundle; a resumed run keeps its tokenizers."""
    if (bundle.folder / CONFIG).exists():
        bundle.save_configuration()
    else:
        bundle.save()


def _resampler(prepared: Prepared) -> Resampler | None:
    """Return the resampler that encodes each batch's texts anew, or None if `tokenizer.sampling` is off."""
    configuration, sides = prepared.configuration, (prepared.source_tokenizer, prepared.target_tokenizer)
    amount = configuration.tokenizer.sampling
    assert amount != "auto", "`fit` chooses it"
    return Resampler(*sides, amount, configuration.data.max_length) if amount else None


def _check_same_run(there: Bundle, here: Bundle) -> None:
    """Raise an error if the folder's run has different data, vocabularies or sizes; training settings may change."""
    for section, values in _identity(here).items():
        for name, value in values.items():
            before = _identity(there)[section][name]
            if value != before:
                raise ConfigError(
                    f"{here.folder} holds a run with {section}.{name} = {quoted(before)}, not {quoted(value)}: choose "
                    "another run.directory, or delete that folder"
                )
    for side in ("source", "target"):
        old, new = getattr(there, f"{side}_tokenizer"), getattr(here, f"{side}_tokenizer")
        if old.tokens(range(len(old))) != new.tokens(range(len(new))):
            raise ConfigError(
                f"{here.folder} holds a run whose {side} vocabulary differs from the prepared corpus: choose another "
                "run.directory, or delete data.prepared"
            )


def _identity(bundle: Bundle) -> dict[str, dict[str, Any]]:
    configuration = bundle.configuration
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "tokenizer", "embeddings")}
    for name in NOT_CONTENT:  # the corpus may have been moved
        del sections["data"][name]
    sections["training"] = {"start_from": configuration.training.start_from}
    return {**sections, "run": {"seed": configuration.run.seed}, "model": bundle.model_config.to_dict()}


def _initial_model(bundle: Bundle) -> Transformer:
    """Return the model with its weights before the first step."""
    settings = bundle.configuration.training
    torch.manual_seed(bundle.configuration.run.seed)
    model = Transformer(bundle.model_config)
    if settings.init_std:
        _initialise(model, settings.init_std)
    _load_embeddings(model, bundle, resumed=bool(Checkpoints(bundle.folder / CHECKPOINTS, 1).paths()))
    if settings.start_from:
        load_weights(model, bundle.folder / START)
    return model


@torch.no_grad()
def _initialise(model: Transformer, std: float) -> None:
    """Draw all matrices from a normal distribution; biases and norms stay as they are."""
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.normal_(0.0, std)


def _load_embeddings(model: Transformer, bundle: Bundle, *, resumed: bool) -> None:
    """Load the pretrained vectors; a resumed run reads them from its checkpoint, so here it only freezes them again."""
    config = bundle.configuration.embeddings
    both = bundle.configuration.tokenizer.joint and not bundle.model_config.tie_embeddings
    sides = (
        ("source", config.source, model.source, bundle.source_tokenizer),
        ("target", config.target or (config.source if both else ""), model.target, bundle.target_tokenizer),
    )
    for name, path, embedding, tokenizer in sides:
        if not path:
            continue
        if resumed:
            embedding.tokens.weight.requires_grad_(not config.freeze)
            continue
        vectors, found = read_vectors(path, tokenizer.tokens(range(len(tokenizer))))
        if vectors.shape[1] != bundle.model_config.d_model:
            raise ConfigError(
                f"embeddings.{name}: expected vectors of width model.d_model = {bundle.model_config.d_model}, got "
                f"width {vectors.shape[1]} in {quoted(path)}; make the widths equal"
            )
        embedding.load_vectors(torch.from_numpy(vectors), torch.from_numpy(found), freeze=config.freeze)


def _check_validation(settings: TrainingConfig, valid: Examples) -> None:
    """Raise an error for settings that need validation pairs when the corpus has none."""
    for name in ("average", "patience"):
        if getattr(settings, name) and not len(valid):
            raise ConfigError(
                f"training.{name} = {getattr(settings, name)} needs validation pairs, but the corpus is too small to "
                "hold any out: give data.valid_source and data.valid_target, or leave the setting out"
            )


def _metric(bundle: Bundle, valid: TextPairs) -> Callable[[Transformer], Measured] | None:
    """Return a function that scores a model's greedy translations of the first validation lines; None for "none"."""
    settings = bundle.configuration.training
    if settings.metric == "none" or not valid:
        return None
    items, score_of = validation_items(bundle.configuration, valid), METRICS[settings.metric]

    def measure(model: Transformer) -> Measured:
        translator = Translator(bundle, model)
        [score], _ = evaluate(translator, items.sources, items.references, [settings.metric], beam_size=1)
        return Measured(score.name, score.value, higher_is_better=score_of.higher_is_better)

    return measure


def _aligned(bundle: Bundle, valid: TextPairs, change: Change) -> AlignmentReport | None:
    """Choose the heads that align words, with the kept weights, and store them; None without validation pairs."""
    if not (pairs := list(islice(valid, COMPARED_PAIRS))):
        return None
    model = bundle.model().to(device_of(bundle.configuration.training.device, "training.device"))
    with change(model):
        alignment = choose_alignment(bundle, model, pairs)
    if alignment is None:
        return None
    replace(bundle, alignment=alignment).save_alignment()
    return AlignmentReport(alignment=alignment)


def _calibrated(
    bundle: Bundle, valid: TextPairs, change: Change, stop: Callable[[], bool]
) -> Iterator[ProgressReport | CalibrationReport]:
    """Calibrate the guards with the kept weights on validation pairs, and store them, if there are enough pairs."""
    items = validation_items(bundle.configuration, valid, most=CALIBRATED_TEXTS)
    if len(items.sources) < fewest_texts():
        return
    stage = f"calibrating the guards on {len(items.sources):,} validation pairs"
    yield ProgressReport(stage=stage, done=0, total=len(items.sources), unit="sentences")
    model = bundle.model().to(device_of(bundle.configuration.training.device, "training.device"))
    try:
        with change(model):
            guards = calibrate(Translator(bundle, model), items, stop=stop)
    except DataError:  # too little time, or most texts cannot be translated
        yield CalibrationReport(guards=None)
        return
    guards.save(bundle.folder)
    yield CalibrationReport(guards=guards)


def _until(trained: float, stop: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that tells when to stop calibrating: if asked, or after a time that fits the training time."""
    least, most = CALIBRATION_SECONDS
    end = time.monotonic() + min(max(CALIBRATION_SHARE * trained, least), most)
    return lambda: stop() or time.monotonic() > end


def _keep_weights(report: TrainingReport, model: Transformer, folder: Path, *, validated: bool) -> None:
    """Save the current weights as the run's if they are the best; without validation, at each checkpoint."""
    if isinstance(report, ValidationReport) and report.best:
        forget_guards(folder)
        save_weights(model, folder / WEIGHTS)
    if isinstance(report, CheckpointReport) and not (validated and (folder / WEIGHTS).exists()):
        forget_guards(folder)
        use_weights(report.path, folder / WEIGHTS)
