"""Equation 1 compared with plain numbers, and the explained attention with the fused attention."""

import math
from contextlib import contextmanager, nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import glassformer as gf
from glassformer.model.attention import (
    MultiHeadAttention,
    attention_scores,
    attention_weights,
    join_heads,
    split_heads,
)
from reference.attention import naive_attention, project

pytestmark = pytest.mark.usefixtures("float64", "seed")

X = [[1, 0, 1, 0], [1, 2, 2, 0], [1, 2, 1, 1]]
W_Q = [[2, 1, 1], [0, 2, 2], [0, 1, 0], [2, 2, 1]]
W_K = [[1, 1, 2], [2, 0, 2], [0, 2, 0], [2, 2, 1]]
W_V = [[2, 1, 1], [1, 2, 1], [2, 2, 0], [0, 2, 0]]

MASKS = [
    [[True] * 5] * 4,
    [[True, True, False, False, False], [False] * 5, [True, False, True, False, True], [False] * 4 + [True]],
]


def masks(queries: int, keys: int) -> st.SearchStrategy[Tensor]:
    """Return any mask, including rows that hide all keys."""
    row = st.lists(st.booleans(), min_size=keys, max_size=keys)
    return st.lists(row, min_size=queries, max_size=queries).map(torch.tensor)


def random_attention(dropout: float = 0.0) -> MultiHeadAttention:
    """Return an attention of width 11 with 3 heads, d_k = 5, d_v = 7, and random biases."""
    module = MultiHeadAttention(11, 3, 5, 7, dropout)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


# Equation 1


def set_yourself_free() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.tensor(X, dtype=torch.float64)
    return tuple(x @ torch.tensor(weight, dtype=torch.float64) for weight in (W_Q, W_K, W_V))


def test_set_yourself_free_is_computed_as_by_hand():
    query, key, value = set_yourself_free()
    assert query.tolist() == [[2, 2, 1], [2, 7, 5], [4, 8, 6]]
    assert key.tolist() == [[1, 3, 2], [5, 5, 6], [7, 5, 7]]
    assert value.tolist() == [[4, 3, 1], [8, 9, 3], [6, 9, 3]]
    products = torch.tensor([[10.0, 26, 31], [33, 75, 84], [40, 96, 110]])
    torch.testing.assert_close(attention_scores(query, key), products / math.sqrt(3), rtol=0, atol=1e-12)
    output, weights = gf.attention(query, key, value)
    expected_weights = [[5.1392e-06, 0.052812, 0.947183], [1.6213e-13, 0.0055073, 0.9944927]]
    expected_weights.append([2.8058e-18, 3.0868e-04, 0.9996913])
    torch.testing.assert_close(weights, torch.tensor(expected_weights), rtol=1e-4, atol=0)
    expected = [[6.105614, 8.999969, 2.999990], [6.011015, 9.0, 3.0], [6.000617, 9.0, 3.0]]
    torch.testing.assert_close(output, torch.tensor(expected), rtol=0, atol=1e-6)


def test_set_yourself_free_with_the_causal_mask_is_computed_as_by_hand():
    output, weights = gf.attention(*set_yourself_free(), mask=torch.ones(3, 3, dtype=torch.bool).tril())
    expected = [[4.0, 3.0, 1.0], [8.0, 9.0, 3.0], [6.000617, 9.0, 3.0]]
    torch.testing.assert_close(output, torch.tensor(expected), rtol=0, atol=1e-6)
    assert weights[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize("mask", [None, *MASKS])
def test_attention_equals_a_loop_over_plain_numbers(mask):
    query, key, value = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2)
    output, weights = gf.attention(query, key, value, None if mask is None else torch.tensor(mask))
    expected_output, expected_weights = naive_attention(query.tolist(), key.tolist(), value.tolist(), mask)
    torch.testing.assert_close(output, torch.tensor(expected_output), rtol=0, atol=1e-12)
    torch.testing.assert_close(weights, torch.tensor(expected_weights), rtol=0, atol=1e-12)


def test_leading_axes_are_kept():
    query, key, value = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7), torch.randn(2, 3, 11, 13)
    mask = torch.rand(2, 1, 5, 11) > 0.3
    together = gf.attention(query, key, value, mask).weighted_values
    for b in range(2):
        for h in range(3):
            alone = gf.attention(query[b, h], key[b, h], value[b, h], mask[b, 0]).weighted_values
            torch.testing.assert_close(together[b, h], alone, rtol=0, atol=1e-12)


@given(masks(3, 5), st.integers(0, 2**31))
def test_weights_sum_to_one_and_are_exactly_zero_where_masked(mask, number):
    torch.manual_seed(number)
    weights = attention_weights(10 * torch.randn(2, 3, 5), mask)
    assert (weights >= 0).all()
    assert (weights.masked_select(~mask) == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double().expand(2, 3), rtol=0, atol=1e-12)


def test_a_masked_score_gets_no_weight_even_beside_very_small_scores():
    # If masked scores became a finite number such as −10 000 instead of −∞, they would win against lower scores.
    scores, mask = torch.tensor([-30000.0, -30001.0, 5.0]), torch.tensor([True, True, False])
    weights = attention_weights(scores[None], mask)[0]
    assert weights[2] == 0
    torch.testing.assert_close(weights[0] / weights[1], torch.tensor(math.e), rtol=1e-12, atol=0)


def test_a_query_without_visible_keys_gets_zeros_and_a_finite_gradient():
    query, key, value = (torch.randn(2, 3, requires_grad=True) for _ in range(3))
    output, weights = gf.attention(query, key, value, mask=torch.tensor([[False, False], [True, True]]))
    assert output[0].tolist() == [0, 0, 0]
    assert weights[0].tolist() == [0, 0]
    output.sum().backward()
    assert query.grad[0].tolist() == [0, 0, 0]
    assert all(tensor.grad.isfinite().all() for tensor in (query, key, value))


@pytest.mark.parametrize("mask", [None, *MASKS])
def test_gradients_equal_finite_differences(mask):
    query, key, value = (torch.randn(n, 3, requires_grad=True) for n in (4, 5, 5))
    mask = None if mask is None else torch.tensor(mask)
    assert gradcheck(lambda *qkv: gf.attention(*qkv, mask), (query, key, value))
    assert gradgradcheck(lambda *qkv: gf.attention(*qkv, mask).weighted_values, (query, key, value))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("shapes", "mask", "complaint"),
    [
        (((2, 3), (5, 7), (5, 3)), None, "the same width d_k, got 3 and 7"),
        (((2, 3), (5, 3), (7, 3)), None, "the same length, got 5 and 7"),
        (((2, 3), (5, 3), (5, 3)), (5, 2), r"broadcast to \(…, T, S\) = \(2, 5\), got \(5, 2\)"),
        (((2, 3), (5, 3), (5, 3)), (7, 2, 5), r"got \(7, 2, 5\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, mask, complaint):
    with pytest.raises(gf.ShapeError, match=complaint):
        gf.attention(*map(torch.ones, shapes), mask=None if mask is None else torch.ones(mask, dtype=torch.bool))


# Heads


def test_a_head_is_a_slice_of_the_projection():
    x = torch.randn(2, 5, 3 * 7)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 7)
    for h in range(3):
        assert torch.equal(heads[:, h], x[:, :, 7 * h : 7 * (h + 1)])


def test_a_view_without_the_transpose_has_the_same_shape_but_other_numbers():
    x = torch.randn(2, 5, 3 * 7)
    assert x.view(2, 3, 5, 7).shape == split_heads(x, 3).shape
    assert not torch.equal(x.view(2, 3, 5, 7), split_heads(x, 3))


def test_join_heads_undoes_split_heads():
    x = torch.randn(2, 5, 3 * 7)
    assert torch.equal(join_heads(split_heads(x, 3)), x)


def test_one_matrix_for_all_heads_equals_a_matrix_for_each():
    module, x = random_attention(), torch.randn(1, 5, 11)
    weights = module.input_projection.weight.split([5] * 6 + [7] * 3)
    biases = module.input_projection.bias.split([5] * 6 + [7] * 3)
    parts = [project(x[0].tolist(), w.tolist(), b.tolist()) for w, b in zip(weights, biases, strict=True)]
    heads = [naive_attention(parts[h], parts[3 + h], parts[6 + h])[0] for h in range(3)]
    joined = [[number for head in heads for number in head[t]] for t in range(5)]
    out = module.output_projection
    expected = project(joined, out.weight.tolist(), out.bias.tolist())
    torch.testing.assert_close(module(x)[0], torch.tensor(expected), rtol=0, atol=1e-12)


def test_each_projection_is_initialised_in_the_range_of_its_own_shape():
    # The largest of 4096 uniform numbers is below 0.98 of the bound with probability 0.98^4096 < 1e-35.
    module = MultiHeadAttention(64, 8, 8, 16, 0.0)
    rows = module.input_projection.weight.split(module.widths)
    for weight in (*rows, module.output_projection.weight):
        bound = math.sqrt(6 / sum(weight.shape))
        assert 0.98 * bound < weight.abs().max() <= bound
    assert not module.input_projection.bias.any()
    assert not module.output_projection.bias.any()


# The explained and the fused attention


def listening(module, explained):
    """Return a context in which the module takes the explained or the fused path."""
    return gf.record(module) if explained else nullcontext({})


@contextmanager
def ways(short):
    """Treat any number of keys as few or as many; with few keys, training computes all weights without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.model.fast.attention.FEW_KEYS", dict.fromkeys((2, 4, 8), 10**6 if short else 0))
        yield


def assert_explained_equals_fused(module, inputs, forward):
    def run(explained):
        leaves = [x.requires_grad_() for x in inputs]
        with listening(module, explained) as trace:
            output = forward(*leaves)
        assert ("weights" in trace) == explained
        loss = (output * torch.linspace(-1, 1, output.numel()).view_as(output)).sum()
        return output, torch.autograd.grad(loss, [*leaves, *module.parameters()])

    explained, explained_gradients = run(True)
    for short in (False, True):
        with ways(short):
            fused, fused_gradients = run(False)
        torch.testing.assert_close(explained, fused, rtol=0, atol=1e-12)
        for one, other in zip(explained_gradients, fused_gradients, strict=True):
            assert one.isfinite().all()
            torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@given(masks(5, 5), st.integers(0, 2**31))
def test_explained_self_attention_equals_fused_for_every_mask(mask, number):
    torch.manual_seed(number)
    module = random_attention()
    assert_explained_equals_fused(module, [torch.randn(2, 5, 11)], lambda x: module(x, mask[None, None]))


@given(st.lists(masks(1, 7), min_size=2, max_size=2).map(torch.stack), st.integers(0, 2**31))
def test_explained_cross_attention_equals_fused_for_every_mask(mask, number):
    torch.manual_seed(number)
    module, inputs = random_attention(), [torch.randn(2, 5, 11), torch.randn(2, 7, 11)]
    assert_explained_equals_fused(
        module, inputs, lambda x, memory: module(x, mask[:, None], memory=module.key_value(memory))
    )


def test_explained_equals_fused_without_a_mask():
    module = random_attention()
    assert_explained_equals_fused(module, [torch.randn(2, 5, 11)], module)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("explained", [False, True])
def test_a_fully_masked_query_gives_the_output_bias_in_all_paths(explained, short):
    module, x, mask = random_attention(), torch.randn(1, 3, 11), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    mask[..., 1, :] = False
    with listening(module, explained), ways(short):
        output = module(x, mask)
    assert torch.equal(output[0, 1], module.output_projection.bias)


@pytest.mark.slow
def test_cross_attention_takes_queries_from_x_and_the_rest_from_memory():
    module, x, memory = random_attention(), torch.randn(2, 5, 11), torch.randn(2, 7, 11)
    with gf.record(module) as trace:
        module(x, memory=module.key_value(memory))
    with gf.record(module) as of_x:
        module(x)
    with gf.record(module) as of_memory:
        module(memory)
    for point, source in (("query", of_x), ("key", of_memory), ("value", of_memory)):
        torch.testing.assert_close(trace[point], source[point], rtol=0, atol=1e-12)


@pytest.mark.parametrize("explained", [False, True])
def test_rows_of_one_sentence_share_its_keys_and_values(explained):
    module, x, memory = random_attention(), torch.randn(2 * 3, 5, 11), torch.randn(2, 7, 11)
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])[:, None, None]
    with listening(module, explained):
        shared = module(x, mask, memory=module.key_value(memory))
    repeated = module.key_value(memory.repeat_interleave(3, 0))
    expected = module(x, mask.repeat_interleave(3, 0), memory=repeated)
    torch.testing.assert_close(shared, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("explained", [False, True])
def test_weights_are_dropped_in_training_only(explained, short):
    module, x = random_attention(dropout=0.5), torch.randn(2, 5, 11)
    whole = random_attention()
    whole.load_state_dict(module.state_dict())
    with listening(module, explained), ways(short):
        torch.testing.assert_close(module.eval()(x), whole(x), rtol=0, atol=1e-12)
        assert not torch.allclose(module.train()(x), whole(x))


@pytest.mark.parametrize("keys", [7, 300])
def test_bf16_products_leave_the_softmax_in_float32(keys):
    """With few keys, training computes all weights; with many, the fused kernel. bfloat16 has 8 bits: 2^-8 is 0.4 %."""
    torch.manual_seed(3)
    module = MultiHeadAttention(12, 3, 4, 4, 0.0)
    x, memory = torch.randn(2, 5, 12), torch.randn(2, keys, 12)
    outputs = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            output = module(x, memory=module.key_value(memory))
        gradients = torch.autograd.grad(output.float().square().sum(), list(module.parameters()))
        outputs.append((output.detach().float(), *gradients))
    for exact, rounded in zip(*outputs, strict=True):
        assert float((exact - rounded).norm() / exact.norm().clamp(min=1e-2)) < 0.03
    scores = torch.randn(3, 7).to(torch.bfloat16)
    assert torch.equal(attention_weights(scores), scores.float().softmax(-1))
