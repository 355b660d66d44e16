"""The precision that "auto" chooses for training."""

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import precision as module
from glassformer.training.loop import steps
from glassformer.training.precision import decided, rounding
from glassformer.training.reports import StepReport

CPU = torch.device("cpu")


@pytest.mark.parametrize("told", ["fp32", "bf16", "fp16"])
def test_a_given_precision_is_kept(told):
    config = TrainingConfig(precision=told)
    assert decided(config, CPU) is config


@pytest.mark.parametrize(("half_as_long", "expected"), [("bf16", "bf16"), ("fp32", "fp32")])
def test_the_faster_precision_is_chosen_and_nothing_else_changes(monkeypatch, half_as_long, expected):
    monkeypatch.setattr(module, "matrix_speed", lambda _, told, device: 2e9 if told == half_as_long else 1e9)
    config = TrainingConfig(precision="auto", steps=7, workers=2)
    assert decided(config, CPU) == TrainingConfig(precision=expected, steps=7, workers=2)


def test_products_are_rounded_to_the_given_precision():
    x = torch.randn(8, 8)
    kinds = []
    for told in ("fp32", "bf16", "fp16"):
        with rounding(told, CPU):
            kinds.append((x @ x).dtype)
    assert kinds == [torch.float32, torch.bfloat16, torch.float16]


def test_a_precision_that_is_still_open_is_refused():
    with pytest.raises(ConfigError, match=r'training\.precision: expected fp32, bf16 or fp16, got "auto"; set it'):
        rounding("auto", CPU)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_automatic_precision_trains_like_one_that_is_given(make_model, make_examples, workers):
    def losses(told):
        torch.manual_seed(7)
        model = make_model(dropout=0.0).float()
        config = TrainingConfig(steps=3, batch_tokens=40, learning_rate=0.003, workers=workers, precision=told)
        reports = steps(model, make_examples(), config)
        return [report.loss for report in reports if isinstance(report, StepReport)]

    # Which precision is faster may differ between two measurements, because other programs use the machine.
    single, half = losses("fp32"), losses("bf16")
    assert single != half
    assert losses("auto") in (single, half)
