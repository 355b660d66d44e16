"""The first calls of a function are checked in each test, also after a test that switched the checks off."""

import jaxtyping
import pytest
from jaxtyping import Float
from torch import Tensor, ones

from typechecker import CALLS, checked, first_calls


def doubled(rows: Float[Tensor, "N D"], factor: float) -> Float[Tensor, "N D"]:
    """Return a wrong shape if the factor is 0."""
    return rows * factor if factor else rows.T


@pytest.fixture
def decorated():
    return first_calls(doubled, typechecker=checked)


@pytest.mark.usefixtures("unchecked")
def test_checks_can_be_switched_off_for_a_test(decorated):
    assert decorated(ones(2, 3), 0).shape == (3, 2)


def test_the_first_calls_are_checked(decorated):
    for _ in range(CALLS):
        with pytest.raises(jaxtyping.TypeCheckError, match="return value"):
            decorated(ones(2, 3), 0)
    assert decorated(ones(2, 3), 0).shape == (3, 2)


def test_each_test_checks_the_first_calls_again(decorated):
    assert decorated(ones(2, 3), 2).shape == (2, 3)
    with pytest.raises(jaxtyping.TypeCheckError, match="parameters"):
        decorated(ones(2, 3), "2")
