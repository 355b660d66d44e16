"""How training sources are written: counted once, and stored with a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import DataError
from glassformer.text.habits import Habits

LINES = ["A cat sleeps.", "Two dogs eat. They sleep.", "Dr. Smith sees a cat.", "The cat sees 3 dogs."]


def of(*sources, targets=None):
    return Habits.of([*zip(sources, targets or sources, strict=True)], "en")


def test_shares_are_counted():
    found = of(*LINES, "12")
    assert (found.letterless, found.letterless_translated, found.several_sentences) == (0.2, False, 0.2)
    assert not found.copies
    assert not found.splits


@pytest.mark.parametrize(
    ("sources", "targets", "copies"),
    [
        ([*LINES * 30, "12:30"], None, True),
        ([*LINES * 30, "12:30"], [*LINES * 30, " 12:30 "], True),  # white space does not count
        ([*LINES * 30, "12:30"], [*LINES * 30, "half past twelve"], False),
        (["1 2 3", "4 5"], ["3 2 1", "5 4"], False),
        (LINES, None, True),
        ([], None, True),
    ],
)
def test_texts_without_a_letter_are_copied_unless_the_training_did_otherwise(sources, targets, copies):
    assert of(*sources, targets=targets).copies is copies


def test_lines_are_split_if_few_lines_of_the_training_had_several_sentences():
    assert of(*["A cat sleeps."] * 20, LINES[1]).splits
    assert not of(*["A cat sleeps."] * 19, LINES[1]).splits


@given(
    st.builds(
        Habits, letterless=st.floats(0, 1), letterless_translated=st.booleans(), several_sentences=st.floats(0, 1)
    )
)
def test_stored_habits_are_the_same(habits):
    assert Habits.from_json(habits.to_json()) == habits


@pytest.mark.parametrize("values", [{}, {"letterless": "0"}, {"letterless": 0, "letterless_translated": 1}])
def test_damaged_habits_are_refused(values):
    with pytest.raises(DataError, match="expected letterless, letterless_translated and several_sentences"):
        Habits.from_json(values)
