"""The moving average of the weights: its formula, and its temporary use as the model's weights."""

import pytest
import torch
from torch import nn

from glassformer.errors import CheckpointError
from glassformer.training.moving_average import MovingAverage


def numbers(model):
    return [weight.detach().clone() for weight in model.parameters()]


def walk(model, average, steps):
    """Change the weights at random, with updates of the average; return the weights at each update."""
    seen = []
    for step in range(1, steps + 1):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight))
        average.update(model, step)
        seen.append(numbers(model))
    return seen


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_the_average_follows_its_formula(seed, float64, decay):
    model = nn.Linear(3, 5)
    average, expected = MovingAverage(model, decay), numbers(model)
    for step, weights in enumerate(walk(model, average, 23), start=1):
        d = min(decay, (1 + step) / (10 + step))
        expected = [d * mean + (1 - d) * weight for mean, weight in zip(expected, weights, strict=True)]
    for mean, wanted in zip(average.weights.values(), expected, strict=True):
        torch.testing.assert_close(mean, wanted, rtol=0, atol=1e-12)


def test_the_model_has_the_average_within_the_context_only(seed):
    model = nn.Linear(3, 5)
    average = MovingAverage(model, 0.9)
    walk(model, average, 7)
    own, mean = numbers(model), [weight.clone() for weight in average.weights.values()]
    with average.applied(model):
        assert all(map(torch.equal, numbers(model), mean))
    assert all(map(torch.equal, numbers(model), own))
    assert all(map(torch.equal, average.weights.values(), mean))


def test_an_optimiser_continues_with_the_models_own_weights(seed):
    def train(look):
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        optimiser, average = torch.optim.Adam(model.parameters(), fused=True), MovingAverage(model, 0.9)
        for step in range(1, 6):
            model(torch.ones(2, 3)).sum().backward()
            optimiser.step()
            optimiser.zero_grad()
            average.update(model, step)
            if look:
                with average.applied(model):
                    model(torch.ones(2, 3))
        return numbers(model)

    assert all(map(torch.equal, train(look=True), train(look=False)))


def test_a_saved_average_is_restored(seed):
    model = nn.Linear(3, 5)
    average = MovingAverage(model, 0.9)
    walk(model, average, 7)
    other = MovingAverage(nn.Linear(3, 5), 0.9)
    other.load({name: weight.clone() for name, weight in average.weights.items()})
    average.update(model, 8)
    other.update(model, 8)
    assert all(map(torch.equal, average.weights.values(), other.weights.values()))


def test_an_average_of_a_different_model_is_refused():
    with pytest.raises(CheckpointError, match="a different model"):
        MovingAverage(nn.Linear(3, 5), 0.9).load(MovingAverage(nn.Linear(5, 3), 0.9).weights)
