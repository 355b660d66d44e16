"""What the page changes against the same change made in PyTorch: equal at every point that follows from it."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import glassformer as gf
from browser.engine import PageEngine, assert_same, halved, payload_of, python_trace
from glassformer.inspection.changes import Changes, changed
from glassformer.inspection.mistakes import MISTAKES
from glassformer.model.attention import attention_weights
from glassformer.model.masks import causal_mask
from glassformer.model.taps import points

SOURCE, TARGET = [4, 9, 5, 17, 3, 2], [1, 7, 20, 5, 11]
OTHER_SOURCE, OTHER_TARGET = [6, 8, 2], [1, 9, 12, 4, 4, 8]
ENCODER, DECODER, CROSS = (
    "encoder.layers.1.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.1.cross_attention",
)

Edits = dict[str, Callable[[Tensor], Tensor]]
each_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def edited(place: tuple[Any, ...], values: Any) -> Callable[[Tensor], Tensor]:
    """Return the edit that puts values in one place of a point (behind the batch's axis)."""

    def edit(x: Tensor) -> Tensor:
        x = x.clone()
        x[(0, *place)] = torch.as_tensor(values, dtype=x.dtype)
        return x

    return edit


def masked(name: str, mask: Tensor) -> Edits:
    """Return the edits that give an attention another mask."""
    seen: list[Tensor] = []

    def keep(scores: Tensor) -> Tensor:
        seen.append(scores)
        return scores

    return {f"{name}.scores": keep, f"{name}.weights": lambda _: attention_weights(seen[-1], mask)}


def assert_change(page: Any, model: gf.Transformer, changes: dict[str, Any], edits: Edits) -> PageEngine:
    """Check that the page's changes and PyTorch's edits make the same trace, which is not the unchanged one."""
    engine = PageEngine(page, payload_of(model))
    with gf.intervene(model, edits):
        expected = python_trace(model, SOURCE, TARGET)
    assert_same(engine.trace(SOURCE, TARGET, **changes), expected)
    assert not torch.allclose(expected["logits"], python_trace(model, SOURCE, TARGET)["logits"], atol=1e-3)
    return engine


@each_norm
def test_ablated_heads_give_nothing(page, make_model, norm):
    model = halved(make_model, norm=norm)
    edits = {f"{CROSS}.heads": edited(([0, 2],), 0.0), f"{ENCODER}.heads": edited((1,), 0.0)}
    engine = assert_change(page, model, {"ablated": {CROSS: [0, 2], ENCODER: [1]}}, edits)
    assert engine.first_difference(SOURCE, TARGET, ablated={CROSS: [2]}) == f"{CROSS}.heads"


def test_without_a_cross_head_the_encoder_is_the_same_to_the_bit(page, make_model):
    engine = PageEngine(page, payload_of(halved(make_model)))
    before, after = engine.trace(SOURCE, TARGET), engine.trace(SOURCE, TARGET, ablated={CROSS: [0]})
    encoder = [name for name in before if name.startswith(("source.", "encoder."))]
    assert len(encoder) > 30
    assert all(torch.equal(before[name], after[name]) for name in encoder)
    assert not torch.equal(before["logits"], after["logits"])


@each_norm
def test_a_future_position_may_be_unblocked(page, make_model, norm):
    mask = causal_mask(5)
    mask[..., 1, 4], mask[..., 3, 0] = True, False
    changes = {"masks": {DECODER: [[1, 4, True], [3, 0, False]]}}
    assert_change(page, halved(make_model, norm=norm), changes, masked(DECODER, mask))


def test_a_row_that_may_look_nowhere_is_all_zeros(page, make_model):
    mask = torch.ones(1, 1, 5, 6, dtype=torch.bool)
    mask[..., 2, :], mask[..., 4, 1:3] = False, False
    cells = [[2, key, False] for key in range(6)] + [[4, 1, False], [4, 2, False], [9, 0, False], [0, 9, True]]
    engine = assert_change(page, halved(make_model), {"masks": {CROSS: cells}}, masked(CROSS, mask))
    assert not engine.trace(SOURCE, TARGET, masks={CROSS: cells})[f"{CROSS}.weights"][:, 2].any()


def test_a_row_of_weights_may_be_written_by_hand(page, make_model):
    edits = {
        f"{ENCODER}.weights": edited((1, 3), [0.25, 0, 0.75, 0, 0, 0]),
        f"{CROSS}.weights": edited((2, 0), [0, 1, 2, 3, 4, 5]),
    }
    overrides = {ENCODER: [[1, 3, [0.25, 0, 0.75]], [0, 6, [1]]], CROSS: [[2, 0, [0, 1, 2, 3, 4, 5, 6, 7]]]}
    assert_change(page, halved(make_model), {"overrides": overrides}, edits)


def test_a_row_by_hand_stands_above_mask_and_mistakes(page, make_model):
    changes = {
        "overrides": {DECODER: [[0, 0, [0, 0, 1]]]},
        "masks": {DECODER: [[0, 2, False]]},
        "mistakes": ["mask_after_softmax"],
    }
    engine = PageEngine(page, payload_of(halved(make_model)))
    weights = engine.trace(SOURCE, TARGET, **changes)[f"{DECODER}.weights"]
    assert weights[0, 0].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("point", "place", "there", "patch"),
    [
        ("encoder.output", ([1, 5],), ([2, 0],), {"positions": [[1, 2], [5, 0], [0, 3], [6, 0]]}),
        ("source.positions", None, None, {"positions": [[4, 1]]}),
        (f"{CROSS}.query", (slice(None), 3), (slice(None), 5), {"positions": [[3, 5]]}),
        (f"{CROSS}.heads", (1, 4), (1, 0), {"positions": [[4, 0]], "heads": [1]}),
        ("decoder.layers.1.feed_forward.hidden", ([0],), ([5],), {"positions": [[0, 5]]}),
        ("logits", ([2],), ([1],), {"positions": [[2, 1]]}),
    ],
)
def test_rows_may_come_from_another_sentence(page, make_model, point, place, there, patch):
    model = halved(make_model)
    donor = python_trace(model, OTHER_SOURCE, OTHER_TARGET)[point]
    edit = edited(place, donor[there]) if place else lambda x: torch.cat([x[:4], donor[1:2], x[5:]])
    changes = {"patches": [{"point": point, "sourceIds": OTHER_SOURCE, "targetIds": OTHER_TARGET, **patch}]}
    assert_change(page, model, changes, {point: edit})


def test_several_patches_act_at_once_and_after_ablation(page, make_model):
    model = halved(make_model)
    donor = python_trace(model, OTHER_SOURCE, OTHER_TARGET)
    other = {"sourceIds": OTHER_SOURCE, "targetIds": OTHER_TARGET}
    patches = [
        {"point": f"{CROSS}.heads", "positions": [[1, 1]], **other},
        {"point": "target.input", "positions": [[2, 3]], **other},
    ]
    heads = edited((slice(None), 1), donor[f"{CROSS}.heads"][:, 1])
    edits = {
        f"{CROSS}.heads": lambda x: heads(edited(([0, 1],), 0.0)(x)),
        "target.input": edited((2,), donor["target.input"][3]),
    }
    assert_change(page, model, {"patches": patches, "ablated": {CROSS: [0, 1]}}, edits)


def test_rows_of_another_width_cannot_be_patched_in(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    patch = {"point": f"{CROSS}.weights", "sourceIds": [6, 2], "targetIds": [1, 5], "positions": [[0, 0]]}
    asked = {"sourceIds": SOURCE, "targetIds": TARGET, "changes": {"patches": [patch]}}
    message = page.evaluate("(asked) => engine.trace(asked).catch((error) => error.message)", asked)
    assert message == f"a row of {CROSS}.weights has 2 numbers in the other sentence, but 6 here"


@pytest.mark.parametrize("positions", ["interleaved", "learned"])
def test_positions_may_be_switched_off(page, make_model, positions):
    model = halved(make_model, positions=positions)
    edits = {"source.positions": torch.zeros_like, "target.positions": torch.zeros_like}
    assert_change(page, model, {"positions": False}, edits)


@each_norm
def test_the_scale_may_be_switched_off(page, make_model, norm):
    edits = {"*.scores": lambda scores: scores * math.sqrt(5)}
    assert_change(page, halved(make_model, norm=norm), {"scale": False}, edits)


def drawn(draw: random.Random, model: gf.Transformer) -> dict[str, Any]:
    """Return changes of every kind, as Python reads them."""
    names = [name.removesuffix(".weights") for name in points(model) if name.endswith(".weights")]

    def some(make: Callable[[], Any]) -> dict[str, Any]:
        return {name: [make() for _ in range(draw.randint(1, 3))] for name in draw.sample(names, 2)}

    rows = draw.choice(["encoder.output", "source.input", f"{CROSS}.query", "decoder.layers.0.feed_forward.added"])
    patch = {"point": rows, "source_ids": OTHER_SOURCE, "target_ids": OTHER_TARGET, "positions": [[1, 2], [3, 0]]}
    return {
        "ablated": some(lambda: draw.randrange(3)),
        "masks": some(lambda: [draw.randrange(6), draw.randrange(6), draw.random() < 0.5]),
        "overrides": some(lambda: [draw.randrange(3), draw.randrange(6), [draw.random() for _ in range(4)]]),
        "patches": [patch] if draw.random() < 0.5 else [],
        "positions": draw.random() < 0.7,
        "scale": draw.random() < 0.7,
        "mistakes": draw.sample([*MISTAKES], draw.randint(0, 3)),
    }


@each_norm
def test_all_kinds_of_changes_together_are_pythons(page, make_model, norm):
    model = halved(make_model, norm=norm)
    engine, draw = PageEngine(page, payload_of(model)), random.Random(f"changes {norm}")
    for _ in range(15):
        changes = drawn(draw, model)
        with changed(model, Changes.from_dict(changes)):
            expected = python_trace(model, SOURCE, TARGET)
        names = {"source_ids": "sourceIds", "target_ids": "targetIds"}
        patches = [{names.get(key, key): value for key, value in patch.items()} for patch in changes["patches"]]
        got = engine.trace(SOURCE, TARGET, **changes | {"patches": patches})
        assert_same(got, {name: expected[name] for name in got})


WRONG = [
    ({"ablate": {}}, 'changes has no "ablate": there are source, prefix, ablated, masks'),
    ({"ablated": {"encoder.layers.2.self_attention": [0]}}, "ablated has no"),
    ({"ablated": {CROSS: [3]}}, "is 3: expected heads from 0 to 2"),
    ({"ablated": {CROSS: 1}}, "is 1: expected a list of heads from 0 to 2"),
    ({"masks": {CROSS: [[0, 1]]}}, "is [0,1]: expected cells [query, key, true when it may look]"),
    ({"masks": {CROSS: [[0, -1, True]]}}, "expected cells"),
    ({"overrides": {CROSS: [[0, 1, "half"]]}}, "expected rows [head, query, [weights]]"),
    ({"overrides": {CROSS: [[3, 1, [1]]]}}, "expected rows"),
    ({"patches": {}}, "patches is {}: expected a list"),
    ({"patches": [{"point": "logit"}]}, 'point is "logit": expected the name of a point'),
    ({"patches": [{"point": "logits", "positions": []}]}, "expected a text, or sourceIds and targetIds"),
    ({"patches": [{"point": "logits", "sentence": "w4", "positions": [[1]]}]}, "expected pairs [here, there]"),
    ({"patches": [{"point": "logits", "sentence": "w4", "positions": [], "heads": [7]}]}, "expected heads"),
    ({"positions": 0}, "positions is 0: expected true or false"),
    ({"scale": None}, "scale is null: expected true or false"),
    ({"mistakes": ["none"]}, 'is "none": expected the names norm_order, residual_normed'),
    ({"checkpoint": "last"}, 'checkpoint is "last": expected a step'),
    ({"source": 5}, "source is 5: expected a text"),
    ([], "changes is []: expected an object"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_what_cannot_be_changed_is_an_error(page, make_model, changes, message):
    PageEngine(page, payload_of(halved(make_model)))
    check = """(changes) => {
      try { module.checkChanges(changes, engine.config); } catch (error) { return error.message; }
    }"""
    assert message in page.evaluate(check, changes)


def test_changes_that_change_nothing_are_known(page, make_model):
    PageEngine(page, payload_of(halved(make_model)))
    unchanged = [{}, {"ablated": {CROSS: []}}, {"source": "w5", "prefix": "w4"}, {"positions": True, "mistakes": []}]
    changed = [
        {"ablated": {CROSS: [0]}},
        {"masks": {CROSS: [[0, 0, True]]}},
        {"overrides": {CROSS: [[0, 0, []]]}},
        {"patches": [{}]},
        {"positions": False},
        {"scale": False},
        {"mistakes": ["no_scale"]},
        {"checkpoint": 0},
    ]
    known = page.evaluate("(list) => list.map((changes) => module.isUnchanged(changes))", unchanged + changed)
    assert known == [True] * len(unchanged) + [False] * len(changed)
