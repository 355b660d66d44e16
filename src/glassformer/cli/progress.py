"""The progress of a training run on stderr: a live bar in a terminal, a line every ten seconds elsewhere."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType, TracebackType

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from glassformer.cli.measure.calibrate import calibration_result
from glassformer.cli.streams import INTERRUPTED
from glassformer.errors import counted
from glassformer.jobs.run_reports import (
    AlignmentReport,
    AverageReport,
    CalibrationReport,
    ExaminedReport,
    PreparedReport,
    ProgressReport,
    RunReport,
)
from glassformer.system.machine import is_first_process
from glassformer.training.reports import CheckpointReport, EndReport, Measured, StepReport, ValidationReport

__all__ = ["FEW_PAIRS", "TrainingProgress", "few_pairs", "stop_on_signal", "vocabulary_sizes"]

FEW_PAIRS = 100
"""Number of training pairs below which a warning says that a model learns almost nothing."""
_SECONDS_BETWEEN_LINES = 10.0
_BAR_UNITS = 1000


class TrainingProgress:
    """A context that shows the reports of a training run: `with TrainingProgress() as show: … show(report)`."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, quiet=not is_first_process())
        self.bar = Progress(BarColumn(24), TextColumn("{task.description}"), console=self.console, transient=True)
        self.task: TaskID | None = None
        self.last_line = 0.0
        self.loss: float | None = None
        self.warmup = 0
        self.stepped = False
        """Whether this process has already trained a step."""
        self.stage = ""
        self.training = False
        """Whether the corpus is ready, and training has begun."""
        self.stopping = False
        """Whether the command must end after this step."""
        self.ending = False
        """Whether the command must end at once."""

    def __enter__(self) -> "TrainingProgress":
        """Start the live bar if stderr is a terminal."""
        if self.console.is_terminal:
            self.task = self.bar.add_task("reading the corpus", total=_BAR_UNITS)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the live bar."""
        if self.task is not None:
            self.bar.stop()

    def __call__(self, report: RunReport) -> None:
        """Show one report."""
        # KeyboardInterrupt is raised here again, because Python discards exceptions that a signal handler raises inside
        # a destructor
        if self.ending:
            raise KeyboardInterrupt
        match report:
            case ProgressReport():
                self._progress(report)
            case ExaminedReport():
                self._examined(report)
            case PreparedReport():
                self._prepared(report)
            case StepReport():
                self._step(report)
            case ValidationReport():
                best = ", best so far" if report.best else ""
                self._line(f"step {report.step}: validation {_quality(report.loss, report.metric)}{best}")
            case AverageReport():
                kept = "better, kept" if report.kept else "not better, dropped"
                quality = _quality(report.loss, report.metric)
                self._line(f"mean of the last {counted(report.checkpoints, 'checkpoint')}: {quality}, {kept}")
            case AlignmentReport(alignment=one):
                heads = ", ".join(map(str, one.heads))
                self._line(f"words aligned by decoder layer {one.layer}, heads {heads}: {one.agreement:.0%} agreement")
            case CalibrationReport():
                too_few = "too few texts can be translated; run `glassformer calibrate` with other pairs"
                result = calibration_result(report.guards) if report.guards else too_few
                self._line(f"guards: {result}")
                if report.guards and report.guards.outputs < report.texts:
                    self._line(
                        f"  a short training calibrates on fewer texts, here {report.guards.outputs:,} of "
                        f"{report.texts:,}; `glassformer calibrate` uses all, and then flags fewer good outputs"
                    )
            case EndReport(step=step) if not self.stepped:
                self._line(f"nothing to train: the run has ended at step {step:,}")
            case EndReport(reason="minutes", step=step) if step < self.warmup:
                self._line(
                    f"warning: only {counted(step, 'step')} fitted into training.minutes, fewer than training.warmup = "
                    f"{self.warmup:,}, so the model has learned little; raise training.minutes, or choose a smaller "
                    "model"
                )
            case CheckpointReport() | EndReport():
                pass

    def _progress(self, report: ProgressReport) -> None:
        share = report.done / report.total if report.total else 0.0
        left = f" · {_clock(report.seconds_left)} left" if report.seconds_left else ""
        if self.task is not None:
            self.bar.update(self.task, completed=int(_BAR_UNITS * share), description=f"{report.stage}{left}")
        elif report.stage != self.stage or time.monotonic() - self.last_line >= _SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self._line(f"{report.stage}: {share:.0%}{left}" if report.done else report.stage)
        self.stage = report.stage

    def _examined(self, report: ExaminedReport) -> None:
        for warning in report.findings.warnings:
            self._line(f"warning: {warning}")

    def _prepared(self, report: PreparedReport) -> None:
        self.training, self.warmup = True, report.warmup
        left_out = "".join(
            f", {count:,} left out ({reason.replace('_', ' ')})" for reason, count in report.dropped.items() if count
        )
        self._line(
            f"{counted(report.train_pairs, 'training pair')}{left_out}, {report.valid_pairs:,} for validation; "
            f"{vocabulary_sizes(report.source_vocabulary, report.target_vocabulary)}; {report.parameters:,} parameters"
        )
        if report.train_pairs < FEW_PAIRS:
            self._line(f"warning: {few_pairs(report.train_pairs)}")
        if report.chosen:
            self._line(f"chosen for {report.chosen}")
        if report.resumed_step:
            self._line(f"resuming from step {report.resumed_step:,} of {report.folder}")

    def _step(self, report: StepReport) -> None:
        # The losses of single batches vary widely, so their moving average is shown.
        self.loss = report.loss if self.loss is None else 0.95 * self.loss + 0.05 * report.loss
        self.stepped = True
        done = report.seconds / max(report.seconds + report.seconds_left, 1e-9)
        text = (
            f"step {report.step:,} · epoch {report.epoch} · loss {self.loss:.3f} · learning rate "
            f"{report.learning_rate:.1e} · {report.tokens_per_second:,.0f} tokens/s · "
            f"{_clock(report.seconds_left)} left of training"
        )
        if self.task is not None:
            self.bar.update(self.task, completed=int(_BAR_UNITS * done), description=text)
        elif time.monotonic() - self.last_line >= _SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            self._line(text)

    def _line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


@contextmanager
def stop_on_signal(show: TrainingProgress) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C (or SIGTERM) during training into an event, so that the current step is completed.

    A second Ctrl-C ends the command at once. Before training has begun, even the first Ctrl-C ends the command at once,
    because no step has to be completed, and each file is either complete or absent.
    """
    stop = threading.Event()

    def ask(number: int, _frame: FrameType | None) -> None:
        if show.ending:
            return
        if show.stopping or not show.training:
            show.ending = True
            raise KeyboardInterrupt
        # must come before `set`, because a signal handler that ran during `set` would wait for the event's lock for
        # ever
        show.stopping = True
        stop.set()
        if number == signal.SIGTERM and "TORCHELASTIC_RUN_ID" in os.environ:
            return  # torchrun also sends SIGTERM to the other ranks after a rank was killed
        show.console.print("Stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one.")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    except KeyboardInterrupt:
        show.console.print("Stopped. Run the same command to resume from what is saved.")
        # with Python's own handler, a signal that arrives during the exit would print a traceback
        before = dict.fromkeys(before, signal.SIG_DFL)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def vocabulary_sizes(source: int, target: int) -> str:
    """Return the sizes of the vocabularies in words; equal sizes are printed once."""
    return f"vocabulary size {source:,}" if source == target else f"vocabulary sizes {source:,} and {target:,}"


def few_pairs(count: int) -> str:
    """Return what to say about a training corpus of so few pairs."""
    return f"a model learns almost nothing from {counted(count, 'pair')}; give at least a few hundred"


def _quality(loss: float, metric: Measured | None) -> str:
    from math import exp

    measured = f", {metric}" if metric else ""
    return f"loss {loss:.3f}, perplexity {exp(min(loss, 700)):.2f}{measured}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
