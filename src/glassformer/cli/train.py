"""`glassformer train`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.arguments import ConfigName, Data, Overrides

if TYPE_CHECKING:
    from glassformer.recipes.configuration import Configuration
    from glassformer.run import Summary

__all__ = ["train", "train_and_report", "train_with_progress"]

VerifyResume = Annotated[
    bool,
    typer.Option(
        "--verify-resume", help="Train nothing; prove in a minute that a training that is killed goes on exactly."
    ),
]


def train(config: ConfigName, overrides: Overrides = None, data: Data = None, verify: VerifyResume = False) -> None:
    """Train a model. Ctrl-C stops it with a checkpoint; the same command goes on from there."""
    if verify:
        _verify_resume(config, overrides or [], data)
        return
    from glassformer.recipes.toml import load

    train_and_report(load(config, overrides or (), data))


def train_and_report(configuration: "Configuration") -> None:
    """Train with progress on stderr, then print what came of it, and write the report."""
    summary = train_with_progress(configuration)
    if summary.reason == "stopped":
        typer.echo(f"stopped at step {summary.steps}: a checkpoint is in {summary.folder}; the same command goes on")
        return
    quality = "" if summary.valid_loss is None else f", validation loss {summary.valid_loss:.3f}"
    measured = f", {summary.metric.name} {summary.metric.value:.1f}" if summary.metric else ""
    typer.echo(f"{summary.steps} steps in {summary.seconds / 60:.1f} minutes{quality}{measured}: {summary.folder}")
    from glassformer.report import write_report

    typer.echo(f"all about it:       {write_report(summary.folder)}")
    typer.echo(f"translate with it:  glassformer translate {summary.folder} FILE")


def train_with_progress(configuration: "Configuration") -> "Summary":
    """Return the summary of a training that is shown on stderr; Ctrl-C stops it, or ends the command before it."""
    from glassformer.cli.progress import TrainingProgress, stop_on_signal
    from glassformer.run import train as run_training

    with TrainingProgress() as show, stop_on_signal(show) as stop:
        return run_training(configuration, on_report=show, stop=stop.is_set)


def _verify_resume(config: str, overrides: list[str], data: Path | None) -> None:
    """Print whether a training goes on exactly; status 1 when it does not."""
    from glassformer.run.resume import verify_resume

    verdict = verify_resume(config, overrides, data, on_progress=lambda text: typer.echo(f"{text} …", err=True))
    done = (
        f"{verdict.steps} steps, killed {verdict.kills} times ({verdict.inside} inside the write of a checkpoint) and "
        f"started again, {verdict.seconds:.0f} s"
    )
    if verdict.difference is None and not verdict.kills:
        typer.echo("not proven: each training was over before it could be killed", err=True)
        sys.exit(1)
    if verdict.difference is None:
        typer.echo(f"exact: the same weights, optimiser state and log, bit for bit, as without a break ({done})")
        return
    typer.echo(f"NOT exact ({done}). The first difference: {verdict.difference}")
    if not verdict.repeatable:
        typer.echo(
            "Two trainings without a break differ as well: this machine does not compute the same twice. "
            "Try one thread (OMP_NUM_THREADS=1)."
        )
    sys.exit(1)
