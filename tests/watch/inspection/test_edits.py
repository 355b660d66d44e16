"""Edits, compared with a forward pass written out by hand, in float64."""

import math

import pytest
import torch

import glassformer as gf
from glassformer.watch.inspection.edits import combine, heads_of, patched, with_mask, with_rows, without_heads

CROSS, SELF = "decoder.layers.0.cross_attention", "decoder.layers.0.self_attention"
close = {"rtol": 0, "atol": 1e-10}


def recorded(model, source, target, edits=None):
    with torch.no_grad(), gf.intervene(model, edits or {}), gf.record(model) as trace:
        model(source, target)
    return trace


def by_hand(attention, x, memory, mask, *, off=()):
    """Return multi-head attention, computed head by head; a row is zero if the mask hides all keys."""
    weight, bias, joined = attention.input_projection.weight, attention.input_projection.bias, []
    for head in range(3):
        rows = [slice(5 * head, 5 * head + 5), slice(15 + 5 * head, 20 + 5 * head), slice(30 + 7 * head, 37 + 7 * head)]
        query, key, value = (y @ weight[part].T + bias[part] for y, part in zip((x, memory, memory), rows, strict=True))
        exponentials = (query @ key.T / math.sqrt(5)).exp() * mask
        weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-300)
        joined.append((weights @ value) * (head not in off))
    return torch.cat(joined, -1) @ attention.output_projection.weight.T + attention.output_projection.bias


def test_an_ablated_head_outputs_zeros(make_model, source, target):
    model = make_model()
    trace = recorded(model, source, target, without_heads({CROSS: [0, 2]}))
    attention, memory = model.decoder.layers[0].cross_attention, trace["encoder.output"][0]
    expected = by_hand(attention, trace[f"{CROSS}.input"][0], memory, torch.ones(4, 6), off=(0, 2))
    torch.testing.assert_close(trace[f"{CROSS}.output"][0], expected, **close)


def test_ablating_a_cross_attention_head_leaves_the_encoder_bit_identical(make_model, source, target):
    model = make_model()
    before, after = recorded(model, source, target), recorded(model, source, target, without_heads({CROSS: [1]}))
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert changed[0] == f"{CROSS}.heads"
    assert not any(name.startswith(("source.", "encoder.")) for name in changed)


@pytest.mark.parametrize("name", [CROSS, SELF])
def test_cells_of_a_mask_can_be_opened_and_blocked(make_model, source, target, name):
    model = make_model()
    cells = [(1, 1, False), (0, 2, True), (3, 0, False), (9, 0, False), (0, 9, True)]
    trace = recorded(model, source, target, with_mask({name: cells}))
    mask = torch.ones(4, 6) if name == CROSS else torch.ones(4, 4).tril()
    mask[1, 1], mask[0, 2], mask[3, 0] = 0, 1, 0
    x = trace[f"{name}.input"][0]
    attention = model.get_submodule(name)
    expected = by_hand(attention, x, trace["encoder.output"][0] if name == CROSS else x, mask)
    torch.testing.assert_close(trace[f"{name}.output"][0], expected, **close)


def test_a_query_without_visible_keys_gets_zeros(make_model, source, target):
    trace = recorded(make_model(), source, target, with_mask({SELF: [(0, 0, False)]}))
    assert not trace[f"{SELF}.weights"][0, :, 0].any()
    assert not trace[f"{SELF}.heads"][0, :, 0].any()
    assert trace["log_probs"].isfinite().all()


def test_the_usual_mask_may_be_given_for_padded_batches(make_model, target):
    model, padded = make_model(), torch.tensor([[4, 5, 2, 0, 0]])
    usual = (padded != 0)[:, None, None, :]
    trace = recorded(model, padded, target, with_mask({CROSS: [(0, 1, False)]}, usual))
    assert (trace[f"{CROSS}.weights"][0, 0] > 0).tolist() == [
        [True, False, True, False, False],
        *3 * [[True, True, True, False, False]],
    ]


def test_rows_by_hand_are_padded_and_truncated(make_model, source, target):
    rows = [(1, 0, [0.25, 0.5]), (2, 3, [1.0] * 9), (0, 7, [1.0])]
    weights = recorded(make_model(), source, target, with_rows({CROSS: rows}))[f"{CROSS}.weights"][0]
    assert weights[1, 0].tolist() == [0.25, 0.5, 0, 0, 0, 0]
    assert weights[2, 3].tolist() == [1.0] * 6
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(4))


def test_rows_of_a_different_sentence_replace_ours(make_model, source, target):
    model, point = make_model(), "encoder.layers.0.feed_forward.normed"
    other = recorded(model, torch.tensor([[9, 10, 11, 2]]), target)
    here = recorded(model, source, target)[point][0]
    there = other[point][0]
    trace = recorded(model, source, target, patched(other, point, [(0, 3), (5, 1), (6, 0), (1, 4)]))
    assert torch.equal(trace[point][0], torch.stack([there[3], *here[1:5], there[1]]))
    everywhere = recorded(model, source, target, patched(other, point))[point][0]
    assert torch.equal(everywhere, torch.cat([there, here[4:]]))


def test_heads_and_positions_of_a_different_sentence_can_be_patched(make_model, source, target):
    model, point = make_model(), f"{CROSS}.query"
    other = recorded(model, source, torch.tensor([[1, 9, 8, 7]]))
    here, there = recorded(model, source, target)[point][0], other[point][0]
    trace = recorded(model, source, target, patched(other, point, [(2, 1)], heads=[1]))[point][0]
    assert torch.equal(trace[1, 2], there[1, 1])
    assert torch.equal(trace[[0, 2]], here[[0, 2]])
    edits = patched(other, "target.positions", [(3, 0)])
    positions = recorded(model, source, target, edits)["target.positions"]
    assert torch.equal(positions[3], gf.sinusoids(4, 11)[0])


def test_rows_of_a_different_width_are_refused(make_model, source, target):
    model = make_model()
    other = recorded(model, torch.tensor([[9, 10, 2]]), target)
    with pytest.raises(gf.ShapeError, match="expected rows of 6 numbers, got 3"):
        recorded(model, source, target, patched(other, f"{CROSS}.weights"))


def test_edits_of_one_point_act_in_the_order_of_their_combination(make_model, source, target):
    model, row = make_model(), {CROSS: [(0, 0, [1.0])]}
    other = recorded(model, source, torch.tensor([[1, 9, 8, 7]]))
    patch = patched(other, f"{CROSS}.weights", heads=[0])
    last = recorded(model, source, target, combine(patch, with_rows(row)))[f"{CROSS}.weights"]
    first = recorded(model, source, target, combine(with_rows(row), patch))[f"{CROSS}.weights"]
    assert last[0, 0, 0].tolist() == [1, 0, 0, 0, 0, 0]
    assert torch.equal(first[0, 0], other[f"{CROSS}.weights"][0, 0])


def test_heads_come_in_three_sets(make_model):
    model = make_model(decoder_layers=1)
    assert heads_of(model, "encoder")[3:] == [("encoder.layers.1.self_attention", head) for head in range(3)]
    assert heads_of(model, "decoder") == [(SELF, head) for head in range(3)]
    assert heads_of(model, "cross") == [(CROSS, head) for head in range(3)]


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_set_of_heads_is_refused(make_model):
    with pytest.raises(gf.ConfigError, match="did you mean 'encoder'"):
        heads_of(make_model(), "encoders")
