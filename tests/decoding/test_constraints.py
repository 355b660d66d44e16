"""Tokens that no search may choose freely."""

import math

import pytest
import torch

from glassformer.decoding.constraints import FREE, Constraints, keep_only_
from glassformer.errors import DecodingError

INF = math.inf


def test_keeping_one_token_leaves_free_rows_unchanged():
    log_probs = torch.arange(-21.0, 0).view(3, 7)
    expected = log_probs.clone()
    expected[1] = -INF
    expected[1, 5] = -9
    keep_only_(log_probs, torch.tensor([FREE, 5, FREE]))
    assert torch.equal(log_probs, expected)


def test_bos_and_pad_are_always_impossible_and_nothing_is_renormalised(random_toy):
    constraints = Constraints.of(random_toy(0, sentences=2), [3, 5], None)
    log_probs = torch.full((2, 5), -1.5)
    constraints.apply_(log_probs, torch.arange(2), torch.tensor([0, 0]))
    assert log_probs.tolist() == [[-INF, -INF, -1.5, -1.5, -1.5]] * 2


def test_prefixes_and_last_positions_apply_to_every_row_of_their_sentence(random_toy):
    constraints = Constraints.of(random_toy(0, sentences=3), [2, 7, 5], [[], [4, 3], [4]])
    log_probs = torch.zeros(4, 5)
    constraints.apply_(
        log_probs, torch.tensor([0, 1]), torch.tensor([1, 1])
    )  # the first sentence must end here, the second one must continue with 3
    only = [[token == forced for token in range(5)] for forced in (2, 2, 3, 3)]
    assert (log_probs == 0).tolist() == only


@pytest.mark.parametrize(
    ("max_lengths", "prefixes", "message"),
    [
        ([3, 0], None, r"maximum length of sentence 1 .counted from 0.: expected at least 1, for <eos>, got 0"),
        ([3, -5], None, r"maximum length of sentence 1 .counted from 0.: expected at least 1, for <eos>, got -5"),
        ([3, 5], [[4]], r"expected a prefix for each of 2 sentences, got 1"),
        ([3, 2], [[], [3, 4]], r"prefix of sentence 1 .counted from 0. has 2 tokens.*allow at least 3"),
        ([3, 5], [[], [3, 2]], r"prefix of sentence 1 .counted from 0. holds <eos> \(id 2\)"),
        ([3, 5], [[1], []], r"prefix of sentence 0 .counted from 0. holds <bos> \(id 1\)"),
        ([3, 5], [[0], []], r"prefix of sentence 0 .counted from 0. holds <pad> \(id 0\)"),
        ([3, 5], [[5], []], r"expected ids from 0 to 4, got 5"),
        ([3, 5], [[-1], []], r"expected ids from 0 to 4, got -1"),
    ],
)
def test_lengths_and_prefixes_that_do_not_fit_are_refused(random_toy, max_lengths, prefixes, message):
    with pytest.raises(DecodingError, match=message):
        Constraints.of(random_toy(0, sentences=2), max_lengths, prefixes)
