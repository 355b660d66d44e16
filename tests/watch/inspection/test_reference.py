"""Two independent forward passes, in PyTorch and in NumPy, give the same numbers, with and without mistakes."""

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.watch.inspection.mistakes import MISTAKES, plant
from glassformer.watch.inspection.reference import Reference
from glassformer.watch.inspection.suspects import SUSPECT_OF_MISTAKE
from models import with_new_activations

SETTINGS = [
    {},
    {"norm": "pre"},
    {"positions": "halves", "activation": "gelu"},
    {"positions": "learned", "activation": "silu", "norm": "pre", "max_length": 9},
    {"positions": "none", "heads": 1, "d_model": 12},
    {"source_vocab_size": 23, "vocab_size": 23},
    {"tie_output": False, "encoder_layers": 1, "decoder_layers": 3},
    {"final_norm": True, "output_bias": True},
    {"norm": "pre", "final_norm": False, "tie_output": False, "output_bias": True},
]
SETTINGS += with_new_activations(SETTINGS).values()
PADDED = [4, 5, 6, 2, 0, 0], [1, 9, 8, 7, 6, 0]


def weights_of(model):
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


def recorded(model, source, target, *mistakes):
    with torch.no_grad(), plant(model, *mistakes), gf.record(model) as trace:
        model(torch.tensor([source]), torch.tensor([target]))
    return {name: tensor[0] if tensor.dim() > 2 else tensor for name, tensor in trace.items()}


def assert_same(trace, points):
    for name, tensor in trace.items():
        np.testing.assert_allclose(points[name], tensor.numpy(), rtol=0, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(("source", "target"), [([4, 5, 6, 7, 8, 2], [1, 4, 5, 9]), PADDED], ids=["plain", "padded"])
def test_every_point_equals_the_models(make_model, settings, source, target):
    model = make_model(**settings)
    trace, points = recorded(model, source, target), Reference(model.config, weights_of(model))(source, target)
    assert list(trace) == list(points)
    assert_same(trace, points)


def test_a_source_of_padding_alone_has_weights_of_zero(make_model):
    model = make_model()
    source, target = [0, 0, 0], [1, 4]
    points = Reference(model.config, weights_of(model))(source, target)
    assert not points["encoder.layers.0.self_attention.weights"].any()
    assert_same(recorded(model, source, target), points)


@pytest.mark.parametrize(
    "norms", [{"norm": "post"}, {"norm": "pre"}, {"final_norm": True}, {"norm": "pre", "final_norm": False}], ids=str
)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_equals_the_reference_with_that_mistake(make_model, mistake, norms):
    model = make_model(**norms, positions="halves")
    source, target = PADDED if MISTAKES[mistake].one_length else ([4, 5, 6, 7, 8, 2], [1, 4, 5, 9])
    points = SUSPECT_OF_MISTAKE[mistake](model.config, weights_of(model))(source, target)
    assert_same(recorded(model, source, target, mistake), points)
