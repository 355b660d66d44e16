"""Graphs contain each matrix of the model once, in 32 or 8 bits; tests/clients runs the graphs in onnxruntime."""

import numpy as np
import pytest

from glassformer.interop.onnx.model import graph_files
from glassformer.system.protobuf import fields
from interop.onnx.test_graph import found
from models import random_model

SIZES = {"d_model": 48, "heads": 4, "d_k": 12, "d_v": 12, "d_ff": 96, "vocab_size": 97, "positions": "none"}


@pytest.fixture
def model(seed):
    return random_model(**SIZES, source_vocab_size=97, target_vocab_size=97)


def weights(model):
    return {name: one.detach().numpy().astype(np.float32) for name, one in model.named_parameters()}


def arrays(file: bytes) -> dict[str, bytes]:
    tensors = [dict(fields(one)) for one in found(file, 7, 5)]
    return {one[8].decode(): one[9] for one in tensors}


def test_the_merged_decoder_holds_each_matrix_once(model):
    files = graph_files(weights(model), model.config, narrow=False)
    assert arrays(files["decoder_model_merged"]).keys() == arrays(files["decoder_model"]).keys()


def test_eight_bits_take_a_quarter(model):
    sizes = [
        sum(map(len, arrays(graph_files(weights(model), model.config, narrow=narrow)["decoder_model"]).values()))
        for narrow in (False, True)
    ]
    # 8-bit weights take a quarter; biases, norms and scales still have 32 bits
    assert 0.25 * sizes[0] < sizes[1] < 0.32 * sizes[0]


def test_eight_bits_round_to_the_nearest(model):
    ours = weights(model)
    stored = arrays(graph_files(ours, model.config, narrow=True)["encoder_model"])
    name = "encoder.layers.0.feed_forward.expand.weight"
    scale = np.frombuffer(stored[f"{name} scales"], np.float32)[:, None]
    numbers = np.frombuffer(stored[f"{name} numbers"], np.uint8).reshape(ours[name].shape[::-1]).T
    assert np.abs((numbers.astype(float) - 128) * scale - ours[name]).max() <= scale.max() / 2 + 1e-6
    assert numbers.min() >= 1
