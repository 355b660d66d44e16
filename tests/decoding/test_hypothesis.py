"""Hypotheses, the results of a search, and their scores."""

import math

import pytest

from glassformer.decoding.hypothesis import Hypothesis, length_penalty, penalty_of, score_of
from glassformer.recipes.configuration import DecodingConfig


def test_the_length_penalty_is_the_formula_of_the_paper():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert length_penalty(13, 1.0) == pytest.approx(3)
    assert length_penalty(11, 0.0) == 1


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_scores_of_living_and_finished_outputs_follow_the_same_formula(alpha):
    settings = DecodingConfig(length_penalty=alpha)
    assert penalty_of(7, settings) == length_penalty(7, alpha)
    assert score_of(-3.0, penalty_of(7, settings)) == -3.0 / 2**alpha


def test_a_hypothesis_ends_with_its_first_eos_and_sums_the_tokens_up_to_it():
    settings = DecodingConfig(length_penalty=1.0)
    hypothesis = Hypothesis.ending_with(2, [5, 7, 2, 0, 2], [-0.1, -0.2, -0.3, -11.0, -13.0], settings)
    assert hypothesis.tokens == (5, 7, 2)
    assert hypothesis.token_log_probs == (-0.1, -0.2, -0.3)
    assert hypothesis.log_prob == math.fsum([-0.1, -0.2, -0.3])
    assert hypothesis.score == hypothesis.log_prob / (8 / 6)
