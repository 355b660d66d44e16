"""`glassformer train`."""

from typing import TYPE_CHECKING

import typer

from glassformer.cli.arguments import ConfigName, Data, Overrides

if TYPE_CHECKING:
    from glassformer.recipes.configuration import Configuration
    from glassformer.run import Summary

__all__ = ["train", "train_with_progress"]


def train(config: ConfigName, overrides: Overrides = None, data: Data = None) -> None:
    """Train a model. Ctrl-C stops it with a checkpoint; the same command goes on from there."""
    from glassformer.recipes.toml import load

    summary = train_with_progress(load(config, overrides or (), data))
    if summary.reason == "stopped":
        typer.echo(f"stopped at step {summary.steps}: a checkpoint is in {summary.folder}; the same command goes on")
        return
    quality = "" if summary.valid_loss is None else f", validation loss {summary.valid_loss:.3f}"
    measured = f", {summary.metric.name} {summary.metric.value:.1f}" if summary.metric else ""
    typer.echo(f"{summary.steps} steps in {summary.seconds / 60:.1f} minutes{quality}{measured}: {summary.folder}")
    typer.echo(f"translate with it:  glassformer translate {summary.folder} FILE")


def train_with_progress(configuration: "Configuration") -> "Summary":
    """Return the summary of a training that is shown on stderr and can be stopped by Ctrl-C."""
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.run import train as run_training

    with TrainingProgress() as show, stop_on_signal(show.console) as stop:
        return run_training(configuration, on_report=show, stop=stop.is_set)
