"""The effect of Ctrl-C before training, during training, and repeated."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest
import typer

from glassformer.built_in import run_folder
from glassformer.cli.progress import TrainingProgress, stop_on_signal, vocabulary_sizes
from glassformer.evaluation.guards import Guards
from glassformer.jobs.run_reports import CalibrationReport, PreparedReport, ProgressReport
from glassformer.training.reports import EndReport, Measured, StepReport, ValidationReport

PREPARED = PreparedReport(
    folder=Path("runs/some"),
    train_pairs=119,
    valid_pairs=3,
    dropped={},
    source_vocabulary=7,
    target_vocabulary=11,
    parameters=13,
    warmup=3,
    chosen="",
    resumed_step=0,
)
CHECKING = ProgressReport(stage="checking the corpus", done=0, total=17, unit="bytes")
NUMBERS_OF_A_STEP: dict[str, Any] = {
    "epoch": 1,
    "loss": 5.0,
    "gradient_norm": 1.0,
    "target_tokens": 17,
    "tokens_per_second": 19.0,
    "waited": 0.0,
    "padding": 0.0,
    "seconds": 3.0,
    "seconds_left": 5.0,
}
NUMBERS = (signal.SIGINT, signal.SIGTERM)
ENDED = "Stopped. Run the same command to resume from what is saved.\n"


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the signal handlers, which an ending command leaves in place."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ends(report: PreparedReport | ProgressReport, *numbers: signal.Signals) -> int:
    """Send these signals to a command after this report; return the command's exit status."""
    with TrainingProgress() as show:
        try:
            with stop_on_signal(show):
                show(report)
                for number in numbers:
                    signal.raise_signal(number)
        except typer.Exit as end:
            return end.exit_code
    return pytest.fail("it went on")


@pytest.mark.parametrize("number", NUMBERS)
def test_ctrl_c_before_training_ends_the_command_at_once(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(CHECKING, number) == 130
    assert capsys.readouterr().err == f"checking the corpus\n{ENDED}"


@pytest.mark.parametrize("number", NUMBERS)
def test_ctrl_c_in_training_lets_the_step_finish(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(number)
    with TrainingProgress() as show, stop_on_signal(show) as stop:
        show(PREPARED)
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
    assert "Stopping after this step, with a checkpoint" in capsys.readouterr().err
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_ends_the_command_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(PREPARED, signal.SIGTERM, signal.SIGINT) == 130
    assert capsys.readouterr().err.endswith(ENDED)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (1, "warning: only 1 step fitted into training.minutes, fewer than training.warmup = 3"),
        (2, "warning: only 2 steps fitted into training.minutes, fewer than training.warmup = 3"),
        (3, ""),
        (0, "nothing to train: the run has ended at step 0"),
    ],
)
def test_the_end_of_a_training_says_what_is_unusual(steps: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingProgress() as show:
        show(PREPARED)
        for number in range(1, steps + 1):
            show(StepReport(step=number, learning_rate=1.0, **NUMBERS_OF_A_STEP))
        capsys.readouterr()
        show(EndReport(step=steps, reason="minutes", seconds=240.0))
    end = capsys.readouterr().err
    assert end.startswith(said) if said else not end


@pytest.mark.parametrize(("pairs", "said"), [(5, "\nwarning: a model learns almost nothing from 5 pairs; "), (100, "")])
def test_a_training_on_few_pairs_begins_with_a_warning(
    pairs: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrainingProgress() as show:
        show(replace(PREPARED, train_pairs=pairs))
    shown = capsys.readouterr().err
    assert shown.startswith(f"{pairs} training pairs, 3 for validation")
    assert said in shown
    assert ("warning: " in shown) == bool(said)


def test_a_joint_vocabulary_is_counted_once() -> None:
    assert vocabulary_sizes(8000, 8000) == "vocabulary size 8,000"
    assert vocabulary_sizes(8000, 64) == "vocabulary sizes 8,000 and 64"


@contextmanager
def interrupted_while_set() -> Iterator[None]:
    """Send the second Ctrl-C while the first Ctrl-C sets the event and holds the event's lock."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code is not threading.Event.set.__code__:
            return None
        lines += event == "line"
        if lines == 2:  # the first line has taken the lock
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def give_up(number: int, _: FrameType | None) -> NoReturn:
    pytest.fail(f"still waiting (signal {number})")


def test_a_second_ctrl_c_does_not_wait_for_the_first() -> None:
    alarm = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    try:
        with interrupted_while_set():
            assert ends(PREPARED, signal.SIGINT) == 130
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)


@pytest.mark.parametrize("report", [CHECKING, PREPARED], ids=["before", "in"])
def test_further_signals_do_not_disturb_the_end(
    report: PreparedReport | ProgressReport, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrainingProgress() as show, pytest.raises(typer.Exit), stop_on_signal(show):
        end_in_disorder(show, report)
    assert capsys.readouterr().err.endswith(ENDED)
    assert [signal.getsignal(number) for number in NUMBERS] == [signal.SIG_DFL, signal.SIG_DFL]


def end_in_disorder(show: TrainingProgress, report: PreparedReport | ProgressReport) -> None:
    """Report, and be interrupted twice: while working and while ending."""
    try:
        show(report)
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
    finally:
        for number in NUMBERS:
            signal.raise_signal(number)


def test_a_lost_signal_acts_at_the_next_report(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingProgress() as show, pytest.raises(typer.Exit), stop_on_signal(show):
        lose_one(show)
    assert capsys.readouterr().err == ENDED


def lose_one(show: TrainingProgress) -> None:
    """Be interrupted in a place where exceptions are lost, such as a destructor; then report."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    show(CHECKING)


@pytest.mark.parametrize("texts", [500, 200])
def test_guards_from_some_of_the_pairs_say_how_to_use_all(capsys: pytest.CaptureFixture[str], texts: int) -> None:
    guards = Guards.load(run_folder("demo"))
    assert guards
    guards = replace(guards, outputs=200)
    with TrainingProgress() as show:
        show(CalibrationReport(guards=guards, texts=texts))
    said = capsys.readouterr().err
    assert "guards: 200 outputs" in said
    assert ("here 200 of 500; `glassformer calibrate` uses all" in said) == (texts == 500)


def test_the_log_says_that_its_metric_is_of_greedy_translations(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingProgress() as show:
        measured = Measured("BLEU", 35.41, higher_is_better=True)
        show(ValidationReport(step=1500, loss=1.737, perplexity=5.68, metric=measured, best=True))
    said = capsys.readouterr().err
    assert said == "step 1500: validation loss 1.737, perplexity 5.68, greedy BLEU 35.4, best so far\n"
