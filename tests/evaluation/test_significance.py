"""Intervals and p-values, compared with enumeration and with sacrebleu's tests, and on equally good systems.

The draws are seeded, so each test always gives the same result. A statistical test says how often a correct
implementation would fail with a random seed.
"""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from glassformer.errors import ConfigError, DataError
from glassformer.evaluation.metrics import METRICS
from glassformer.evaluation.significance import bootstrap, compare_texts, differences, randomisation
from profiles import scaled

few = scaled(10)
each_metric = pytest.mark.parametrize("metric", list(METRICS))
WORDS = ("the", "cat", "dog", "sat", "on", "a", "mat", "big")


def texts(count, seed):
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(3, 11))) for _ in range(count)]


def damaged(lines, share, seed):
    chance = random.Random(seed)
    return [" ".join(word if chance.random() > share else "x" for word in line.split()) for line in lines]


def enumerated(first, second, references, metric):
    """Return the p-value by its definition: over all ways to swap the outputs of lines, including no swap."""
    real = abs(METRICS[metric](first, references).value - METRICS[metric](second, references).value)
    reached = []
    for sides in itertools.product([False, True], repeat=len(first)):
        a, b = (
            [two[side ^ other] for two, side in zip(zip(first, second, strict=True), sides, strict=True)]
            for other in (False, True)
        )
        difference = METRICS[metric](a, references).value - METRICS[metric](b, references).value
        reached.append(abs(difference) >= real - 1e-9)
    return sum(reached) / len(reached)


@pytest.mark.slow
@each_metric
@few
@given(seed=st.integers(0, 10**6), lines=st.integers(1, 7))
def test_the_p_value_equals_that_of_enumerating_all_swaps(metric, seed, lines):
    references = texts(lines, seed)
    first, second = damaged(references, 0.2, seed + 1), damaged(references, 0.4, seed + 2)
    [comparison] = compare_texts(first, second, references, metrics=[metric], samples=2)
    # The tolerance is five standard deviations of 10 000 random swaps: a false alarm once in 1.7 million examples.
    assert comparison.p_value == pytest.approx(enumerated(first, second, references, metric), abs=0.026)


@pytest.mark.slow
def test_bleu_and_chrf_have_sacrebleus_p_values():
    references = texts(101, 1)
    first, second = damaged(references, 0.30, 2), damaged(references, 0.26, 3)
    _, theirs = PairedTest([("1", first), ("2", second)], {"BLEU": BLEU(), "chrF": CHRF()}, [references])()
    for ours in compare_texts(first, second, references, metrics=["bleu", "chrf"]):
        result = theirs[ours.name][1]
        assert ours.second == pytest.approx(result.score)
        assert 0.01 < result.p_value < 0.5
        # Two estimates from 10 000 random swaps each; 0.03 is at least four standard deviations of their difference.
        assert ours.p_value == pytest.approx(result.p_value, abs=0.03)


@pytest.mark.slow
def test_a_single_different_line_proves_nothing():
    # sacrebleu only counts swaps whose difference exceeds the real one, which is impossible here.
    references = texts(101, 1)
    second = [*references[:-1], "x"]
    _, theirs = PairedTest([("1", references), ("2", second)], {"BLEU": BLEU()}, [references])()
    assert theirs["BLEU"][1].p_value < 0.001
    for comparison in compare_texts(references, second, references, metrics=list(METRICS)):
        assert (comparison.p_value, comparison.better) == (1, 0)


@each_metric
@few
@given(seed=st.integers(0, 10**6))
def test_swapping_the_systems_negates_the_difference(metric, seed):
    references = texts(23, seed)
    outputs = damaged(references, 0.2, seed + 1), damaged(references, 0.5, seed + 2)
    [one] = compare_texts(*outputs, references, metrics=[metric], samples=50, tosses=199)
    [other] = compare_texts(*outputs[::-1], references, metrics=[metric], samples=50, tosses=199)
    assert (one.first, one.second, one.p_value) == (other.second, other.first, other.p_value)
    assert one.difference == -other.difference
    assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))
    assert one.better == {0: 0, 1: 2, 2: 1}[other.better]


@pytest.mark.slow
@each_metric
def test_a_system_does_not_differ_from_itself(metric):
    references = texts(11, 5)
    outputs = damaged(references, 0.3, 6)
    [comparison] = compare_texts(outputs, outputs, references, metrics=[metric])
    assert (comparison.difference, comparison.low, comparison.high) == (0, 0, 0)
    assert (comparison.p_value, comparison.better) == (1, 0)


@pytest.mark.slow
@each_metric
def test_a_clearly_better_system_is_called_better(metric):
    references = texts(101, 5)
    good, bad = damaged(references, 0.05, 6), damaged(references, 0.5, 7)
    [comparison] = compare_texts(good, bad, references, metrics=[metric])
    assert comparison.better == 1
    assert comparison.p_value == pytest.approx(1 / 10_001)
    assert not comparison.low <= 0 <= comparison.high
    assert comparison.low < comparison.difference < comparison.high


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["word_error", "per"])
def test_equally_good_systems_are_rarely_called_different(metric):
    p_values, missed = [], 0
    for seed in range(200):
        references = texts(101, seed)
        first, second = damaged(references, 0.1, 1000 + seed), damaged(references, 0.1, 2000 + seed)
        counted = [METRICS[metric].count(outputs, references) for outputs in (first, second)]
        p_values.append(randomisation(*counted, tosses=199, seed=seed))
        low, high = bootstrap(*counted, samples=199, seed=seed)
        missed += not low <= 0 <= high
    # Of 200 tests at the level of 5 %, about 10 are significant by chance; 22 or more occur once in 2 000 times, 25 or
    # more once in 38 000 times.
    assert sum(p_value < 0.05 for p_value in p_values) < 22
    assert missed < 25  # intervals from 101 lines contain the true value slightly less often than they claim
    # The p-values must be uniform, or larger where there are ties. By the inequality of Dvoretzky, Kiefer and
    # Wolfowitz, a correct test fails here once in 900 times.
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert np.mean(np.array(p_values) <= share) < share + 0.137
        assert metric == "word_error" or np.mean(np.array(p_values) <= share) > share - 0.137


def test_the_interval_of_a_share_follows_the_binomial_distribution():
    references = ["a"] * 400
    outputs = ["a"] * 300 + ["b"] * 100
    low, high = bootstrap(METRICS["exact"].count(outputs, references), samples=5000)
    # The exact interval is 75 ± 1.96 · √(0.75 · 0.25 / 400) %. A quantile of 5000 samples is off by 0.4 once in 10 000
    # times.
    assert (low, high) == (pytest.approx(75 - 4.24, abs=0.4), pytest.approx(75 + 4.24, abs=0.4))


def test_equal_seeds_give_equal_numbers_and_different_seeds_similar_ones():
    references = texts(53, 5)
    outputs = damaged(references, 0.3, 6), damaged(references, 0.35, 7)
    one, same, other = (compare_texts(*outputs, references, metrics=["per"], seed=seed)[0] for seed in (1, 1, 2))
    assert one == same
    assert one.p_value != other.p_value
    assert one.p_value == pytest.approx(other.p_value, abs=0.03)


def test_small_blocks_of_tosses_give_the_same_as_one_block(monkeypatch):
    references = texts(32, 5)  # the number of lines is a multiple of the bits that the generator draws at once
    outputs = damaged(references, 0.3, 6), damaged(references, 0.35, 7)
    counted = [METRICS["per"].count(each, references) for each in outputs]
    whole = randomisation(*counted, tosses=1000)
    monkeypatch.setattr("glassformer.evaluation.significance.TOSSED_TOGETHER", 640)
    assert randomisation(*counted, tosses=1000) == pytest.approx(whole, abs=0.1)


def test_lines_with_the_largest_difference_come_first_with_their_edits():
    references = ["K AE T", ["R EH D", "R IY D"], "D AO G", "AH"]
    first, second = ["K AE T", "R IY D", "D", "AH"], ["K AH T", "R EH D", "D AO G", "AH"]
    found = differences(first, second, references)
    assert [one.line for one in found] == [2, 0]
    assert found[0].edits == (pytest.approx(5 / 6), 0)
    assert found[1].edits == (0, pytest.approx(1 / 6))


def test_an_impossible_comparison_is_an_error():
    with pytest.raises(ConfigError, match="did you mean 'bleu'"):
        compare_texts(["a"], ["a"], ["a"], metrics=["blue"])
    with pytest.raises(DataError, match="1 hypotheses and 2 references"):
        compare_texts(["a", "b"], ["a"], ["a", "b"], metrics=["exact"])
