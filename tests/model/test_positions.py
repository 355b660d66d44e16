"""The sinusoids of §3.5 by hand, their shift property, and the other kinds of positions."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from glassformer.model import positions
from glassformer.model.positions import Positions

pytestmark = pytest.mark.usefixtures("seed")


def by_hand(position: int, d_model: int) -> list[float]:
    """Return the paper's formula for one position, dimension by dimension."""
    row = []
    for dimension in range(d_model):
        pair = dimension // 2
        angle = position / 10000 ** (2 * pair / d_model)
        row.append(math.sin(angle) if dimension % 2 == 0 else math.cos(angle))
    return row


def halves_from_interleaved(d_model: int) -> list[int]:
    return [*range(0, d_model, 2), *range(1, d_model, 2)]


@pytest.mark.parametrize("d_model", [2, 6, 7, 512])
def test_sinusoids_equal_the_formula_of_the_paper(d_model):
    table = gf.sinusoids(11, d_model, dtype=torch.float64)
    expected = torch.tensor([by_hand(position, d_model) for position in range(11)], dtype=torch.float64)
    torch.testing.assert_close(table, expected, rtol=0, atol=1e-12)


def test_position_zero_alternates_between_zero_and_one():
    assert gf.sinusoids(1, 6).tolist() == [[0, 1, 0, 1, 0, 1]]


def test_the_first_pair_turns_by_one_radian_per_position():
    table = gf.sinusoids(4, 512)
    torch.testing.assert_close(table[1, :2], torch.tensor([0.8414710, 0.5403023]))
    torch.testing.assert_close(table[3, :2], torch.tensor([0.1411200, -0.9899925]))


@pytest.mark.parametrize("d_model", [6, 7])
def test_halves_are_a_permutation_of_interleaved(d_model):
    interleaved, halves = (gf.sinusoids(13, d_model, layout) for layout in ("interleaved", "halves"))
    assert torch.equal(halves, interleaved[:, halves_from_interleaved(d_model)])


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from(["interleaved", "halves"]))
def test_a_shift_is_the_same_rotation_at_every_position(position, offset, layout):
    d_model = 10
    rotation = torch.zeros(d_model, d_model, dtype=torch.float64)
    for pair in range(d_model // 2):
        angle = offset / 10000 ** (2 * pair / d_model)
        sine, cosine = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, d_model // 2 + pair)
        rotation[sine, sine] = rotation[cosine, cosine] = math.cos(angle)
        rotation[sine, cosine], rotation[cosine, sine] = math.sin(angle), -math.sin(angle)
    table = gf.sinusoids(601, d_model, layout, dtype=torch.float64)
    torch.testing.assert_close(rotation @ table[position], table[position + offset], rtol=0, atol=1e-11)


def test_values_lie_in_the_closed_range_from_minus_one_to_one():
    table = gf.sinusoids(5000, 16)
    assert table.abs().max() == 1


def test_the_dtype_is_the_default_dtype_unless_given():
    assert gf.sinusoids(2, 4).dtype == torch.float32
    assert gf.sinusoids(2, 4, dtype=torch.bfloat16).dtype == torch.bfloat16


@pytest.mark.usefixtures("float64")
def test_the_dtype_follows_a_new_default():
    assert gf.sinusoids(2, 4).dtype == torch.float64


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_layout_is_an_error():
    with pytest.raises(gf.ConfigError, match="expected 'interleaved' or 'halves', got 'spiral'"):
        gf.sinusoids(2, 4, "spiral")


# Positions in the model


@given(st.integers(0, 3000), st.integers(1, 50))
def test_positions_start_at_the_given_position(start, length):
    patterns = Positions("interleaved", 6, 1)(start, length, torch.empty(0, dtype=torch.float64))
    expected = torch.tensor([by_hand(start + t, 6) for t in range(length)], dtype=torch.float64)
    torch.testing.assert_close(patterns, expected, rtol=0, atol=1e-11)


def test_far_positions_are_exact_in_float32():
    patterns = Positions("interleaved", 6, 1)(100_003, 1, torch.empty(0))
    torch.testing.assert_close(patterns[0], torch.tensor(by_hand(100_003, 6)), rtol=0, atol=1e-7)


def test_a_model_in_float64_gets_positions_of_float64_accuracy():
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11)).double()
    with gf.record(model, ["source.positions"]) as trace:
        model.encode(torch.tensor([[4, 5, 6]]))
    expected = torch.tensor([by_hand(position, 128) for position in range(3)], dtype=torch.float64)
    torch.testing.assert_close(trace["source.positions"], expected, rtol=0, atol=1e-15)


def test_the_cached_table_cannot_be_changed():
    module, like = Positions("halves", 6, 1), torch.empty(0)
    first = module(0, 5, like)
    module(0, 5, like).zero_()
    assert torch.equal(module(0, 5, like), first)


def test_a_table_made_in_decoding_can_be_used_in_training():
    positions._sinusoid_table.cache_clear()
    module, x = Positions("interleaved", 6, 1), torch.randn(3, 6, requires_grad=True)
    with torch.inference_mode():
        module(0, 3, torch.empty(0))
    (x * module(0, 3, x)).sum().backward()
    assert torch.equal(x.grad, gf.sinusoids(3, 6))


def test_a_table_made_on_the_meta_device_is_not_reused():
    positions._sinusoid_table.cache_clear()
    module = Positions("interleaved", 6, 1)
    with torch.device("meta"):
        assert module(0, 3, torch.empty(0)).device.type == "meta"
    assert torch.equal(module(0, 3, torch.empty(0)), gf.sinusoids(3, 6))


def test_a_learned_table_is_trained_at_the_used_positions():
    module = Positions("learned", 6, 7)
    patterns = module(2, 3, torch.empty(0))
    assert torch.equal(patterns, module.table[2:5])
    patterns.sum().backward()
    assert module.table.grad.sum(1).tolist() == [0, 0, 6, 6, 6, 0, 0]


def test_a_position_beyond_a_learned_table_is_an_error():
    module = Positions("learned", 6, 7)
    assert module(4, 3, torch.empty(0)).shape == (3, 6)
    with pytest.raises(gf.ShapeError, match="8 positions, but the learned table ends at 7"):
        module(5, 3, torch.empty(0))


def test_a_learned_table_is_initialised_like_an_embedding():
    # The standard deviation of 64 000 numbers is off by more than 3 % with probability < 1e-20.
    table = Positions("learned", 64, 1000).table
    assert abs(table.std().item() / 64**-0.5 - 1) < 0.03


def test_sinusoids_and_none_have_no_parameters():
    assert not [*Positions("interleaved", 6, 7).parameters(), *Positions("none", 6, 7).parameters()]


def test_no_positions_are_zeros():
    assert Positions("none", 6, 7)(3, 2, torch.empty(0)).tolist() == [[0] * 6] * 2
