"""The table of named points matches the forward pass in names, order and shapes."""

import subprocess
import sys

import pytest
import torch

import glassformer as gf
from glassformer.model.points import descriptions, named_points
from glassformer.model.taps import Tap

SIZES = {"d_model": 12, "heads": 3, "d_k": 5, "d_v": 7, "d_ff": 17, "source_vocab_size": 23, "target_vocab_size": 29}
LENGTHS = {"B": 2, "S": 11, "T": 6, "D": 12, "F": 17, "H": 3, "K": 5, "W": 7, "V": 29}
SETTINGS = [{}, {"norm": "pre"}, {"encoder_layers": 1, "decoder_layers": 3}, {"positions": "none"}]


@pytest.fixture(params=SETTINGS, ids=str)
def model(request, make_model) -> gf.Transformer:
    return make_model(**SIZES, vocab_size=None, tie_embeddings=False, tie_output=False, **request.param)


def recorded(model: gf.Transformer):
    with torch.no_grad(), gf.record(model) as trace:
        model(torch.full((2, LENGTHS["S"]), 4), torch.full((2, LENGTHS["T"]), 5))
    return trace


def test_the_table_has_the_points_of_the_model_in_the_order_of_the_forward_pass(model):
    assert set(named_points(model.config)) == set(gf.points(model))
    assert list(named_points(model.config)) == list(recorded(model))


def test_every_shape_equals_the_recorded_tensors_shape(model):
    points = named_points(model.config)
    for name, tensor in recorded(model).items():
        axes = [letters.split("·") for letters in points[name].shape.split()]
        shape = [torch.Size([LENGTHS[letter] for letter in letters]).numel() for letters in axes]
        assert list(tensor.shape) == shape, name


def test_every_tap_uses_a_name_in_the_table(model, monkeypatch):
    passed, call = set(), Tap.__call__

    def spy(tap: Tap, point: str, tensor: torch.Tensor) -> torch.Tensor:
        passed.add(point)
        return call(tap, point, tensor)

    monkeypatch.setattr(Tap, "__call__", spy)
    recorded(model)
    assert passed == {name.rpartition(".")[2] for name in named_points(model.config)}


def test_every_point_has_a_description(model):
    for name, point in named_points(model.config).items():
        assert point.name == name
        assert point.about.endswith(".")
        assert point.place
        assert point.suspect
        assert 0 < len(point.formula) <= 29, name  # fits into its column in `glassformer trace`
        assert descriptions()[f"{point.part}.{name.rpartition('.')[2]}"] == point.about


def test_the_table_does_not_need_torch():
    code = "import sys, glassformer.model.points; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
