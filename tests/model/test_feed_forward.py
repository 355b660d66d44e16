"""Equation 2 by hand, at each position separately."""

import math
from typing import get_args

import pytest
import torch
from torch import nn

import glassformer as gf
from glassformer.model.config import Activation
from glassformer.model.feed_forward import ACTIVATIONS, FeedForward
from reference.attention import project

pytestmark = pytest.mark.usefixtures("seed", "float64")

BY_HAND = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


def test_each_activation_of_the_configuration_has_a_function():
    assert tuple(ACTIVATIONS) == get_args(Activation) == tuple(BY_HAND)


def random_feed_forward(activation: str = "relu", dropout: float = 0.0) -> FeedForward:
    module = FeedForward(5, 7, activation, dropout)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.eval()


@pytest.mark.parametrize("activation", BY_HAND)
def test_feed_forward_equals_equation_two_in_plain_numbers(activation):
    module, x = random_feed_forward(activation), torch.randn(1, 3, 5)
    hidden = project(x[0].tolist(), module.expand.weight.tolist(), module.expand.bias.tolist())
    activated = [[BY_HAND[activation](number) for number in row] for row in hidden]
    expected = project(activated, module.contract.weight.tolist(), module.contract.bias.tolist())
    torch.testing.assert_close(module(x)[0], torch.tensor(expected), rtol=0, atol=1e-12)


def test_each_position_is_treated_separately_and_alike():
    module, x = random_feed_forward(), torch.randn(2, 3, 5)
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=0, atol=1e-12)
    torch.testing.assert_close(module(x[:, 1:2]), module(x)[:, 1:2], rtol=0, atol=1e-12)


def test_feed_forward_equals_two_convolutions_of_kernel_size_one():
    module, x = random_feed_forward(), torch.randn(2, 3, 5)
    expand, contract = nn.Conv1d(5, 7, 1), nn.Conv1d(7, 5, 1)
    for convolution, linear in ((expand, module.expand), (contract, module.contract)):
        convolution.weight.data, convolution.bias.data = linear.weight.data[:, :, None], linear.bias.data
    torch.testing.assert_close(contract(expand(x.mT).relu()).mT, module(x), rtol=0, atol=1e-12)


def test_the_inner_values_are_recorded():
    module, x = random_feed_forward(), torch.randn(2, 3, 5)
    with gf.record(module) as trace:
        output = module(x)
    assert trace["hidden"].shape == (2, 3, 7)
    assert torch.equal(trace["activated"], trace["hidden"].relu())
    assert torch.equal(trace["output"], output)


def test_inner_dropout_acts_in_training_only():
    module, x = random_feed_forward("silu", dropout=0.5), torch.randn(2, 3, 5)
    assert torch.equal(module(x), module(x))
    with gf.record(module) as trace:
        module.train()(x)
    dropped = trace["activated"] == 0
    assert dropped.any()
    inner = nn.functional.silu(trace["hidden"])
    torch.testing.assert_close(trace["activated"][~dropped], 2 * inner[~dropped], rtol=0, atol=1e-12)


def test_each_projection_is_initialised_in_the_range_of_its_shape():
    # The largest of 4096 uniform numbers is below 0.98 of the bound with probability 0.98^4096 < 1e-35.
    module = FeedForward(32, 128, "relu", 0.0)
    for linear in (module.expand, module.contract):
        bound = math.sqrt(6 / (32 + 128))
        assert 0.98 * bound < linear.weight.abs().max() <= bound
        assert not linear.bias.any()
