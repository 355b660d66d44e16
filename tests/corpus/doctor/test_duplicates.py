import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.doctor.duplicates import Bits, Repeats, first_bits, inverted

numbers = st.lists(st.integers(0, 300), max_size=60)


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.slow
@given(parts=st.lists(numbers, max_size=4))
def test_bits_return_their_stored_values(parts: list[list[int]]):
    bits = Bits()
    for part in parts:
        bits.add(array(part))
    expected = sorted({number for part in parts for number in part})
    assert np.flatnonzero(np.unpackbits(bits.packed(307))).tolist() == expected
    assert np.flatnonzero(np.unpackbits(bits.packed(100))[:100]).tolist() == [one for one in expected if one < 100]


@pytest.mark.slow
@given(chosen=st.sets(st.integers(0, 70)), more=st.integers(1, 20))
def test_bits_are_counted_and_inverted(chosen: set[int], more: int):
    count = max(chosen, default=0) + more
    bits = Bits()
    bits.add(array(sorted(chosen)))
    packed = bits.packed(count)
    assert first_bits(packed, 5) == (len(chosen), sorted(chosen)[:5])
    others = inverted(packed, count)
    assert np.flatnonzero(np.unpackbits(others)).tolist() == [one for one in range(count) if one not in chosen]


@given(
    keys=st.lists(st.tuples(*[st.sampled_from([0, 1, 2**63, 2**64 - 1])] * 2), max_size=200),
    capacity=st.sampled_from([1, 3, 17, 1000]),
    step=st.sampled_from([1, 5, 50]),
)
def test_a_repeat_is_a_value_with_an_earlier_number(keys: list[tuple[int, int]], capacity: int, step: int):
    fingerprints = np.array(keys, np.uint64).reshape(-1, 2)
    with Repeats(1) as repeats:
        repeats.capacity = capacity
        for start in range(0, len(keys), step):
            part = fingerprints[start : start + step]
            repeats.add(part, 3 * np.arange(start, start + len(part)))
        found = repeats.finish().packed(3 * len(keys))
    expected = [3 * number for number, key in enumerate(keys) if key in keys[:number]]
    assert np.flatnonzero(np.unpackbits(found)).tolist() == expected


@pytest.mark.parametrize("megabytes", [1, 64])
def test_the_same_repeats_are_found_with_little_memory(megabytes: int):
    values = np.random.default_rng(17).integers(0, 50_000, 100_000).astype(np.uint64)
    # Splitting the fingerprints into parts on disk only works if they are evenly distributed.
    keys = np.stack([values * np.uint64(0x9E3779B97F4A7C15), values * np.uint64(0xC2B2AE3D27D4EB4F)], axis=1)
    with Repeats(megabytes) as repeats:
        for start in range(0, len(keys), 8191):
            part = keys[start : start + 8191]
            repeats.add(part, np.arange(start, start + len(part)))
        found = repeats.finish().packed(len(keys))
    expected = np.ones(len(values), bool)
    expected[np.unique(values, return_index=True)[1]] = False
    assert np.array_equal(np.unpackbits(found).astype(bool), expected)
