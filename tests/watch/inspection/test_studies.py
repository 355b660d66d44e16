"""Studies try one change after another, report their progress, and leave the model unchanged."""

import csv

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.watch.inspection.edits import heads_of, without_heads
from glassformer.watch.inspection.forced import outputs
from glassformer.watch.inspection.studies import PatchEffect, grid, head_study, patching_study, write_rows

CLEAN, CORRUPTED = [4, 5, 6, 7, 2], [4, 9, 6, 7, 2]
RIGHT, WRONG = [5, 6, 7, 2], [5, 8, 2]


def preference(model, source):
    right, wrong = outputs(model, [(source, RIGHT), (source, WRONG)])
    return right.log_prob - wrong.log_prob


@pytest.mark.slow
def test_every_head_is_ablated_once_after_a_run_without_ablation(make_model):
    model = make_model()

    def measure():
        return {"log_prob": outputs(model, [(CLEAN, RIGHT)])[0].log_prob}

    effects = list(head_study(model, measure))
    assert [(effect.done, effect.total) for effect in effects] == [(done, 19) for done in range(1, 20)]
    heads = [one for which in ("encoder", "decoder", "cross") for one in heads_of(model, which)]
    assert [(effect.layer, effect.head) for effect in effects[1:]] == [
        (int(name.split(".")[2]), head) for name, head in heads
    ]
    for effect, (name, head) in zip(effects[1:], heads, strict=True):
        with gf.intervene(model, without_heads({name: [head]})):
            assert effect.values == measure()
        assert effect.changes["log_prob"] == effect.values["log_prob"] - effects[0].values["log_prob"] != 0
    assert measure() == effects[0].values


def test_sets_of_heads_can_be_chosen_and_rows_are_flat(make_model):
    model = make_model()
    none, first, *_ = head_study(model, lambda: {"size": 1.0}, sets=["cross"])
    assert none.row() == {"set": "none", "layer": None, "head": None, "size": 1.0, "size change": 0.0}
    assert first.row() == {"set": "cross", "layer": 0, "head": 0, "size": 1.0, "size change": 0.0}


def test_patching_all_differences_restores_everything(make_model):
    model = make_model()
    effects = list(patching_study(model, CLEAN, CORRUPTED, RIGHT, WRONG, points=["source.embedding"]))
    assert [effect.effect for effect in effects] == pytest.approx([0, 1, 0, 0, 0], abs=1e-9)
    assert [(effect.done, effect.total) for effect in effects] == [(done, 5) for done in range(1, 6)]


def test_an_effect_is_the_restored_share_of_the_preference(make_model):
    model, point = make_model(), "encoder.layers.0.feed_forward.normed"
    [effect] = patching_study(model, CLEAN, CORRUPTED, RIGHT, WRONG, points=[point], positions=[3])
    with torch.no_grad(), gf.record(model, point) as clean:
        model(torch.tensor([CLEAN]), torch.tensor([[1]]))

    def edit(tensor):
        tensor = tensor.clone()
        tensor[:, 3] = clean[point][0, 3]
        return tensor

    with gf.intervene(model, {point: edit}):
        patched = preference(model, CORRUPTED)
    expected = (patched - preference(model, CORRUPTED)) / (preference(model, CLEAN) - preference(model, CORRUPTED))
    assert effect.effect == pytest.approx(expected, abs=1e-10)


def test_points_of_the_decoder_are_patched_at_target_positions(make_model):
    points = ["decoder.output", "decoder.layers.0.cross_attention.heads"]
    effects = list(patching_study(make_model(), CLEAN, CORRUPTED, RIGHT, WRONG, points=points))
    assert grid(effects).shape == (2, 3)
    assert np.isfinite(grid(effects)).all()


def test_a_grid_is_empty_where_no_effect_exists():
    def effect(point, position):
        return PatchEffect(point=point, position=position, effect=0.5, done=1, total=1)

    table = grid([effect("b", 0), effect("a", 2)])
    np.testing.assert_array_equal(table, [[0.5, np.nan], [np.nan, 0.5]])


def test_sources_that_are_equal_or_of_different_lengths_are_refused(make_model):
    model = make_model()
    with pytest.raises(gf.ShapeError, match="expected 5 tokens as in the clean source, got 2"):
        next(patching_study(model, CLEAN, [4, 2], RIGHT, WRONG, points=["encoder.output"]))
    with pytest.raises(gf.ConfigError, match="nothing to restore"):
        next(patching_study(model, CLEAN, CLEAN, RIGHT, WRONG, points=["encoder.output"]))


def test_rows_are_written_below_a_header(tmp_path):
    write_rows(tmp_path / "rows.csv", [{"set": "cross", "exact": 0.5}, {"set": "none", "exact": None}])
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["set", "exact"], ["cross", "0.5"], ["none", ""]]
