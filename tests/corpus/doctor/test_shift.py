import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.doctor.shift import SEGMENT, Shift, ShiftDetector
from profiles import scaled


def lengths(pairs: int, seed: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of characters on both sides of random pairs, as in captions."""
    random_numbers = np.random.default_rng(seed)
    source = random_numbers.lognormal(4.0, 0.4, pairs)
    target = source * random_numbers.lognormal(0.05, noise, pairs)
    return source.astype(np.int64) + 1, target.astype(np.int64) + 1


def detected(
    source: np.ndarray, target: np.ndarray, step: int = 3989, digits: tuple[np.ndarray, np.ndarray] | None = None
) -> list[Shift]:
    detector = ShiftDetector()
    count = min(len(source), len(target))
    numbers = digits or (np.zeros(len(source)), np.zeros(len(target)))
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        detector.add((source[part], target[part]), (numbers[0][part], numbers[1][part]))
    return detector.finish()


@pytest.mark.parametrize("pairs", [0, 1, 19, 20, 21, 500, SEGMENT, SEGMENT + 20, 2 * SEGMENT + 7])
def test_parallel_sides_are_not_shifted(pairs: int):
    source, target = lengths(pairs, seed=pairs)
    assert detected(source, target) == []
    assert detected(target, source) == []


@pytest.mark.parametrize("seed", range(20))
def test_unrelated_lines_are_not_a_shift(seed: int):
    source, target = lengths(3000, seed)
    random.Random(seed).shuffle(target)
    assert detected(source, target) == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("place", [0, 1, 313, SEGMENT - 100, SEGMENT, SEGMENT + 31, 40_000])
def test_missing_lines_are_found_at_their_place(place: int, side: int, count: int):
    sides = list(lengths(50_000, seed=place))
    sides[side] = np.delete(sides[side], range(place, place + count))
    [shift] = detected(*sides)
    assert abs(shift.start - place) <= 10
    assert (shift.by, shift.end) == (count if side == 0 else -count, None)


@scaled(50)
@given(
    seed=st.integers(0, 10**6), place=st.integers(0, 8000), length=st.integers(200, 20_000), step=st.integers(50, 9999)
)
@pytest.mark.slow
def test_a_shift_that_ends_is_found_with_its_end(seed: int, place: int, length: int, step: int):
    source, target = lengths(30_000, seed)
    target = np.insert(np.delete(target, place + length), place, target[0])
    [shift] = detected(source, target, step)
    assert abs(shift.start - place) <= 30
    assert shift.by == 1
    assert shift.end is not None
    assert abs(shift.end - place - length) <= 30


def test_the_size_of_the_input_blocks_changes_nothing():
    source, target = lengths(9000, seed=3)
    target = np.delete(target, 4321)
    assert len({tuple(detected(source, target, step)) for step in (1, 7, 4999, 9000)}) == 1


def test_uninformative_lengths_give_no_warning():
    same = np.full(20_000, 7)
    assert detected(same, same) == []
    assert detected(same, lengths(20_000, seed=1)[0]) == []


def test_a_section_of_unrelated_texts_gives_no_warning():
    source, target = lengths(20_000, seed=11)
    for start in range(2000, 18_000, 4000):
        source[start : start + 1500] = 3
        target[start + 500 : start + 1000] = 900
    assert detected(source, target) == []


def test_digits_suffice_where_lengths_are_uninformative():
    count = 1000
    same = np.full(count, 30)
    numbers = np.random.default_rng(5).integers(0, 40, count) * 1.0
    shifted = np.delete(numbers, 437)
    [shift] = detected(same, same[1:], digits=(numbers, shifted))
    assert abs(shift.start - 437) <= 10
    assert (shift.by, shift.end) == (-1, None)
    assert detected(same, same, digits=(numbers, numbers)) == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("values", [2, 9, 1000])
def test_digits_that_never_match_give_no_warning(seed: int, values: int):
    random_numbers = np.random.default_rng(seed)
    numbers = random_numbers.integers(0, values, (2, 5000)) * 1.0
    assert detected(*lengths(5000, seed), digits=(numbers[0], numbers[1])) == []
