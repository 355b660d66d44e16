"""Train a model from a configuration: load, step, save and validate, and then go through the end stages."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.optim import Optimizer

from glassformer.errors import ConfigError
from glassformer.jobs.end_stages import END_STAGES, Ended
from glassformer.jobs.evaluation import validation_metric
from glassformer.jobs.loading import LoadedRun, load_run
from glassformer.jobs.log import METRICS_FILE, best
from glassformer.jobs.prepared.manifest import MANIFEST
from glassformer.jobs.run_reports import PreparedReport, RunReport, Summary
from glassformer.jobs.saving import Saver
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.system.files import hash_of_file, hash_of_folder
from glassformer.system.locks import locked
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints, TrainingState, restore_from
from glassformer.training.distributed import joined
from glassformer.training.loop import steps
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.ranks import Ranks
from glassformer.training.reports import EndReport

__all__ = ["train"]

Change = Callable[[Transformer], AbstractContextManager[object]]
OnReport = Callable[[RunReport], object]


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

    A stopped run resumes from its last checkpoint. `on_report` receives each report when it is made. When `stop()`
    returns True, the run writes a checkpoint and ends. `change(model)` returns a context manager that changes the model
    during training and validation, such as `lambda model: gf.inspection.plant(model, "no_scale")`. The change is not
    saved with the weights, so apply it again after loading the weights.

    Raises:
        ConfigError: a setting is unknown or impossible, or the folder holds another run.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written or read back.
        RankError: one of the processes that torchrun started failed.
    """
    if not isinstance(configuration, Configuration):
        configuration = load(configuration, overrides, data)
    elif data is not None or list(overrides):
        raise ConfigError(
            "overrides and data need a configuration file or a recipe: with a Configuration, set its fields instead"
        )
    last: dict[type, Any] = {}

    def tell(report: RunReport) -> None:
        on_report(report)
        last[type(report)] = report

    _run(configuration, tell, stop, change)
    end: EndReport = last[EndReport]
    folder = last[PreparedReport].folder
    loss, metric = best(folder / METRICS_FILE)
    return Summary(
        folder=folder, steps=end.step, seconds=end.seconds, reason=end.reason, valid_loss=loss, metric=metric
    )


def _run(configuration: Configuration, on_report: OnReport, stop: Callable[[], bool], change: Change) -> None:
    """Train the run of a configuration to its end. Every rank calls this function."""
    if not configuration.run.directory:
        raise ConfigError("run.directory: expected a folder, got nothing; set it to the folder for this run")
    configuration.training.check_limit()
    folder = Path(configuration.run.directory)
    with joined(configuration.training) as ranks, locked(folder) if ranks.leads else nullcontext():
        with ranks.in_turn():
            loaded = load_run(configuration, ranks, on_report)
        manifest = loaded.prepared.folder / MANIFEST
        ranks.check_same(str(manifest), lambda: hash_of_file(manifest))
        _train(loaded, ranks, on_report, stop, change)


def _train(loaded: LoadedRun, ranks: Ranks, on_report: OnReport, stop: Callable[[], bool], change: Change) -> None:
    bundle, prepared, model = loaded.bundle, loaded.prepared, loaded.model
    settings = bundle.configuration.training
    checkpoints = Checkpoints(bundle.folder / CHECKPOINTS, settings.keep_checkpoints)
    optimiser = make_optimiser(model, settings)
    average = MovingAverage(model, settings.ema) if settings.ema else None
    state = _restored(checkpoints, ranks, model, optimiser, average)
    saver = Saver(loaded, checkpoints, state) if ranks.leads else None
    on_report(loaded.report(state.step if state else 0))
    metric = validation_metric(bundle, prepared.valid_pairs, on_report)
    reports = steps(
        model,
        prepared.train,
        # `change` affects only this process's model; other local ranks would train unchanged copies.
        settings if change is nullcontext else replace(settings, workers=1),
        seed=bundle.configuration.run.seed,
        optimiser=optimiser,
        state=state,
        valid=prepared.valid,
        metric=metric,
        checkpoints=checkpoints if ranks.leads else None,
        average=average,
        resample=loaded.resampler(),
        stop=stop,
        ranks=ranks,
    )
    with closing(reports), change(model):
        for report in reports:
            if isinstance(report, EndReport):
                with ranks.in_turn():  # rank 0 first, then the other ranks
                    if saver and report.reason != "stopped":
                        ended = Ended(
                            bundle=bundle,
                            prepared=prepared,
                            end=report,
                            checkpoints=checkpoints,
                            metric=metric,
                            log=saver.log,
                            change=change,
                            stop=stop,
                        )
                        _tell_all(ended, on_report)
            if saver:
                saver.save(report)
            on_report(report)


def _tell_all(ended: Ended, on_report: OnReport) -> None:
    """Go through all end stages, and pass their reports to `on_report`."""
    for stage in END_STAGES:
        for report in stage(ended):
            on_report(report)


def _restored(
    checkpoints: Checkpoints, ranks: Ranks, model: Transformer, optimiser: Optimizer, average: MovingAverage | None
) -> TrainingState | None:
    """Load the checkpoint from which the run resumes. Rank 0 chooses the checkpoint, and all ranks load it."""

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
