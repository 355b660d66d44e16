"""The product with a learned matrix, compared with torch's."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.model.fast import linear as module
from glassformer.model.fast.linear import Linear, linear

SHAPES = [(1,), (61,), (7, 11), (2, 3, 5)]


@pytest.fixture(autouse=True, params=[0, module.FEWEST_PRODUCTS], ids=["onednn", "torch"])
def small(monkeypatch, request):
    """Run every test with products by oneDNN, if available, and with products too small for it."""
    monkeypatch.setattr(module, "FEWEST_PRODUCTS", request.param)
    monkeypatch.setattr(module, "is_intel", lambda: False)


@pytest.fixture
def make_inputs(seed):
    """Return a function that makes x (*rows, 13), weight (17, 13) and bias (17) or None."""

    def make(rows, *, bias=True, dtype=torch.float32):
        options = {"dtype": dtype, "requires_grad": True}
        return (
            torch.randn(*rows, 13, **options),
            torch.randn(17, 13, **options),
            torch.randn(17, **options) if bias else None,
        )

    return make


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", SHAPES, ids=str)
def test_value_and_gradients_equal_torchs(make_inputs, rows, bias, dtype):
    inputs = [x for x in make_inputs(rows, bias=bias, dtype=dtype) if x is not None]
    grad = torch.randn(*rows, 17, dtype=dtype)
    ours, theirs = linear(*inputs), F.linear(*inputs)
    # Sums of up to 61 products of numbers near 1, each rounded once, differ by about 2^-20.
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    found, expected = (torch.autograd.grad(y, inputs, grad) for y in (ours, theirs))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_float64_is_not_rounded_to_fewer_bits(make_inputs):
    inputs = make_inputs((61,), dtype=torch.float64)
    assert torch.equal(linear(*inputs), F.linear(*inputs))


def test_inputs_may_be_views(make_inputs):
    x, weight, bias = make_inputs((10, 11))
    for view in (x.transpose(0, 1), x[:, ::2], x[1:, 3:]):
        torch.testing.assert_close(linear(view, weight, bias), F.linear(view, weight, bias), rtol=1e-5, atol=1e-5)
        loss, expected = (f(view, weight[3:8], bias[3:8]).square().sum() for f in (linear, F.linear))
        found, wanted = (torch.autograd.grad(y, (x, weight, bias), retain_graph=True) for y in (loss, expected))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_gradients_are_computed_only_for_inputs_that_need_them(make_inputs):
    x, weight, bias = make_inputs((61,))
    weight.requires_grad_(False)
    linear(x.detach(), weight, bias).sum().backward()
    assert weight.grad is None
    torch.testing.assert_close(bias.grad, torch.full((17,), 61.0))


def test_a_result_without_gradients_has_no_graph(make_inputs):
    with torch.no_grad():
        assert not linear(*make_inputs((61,))).requires_grad


def test_mixed_precision_uses_torchs_layer(make_inputs):
    inputs = make_inputs((61,))
    with torch.autocast("cpu", torch.bfloat16):
        result = linear(*inputs)
        assert result.dtype == torch.bfloat16
        assert torch.equal(result, F.linear(*inputs))


@pytest.mark.parametrize(("capability", "intel"), [("AVX2", False), ("AVX512", True)])
def test_processors_without_avx_512_or_with_mkl_use_torchs_layer(make_inputs, monkeypatch, capability, intel):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(module, "is_intel", lambda: intel)
    monkeypatch.setattr(module, "_product", None)
    inputs = make_inputs((61,))
    assert torch.equal(linear(*inputs), F.linear(*inputs))


def test_a_layer_equals_torchs_with_the_same_weights(seed):
    ours, theirs = Linear(13, 17), torch.nn.Linear(13, 17)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(61, 13)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [(1,), (4,), (2, 3), (9,)], ids=str)
def test_a_few_rows_by_a_wide_matrix_equal_torchs_product(seed, monkeypatch, rows, bias):
    monkeypatch.setattr(module, "WIDE_OUTPUT", 17)
    monkeypatch.setattr(module, "_onednn_is_faster", lambda *_: False)
    x, weight, shift = torch.randn(*rows, 13), torch.randn(17, 13), torch.randn(17) if bias else None
    with torch.no_grad():
        got = linear(x, weight, shift)
    assert got.is_contiguous()
    torch.testing.assert_close(got, F.linear(x, weight, shift), rtol=1e-6, atol=1e-5)
