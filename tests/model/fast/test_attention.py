"""Attention over few keys in training, compared with equation 1 computed step by step."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

import glassformer as gf
from glassformer.model.fast.attention import VECTOR, weighted_values
from profiles import scaled

pytestmark = pytest.mark.usefixtures("float64", "seed")

B, H, T, K, W = 2, 3, 4, 5, 7


def inputs(keys: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Return queries, keys and values in the memory layout of a projection's heads."""
    sizes = [(T, K), (keys, K), (keys, W)]
    return [torch.randn(B, many, H, width, dtype=dtype).transpose(1, 2).requires_grad_() for many, width in sizes]


def mask_of(kind: str, keys: int) -> Tensor | None:
    shapes = {"padding": (B, 1, 1, keys), "causal": (B, 1, T, keys), "heads": (B, H, T, keys)}
    return None if kind == "none" else torch.rand(shapes[kind]) > 0.5  # some rows may attend to no key


@pytest.mark.parametrize("kind", ["none", "padding", "causal", "heads"])
@pytest.mark.parametrize("keys", [1, 8, VECTOR - 1, VECTOR, VECTOR + 1, 40])
def test_it_equals_equation_1_and_its_gradient(keys, kind):
    mask = mask_of(kind, keys)
    found, expected = inputs(keys), inputs(keys)
    for one, other in zip(found, expected, strict=True):
        one.data.copy_(other.detach())
    output, reference = weighted_values(*found, mask, 0.0), gf.attention(*expected, mask).weighted_values
    torch.testing.assert_close(output, reference, rtol=0, atol=1e-12)
    grad = torch.randn_like(output)
    output.backward(grad)
    reference.backward(grad)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["none", "causal"])
def test_gradients_equal_finite_differences(kind):
    mask = mask_of(kind, 6)
    assert gradcheck(lambda *qkv: weighted_values(*qkv, mask, 0.0), inputs(6))


@pytest.mark.slow
def test_gradients_with_dropout_equal_finite_differences():
    def again(*qkv):
        torch.manual_seed(5)
        return weighted_values(*qkv, mask, 0.4)

    mask = mask_of("padding", 6)
    assert gradcheck(again, inputs(6))


@scaled(20)
@given(st.floats(0.01, 0.9), st.integers(0, 2**31))
def test_dropout_keeps_the_mean_and_drops_whole_weights(p, number):
    torch.manual_seed(number)
    query, key, _ = (one.detach() for one in inputs(6))
    one_hot = torch.eye(6).expand(B, H, 6, 6)  # with one-hot values, the output equals the weights after dropout
    weights = gf.attention(query, key, one_hot).weights
    dropped = weighted_values(query, key, one_hot, None, p)
    kept = dropped != 0
    factor = 1 / (1 - round(p * 2**16) / 2**16)
    torch.testing.assert_close(dropped[kept], (weights * factor)[kept], rtol=1e-12, atol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.bfloat16, 0.02)])
def test_lower_precision_stays_near_float64(dtype, tolerance):
    precise = inputs(8)
    rounded = [one.detach().to(dtype).requires_grad_() for one in precise]
    for one, other in zip(precise, rounded, strict=True):
        one.data.copy_(other.detach())
    mask = mask_of("padding", 8)
    exact, output = gf.attention(*precise, mask).weighted_values, weighted_values(*rounded, mask, 0.0)
    assert output.dtype == dtype
    # bf16 has 8 significant bits; both products and the softmax round once.
    torch.testing.assert_close(output.double(), exact, rtol=tolerance, atol=tolerance)
    output.sum().backward()
    exact.sum().backward()
    for one, other in zip(rounded, precise, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=4 * tolerance, atol=4 * tolerance)
