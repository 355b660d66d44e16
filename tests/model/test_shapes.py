"""The shapes of a model's weights are known without building the model."""

from itertools import islice

import pytest

import glassformer as gf
from glassformer.model.shapes import weight_shapes

SIZES = {"d_model": 12, "heads": 3, "d_k": 5, "d_v": 7, "d_ff": 13, "encoder_layers": 2, "decoder_layers": 3}
SETTINGS = {
    "the paper's": {"vocab_size": 11},
    "two vocabularies": {"source_vocab_size": 11, "target_vocab_size": 17},
    "nothing tied": {"vocab_size": 11, "tie_embeddings": False, "tie_output": False},
    "only the embeddings tied": {"vocab_size": 11, "tie_output": False},
    "pre-norm": {"vocab_size": 11, "norm": "pre"},
    "post-norm, final norms, output bias": {"vocab_size": 11, "final_norm": True, "output_bias": True},
    "pre-norm, no final norms": {"vocab_size": 11, "norm": "pre", "final_norm": False},
    "nothing tied, output bias": {"vocab_size": 11, "tie_output": False, "output_bias": True},
    "learned positions": {"vocab_size": 11, "positions": "learned", "max_length": 19},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_names_and_shapes_equal_the_models(settings):
    config = gf.ModelConfig(**{**SIZES, **settings})
    model = gf.Transformer(config)
    assert list(weight_shapes(config)) == [(name, tuple(weight.shape)) for name, weight in model.named_parameters()]


def test_a_gigantic_model_is_described_without_building_it():
    config = gf.ModelConfig(**{**SIZES, "encoder_layers": 1000}, vocab_size=11)
    assert list(islice(weight_shapes(config), 2))[1] == (
        "encoder.layers.0.self_attention.input_projection.weight",
        (51, 12),
    )
