"""The benchmark of the guards makes the failures that it names, and its AUROC is the share of ordered pairs."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from benchmarks.guards import FAILURES, auroc, swapped
from hypothesis import given
from hypothesis import strategies as st

from glassformer.evaluation.signals import longest_repetition, numbers_of

PAIRS = [(f"ein Hund {n} läuft über den Hof", f"a dog number {n} runs across the yard") for n in range(30)]


@pytest.fixture
def made() -> dict[str, list[tuple[str, str]]]:
    return {name: make(PAIRS, random.Random(3)) for name, make in FAILURES.items()}


def test_the_failures_are_what_their_names_say(made) -> None:
    outputs = [output for _, output in PAIRS]
    assert Counter(output for _, output in made["detached"]) == Counter(outputs)
    assert all(one != other for (_, one), other in zip(made["detached"], outputs, strict=True))
    assert all(longest_repetition(output.split()) >= 4 for _, output in made["loop"])
    for (_, output), whole in zip(made["missing"], outputs, strict=True):
        assert not Counter(output.split()) - Counter(whole.split())
        assert len(output.split()) == 5  # a third of the 8 words (3) is left out
    assert made["copy"] == [(source, source) for source, _ in PAIRS]
    for source, output in made["numbers"]:
        ours, theirs = source.split()[-1], output.split()[-1]
        assert sum(one != other for one, other in zip(ours, theirs, strict=True)) == 1
        assert numbers_of(source) != numbers_of(output)


def test_only_the_sources_of_the_changed_numbers_differ(made) -> None:
    for name, pairs in made.items():
        assert len(pairs) == len(PAIRS)
        if name != "numbers":
            assert [source for source, _ in pairs] == [source for source, _ in PAIRS]


def test_the_letters_of_each_word_are_kept() -> None:
    text = "ein Hund läuft"
    found = swapped(text, random.Random(1))
    assert [sorted(one) for one in found.split()] == [sorted(one) for one in text.split()]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_auroc_is_the_share_of_ordered_pairs(positive: list[int], negative: list[int]) -> None:
    pairs = [(one, other) for one in positive for other in negative]
    expected = sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs)
    assert auroc(positive, negative) == pytest.approx(expected)


def test_a_third_in_one_run_is_missing(made) -> None:
    for (_, output), (_, whole) in zip(made["missing"], PAIRS, strict=True):
        words, left = whole.split(), [whole.split().index(word) for word in output.split()]
        gaps = [later - earlier - 1 for earlier, later in pairwise([-1, *left, len(words)])]
        assert sum(gaps) == max(gaps) == 3
