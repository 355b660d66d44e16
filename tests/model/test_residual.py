"""The order of norm, dropout and sum, in plain numbers."""

import math

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap

pytestmark = pytest.mark.usefixtures("seed", "float64")


def layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Normalise each vector with its biased variance, in plain numbers."""
    rows = []
    for vector in x.reshape(-1, x.shape[-1]).tolist():
        mean = sum(vector) / len(vector)
        variance = sum((number - mean) ** 2 for number in vector) / len(vector)
        rows.append([(number - mean) / math.sqrt(variance + 1e-5) for number in vector])
    return torch.tensor(rows).view_as(x) * norm.weight + norm.bias


def residual(norm: str, dropout: float = 0.0) -> Residual:
    module = Residual(nn.LayerNorm(5), norm, dropout, Tap()).eval()
    nn.init.normal_(module.norm.weight)
    nn.init.normal_(module.norm.bias)
    return module


def sublayer(x: Tensor) -> Tensor:
    return 3 * x.flip(-1) + 1


@pytest.mark.parametrize("size", [1.0, 1e-3])  # with small values, it matters where 1e-5 is added
def test_post_norm_normalises_the_sum(size):
    module, x = residual("post"), size * torch.randn(2, 3, 5)
    expected = layer_norm(x + sublayer(x), module.norm)
    torch.testing.assert_close(module(x, sublayer), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_pre_norm_normalises_the_input_and_adds_x_unchanged(size):
    module, x = residual("pre"), size * torch.randn(2, 3, 5)
    expected = x + sublayer(layer_norm(x, module.norm))
    torch.testing.assert_close(module(x, sublayer), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_acts_on_the_output_of_the_sublayer_and_never_on_x(norm):
    module, x = residual(norm, dropout=0.5), torch.randn(7, 11, 5)
    seen = []
    with gf.record(_owner(module)) as trace:
        module.train()(x, lambda y: seen.append(sublayer(y)) or seen[0])
    share = trace["added"] - x
    dropped = share.abs() < 1e-12
    # the share of 385 coin tosses is outside these bounds with probability < 1e-13
    assert 0.3 < dropped.double().mean() < 0.7
    torch.testing.assert_close(share[~dropped], 2 * seen[0][~dropped], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_nothing_is_dropped_in_evaluation(norm):
    module, x = residual(norm, dropout=0.5), torch.randn(2, 3, 5)
    assert torch.equal(module(x, sublayer), module(x, sublayer))


def test_post_norm_records_its_points():
    module, x = residual("post"), torch.randn(2, 3, 5)
    with gf.record(_owner(module)) as trace:
        output = module(x, sublayer)
    assert list(trace) == ["input", "added", "normed"]
    assert torch.equal(trace["input"], x)
    assert torch.equal(trace["added"], x + sublayer(x))
    assert torch.equal(trace["normed"], output)


def test_pre_norm_records_its_points():
    module, x = residual("pre"), torch.randn(2, 3, 5)
    with gf.record(_owner(module)) as trace:
        output = module(x, sublayer)
    assert list(trace) == ["input", "normed", "added"]
    assert torch.equal(trace["input"], x)
    assert torch.equal(trace["normed"], module.norm(x))
    assert torch.equal(trace["added"], output)


def _owner(module: Residual) -> nn.Module:
    """Return a module that owns the residual's tap, in place of a sub-layer."""
    owner = nn.Module()
    owner.tap, owner.POINTS = module.tap, ("input", "added", "normed")
    return owner
