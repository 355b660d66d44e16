"""The model computes the same function as PyTorch's layers, in float64, with copied weights."""

import pytest
import torch
from torch import nn

import glassformer as gf
from reference.torch_stacks import TorchStacks

pytestmark = pytest.mark.usefixtures("seed", "float64")

SIZES = {"d_model": 21, "d_k": 7, "d_v": 7, "d_ff": 17, "encoder_layers": 2, "decoder_layers": 3}
SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [2, 0, 0, 0, 0]])
TARGET = torch.tensor([[1, 4, 5, 0, 0, 0, 0], [1, 6, 7, 8, 9, 10, 11], [1, 12, 13, 14, 0, 0, 0]])

CHOICES = [
    *({"norm": norm, "activation": f} for norm in ("post", "pre") for f in ("relu", "gelu", "silu")),
    # the configuration of nn.Transformer and of its tutorial
    {"norm": "post", "final_norm": True, "output_bias": True},
    {"norm": "pre", "final_norm": False},
]
each_choice = pytest.mark.parametrize("choices", CHOICES, ids=str)


def assert_close(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def embedded(tokens, ids):
    return tokens.weight[ids] * 21**0.5 + gf.sinusoids(ids.shape[1], 21)


def torch_logits(model, stacks):
    """Return the logits of PyTorch's stacks between our embeddings and our output matrix."""
    memory = stacks.encode(embedded(model.source.tokens, SOURCE), SOURCE != 0)
    target = embedded(model.target.tokens, TARGET)
    output = stacks.decode(target, TARGET != 0, memory, SOURCE != 0)
    return nn.functional.linear(output, model.output.weight, model.output.bias)


@each_choice
def test_the_encoder_equals_torchs(make_model, choices):
    model = make_model(**SIZES, **choices)
    expected = TorchStacks(model).encode(embedded(model.source.tokens, SOURCE), SOURCE != 0)
    assert_close(model.encode(SOURCE), expected)


@each_choice
@pytest.mark.parametrize("explained", [False, True])
def test_the_logits_equal_torchs(make_model, choices, explained):
    model = make_model(**SIZES, **choices)
    expected = torch_logits(model, TorchStacks(model))
    with gf.record(model if explained else model.source):
        assert_close(model(SOURCE, TARGET), expected)


@each_choice
def test_the_gradients_equal_torchs(make_model, choices):
    model = make_model(**SIZES, **choices)
    stacks = TorchStacks(model)
    coefficients = torch.randn(*TARGET.shape, 23) * (TARGET != 0)[..., None]
    (model(SOURCE, TARGET) * coefficients).sum().backward()
    (torch_logits(model, stacks) * coefficients).sum().backward()
    compared = 0
    for ours, theirs in stacks.counterparts(model):
        assert_close(ours.grad, theirs.grad)
        compared += ours.numel()
    embeddings = sum(tokens.weight.numel() for tokens in (model.source.tokens, model.target.tokens))
    bias = model.config.target_vocab_size if model.config.output_bias else 0
    assert compared + embeddings + bias == sum(parameter.numel() for parameter in model.parameters())
