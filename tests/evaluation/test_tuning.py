"""Weights of candidates: the risk, its minimum, and cross-fitting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.evaluation import tuning
from glassformer.evaluation.metrics import METRICS
from glassformer.evaluation.significance import compare_texts
from glassformer.evaluation.tuning import CandidateTable, cross_fitted, fit_weights, oracle, useful_weights
from profiles import scaled

LETTERS = "abcde"


def made(items: int, seed: int, informative=(1.0, 1.0, 0.0), candidates: int = 4):
    """Return texts, features and references; the more informative a feature, the better it shows right candidates."""
    chance = np.random.default_rng(seed)
    texts, features, references = [], [], []
    for _ in range(items):
        size = int(chance.integers(1, candidates + 1))
        some = list(chance.permutation(list(LETTERS))[:size])
        right = str(chance.choice(list(LETTERS)))
        is_right = np.array([one == right for one in some], float)
        features.append(np.stack([amount * 2 * is_right + chance.normal(size=size) for amount in informative], 1))
        texts.append([str(one) for one in some])
        references.append((right,))
    return texts, features, references


def test_the_risk_is_the_expected_metric_of_random_candidates():
    texts, features = (
        [["a", "b"], ["c"], ["a b", "d", "e"]],
        [np.array([[1.0], [0.5]]), np.array([[2.0]]), np.eye(3)[:, :1]],
    )
    references = [["b"], ["c"], ["a c", "e"]]
    table = CandidateTable.of(texts, features, references, "word_error")
    weight = 1.7
    errors = 0.0
    for some, rows, right in zip(texts, features, references, strict=True):
        shares = [math.exp(weight * float(row[0])) for row in rows]
        errors += sum(share for share, text in zip(shares, some, strict=True) if text not in right) / sum(shares)
    expected = 100 * errors / 3 + tuning.PENALTY * weight**2
    assert table.risk(np.array([weight])) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_the_value_of_chosen_candidates_is_their_metric(metric):
    texts = [["the cat sat on the mat", "a cat"], ["a dog barked at the moon", "dogs"], ["it rained", "it rains a lot"]]
    references = [["the cat sat on a mat"], ["the dog barked at the moon"], ["it rained a lot"]]
    table = CandidateTable.of(texts, [np.array([[1.0], [0.0]])] * 3, references, metric)
    chosen = table.best(np.array([1.0]))
    assert chosen.tolist() == [0, 0, 0]
    assert table.value(chosen) == pytest.approx(METRICS[metric]([one[0] for one in texts], references).value)
    better = max if METRICS[metric].higher_is_better else min
    each = [
        METRICS[metric]([text], [right]).value for some, right in zip(texts, references, strict=True) for text in some
    ]
    assert better(each) == pytest.approx(better([oracle(table), *each]))


@scaled(30)
@given(st.integers(0, 10**6))
def test_fitting_never_raises_the_risk_and_is_repeatable(seed):
    table = CandidateTable.of(*made(40, seed), "word_error")
    start = (1.0, 1.0, 1.0)
    weights = fit_weights(table, start)
    assert table.risk(np.array(weights)) <= table.risk(np.array(start))
    assert weights == fit_weights(table, start)
    for place in range(3):  # no change of a single weight improves the result further
        for step in (-tuning.SMALLEST_STEP, tuning.SMALLEST_STEP):
            other = np.array(weights)
            other[place] += step
            assert table.risk(other) >= table.risk(np.array(weights)) - tuning.LEAST_GAIN


@scaled(30)
@given(st.integers(0, 10**6), st.sampled_from(["word_error", "exact"]))
def test_useful_weights_never_choose_worse_candidates_than_the_initial_ones(seed, metric):
    table = CandidateTable.of(*made(12, seed, informative=(0.1, 0.0, 0.0)), metric)
    start = (1.0, 1.0, 0.0)
    useful, fitted = useful_weights(table, start), fit_weights(table, start)
    assert not table.is_better(start, useful)
    assert useful == (start if table.is_better(start, fitted) else fitted)


def test_initial_weights_stay_where_the_lowest_risk_chooses_worse_candidates():
    # The feature is slightly right about ten items, and very wrong about three, which therefore decide the risk.
    features = [np.array([[0.1], [0.0]])] * 10 + [np.array([[0.0], [10.0]])] * 3
    table = CandidateTable.of([["right", "wrong"]] * 13, features, [["right"]] * 13, "exact")
    [fitted] = fit_weights(table, (1.0,))
    assert fitted < 0
    assert table.value(table.best(np.array([fitted]))) == pytest.approx(100 * 3 / 13)
    assert useful_weights(table, (1.0,)) == (1.0,)


def test_informative_features_get_weights_and_noise_does_not():
    table = CandidateTable.of(*made(1500, 3), "word_error")
    first, second, noise = fit_weights(table, (1.0, 1.0, 1.0))
    assert abs(noise) < 0.25 * min(first, second)
    alone = table.value(table.best(np.array([1.0, 0.0, 0.0])))
    assert table.value(table.best(np.array([first, second, noise]))) < alone


def test_a_metric_of_which_more_is_better_rises():
    table = CandidateTable.of(*made(600, 4), "exact")
    weights = fit_weights(table, (0.0, 0.0, 0.0))
    assert table.value(table.best(np.array(weights))) > table.value(table.best(np.array([0.0, 0.0, 1.0]))) + 10


@pytest.mark.parametrize("metric", ["bleu", "chrf", "cer"])
def test_sentences_are_tuned_by_metrics_of_their_parts(metric):
    chance = np.random.default_rng(8)
    words = [f"word{number}" for number in range(50)]
    texts, features, references = [], [], []
    for _ in range(150):
        right = chance.choice(words, 8)
        changed = [chance.random(8) < share for share in (0.1, 0.3, 0.5)]
        texts.append([" ".join(np.where(one, chance.choice(words, 8), right)) for one in changed])
        features.append(np.array([[-one.sum() + chance.normal(), chance.normal()] for one in changed]))
        references.append((" ".join(right),))
    table = CandidateTable.of(texts, features, references, metric)
    informative, noise = fit_weights(table, (1.0, 1.0))
    assert informative > 4 * abs(noise)


@pytest.mark.slow
def test_cross_fitting_does_not_reward_noise():
    """If features are noise, weights from all items seem to help, but cross-fitted weights do not (fixed seeds)."""
    gains = []
    for seed in range(5):
        table = CandidateTable.of(*made(60, seed, (0.0,) * 8), "word_error")
        start = (1.0,) * 8
        before = table.value(table.best(np.array(start)))
        seeming = before - table.value(table.best(np.array(fit_weights(table, start))))
        gains.append((seeming, before - table.value(cross_fitted(table, start))))
    seeming, honest = np.mean(gains, axis=0)
    assert seeming > 5 > honest + 2


def test_held_weights_stay():
    table = CandidateTable.of(*made(200, 7), "word_error")
    start = (0.5, 1.0, 2.0)
    first, second, third = fit_weights(table, start, held=(0, 2))
    assert (first, third) == (0.5, 2.0)
    assert second != 1.0
    assert cross_fitted(table, start, held=(0, 1, 2)).tolist() == table.best(np.array(start)).tolist()


@pytest.mark.parametrize("metric", ["word_error", "exact"])
def test_fitting_a_weight_gains_where_its_feature_informs(metric):
    texts, features, references = made(400, 9)
    table, start = CandidateTable.of(texts, features, references, metric), (1.0, 0.0, 0.0)

    def gains(place):
        both = (cross_fitted(table, start, held) for held in ((place,), ()))
        outputs = ([some[one] for some, one in zip(texts, best, strict=True)] for best in both)
        [comparison] = compare_texts(*outputs, references, metrics=[metric])
        return comparison.better == 2

    assert gains(1)
    assert not gains(2)


def test_each_half_is_ranked_with_weights_from_the_other():
    texts, features, references = made(101, 5)
    table = CandidateTable.of(texts, features, references, "word_error")
    chosen = cross_fitted(table, (1.0, 1.0, 1.0))
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        alone = CandidateTable.of(texts[other], features[other], references[other], "word_error")
        weights = fit_weights(alone, (1.0, 1.0, 1.0))
        assert chosen[half].tolist() == table.part(half).best(np.array(weights)).tolist()


def test_the_oracle_takes_a_right_candidate_wherever_there_is_one():
    texts, features, references = made(200, 6)
    table = CandidateTable.of(texts, features, references, "word_error")
    wrong = sum(right[0] not in some for some, right in zip(texts, references, strict=True))
    assert oracle(table) == pytest.approx(100 * wrong / 200)


def test_an_unknown_metric_is_refused():
    with pytest.raises(ConfigError, match="rouge"):
        CandidateTable.of(*made(5, 7), "rouge")
