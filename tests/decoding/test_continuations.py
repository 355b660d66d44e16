"""The best continuations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.decoding.continuations import BLOCKS, best_continuations

BLOCK = BLOCKS[0]
SIZES = [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 7, 5 * BLOCKS[-1], BLOCKS[2]]


@settings(deadline=None)
@given(
    B=st.integers(1, 3),
    K=st.integers(1, 5),
    V=st.sampled_from(SIZES),
    count=st.integers(1, 23),
    seed=st.integers(0, 999),
)
def test_the_continuations_equal_topk_over_all_tokens_of_all_hypotheses(B, K, V, count, seed):
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(B * K, V, generator=generator, dtype=torch.float64).log_softmax(-1)
    so_far = -torch.rand(B, K, generator=generator, dtype=torch.float64)
    best = best_continuations(log_probs, so_far, count)
    sums = (log_probs.view(B, K, V) + so_far[..., None]).flatten(1)
    values, places = sums.topk(min(count, K * V))
    assert torch.equal(best.log_probs, values)
    assert torch.equal(best.rows, torch.arange(B)[:, None] * K + places // V)
    assert torch.equal(best.tokens, places % V)
    assert torch.equal(best.token_log_probs, log_probs[best.rows, best.tokens])


@pytest.mark.parametrize("V", SIZES)
@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_impossible_continuations_come_last_with_minus_infinity(V, impossible):
    log_probs = torch.full((3, V), -math.inf)
    log_probs[0, V - 1], log_probs[1, 0] = -0.5, -0.25
    log_probs[2] = impossible
    best = best_continuations(log_probs, torch.tensor([[-1.0, -1.0, 0.0]]), 3)
    assert best.log_probs.tolist() == [[-1.25, -1.5, -math.inf]]
    assert best.rows[0, :2].tolist() == [1, 0]
    assert best.tokens[0, :2].tolist() == [0, V - 1]
    assert 0 <= best.tokens.min() <= best.tokens.max() < V


def test_an_impossible_hypothesis_has_no_continuation():
    best = best_continuations(torch.zeros(2, 2 * BLOCK + 3), torch.tensor([[-math.inf, -7.0]]), 5)
    assert best.rows.tolist() == [[1] * 5]
    assert best.log_probs.tolist() == [[-7.0] * 5]
