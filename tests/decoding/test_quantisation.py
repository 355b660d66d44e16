"""Matrices with fewer bits: their effects, and what stays the same."""

import pytest
import torch

from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.quantisation import IntegerLinear, RoundedLinear, largest_weight, quantise
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import ConfigError
from glassformer.model.fast.linear import Linear

SHAPES = [(1,), (61,), (7, 11)]
WIDTHS = [31, 64]
"""64 is a multiple of the block size of the product for small matrices, 31 is not."""


@pytest.fixture
def single(make_model):
    """Return a function that makes a model in float32, without dropout."""
    return lambda **settings: make_model(**settings).float()


@pytest.mark.parametrize(("kind", "error"), [(RoundedLinear, 2**-7), (IntegerLinear, 2**-5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", SHAPES, ids=str)
def test_products_equal_float32_up_to_rounding(seed, kind, error, bias, width, rows):
    linear, x = Linear(width, 17, bias=bias), torch.randn(*rows, width)
    expected = linear(x)
    narrow = kind(linear)
    assert narrow(x).dtype == torch.float32
    assert narrow(x).shape == expected.shape
    # The rounding error is at most 2^-9 of each number for bf16; for int8, 2^-8 of the largest number of a row
    # of x, and 2^-8 or 2^-7 of a row of weights.
    assert (narrow(x) - expected).norm() < error * expected.norm()
    if bias:
        torch.testing.assert_close(narrow.part(x, slice(3, 7)), narrow(x)[..., 3:7])


def test_int8_is_exact_when_nothing_is_rounded(seed):
    linear, largest = Linear(31, 17), largest_weight()
    with torch.no_grad():
        linear.weight.copy_(torch.randint(-largest, largest + 1, (17, 31)))
        linear.weight[:, 0] = largest
        x = torch.randint(-127, 128, (61, 31)).float()
        x[:, 0] = -127
        x[0] = 127  # the largest sums
        linear.weight[0] = largest
        expected = linear(x)
    torch.testing.assert_close(IntegerLinear(linear)(x), expected, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("kind", [RoundedLinear, IntegerLinear])
def test_a_row_of_zeros_gives_the_bias(seed, kind):
    linear = Linear(31, 17)
    with torch.no_grad():
        linear.weight[5] = 0
    result = kind(linear)(torch.zeros(3, 31))
    torch.testing.assert_close(result, linear.bias.detach().expand(3, 17), rtol=2**-8, atol=0)


@pytest.mark.parametrize("width", WIDTHS)
def test_int8_gives_a_row_the_same_result_in_any_batch(seed, width):
    linear, x = Linear(width, 17), torch.randn(61, width)
    narrow = IntegerLinear(linear)
    for rows in (1, 2, 7, 32):
        assert torch.equal(narrow(x[:rows]), narrow(x)[:rows])


def test_int8_differs_less_between_small_and_large_products_than_from_float32(seed):
    linear, x = Linear(64, 17), torch.randn(61, 64)
    one, other = IntegerLinear(linear), IntegerLinear(linear)
    other.small = 0
    # unless this processor has no special product for small inputs
    assert not torch.equal(one(x), other(x)) or not one.small
    assert (one(x) - other(x)).norm() < 2**-5 * linear(x).norm()


@pytest.mark.parametrize("quantization", ["bfloat16", "int8"])
def test_all_matrices_of_a_model_are_replaced_and_it_decodes(single, quantization):
    model = single(encoder_layers=2, decoder_layers=1)
    sources = padded(model, [[5, 6, 7, 2], [8, 2]])
    with torch.no_grad():
        expected = model(sources, sources)
        embeddings = model.source.tokens.weight.clone()
        assert quantise(model, quantization) is model
        assert not any(isinstance(module, Linear) for module in model.modules())
        assert torch.equal(model.source.tokens.weight, embeddings)
        assert (model(sources, sources) - expected).norm() < 0.1 * expected.norm()
        found = greedy(TransformerStep(model, sources), max_lengths=[9, 9])
    assert all(hypothesis.tokens[-1] == model.config.eos_id for hypothesis in found)


def test_float32_changes_nothing(single):
    model = single()
    before = dict(model.named_modules())
    assert dict(quantise(model, "float32").named_modules()) == before


def test_a_model_that_is_not_float32_is_refused(make_model):
    with pytest.raises(ConfigError, match=r"expected a float32 model on the CPU for int8, .*cpu in torch\.float64"):
        quantise(make_model(), "int8")


def test_a_quantization_that_pytorch_lacks_here_is_refused(single):
    with pytest.raises(ConfigError, match="quantization: expected float32, bfloat16 or int8 with PyTorch, got 'int16'"):
        quantise(single(), "int16")
