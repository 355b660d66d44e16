"""How training sources are written: counted once, and stored with a run."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import DataError
from glassformer.text.habits import Habits
from glassformer.text.recasing import Spellings

LINES = ["A cat sleeps.", "Two dogs eat. They sleep.", "Dr. Smith sees a cat.", "The cat sees 3 dogs."]


def of(*sources, targets=None):
    return Habits.of([*zip(sources, targets or sources, strict=True)], "en", Spellings(()))


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
        ([*LINES * 50, "@@", "—"], [*LINES * 50, "Two dogs eat.", "A cat sleeps."], True),  # noise
        ([*LINES * 90, "5", "10 %", "1,000"], [*LINES * 90, "5", "10 %", "1.000"], True),
        (LINES, None, True),
        ([], None, True),
    ],
)
def test_texts_without_a_letter_are_copied_unless_the_training_did_otherwise(sources, targets, copies):
    assert of(*sources, targets=targets).copies is copies


def test_lines_are_split_if_few_lines_of_the_training_had_several_sentences():
    assert of(*["A cat sleeps."] * 20, LINES[1]).splits
    assert not of(*["A cat sleeps."] * 19, LINES[1]).splits


def test_cases_are_counted():
    lines = ["The cat sleeps.", "THE CAT SLEEPS.", "the cat sleeps.", "The Cat Sleeps There."]
    found = of(*lines)
    assert (found.capitals, found.lower, found.title) == (0.25, 0.25, 0.25)
    assert (found.with_capital, found.first_capital) == (0.75, 0.75)
    assert not found.unusual_cases
    assert of(*["The cat sleeps."] * 200, "THE CAT SLEEPS.").unusual_cases == {"capitals", "lower", "title"}
    assert of(*["The cat sleeps.", "12 cats sleep."] * 200).unusual_cases == {"capitals", "title"}


SHARE = st.floats(0, 1)
ALL = {field.name: st.booleans() if field.name == "letterless_translated" else SHARE for field in fields(Habits)}


@given(st.builds(Habits, **ALL))
def test_stored_habits_are_the_same(habits):
    assert Habits.from_json(habits.to_json()) == habits


@pytest.mark.parametrize(
    "changed", [{"letterless": "0"}, {"letterless_translated": 1}, {"lower": True}, {"title": None}]
)
def test_damaged_habits_are_refused(changed):
    with pytest.raises(DataError, match=f"{next(iter(changed))}: expected a number or a truth value"):
        Habits.from_json(Habits().to_json() | changed)


def test_habits_that_an_older_version_did_not_count_have_their_defaults():
    assert Habits.from_json({"lower": 0.5}) == Habits(lower=0.5)
