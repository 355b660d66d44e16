"""Estimates, against models that are really made and run."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import glassformer as gf
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.estimate import count_parameters, estimate, forward_flops, matrix_speed


def test_the_papers_parameters_are_counted_without_allocating_them():
    assert count_parameters(gf.ModelConfig.preset("base", vocab_size=37_000)) == 63_082_496
    assert count_parameters(gf.ModelConfig.preset("big", vocab_size=37_000)) == 214_245_376


@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "tie_output": False}, {"encoder_layers": 3}])
def test_flops_are_those_that_torch_counts(make_model, settings):
    model = make_model(**settings)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.ones(1, 17, dtype=torch.int64), torch.ones(1, 7, dtype=torch.int64))
    assert forward_flops(model.config, source=17, target=7) == counter.get_total_flops()


def test_a_training_costs_three_forward_passes_for_each_sentence_of_each_step():
    config = gf.ModelConfig.preset("tiny", vocab_size=101)
    training = TrainingConfig(steps=7, batch_tokens=160, accumulate=3)
    result = estimate(config, training, sentence_length=16)
    assert result.flops_per_step == pytest.approx(3 * 30 * forward_flops(config, source=16, target=16))
    assert (result.steps, result.total_flops) == (7, 7 * result.flops_per_step)
    assert result.weights_bytes == 4 * count_parameters(config)
    assert result.training_bytes > 4 * result.weights_bytes
    assert result.seconds == pytest.approx(2 * result.total_flops / result.matrix_flops_per_second)


def test_a_training_by_the_clock_takes_its_time():
    result = estimate(gf.ModelConfig.preset("tiny", vocab_size=101), TrainingConfig(minutes=3.0))
    assert (result.steps, result.seconds) == (0, 180)
    assert result.total_flops == pytest.approx(180 * result.matrix_flops_per_second / 2)


def test_the_speed_of_this_machine_is_a_number_of_operations():
    assert 1e8 < matrix_speed(0.05) < 1e15
