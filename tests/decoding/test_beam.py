"""Beam search."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import beam_search, greedy
from glassformer.errors import ConfigError, DecodingError
from profiles import scaled

examples = scaled(40)
SEEDS = st.integers(0, 10**6)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0, 0.3, 2.0])

GARDEN_PATH = {
    (): {3: 0.6, 4: 0.4},
    (3,): {3: 0.35, 4: 0.35, 2: 0.3},
    (4,): {3: 0.05, 4: 0.05, 2: 0.9},
}


def beam_by_hand(step, sentence, beam_size, max_length, alpha):
    """Return beam search for one sentence in plain Python: (score, tokens) best first, and the number of steps."""
    living, finished, length, penalty = [(0.0, ())], [], 0, 1.0
    while living and (len(finished) < beam_size or living[0][0] / penalty > finished[-1][0]):
        length += 1
        penalty = ((5 + length) / 6) ** alpha
        allowed = [2] if length == max_length else [token for token in range(step.vocab_size) if token > 1]
        candidates = []
        for log_prob, tokens in living:
            rule = step.rule(sentence, tokens)
            candidates += [(log_prob + rule[token], (*tokens, token)) for token in allowed]
        candidates = sorted(candidates, reverse=True)[: 2 * beam_size]
        finished += [(log_prob / penalty, tokens) for log_prob, tokens in candidates[:beam_size] if tokens[-1] == 2]
        finished = sorted(finished, reverse=True)[:beam_size]
        living = [candidate for candidate in candidates if candidate[1][-1] != 2][:beam_size]
    return finished, length


def test_the_beam_finds_an_output_that_greedy_search_misses(written_toy):
    (straight,) = greedy(written_toy(GARDEN_PATH), max_lengths=[2], length_penalty=0.0)
    ((best, second),) = beam_search(
        written_toy(GARDEN_PATH), beam_size=2, n_best=2, max_lengths=[2], length_penalty=0.0
    )
    assert (straight.tokens, straight.score) == ((3, 2), pytest.approx(math.log(0.6 * 0.3)))
    assert (best.tokens, best.score) == ((4, 2), pytest.approx(math.log(0.4 * 0.9)))
    assert second == straight


def test_the_length_penalty_decides_between_short_and_long(written_toy):
    table = {(): {2: 0.3, 3: 0.7}, (3,): {2: 0.4, 4: 0.6}, (3, 4): {2: 0.1, 4: 0.9}}
    # The short output has the score log 0.3 = −1.204. The long output has the score log (0.7 · 0.4) / (7/6)^α, which
    # is −1.273 for α = 0 and −1.091 for α = 1.
    for alpha, expected in ((0.0, (2,)), (1.0, (3, 2))):
        ((best,),) = beam_search(written_toy(table), beam_size=3, max_lengths=[3], length_penalty=alpha)
        assert best.tokens == expected


def test_an_eos_after_the_first_n_candidates_does_not_finish(written_toy):
    table = {(): {3: 0.4, 4: 0.35, 2: 0.2, 5: 0.05}, (3,): {2: 0.1, 3: 0.9}, (4,): {2: 0.1, 3: 0.9}}
    (narrow,) = beam_search(
        written_toy(table, vocab_size=7), beam_size=2, n_best=2, max_lengths=[2], length_penalty=0.0
    )
    (wide,) = beam_search(written_toy(table, vocab_size=7), beam_size=3, n_best=2, max_lengths=[2], length_penalty=0.0)
    assert [hypothesis.tokens for hypothesis in narrow] == [(3, 2), (4, 2)]
    assert [hypothesis.tokens for hypothesis in wide] == [(2,), (5, 2)]


def test_a_sentence_is_done_when_no_living_hypothesis_beats_its_nth_finished_one(written_toy):
    table = {(3,) * length: {2: 0.9, 3: 0.1} for length in range(13)}
    for beam_size, steps in ((1, 1), (2, 2), (5, 5)):
        step = written_toy(table)
        beam_search(step, beam_size=beam_size, max_lengths=[11])
        assert len(step.seen) == steps


def test_finished_sentences_leave_the_batch_with_all_their_rows(written_toy):
    endless = {(3,) * length: {3: 0.9, 4: 0.09, 2: 0.01} for length in range(11)}
    step = written_toy(endless, copies=4)
    beam_search(step, beam_size=2, max_lengths=[5, 2, 3, 2], n_best=2)
    assert step.seen == [4, 8, 4, 2, 2]


@examples
@given(seed=SEEDS, alpha=ALPHAS)
def test_a_beam_of_one_is_greedy_search(random_toy, seed, alpha):
    step = random_toy(seed, sentences=3, vocab_size=7)
    arguments = {"max_lengths": [2, 11, 5], "length_penalty": alpha, "prefixes": [[], [5], [3, 4]]}
    found = beam_search(step, beam_size=1, **arguments)
    assert [hypothesis for (hypothesis,) in found] == greedy(step, **arguments)


@examples
@given(seed=SEEDS, alpha=ALPHAS, beam_size=st.integers(1, 5), max_length=st.integers(1, 13))
def test_the_beam_equals_a_plain_python_implementation(random_toy, seed, alpha, beam_size, max_length):
    step = random_toy(seed, vocab_size=7)
    expected, steps = beam_by_hand(step, 0, beam_size, max_length, alpha)
    (found,) = beam_search(step, beam_size=beam_size, n_best=beam_size, max_lengths=[max_length], length_penalty=alpha)
    assert [hypothesis.tokens for hypothesis in found] == [tokens for _, tokens in expected]
    assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected])
    assert len(step.seen) == steps


@examples
@given(seed=SEEDS, alpha=ALPHAS, max_length=st.integers(1, 4), holes=st.sampled_from([0.0, 0.4]), n_best=st.just(11))
def test_a_beam_as_large_as_the_space_of_outputs_is_exhaustive_search(
    random_toy, seed, alpha, max_length, holes, n_best
):
    step = random_toy(seed, sentences=2, holes=holes)
    beam_size = max(5**max_length, n_best)
    max_lengths = [max_length, max(max_length - 1, 1)]
    found = beam_search(step, beam_size=beam_size, n_best=n_best, max_lengths=max_lengths, length_penalty=alpha)
    for sentence, hypotheses in enumerate(found):
        expected = step.outputs(sentence, max_lengths[sentence], alpha)[:n_best]
        assert [hypothesis.tokens for hypothesis in hypotheses] == [tokens for _, tokens in expected]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx([score for score, _ in expected])


@examples
@given(seed=SEEDS, alpha=ALPHAS, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_log_probs_equal_those_of_forced_rescoring(random_toy, seed, alpha, dtype):
    step = random_toy(seed, sentences=3, vocab_size=7, dtype=dtype)
    found = beam_search(step, beam_size=5, n_best=3, max_lengths=[2, 7, 5], length_penalty=alpha)
    for sentence, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            assert hypothesis.token_log_probs == step.rescore(sentence, hypothesis.tokens)
            assert hypothesis.log_prob == math.fsum(hypothesis.token_log_probs)


@examples
@given(seed=SEEDS, alpha=ALPHAS)
def test_hypotheses_are_different_and_the_best_come_first(random_toy, seed, alpha):
    step = random_toy(seed, sentences=2, vocab_size=11)
    for hypotheses in beam_search(step, beam_size=7, n_best=5, max_lengths=[5, 3], length_penalty=alpha):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len(hypotheses) == 5
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == 5


@examples
@given(seed=SEEDS)
def test_fewer_results_are_the_first_of_more_results(random_toy, seed):
    step = random_toy(seed, sentences=2, vocab_size=7)
    one, three = (beam_search(step, beam_size=3, n_best=n_best, max_lengths=[5, 7]) for n_best in (1, 3))
    assert one == [hypotheses[:1] for hypotheses in three]


@examples
@given(seed=SEEDS, beam_size=st.integers(1, 5))
def test_a_batch_gives_the_same_results_as_single_sentences(random_toy, seed, beam_size):
    step = random_toy(seed, sentences=5, vocab_size=7)
    max_lengths, prefixes = [3, 11, 1, 7, 2], [[4], [], [], [6, 5, 3], []]
    together = beam_search(step, beam_size=beam_size, n_best=beam_size, max_lengths=max_lengths, prefixes=prefixes)
    for sentence, (max_length, prefix) in enumerate(zip(max_lengths, prefixes, strict=True)):
        alone = beam_search(
            step.alone(sentence), beam_size=beam_size, n_best=beam_size, max_lengths=[max_length], prefixes=[prefix]
        )
        assert alone == [together[sentence]]


@examples
@given(seed=SEEDS, beam_size=st.integers(1, 5))
def test_prefixes_lengths_and_special_tokens_are_respected(random_toy, seed, beam_size):
    step = random_toy(seed, sentences=3, vocab_size=7)
    max_lengths, prefixes = [3, 5, 2], [[4, 6], [3], []]
    found = beam_search(step, beam_size=beam_size, n_best=beam_size, max_lengths=max_lengths, prefixes=prefixes)
    for hypotheses, max_length, prefix in zip(found, max_lengths, prefixes, strict=True):
        assert hypotheses
        for tokens in (hypothesis.tokens for hypothesis in hypotheses):
            assert list(tokens[: len(prefix)]) == prefix
            assert tokens[-1] == 2
            assert len(prefix) < len(tokens) <= max_length
            assert not {0, 1, 2} & set(tokens[:-1])


@examples
@given(seed=SEEDS)
def test_impossible_tokens_are_never_chosen(random_toy, seed):
    step = random_toy(seed, sentences=2, vocab_size=7, holes=0.7)
    for hypotheses in beam_search(step, beam_size=5, n_best=5, max_lengths=[3, 5]):
        assert all(hypothesis.log_prob > -math.inf for hypothesis in hypotheses)


def test_fewer_hypotheses_are_returned_if_fewer_exist(random_toy):
    (hypotheses,) = beam_search(random_toy(0), beam_size=3, n_best=3, max_lengths=[1])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(2,)]


def test_no_sentences_give_no_results(random_toy):
    assert beam_search(random_toy(0, sentences=0), beam_size=3, max_lengths=[]) == []


def test_a_hypothesis_whose_probabilities_are_nan_is_dropped(written_toy):
    step = written_toy(GARDEN_PATH)
    good = step.rule
    step.rule = lambda sentence, history: [math.nan] * 5 if history == (4,) else good(sentence, history)
    (hypotheses,) = beam_search(step, beam_size=2, n_best=2, max_lengths=[2])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [(3, 2)]


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_a_sentence_without_a_possible_output_is_named(random_toy, impossible):
    step = random_toy(0, sentences=3)
    good = step.rule
    step.rule = lambda sentence, history: [impossible] * 5 if sentence == 1 else good(sentence, history)
    with pytest.raises(DecodingError, match=r"sentence 1 .* has no output"):
        beam_search(step, beam_size=3, max_lengths=[5, 5, 5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beam_size": 0}, r"decoding\.beam_size: expected"),
        ({"beam_size": 3, "n_best": 5}, "n_best: expected a number from 1 to beam_size = 3, got 5"),
        ({"beam_size": 3, "n_best": 0}, "n_best: expected a number from 1 to beam_size"),
        ({"beam_size": 3, "length_penalty": math.nan}, r"decoding\.length_penalty: expected"),
        ({"beam_size": 3, "max_lengths": [0]}, "maximum length of sentence 0 .counted from 0.: expected at least 1"),
        ({"beam_size": 3, "prefixes": [[3, 4, 3, 4, 3]]}, "leaves no room for <eos>"),
    ],
)
def test_the_arguments_are_checked(random_toy, arguments, message):
    with pytest.raises((ConfigError, DecodingError), match=message):
        beam_search(random_toy(0), **{"max_lengths": [5], **arguments})
