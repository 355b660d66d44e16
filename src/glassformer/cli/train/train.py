"""`glassformer train`."""

import os
import shlex
from typing import TYPE_CHECKING

import typer

from glassformer.cli.arguments import ConfigName, TrainingDevice
from glassformer.cli.option_groups import ChangedSettings
from glassformer.cli.streams import INTERRUPTED
from glassformer.errors import counted

if TYPE_CHECKING:
    from glassformer.jobs import Summary
    from glassformer.recipes.configuration import Configuration

__all__ = ["end_if_stopped", "print_summary", "train_command", "train_with_progress"]


def train_command(
    config: ConfigName,
    *,
    changes: ChangedSettings,
    device: TrainingDevice = None,
) -> None:
    """Train a model, or resume its training.

    Ctrl-C stops the training and saves a checkpoint. Run the same command to resume. torchrun starts several processes
    that share the training: torchrun --nproc-per-node 2 -m glassformer train CONFIG.
    """
    from glassformer.system.machine import is_first_process

    summary = train_with_progress(changes.load(config, device))
    if is_first_process():
        print_summary(summary)


def print_summary(summary: "Summary") -> None:
    """Print the result of a training run, and write its report.

    Raises:
        typer.Exit: the run was stopped.
    """
    end_if_stopped(summary)
    quality = "" if summary.valid_loss is None else f", validation loss {summary.valid_loss:.3f}"
    measured = f", {summary.metric}" if summary.metric else ""
    trained = f"{counted(summary.steps, 'step')} in {summary.seconds / 60:.1f} minutes"
    typer.echo(f"{trained}{quality}{measured}: {summary.folder}")
    from glassformer.watch.report import write_report

    typer.echo("writing the report", err=True)
    typer.echo(f"report:             {write_report(summary.folder)}")
    typer.echo(f"translate with it:  glassformer translate {shlex.quote(str(summary.folder))} FILE")


def end_if_stopped(summary: "Summary") -> None:
    """End the command if its training run was stopped.

    Raises:
        typer.Exit: the status is 130, as for an interrupted command. Under torchrun, the status is 0, because torchrun
        would otherwise report a failure.
    """
    if summary.reason == "stopped":
        typer.echo(
            f"Stopped at step {summary.steps}; a checkpoint is in {summary.folder}. Run the same command to resume."
        )
        raise typer.Exit(0 if "TORCHELASTIC_RUN_ID" in os.environ else INTERRUPTED)


def train_with_progress(configuration: "Configuration") -> "Summary":
    """Train, with progress on stderr, and return the summary.

    Ctrl-C stops the training after the current step. Before training has begun, Ctrl-C ends the command at once.
    """
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs import train

    with TrainingProgress() as show, stop_on_signal(show) as stop:
        return train(configuration, on_report=show, stop=stop.is_set)
