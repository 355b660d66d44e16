"""Dropout: the dropped values, the scale of the values that remain, and the gradient."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from glassformer.model.fast.dropout import Dropout, dropout, dropout_factors


@pytest.mark.parametrize("p", [0.05, 0.1, 0.3, 0.5, 0.9])
def test_the_dropped_share_and_the_mean_are_correct(p):
    """Both are within five standard deviations, for 1 000 003 draws."""
    number = 1_000_003
    torch.manual_seed(7)
    dropped = dropout(torch.ones(number, dtype=torch.float64), p)
    deviation = (p * (1 - p) / number) ** 0.5
    assert abs(float((dropped == 0).double().mean()) - p) < 5 * deviation
    assert abs(float(dropped.mean()) - 1) < 5 * deviation / (1 - p)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / (1 - p)], rel=2**-17 / (1 - p) + 1e-12)


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 17])
def test_neighbours_are_dropped_independently(apart):
    """Four values share one random number; they are independent within five standard deviations."""
    p, number = 0.3, 1_000_003
    torch.manual_seed(11)
    dropped = (dropout(torch.ones(number), p) == 0).double()
    for start in range(4):  # one random number is split into four parts
        both = dropped[start:-apart:4] * dropped[start + apart :: 4][: len(dropped[start:-apart:4])]
        deviation = (p**2 * (1 - p**2) / len(both)) ** 0.5
        assert abs(float(both.mean()) - p**2) < 5 * deviation


@given(
    shape=st.lists(st.integers(0, 7), min_size=0, max_size=4),
    p=st.floats(0, 0.99),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_dropout_keeps_shape_and_dtype_and_scales_the_kept_values(shape, p, dtype):
    x = torch.randn(shape, dtype=torch.float64).to(dtype)
    dropped = dropout(x, p)
    assert (dropped.shape, dropped.dtype) == (x.shape, x.dtype)
    # bfloat16 has 8 significant bits. The probability that is used differs from p by up to 2^-16, which changes the
    # factor 1 / (1 - p) by at most 2^-9 for p = 0.99.
    tolerance = 2**-6 if dtype == torch.bfloat16 else 2**-9
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (x / (1 - p))[kept], rtol=tolerance, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("p", [1e-7, 0.1, 0.3, 0.999])
def test_a_seed_drops_the_same_values_in_every_dtype(p, dtype):
    torch.manual_seed(13)
    expected = dropout_factors((101, 999), p, torch.float64)
    torch.manual_seed(13)
    assert torch.equal(dropout_factors((101, 999), p, dtype), expected.to(dtype))


def test_the_gradient_is_dropped_with_its_value():
    x = torch.randn(13, 17, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    dropped = dropout(x, 0.4)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, (dropped / x).detach(), rtol=1e-12, atol=0)


def test_a_seed_repeats_the_dropped_values():
    x = torch.ones(7, 5)
    torch.manual_seed(5)
    first = dropout(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(dropout(x, 0.5), first)


def test_the_module_drops_in_training_only():
    module, x = Dropout(0.5), torch.ones(1_000)
    assert bool((module(x) == 0).any())
    assert module.eval()(x) is x
    assert torch.equal(dropout(x, 0.0), F.dropout(x, 0.0))
