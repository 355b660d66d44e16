"""Changes as data: the model computes with them, and mistakes in them are reported."""

import pytest
import torch

import glassformer as gf
from glassformer.watch.inspection.changes import Changes, Patch, changed
from glassformer.watch.inspection.edits import combine, with_mask, with_rows, without_heads
from glassformer.watch.inspection.mistakes import plant

CROSS, SELF = "decoder.layers.0.cross_attention", "decoder.layers.0.self_attention"
FIRST = "encoder.layers.0.self_attention"


def recorded(model, source, target, context):
    with torch.no_grad(), context, gf.record(model) as trace:
        model(source, target)
    return trace


def assert_same(one, other):
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-10)


def test_changes_equal_the_corresponding_edits(make_model, source, target):
    model = make_model()
    values = {
        "ablated": {CROSS: [1], FIRST: [0]},
        "masks": {CROSS: [[0, 1, False]], SELF: [[0, 3, True], [1, 0, False], [1, 1, False]]},
        "overrides": {FIRST: [[2, 1, [0.5, 0.5]]]},
    }
    edits = combine(
        with_mask({CROSS: [(0, 1, False)], SELF: [(0, 3, True), (1, 0, False), (1, 1, False)]}),
        with_rows({FIRST: [(2, 1, [0.5, 0.5])]}),
        without_heads({CROSS: [1], FIRST: [0]}),
    )
    by_data = recorded(model, source, target, changed(model, Changes.from_dict(values)))
    assert_same(by_data, recorded(model, source, target, gf.intervene(model, edits)))


def test_masks_keep_the_padding_of_a_batch(make_model, target):
    model, padded = make_model(), torch.tensor([[4, 5, 2, 0, 0]])
    trace = recorded(model, padded, target, changed(model, Changes(masks={CROSS: [(0, 1, False)]})))
    assert (trace[f"{CROSS}.weights"][0, 0, :2] > 0).tolist() == [
        [True, False, True, False, False],
        [*3 * [True], *2 * [False]],
    ]


def test_a_masked_row_is_equal_in_fused_and_explained_attention(make_model, source, target):
    model = make_model()
    with torch.no_grad(), changed(model, Changes(masks={CROSS: [(0, key, False) for key in range(6)]})):
        fused = model(source, target)
        with gf.record(model) as trace:
            model(source, target)
    torch.testing.assert_close(fused, trace["logits"], rtol=0, atol=1e-10)
    assert not trace[f"{CROSS}.weights"][0, :, 0].any()


def test_positions_and_scale_can_be_left_out(make_model, source, target):
    model = make_model()
    trace = recorded(model, source, target, changed(model, Changes(positions=False)))
    assert torch.equal(trace["target.input"], trace["target.embedding"])
    assert torch.equal(trace["source.input"], trace["source.embedding"])
    by_flag = recorded(model, source, target, changed(model, Changes(scale=False, mistakes=["no_scale"])))
    assert_same(by_flag, recorded(model, source, target, plant(model, "no_scale")))


def test_a_patch_runs_its_sentence_through_the_unchanged_model(make_model, source, target):
    model, point = make_model(), f"{FIRST}.output"
    patch = Patch(point=point, positions=[(0, 1)], source_ids=[9, 8, 2], target_ids=[1])
    trace = recorded(model, source, target, changed(model, Changes(patches=[patch], mistakes=["no_embedding_scale"])))
    with torch.no_grad(), gf.record(model) as other:
        model(torch.tensor([[9, 8, 2]]), torch.tensor([[1]]))
    assert torch.equal(trace[point][0, 0], other[point][0, 1])
    again = Patch(point=point, positions=[(0, 1)], trace=other)
    changes = Changes(patches=[again], mistakes=["no_embedding_scale"])
    assert_same(trace, recorded(model, source, target, changed(model, changes)))


def test_patches_are_the_last_at_their_point(make_model, source, target):
    model = make_model()
    patch = Patch(point=f"{CROSS}.weights", positions=[(0, 0)], source_ids=[9] * 5 + [2], target_ids=[1])
    changes = Changes(patches=[patch], overrides={CROSS: [(0, 0, [1.0]), (0, 1, [1.0])]}, mistakes=["mask_zero"])
    weights = recorded(model, source, target, changed(model, changes))[f"{CROSS}.weights"][0, 0]
    assert weights[1].tolist() == [1, 0, 0, 0, 0, 0]
    assert weights[0, 1] > 0


def test_edited_masks_combine_with_mistakes_of_masks(make_model, source, target):
    model = make_model()
    changes = Changes(masks={SELF: [(0, 0, False), (0, 1, True)]}, mistakes=["mask_after_softmax"])
    trace = recorded(model, source, target, changed(model, changes))
    expected = trace[f"{SELF}.scores"].softmax(-1)[0, :, 0] * torch.tensor([0, 1, 0, 0])
    torch.testing.assert_close(trace[f"{SELF}.weights"][0, :, 0], expected)


def test_changes_end_with_their_context(make_model, source, target):
    model = make_model()
    before = recorded(model, source, target, changed(model, Changes()))
    changes = Changes(masks={SELF: [(0, 0, False)]}, ablated={CROSS: [0]}, mistakes=["no_transpose"], positions=False)
    recorded(model, source, target, changed(model, changes))
    assert_same(before, recorded(model, source, target, changed(model, Changes())))


def test_changes_survive_conversion_to_data():
    values = {
        "ablated": {CROSS: [0, 2]},
        "masks": {SELF: [[0, 1, True]]},
        "overrides": {CROSS: [[0, 1, [1.0, 0.5]]]},
        "patches": [{"point": "logits", "positions": [[0, 1]], "source_ids": [4, 2], "target_ids": [1]}],
        "positions": False,
        "scale": True,
        "mistakes": ["mask_zero"],
    }
    assert Changes.from_dict(values).to_dict() == values
    assert Changes.from_dict({}).to_dict() == Changes().to_dict()


def test_a_recording_cannot_be_converted_to_plain_data():
    with pytest.raises(gf.ConfigError, match="give source_ids"):
        Changes(patches=[Patch(point="logits", positions=[], trace={})]).to_dict()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mask": {}}, "changes.mask: unknown key .did you mean 'masks'"),
        ({"patches": [{"pont": "logits"}]}, "changes.patches.0.pont: unknown key .did you mean 'point'"),
        ({"patches": [{"positions": []}]}, "changes.patches.0.point: missing"),
        ({"masks": {SELF: [[0, "1", True]]}}, r"changes.masks.*0.1: input should be a valid integer, got '1'"),
        ({"overrides": {SELF: [[0, 1, [float("nan")]]]}}, "should be a finite number"),
        ({"positions": 0}, "changes.positions: input should be a valid boolean"),
    ],
)
def test_malformed_data_is_refused(values, message):
    with pytest.raises(gf.ConfigError, match=message):
        Changes.from_dict(values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ablated": {"decoder.layers.0.crossattention": [0]}}, "did you mean 'decoder.layers.0.cross_attention'"),
        ({"ablated": {CROSS: [3]}}, "a head: expected 0 to 2, got 3"),
        ({"masks": {CROSS: [[-1, 0, True]]}}, "a position: expected 0 or more, got -1"),
        ({"overrides": {CROSS: [[5, 0, [1.0]]]}}, "overrides: a head: expected 0 to 2, got 5"),
        ({"mistakes": ["noscale"]}, "did you mean 'no_scale'"),
        ({"patches": [{"point": "logit", "positions": []}]}, "did you mean 'logits'"),
        (
            {"patches": [{"point": "logits", "positions": []}]},
            "expected a sentence for logits, got none",
        ),
        ({"patches": [{"point": "logits", "positions": [], "heads": [0]}]}, "expected no heads for logits"),
        ({"patches": [{"point": f"{CROSS}.key", "positions": [], "heads": [7]}]}, "a head: expected 0 to 2, got 7"),
        ({"patches": [{"point": "logits", "positions": [], "trace": {}}]}, "is not in the recording"),
    ],
)
def test_names_that_the_model_lacks_are_refused(make_model, changes, message):
    model = make_model()
    with pytest.raises(gf.ConfigError, match=message), changed(model, Changes.from_dict(changes)):
        pass
