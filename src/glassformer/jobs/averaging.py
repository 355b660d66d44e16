"""Checkpoint averaging: write the mean of a run's last checkpoints, or make it the run's weights if it is better."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import torch

from glassformer.built_in import refuse_built_in
from glassformer.bundle import WEIGHTS, Bundle, put_weights, save_weights
from glassformer.corpus.batching import Examples
from glassformer.errors import ConfigError
from glassformer.jobs.calibration import forget_guards
from glassformer.jobs.run_reports import AverageReport
from glassformer.model.transformer import Transformer
from glassformer.system.machine import device_of
from glassformer.training.checkpoint import CHECKPOINTS, Checkpoints, average_weights
from glassformer.training.loop import badness, validation_loss
from glassformer.training.reports import Measured

__all__ = ["average", "average_if_better"]


def average(run: str | Path, last: int, output: str | Path | None = None) -> Path:
    """Write a model whose weights are the mean of a run's last checkpoints, and return its folder.

    The run itself does not change. The model's folder is `output`, or RUN/averaged-LAST by default.

    Raises:
        CheckpointError: the run does not exist, or a checkpoint cannot be read.
        ConfigError: the run has fewer than `last` checkpoints.

    Paper: §6.1.
    """
    refuse_built_in(run, "average")
    bundle = Bundle.load(run)
    paths = Checkpoints(bundle.folder / CHECKPOINTS, last).paths()
    if not 1 <= last <= len(paths):
        raise ConfigError(
            f"--last: expected a number from 1 to {len(paths)} (the run's checkpoints), got {last}; a larger "
            "training.keep_checkpoints keeps more checkpoints"
        )
    averaged = replace(bundle, folder=Path(output) if output else bundle.folder / f"averaged-{last}")
    model = Transformer(bundle.model_config)
    put_weights(model, average_weights(paths[-last:]), f"the mean of {last} checkpoints")
    averaged.save(model)
    return averaged.folder


def average_if_better(
    bundle: Bundle,
    checkpoints: Checkpoints,
    valid: Examples,
    metric: Callable[[Transformer], Measured] | None,
    change: Callable[[Transformer], AbstractContextManager[object]],
) -> AverageReport:
    """Validate the best weights and the mean of the last checkpoints; keep the mean as the weights if it is better."""
    settings = bundle.configuration.training
    paths = checkpoints.paths()[-settings.average :]
    device = device_of(settings.device, "training.device")
    best, mean = bundle.model().to(device), Transformer(bundle.model_config).eval().to(device)
    put_weights(mean, average_weights(paths), f"the mean of {len(paths)} checkpoints")

    def validated(model: Transformer) -> tuple[float, Measured | None]:
        with change(model):
            return validation_loss(model, valid, settings.batch_tokens), metric and metric(model)

    (old_loss, old_measured), (loss, measured) = validated(best), validated(mean)
    kept = badness(loss, measured, settings) < badness(old_loss, old_measured, settings)
    if kept:
        forget_guards(bundle.folder)
        save_weights(mean, bundle.folder / WEIGHTS)
    # If an earlier call was killed after saving the mean, the best weights are already the mean.
    kept = kept or all(map(torch.equal, best.parameters(), mean.parameters()))
    return AverageReport(checkpoints=len(paths), loss=loss, metric=measured, kept=kept)
