"""`glassformer train`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import ConfigName, TrainingDevice
from glassformer.cli.option_groups import Changes

if TYPE_CHECKING:
    from glassformer.jobs import Summary
    from glassformer.recipes.configuration import Configuration

__all__ = ["print_summary", "train_command", "train_with_progress"]

VerifyResume = Annotated[
    bool,
    typer.Option("--verify-resume", help="Instead of training, test that a killed training run resumes bit for bit."),
]


def train_command(
    config: ConfigName,
    *,
    changes: Changes,
    device: TrainingDevice = None,
    verify: VerifyResume = False,
) -> None:
    """Train a model, or resume its training.

    Ctrl-C stops the training with a checkpoint. Run the same command to resume. Several processes share the training if
    torchrun starts them: torchrun --nproc-per-node 2 -m glassformer train CONFIG.
    """
    if verify:
        _print_verdict(config, changes.settings(device), changes.data)
        return
    from glassformer.system.machine import is_first_process

    summary = train_with_progress(changes.load(config, device))
    if is_first_process():
        print_summary(summary)


def print_summary(summary: "Summary") -> None:
    """Print the result of a training run, and write its report unless the run was stopped."""
    if summary.reason == "stopped":
        typer.echo(
            f"Stopped at step {summary.steps}; a checkpoint is in {summary.folder}. Run the same command to resume."
        )
        return
    quality = "" if summary.valid_loss is None else f", validation loss {summary.valid_loss:.3f}"
    measured = f", {summary.metric}" if summary.metric else ""
    typer.echo(f"{summary.steps} steps in {summary.seconds / 60:.1f} minutes{quality}{measured}: {summary.folder}")
    from glassformer.watch.report import write_report

    typer.echo(f"report:             {write_report(summary.folder)}")
    typer.echo(f"translate with it:  glassformer translate {summary.folder} FILE")


def train_with_progress(configuration: "Configuration") -> "Summary":
    """Train with progress on stderr, and return the summary.

    Ctrl-C stops the training after the current step; before training has begun, it ends the command.
    """
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.jobs import train

    with TrainingProgress() as show, stop_on_signal(show) as stop:
        return train(configuration, on_report=show, stop=stop.is_set)


def _print_verdict(config: str, overrides: list[str], data: Path | None) -> None:
    """Print whether a killed training run resumes bit for bit; exit with status 1 if not."""
    from glassformer.jobs.verify_resume import verify_resume

    verdict = verify_resume(config, overrides, data, on_progress=lambda text: typer.echo(f"{text} …", err=True))
    done = (
        f"{verdict.steps} steps, killed {verdict.kills} times ({verdict.inside} while writing a checkpoint) and "
        f"started again, {verdict.seconds:.0f} s"
    )
    if verdict.difference is None and not verdict.kills:
        typer.echo("not proven: each training run ended before it could be killed", err=True)
        sys.exit(1)
    if verdict.difference is None:
        typer.echo(f"exact: the same weights, optimiser state and log, bit for bit, as without interruption ({done})")
        return
    typer.echo(f"NOT exact ({done}). The first difference: {verdict.difference}")
    if not verdict.repeatable:
        typer.echo(
            "Two uninterrupted training runs differ as well: this machine does not give the same numbers twice. "
            "Try one thread (OMP_NUM_THREADS=1)."
        )
    sys.exit(1)
