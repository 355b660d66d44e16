"""What a search returns, and how it is scored."""

import math

import pytest

from glassformer.decoding.hypothesis import Hypothesis, length_penalty
from glassformer.errors import DecodingError


def test_the_length_penalty_is_the_formula_of_the_paper():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert length_penalty(13, 1.0) == pytest.approx(3)
    assert length_penalty(11, 0.0) == 1


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf, 101.0])
def test_an_exponent_that_is_no_sensible_number_is_refused(alpha):
    with pytest.raises(DecodingError, match="length_penalty must be from −100 to 100"):
        length_penalty(3, alpha)


def test_a_hypothesis_ends_with_its_first_eos_and_sums_what_is_before_it():
    hypothesis = Hypothesis.ending_with(2, [5, 7, 2, 0, 2], [-0.1, -0.2, -0.3, -11.0, -13.0], 1.0)
    assert hypothesis.tokens == (5, 7, 2)
    assert hypothesis.token_log_probs == (-0.1, -0.2, -0.3)
    assert hypothesis.log_prob == math.fsum([-0.1, -0.2, -0.3])
    assert hypothesis.score == hypothesis.log_prob / (8 / 6)
