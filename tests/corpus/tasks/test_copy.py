import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.tasks import TASKS, copy_pairs, copy_task
from glassformer.errors import ConfigError


@given(
    count=st.integers(0, 40), symbols=st.integers(3, 12), shortest=st.integers(5, 9), more=st.integers(0, 4),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_copies_have_the_requested_lengths_and_symbols(count, symbols, shortest, more, seed):
    pairs = copy_pairs(count, symbols=symbols, shortest=shortest, longest=shortest + more, seed=seed)
    assert len({pair.source for pair in pairs}) == count
    allowed = {str(number) for number in range(1, symbols + 1)}
    for pair in pairs:
        assert pair.target == pair.source
        assert shortest <= len(pair.source.split()) <= shortest + more
        assert set(pair.source.split()) <= allowed


def test_copies_are_the_same_for_the_same_seed_only():
    assert copy_pairs(20, seed=3) == copy_pairs(20, seed=3)
    assert copy_pairs(20, seed=3) != copy_pairs(20, seed=4)
    assert copy_pairs(1, symbols=5, shortest=3, longest=4, seed=1)[0].source == "5 5 2"


def test_splits_share_no_sequence():
    splits = copy_task(seed=2, train=300, valid=31, test=37).splits
    assert {name: len(split) for name, split in splits.items()} == {"train": 300, "valid": 31, "test": 37}
    assert len({example.source for split in splits.values() for example in split}) == 368


def test_every_symbol_aligns_with_itself():
    (pair,) = copy_pairs(1, shortest=7, longest=7)
    assert pair.alignment == tuple((i, i) for i in range(7))


@pytest.mark.parametrize(
    "wrong", [{"count": 60, "symbols": 10, "shortest": 2, "longest": 2}, {"symbols": 0}, {"shortest": 0, "longest": 3},
              {"shortest": 5, "longest": 4}]
)  # fmt: skip
def test_impossible_copies_are_refused(wrong):
    with pytest.raises(ConfigError, match="copy task"):
        copy_pairs(**{"count": 3, **wrong})


def test_the_table_of_tasks_builds_the_copy_task():
    assert set(TASKS["copy"](5).splits) == {"train", "valid", "test"}
