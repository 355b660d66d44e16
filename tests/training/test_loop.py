"""The training loop: its reports, its end, and its updates."""

import itertools
import math
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.batching import Examples, batches, make_batch
from glassformer.errors import DataError, DivergenceError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import steps
from glassformer.training.checkpoint import Checkpoints, TrainingState
from glassformer.training.gradients import batch_loss
from glassformer.training.loop import SCALE_UP_AFTER, badness, validation_loss
from glassformer.training.loss_watch import PATIENCE, LossWatch
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.reports import CheckpointReport, EndReport, Measured, StepReport, ValidationReport
from profiles import scaled

QUICK = {"warmup": 1, "schedule": "constant", "learning_rate": 0.01, "batch_tokens": 40}


def weights_of(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def kinds(reports):
    return [(type(report).__name__.removesuffix("Report"), report.step) for report in reports]


# Losses


@scaled(20)
@given(lengths=st.lists(st.integers(2, 13), min_size=1, max_size=7), smoothing=st.sampled_from([0.0, 0.1]))
def test_padding_does_not_count(make_model, make_examples, lengths, smoothing):
    model, examples = make_model(), make_examples(lengths)
    together = batch_loss(model, make_batch(examples, np.arange(len(lengths))), smoothing)
    single = [batch_loss(model, make_batch(examples, np.array([row])), smoothing) for row in range(len(lengths))]
    torch.testing.assert_close(together.smoothed, sum(loss.smoothed for loss in single), rtol=1e-12, atol=0)
    torch.testing.assert_close(together.plain, sum(loss.plain for loss in single), rtol=1e-12, atol=0)


def test_the_loss_of_a_batch_equals_the_loss_of_its_logits(make_model, make_examples):
    model, examples = make_model(), make_examples()
    batch = make_batch(examples, np.arange(len(examples)))
    logits = model(torch.from_numpy(batch.source), torch.from_numpy(batch.target_input))
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        torch.from_numpy(batch.target_output).flatten(),
        ignore_index=0,
        label_smoothing=0.1,
        reduction="sum",
    )
    torch.testing.assert_close(batch_loss(model, batch, 0.1).smoothed, expected, rtol=1e-12, atol=0)


def test_validation_ignores_smoothing_dropout_and_batches(make_model, make_examples):
    model, examples = make_model(dropout=0.5).train(), make_examples()
    losses = [validation_loss(model, examples, batch_tokens) for batch_tokens in (1, 40, 1000)]
    assert model.training
    model.eval()
    tokens = sum(map(len, examples.target))
    whole = batch_loss(model, make_batch(examples, np.arange(len(examples))), 0.0).plain / tokens
    assert losses == pytest.approx([whole.item()] * 3, rel=1e-12)


# Reports


def test_reports_come_in_order(make_model, make_examples, tmp_path):
    config = TrainingConfig(**QUICK, steps=7, validate_every=3, checkpoint_every=2)
    reports = list(
        steps(make_model(), make_examples(), config, valid=make_examples(), checkpoints=Checkpoints(tmp_path, 5))
    )
    order = [report for report in kinds(reports) if report[0] != "Checkpoint"]
    assert order == [
        *[("Step", 1), ("Step", 2), ("Step", 3), ("Validation", 3), ("Step", 4), ("Step", 5), ("Step", 6)],
        *[("Validation", 6), ("Step", 7), ("Validation", 7), ("End", 7)],
    ]
    # Checkpoints are written in the background and reported when they are on the disk; the last one is reported before
    # the end.
    assert [step for kind, step in kinds(reports) if kind == "Checkpoint"] == [2, 4, 6, 7]
    assert kinds(reports)[-2] == ("Checkpoint", 7)
    assert reports[-1].reason == "steps"
    assert all(report.path.is_dir() for report in reports if isinstance(report, CheckpointReport))


def test_without_validation_and_checkpoints_there_are_only_steps(make_model, make_examples):
    config = TrainingConfig(**QUICK, steps=2, validate_every=1, checkpoint_every=1)
    assert kinds(steps(make_model(), make_examples(), config)) == [("Step", 1), ("Step", 2), ("End", 2)]


def test_validation_may_happen_only_at_the_end(make_model, make_examples):
    config = TrainingConfig(**QUICK, steps=3, validate_every=0)
    reports = steps(make_model(), make_examples(), config, valid=make_examples())
    assert kinds(reports) == [("Step", 1), ("Step", 2), ("Step", 3), ("Validation", 3), ("End", 3)]


def test_a_step_report_describes_the_step(make_model, make_examples):
    examples = make_examples()
    config = TrainingConfig(steps=8, batch_tokens=40, warmup=4, learning_rate=0.004)
    reports = [report for report in steps(make_model(), examples, config) if isinstance(report, StepReport)]
    assert [report.learning_rate for report in reports[:4]] == pytest.approx([0.001, 0.002, 0.003, 0.004])
    per_epoch = {}
    for report in reports:
        per_epoch[report.epoch] = per_epoch.get(report.epoch, 0) + report.target_tokens
        assert math.isfinite(report.loss)
        assert report.gradient_norm > 0
        assert report.tokens_per_second > 0
    assert per_epoch[1] == sum(map(len, examples.target))
    seconds = [report.seconds for report in reports]
    assert seconds == sorted(seconds)
    assert reports[3].seconds_left == pytest.approx(reports[3].seconds)
    assert reports[-1].seconds_left == 0


@pytest.mark.slow
def test_the_remaining_time_is_estimated_from_the_last_updates(make_model, make_examples, monkeypatch):
    """After a slow first hour on a busy machine, the estimate soon depends only on the faster updates."""
    monkeypatch.setattr("glassformer.training.loop.RECENT", 3)
    reports = steps(make_model(), make_examples(), TrainingConfig(**QUICK, steps=40))
    clock = iter([0.0, *(3600.0 + second / 10 for second in range(10**6))])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    told = [report.seconds_left for report in reports if isinstance(report, StepReport)]
    assert told[0] > 3600
    assert max(told[5:]) < 60


def test_nothing_happens_before_the_first_report_is_requested(make_model, make_examples):
    model = make_model()
    before = weights_of(model)
    reports = steps(model, make_examples(), TrainingConfig(**QUICK))
    torch.testing.assert_close(weights_of(model), before, rtol=0, atol=0)
    assert next(reports).step == 1
    assert not torch.equal(model.target.tokens.weight, before["target.tokens.weight"])


def test_a_training_without_a_limit_has_the_papers_100_000_steps():
    assert TrainingConfig().last_step == 100_000
    assert TrainingConfig(steps=7, minutes=1.0).last_step == 7
    assert TrainingConfig(minutes=1.0).last_step > 10**15


# Updates


@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_two_half_batches_make_the_same_update_as_a_whole_batch(make_model, make_examples, optimiser):
    examples, results = make_examples((3, 3, 3, 7, 7)), []
    # With Adam's default ε, gradients that are mere rounding errors would be multiplied by up to 10⁹.
    settings = {**QUICK, "optimiser": optimiser, "steps": 3, "epsilon": 1e-3}
    for batch_tokens, accumulate in ((50, 1), (30, 2)):
        torch.manual_seed(7)
        model = make_model(dropout=0.0)
        config = TrainingConfig(**{**settings, "batch_tokens": batch_tokens}, accumulate=accumulate)
        *reports, _ = steps(model, examples, config)
        results.append(([(one.loss, one.gradient_norm, one.target_tokens) for one in reports], weights_of(model)))
    (whole, whole_weights), (halves, half_weights) = results
    assert np.array(halves) == pytest.approx(np.array(whole), rel=1e-10)
    torch.testing.assert_close(half_weights, whole_weights, rtol=1e-10, atol=1e-10)


def test_the_first_update_is_the_papers_adam_on_the_mean_gradient(make_model, make_examples):
    model, examples = make_model(dropout=0.0), make_examples((5, 5, 7))
    batch = make_batch(examples, np.arange(3))
    loss = batch_loss(model, batch, 0.1).smoothed / batch.target_tokens
    gradients = dict(zip(weights_of(model), torch.autograd.grad(loss, list(model.parameters())), strict=True))
    before = weights_of(model)
    report = next(steps(model, examples, TrainingConfig(steps=1, batch_tokens=100, warmup=4000)))
    rate = 11**-0.5 * 4000**-1.5
    assert (report.loss, report.learning_rate) == (pytest.approx(loss.item()), pytest.approx(rate))
    assert report.gradient_norm == pytest.approx(
        math.sqrt(sum(float(one.square().sum()) for one in gradients.values()))
    )
    # in its first step, Adam's corrected means equal the gradient and its square
    for name, weight in model.named_parameters():
        expected = before[name] - rate * gradients[name] / (gradients[name].abs() + 1e-9)
        torch.testing.assert_close(weight.detach(), expected, rtol=0, atol=1e-6 * rate)


def test_gradients_are_clipped_to_their_norm_and_reported_unclipped(make_model, make_examples):
    # With plain gradient descent, the change of a weight shows its gradient.
    def movement(clip_norm):
        torch.manual_seed(7)
        model = make_model(dropout=0.0)
        before = weights_of(model)
        optimiser = torch.optim.SGD(model.parameters())
        config = TrainingConfig(**{**QUICK, "learning_rate": 1.0}, steps=1, clip_norm=clip_norm)
        report = next(steps(model, make_examples(), config, optimiser=optimiser))
        return report.gradient_norm, torch.cat([(before[name] - x).flatten() for name, x in weights_of(model).items()])

    norm, free = movement(0.0)
    assert free.norm().item() == pytest.approx(norm)
    for limit in (norm / 7, norm * 7):
        reported, clipped = movement(limit)
        assert reported == norm
        # torch divides by norm + 1e-6
        torch.testing.assert_close(clipped, free * min(1, limit / norm), rtol=1e-5, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_training_equals_a_simple_loop(make_model, make_examples, accumulate):
    examples, models = make_examples(), []
    for _ in range(2):
        torch.manual_seed(7)
        models.append(make_model(dropout=0.0))
    config = TrainingConfig(steps=9, batch_tokens=40, learning_rate=0.01, warmup=4, accumulate=accumulate)
    list(steps(models[0], examples, config, seed=3))

    optimiser = torch.optim.Adam(models[1].parameters(), betas=(0.9, 0.98), eps=1e-9)
    plan = (list(batches(examples, 40, seed=3, epoch=epoch)) for epoch in itertools.count())
    updates = (epoch[place : place + accumulate] for epoch in plan for place in range(0, len(epoch), accumulate))
    for step, update in zip(range(1, 10), updates, strict=False):
        optimiser.zero_grad()
        loss = sum(batch_loss(models[1], batch, 0.1).smoothed for batch in update)
        (loss / sum(batch.target_tokens for batch in update)).backward()
        optimiser.param_groups[0]["lr"] = 0.01 * min(step / 4, (4 / step) ** 0.5)
        optimiser.step()
    torch.testing.assert_close(weights_of(models[0]), weights_of(models[1]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_kind_of_dropout_acts_only_in_training_and_only_if_set(make_model, make_examples, name):
    def first_losses(**settings):
        model, losses = make_model(**{"dropout": 0.0, **settings}), []
        for seed in (1, 2):
            torch.manual_seed(seed)
            config = TrainingConfig(**{**QUICK, "learning_rate": 1e-12, "batch_tokens": 1000}, steps=1)
            losses.append(next(steps(model, make_examples(), config)).loss)
        return losses

    without, again = first_losses()
    assert without == pytest.approx(again, rel=1e-9)
    some, other = first_losses(**{name: 0.5})
    assert abs(some - other) > 1e-4


def test_frozen_embeddings_are_unchanged(make_model, make_examples):
    model = make_model()
    model.target.load_vectors(torch.zeros(23, 11), torch.zeros(23, dtype=torch.bool), freeze=True)
    before = weights_of(model)
    list(steps(model, make_examples(), TrainingConfig(**QUICK, steps=3)))
    after = weights_of(model)
    assert {name for name in before if torch.equal(before[name], after[name])} == {"target.tokens.weight"}


def float_losses(make_model, make_examples, precision, **settings):
    """Return the losses of some updates of a model in float32, its weights, and the state at the end."""
    torch.manual_seed(7)
    model, state = make_model(dropout=0.0).float(), TrainingState(**settings)
    config = TrainingConfig(**{**QUICK, "learning_rate": 0.003}, steps=5, precision=precision)
    reports = [
        report for report in steps(model, make_examples(), config, state=state) if isinstance(report, StepReport)
    ]
    assert all(weight.dtype == torch.float32 for weight in model.parameters())
    return [report.loss for report in reports], weights_of(model), state


@pytest.mark.slow
# bf16 has 8 significant bits and fp16 has 11: the products of a few layers, each off by 2^-9 or 2^-12, leave the loss
# within a few per cent.
@pytest.mark.parametrize(("precision", "tolerance"), [("bf16", 0.05), ("fp16", 0.006)])
def test_half_precision_trains_almost_like_fp32(make_model, make_examples, precision, tolerance):
    exact, _, _ = float_losses(make_model, make_examples, "fp32")
    rough, _, _ = float_losses(make_model, make_examples, precision)
    assert rough == pytest.approx(exact, rel=tolerance)
    assert rough != exact


def test_gradients_beyond_fp16_change_only_the_scale_of_the_loss(make_model, make_examples):
    torch.manual_seed(7)
    start = weights_of(make_model(dropout=0.0).float())
    losses, weights, state = float_losses(make_model, make_examples, "fp16", loss_scale=2.0**60)
    assert all(torch.equal(weights[name], weight) for name, weight in start.items())
    assert state.loss_scale == 2.0**55
    assert all(map(math.isfinite, losses))


def test_the_scale_of_the_loss_grows_and_leaves_gradients_unchanged(make_model, make_examples):
    exact, _, _ = float_losses(make_model, make_examples, "fp32")
    rough, _, state = float_losses(make_model, make_examples, "fp16", loss_scale=4.0, unscaled=SCALE_UP_AFTER - 3)
    assert (state.loss_scale, state.unscaled) == (8.0, 2)
    assert rough == pytest.approx(exact, rel=0.006)


def test_a_gradient_that_is_nan_at_any_scale_is_a_divergence_in_fp16(make_model, make_examples):
    model = make_model(dropout=0.0).float()
    with torch.no_grad():
        model.output.weight[5, 0] = math.nan
    config = TrainingConfig(**QUICK, steps=50, precision="fp16")
    state = TrainingState()
    with pytest.raises(DivergenceError, match="gradient is not finite"):
        list(steps(model, make_examples(), config, state=state))
    assert state.loss_scale == 1.0
    assert all(not weight.isnan().any() for name, weight in weights_of(model).items() if "source" in name)


@pytest.mark.slow
def test_a_training_in_fp16_resumes_exactly(make_model, make_examples, tmp_path):
    """The scale of the loss is part of the state: it doubles at update 4, between two resumptions."""

    def trained(folder, ends):
        for end in ends:
            torch.manual_seed(7)
            model = make_model(dropout=0.2).float()
            begun = weights_of(model)
            config = TrainingConfig(**QUICK, steps=9, precision="fp16")
            optimiser, checkpoints = make_optimiser(model, config), Checkpoints(folder, 3)
            state = checkpoints.restore(model, optimiser) or TrainingState(
                loss_scale=2.0**8, unscaled=SCALE_UP_AFTER - 4
            )
            reports = steps(
                model,
                make_examples(),
                config,
                optimiser=optimiser,
                state=state,
                checkpoints=checkpoints,
                stop=lambda state=state, end=end: state.step >= end,
            )
            deque(reports, maxlen=0)
        assert any(not torch.equal(begun[name], weight) for name, weight in weights_of(model).items())
        return weights_of(model), state

    (weights, state), (again, other) = trained(tmp_path / "one", [9]), trained(tmp_path / "two", [2, 5, 9])
    assert (state.loss_scale, state.unscaled) == (other.loss_scale, other.unscaled) == (2.0**9, 5)
    assert all(torch.equal(weights[name], again[name]) for name in weights)


# Validation and the end


@pytest.mark.slow
def test_the_best_validation_is_the_lowest_loss(make_model, make_examples):
    config = TrainingConfig(**{**QUICK, "learning_rate": 0.2}, steps=15, validate_every=1)
    reports = steps(make_model(), make_examples(), config, valid=make_examples(seed=3))
    best = math.inf
    for report in reports:
        if isinstance(report, ValidationReport):
            assert report.best == (report.loss < best)
            assert report.perplexity == pytest.approx(math.exp(report.loss))
            best = min(best, report.loss)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_metric_can_decide_the_best_validation(make_model, make_examples, higher_is_better):
    values = iter([3.0, 5.0, 5.0, 2.0, 7.0])
    config = TrainingConfig(**QUICK, steps=5, validate_every=1, metric="bleu", best_by="metric")

    def metric(model):
        assert not model.training
        return Measured("made up", next(values), higher_is_better)

    model, best = make_model(), []
    for report in steps(model, make_examples(), config, valid=make_examples(), metric=metric):
        assert model.training
        best += [report.best] if isinstance(report, ValidationReport) else []
    assert best == ([True, True, False, False, True] if higher_is_better else [True, False, False, True, False])


def test_the_loss_decides_by_default():
    measured = Measured("BLEU", 30.0, True)
    assert badness(2.0, measured, TrainingConfig(metric="bleu")) == 2.0
    assert badness(2.0, measured, TrainingConfig(metric="bleu", best_by="metric")) == -30.0


def test_patience_ends_the_training(make_model, make_examples):
    values = iter([5.0, 7.0, 6.0, 6.5, 8.0, 7.0, 7.5, 7.9, 9.0])
    config = TrainingConfig(**QUICK, steps=9, validate_every=1, metric="bleu", best_by="metric", patience=3)

    def metric(_):
        return Measured("made up", next(values), True)

    *_, end = steps(make_model(), make_examples(), config, valid=make_examples(), metric=metric)
    assert end == EndReport(step=8, reason="patience", seconds=end.seconds)


def test_minutes_end_the_training_and_lower_the_rate(make_model, make_examples):
    config = TrainingConfig(minutes=0.4 / 60, batch_tokens=40, warmup=1, schedule="cosine", learning_rate=0.01)
    *updates, validation, end = steps(make_model(), make_examples(), config, valid=make_examples())
    rates = [update.learning_rate for update in updates]
    assert isinstance(validation, ValidationReport)
    assert end.reason == "minutes"
    assert end.seconds >= 0.4
    # The last rate depends on how busy the machine is, because the last update may begin long before the end.
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0] / 2


def test_a_stop_writes_a_checkpoint_and_ends_the_training(make_model, make_examples, tmp_path):
    asked = iter([False, False, True])
    config = TrainingConfig(**QUICK, steps=7, validate_every=3, checkpoint_every=5)
    options = {"valid": make_examples(), "checkpoints": Checkpoints(tmp_path, 5)}
    reports = list(steps(make_model(), make_examples(), config, stop=lambda: next(asked), **options))
    assert kinds(reports) == [("Step", 1), ("Step", 2), ("Step", 3), ("Checkpoint", 3), ("End", 3)]
    assert reports[-1].reason == "stopped"


def test_a_training_stopped_before_a_validation_resumes_with_it(make_model, make_examples, tmp_path):
    config = TrainingConfig(**QUICK, steps=7, validate_every=3, checkpoint_every=5)
    stopped, model = TrainingState(), make_model()
    asked = iter([False, False, True])
    list(steps(model, make_examples(), config, valid=make_examples(), state=stopped, stop=lambda: next(asked)))
    reports = list(steps(model, make_examples(), config, valid=make_examples(), state=stopped))
    assert kinds(reports)[:3] == [("Validation", 3), ("Step", 4), ("Step", 5)]
    assert kinds(reports)[-2:] == [("Validation", 7), ("End", 7)]


@pytest.mark.slow
def test_the_model_has_the_averaged_weights_during_a_validation_report(make_model, make_examples):
    config = TrainingConfig(**QUICK, steps=5, validate_every=2)

    def train(average, model):
        torch.manual_seed(7)
        return list(seen(steps(model, make_examples(), config, valid=make_examples(), average=average), model))

    def seen(reports, model):
        for report in reports:
            yield report, weights_of(model)

    plain, averaged = make_model(), make_model()
    averaged.load_state_dict(plain.state_dict())
    average = MovingAverage(averaged, 0.9)
    for (report, own), (same, shown) in zip(train(None, plain), train(average, averaged), strict=True):
        assert type(report) is type(same)
        equal = all(torch.equal(own[name], shown[name]) for name in own)
        assert equal is not isinstance(report, ValidationReport)
    last = [report for report, _ in train(average, averaged)][-2]
    with average.applied(averaged):
        assert validation_loss(averaged, make_examples(), 40) == last.loss


def test_a_step_reports_padding_and_waiting_time(make_model, make_examples):
    [report, *_] = steps(make_model(), make_examples([2, 7]), TrainingConfig(**QUICK, steps=1))
    assert report.padding == pytest.approx(1 - (2 + 7 + 5 + 10) / (2 * 7 + 2 * 10))
    assert 0 <= report.waited < 1


@pytest.mark.slow
def test_equal_seeds_give_equal_trainings_and_different_seeds_do_not(make_model, make_examples):
    def losses(seed):
        torch.manual_seed(7)
        reports = steps(make_model(), make_examples(), TrainingConfig(**QUICK, steps=5), seed=seed)
        return [report.loss for report in reports if isinstance(report, StepReport)]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


# Failures


def test_no_examples_are_an_error(make_model):
    with pytest.raises(DataError, match="expected training examples, got none"):
        next(steps(make_model(), Examples(source=[], target=[]), TrainingConfig()))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_diverging_training_is_an_error_with_advice(make_model, make_examples, norm):
    config = TrainingConfig(**QUICK, steps=100)
    model = make_model(norm=norm).float()
    with torch.no_grad():
        model.output.weight.mul_(1e38)
    with pytest.raises(DivergenceError, match=r"at step \d+ .* lower training.learning_rate, raise training.warmup"):
        list(steps(model, make_examples(), config))


def test_a_loss_that_climbs_back_ends_the_training_without_a_checkpoint(make_model, make_examples, tmp_path):
    """The watch remembers the lowest loss: the current loss is as high as at the start."""
    state = TrainingState(watch=LossWatch(first=9.0, smoothed=9.0, lowest=0.5, high=PATIENCE - 5))
    config = TrainingConfig(**{**QUICK, "learning_rate": 1e-9}, steps=100, checkpoint_every=2)
    checkpoints, seen = Checkpoints(tmp_path, 5), []
    with pytest.raises(DivergenceError, match=r"was down to 0\.5 and has climbed back by step 5"):
        seen.extend(steps(make_model(), make_examples(), config, state=state, checkpoints=checkpoints))
    assert checkpoints.paths() == []


def test_weights_that_are_not_numbers_are_found_before_they_spread(make_model, make_examples):
    model = make_model()
    model.encoder.layers[0].feed_forward.expand.weight.data[2, 3] = math.inf
    before = weights_of(model)
    with pytest.raises(DivergenceError, match="the gradient is not finite at step 1"):
        next(steps(model, make_examples(), TrainingConfig(**QUICK)))
    torch.testing.assert_close(weights_of(model), before, rtol=0, atol=0)
