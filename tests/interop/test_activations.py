"""Each activation is known to other programs under names of its own, or its exports are refused in one sentence."""

from itertools import chain, combinations
from typing import get_args

import pytest

from glassformer.errors import ConfigError
from glassformer.interop.activations import OF_CTRANSLATE2, OF_HUGGING_FACE, ForeignNames, foreign_names
from glassformer.interop.ctranslate2 import model as ctranslate2
from glassformer.interop.ctranslate2.model import check_convertible
from glassformer.interop.huggingface import writer as huggingface
from glassformer.interop.huggingface.writer import check_hugging_face
from glassformer.interop.onnx.model import graph_files
from glassformer.model.config import Activation, ModelConfig
from interop.huggingface.test_writer import a_run
from interop.onnx.test_graph import found
from models import random_model

ACTIVATIONS = get_args(Activation)


def test_no_name_stands_for_two_activations():
    names = [foreign_names(one) for one in ACTIVATIONS]
    assert len(OF_CTRANSLATE2) == sum(one.ctranslate2 is not None for one in names)
    assert len(OF_HUGGING_FACE) == len([*chain.from_iterable(one.hugging_face for one in names)])


@pytest.fixture
def unknown(monkeypatch):
    """Let no other program know any activation."""
    for module in (ctranslate2, huggingface):
        monkeypatch.setattr(module, "foreign_names", lambda _: ForeignNames(ctranslate2=None, hugging_face=()))


@pytest.mark.parametrize(("known", "able"), [((), "onnx"), (("silu",), "huggingface or onnx")])
def test_an_activation_that_ctranslate2_does_not_compute_is_refused(monkeypatch, known, able):
    """The error names what can use the model: an engine for a translation, a format for an export."""
    monkeypatch.setattr(ctranslate2, "foreign_names", lambda _: ForeignNames(ctranslate2=None, hugging_face=known))
    message = rf"^model\.activation: expected one of relu, .* got silu; use the engine torch, or export --to {able}$"
    with pytest.raises(ConfigError, match=message):
        check_convertible(ModelConfig(vocab_size=9, activation="silu"))


@pytest.mark.usefixtures("unknown")
def test_an_activation_that_transformers_does_not_compute_is_refused(tmp_path):
    message = r"^model\.activation: expected one of relu, .* Pegasus have, got gelu; export --to onnx$"
    with pytest.raises(ConfigError, match=message):
        check_hugging_face(a_run(tmp_path / "run", activation="gelu"))


@pytest.mark.parametrize(("one", "other"), [*combinations(ACTIVATIONS, 2)])
def test_each_activation_has_onnx_operators_of_its_own(seed, one, other):
    assert operators(one) != operators(other)


def operators(activation: Activation) -> list[object]:
    model = random_model(activation=activation)
    weights = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    return found(graph_files(weights, model.config, narrow=False)["encoder_model"], 7, 1, 4)
