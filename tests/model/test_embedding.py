"""A token's vector: its row, times √d_model, plus its position."""

import math

import pytest
import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.embedding import InputEmbedding
from glassformer.model.positions import Positions

pytestmark = pytest.mark.usefixtures("seed", "float64")


def embedding(vocab_size: int = 13, d_model: int = 6, dropout: float = 0.0) -> InputEmbedding:
    return InputEmbedding(vocab_size, d_model, Positions("interleaved", d_model, 32), dropout)


def test_a_row_is_scaled_by_the_root_of_d_model_plus_its_position():
    module = embedding()
    for i, (token, vector) in enumerate(zip([4, 12, 4], module(torch.tensor([[4, 12, 4]]))[0], strict=True)):
        expected = module.tokens.weight[token] * math.sqrt(6) + gf.sinusoids(3, 6)[i]
        torch.testing.assert_close(vector, expected, rtol=0, atol=1e-15)


def test_a_lookup_is_a_one_hot_vector_times_the_matrix():
    module, ids = embedding(), torch.tensor([[4, 12, 0], [7, 7, 1]])
    with gf.record(module) as trace:
        module(ids)
    product = F.one_hot(ids, 13).double() @ module.tokens.weight * math.sqrt(6)
    torch.testing.assert_close(trace["embedding"], product, rtol=0, atol=1e-15)


def test_the_first_position_can_be_any():
    module, ids = embedding(), torch.tensor([[4, 5, 6, 7, 8]])
    assert torch.equal(module(ids[:, 3:], start=3), module(ids)[:, 3:])


def test_the_parts_of_the_sum_are_recorded():
    module, ids = embedding(dropout=0.5).eval(), torch.tensor([[4, 5]])
    with gf.record(module) as trace:
        output = module(ids)
    assert torch.equal(trace["embedding"] + trace["positions"], output)
    assert torch.equal(trace["input"], output)


def test_dropout_acts_on_the_sum_in_training():
    module, ids = embedding(d_model=512, dropout=0.5), torch.tensor([[4, 5]])
    with gf.record(module) as trace:
        module.train()(ids)
    whole = trace["embedding"] + trace["positions"]
    kept = trace["input"] != 0
    # the share of 1024 coin tosses is outside these bounds with probability < 1e-9
    assert 0.4 < kept.double().mean() < 0.6
    torch.testing.assert_close(trace["input"][kept], 2 * whole[kept], rtol=0, atol=1e-12)


def test_rows_start_with_a_standard_deviation_of_one_over_the_root_of_d_model():
    # The standard deviation of 64 000 numbers is off by more than 3 % with probability < 1e-20. Their mean may be off
    # by five standard deviations of the mean.
    weight = embedding(vocab_size=1000, d_model=64).tokens.weight
    assert abs(weight.std().item() * math.sqrt(64) - 1) < 0.03
    assert abs(weight.mean().item()) < 5 * 64**-0.5 / math.sqrt(64000)


@pytest.mark.parametrize("wrong", [13, -1])
def test_an_id_outside_the_vocabulary_is_an_error_that_names_the_range(wrong):
    low, high = min(wrong, 4), max(wrong, 4)
    with pytest.raises(gf.VocabularyError, match=f"13 entries, got ids from {low} to {high}"):
        embedding()(torch.tensor([[4, wrong]]))


# Pretrained vectors


def test_found_vectors_replace_only_their_own_rows():
    module, vectors = embedding(), torch.randn(13, 6, dtype=torch.float32)
    before, found = module.tokens.weight.detach().clone(), torch.arange(13) % 3 == 0
    module.load_vectors(vectors, found)
    assert torch.equal(module.tokens.weight[found], vectors[found].double())
    assert torch.equal(module.tokens.weight[~found], before[~found])
    assert module.tokens.weight.requires_grad


def test_frozen_vectors_get_no_gradient():
    module = embedding()
    module.load_vectors(torch.randn(13, 6), torch.ones(13, dtype=torch.bool), freeze=True)
    assert not module(torch.tensor([[4, 5]])).requires_grad


@pytest.mark.slow
def test_a_frozen_tied_matrix_is_frozen_everywhere_and_the_rest_learns(make_model):
    model = make_model(source_vocab_size=23, tie_embeddings=True)
    model.source.load_vectors(torch.randn(23, 11), torch.ones(23, dtype=torch.bool), freeze=True)
    before = model.output.weight.detach().clone()
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.tensor([[4, 5]]), torch.tensor([[1, 6]])).square().mean().backward()
    optimiser.step()
    assert model.target.tokens.weight.grad is None
    assert torch.equal(model.output.weight, before)
    assert model.encoder.layers[0].feed_forward.expand.weight.grad.any()


@pytest.mark.usefixtures("unchecked")
def test_vectors_of_a_different_shape_are_an_error():
    with pytest.raises(gf.ShapeError, match=r"expected shape \(V, d_model\) = \(13, 6\), got \(13, 5\)"):
        embedding().load_vectors(torch.ones(13, 5), torch.ones(13, dtype=torch.bool))
