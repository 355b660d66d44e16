"""The history that the report reads from the log."""

import pytest

from glassformer.watch.report.history import History


def test_an_ended_training_has_its_reason(log):
    history = History.of(log(100, end="patience"))
    assert history.status == "validation no longer improved"
    assert (history.last_step, history.seconds, history.epochs) == (100, 200.0, 6)
    assert (history.best["step"], history.metric) == (100, "greedy BLEU")


def test_a_running_training_is_described_so_far(log):
    history = History.of(log(35, end=None))
    assert history.status.startswith("in progress")
    assert (history.last_step, history.seconds) == (35, 70.0)


def test_an_empty_log_gives_an_empty_history():
    history = History.of([])
    assert (history.last_step, history.seconds, history.epochs, history.best, history.metric) == (0, 0.0, 0, None, "")
    for series in (history.loss(), history.series("loss"), history.waited(), history.validation_loss()):
        assert series == ([], [])


def test_values_missing_in_older_logs_give_no_points(log):
    assert History.of(log(50)).waited() == History.of(log(50)).padding() == ([], [])


def test_waiting_is_a_share_of_the_time_of_updates(log):
    # 100 tokens at 50 tokens per second take 2 seconds, half a second of which is waiting.
    history = History.of(log(10, waited=0.5, padding=0.125))
    assert history.waited() == ([5.0, 10.0], [25.0, 25.0])
    assert history.padding() == ([5.0, 10.0], [12.5, 12.5])


def test_only_the_loss_of_a_long_log_is_averaged(log):
    long, short = History.of(log(500)), History.of(log(50))
    assert short.loss() == short.series("loss")
    steps, smooth = long.loss()
    assert steps == long.series("loss")[0]
    assert smooth[50] == pytest.approx(sum(9 / (5 * place) for place in range(49, 54)) / 5)


def test_the_average_hides_neither_the_first_loss_nor_the_last(log):
    raw, smooth = (one[1] for one in (History.of(log(500)).series("loss"), History.of(log(500)).loss()))
    assert (smooth[0], smooth[-1]) == (raw[0], raw[-1])
    assert smooth[1] == pytest.approx(sum(raw[:3]) / 3)


def test_a_kept_mean_of_checkpoints_is_the_best(log):
    lines = log(40)
    average = {"type": "average", "step": 40, "checkpoints": 3, "loss": 0.01, "metric": ["BLEU", 30.0, True]}
    assert History.of([*lines, {**average, "kept": True}]).best["loss"] == 0.01
    assert History.of([*lines, {**average, "kept": False}]).best["loss"] == 5 / 40
