"""Sampling."""

import collections
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import greedy, sample
from glassformer.decoding.sampling import draw
from glassformer.errors import ConfigError, DecodingError
from profiles import scaled

examples = scaled(40)
SEEDS = st.integers(0, 10**6)
DTYPES = st.sampled_from([torch.float32, torch.float64])
DRAWS = 4001
FIRST = {(): {3: 0.5, 4: 0.3, 2: 0.2}}

# The statistical tests compare χ² with the value that a correct sampler exceeds with probability 10⁻⁶. Their seeds are
# fixed, so each test either always passes or always fails.
CHI_SQUARE_2 = -2 * math.log(1e-6)  # for two degrees of freedom: P(χ² > x) = exp(−x/2)
CHI_SQUARE_6 = 38.26  # for six: P(χ² > x) = exp(−x/2) · (1 + x/2 + (x/2)²/2)


def chi_square(counts, probabilities):
    total = sum(counts.values())
    assert set(counts) <= set(probabilities)
    return sum((counts[key] - total * p) ** 2 / (total * p) for key, p in probabilities.items())


def first_tokens(written_toy, **sampling):
    step = written_toy(FIRST, copies=DRAWS)
    drawn = sample(step, max_lengths=[2] * DRAWS, seeds=range(DRAWS), **sampling)
    return collections.Counter(hypothesis.tokens[0] for hypothesis in drawn)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_tokens_are_as_frequent_as_their_tempered_probabilities(written_toy, temperature):
    weights = {token: p ** (1 / temperature) for token, p in FIRST[()].items()}
    expected = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    assert chi_square(first_tokens(written_toy, temperature=temperature), expected) < CHI_SQUARE_2


def test_whole_outputs_are_as_frequent_as_their_probabilities(written_toy):
    word = {3: 0.45, 4: 0.3, 2: 0.25}
    step = written_toy(
        {(): word, (3,): word, (4,): word, **{(a, b): word for a in (3, 4) for b in (3, 4)}}, copies=DRAWS
    )
    drawn = sample(step, max_lengths=[3] * DRAWS, seeds=range(DRAWS))
    outputs = [(2,), (3, 2), (4, 2), *((a, b, 2) for a in (3, 4) for b in (3, 4))]
    free = {tokens: math.prod(word[token] for token in tokens[:2]) for tokens in outputs}  # the third token is forced
    assert chi_square(collections.Counter(hypothesis.tokens for hypothesis in drawn), free) < CHI_SQUARE_6


def test_top_k_keeps_the_most_probable_tokens_in_proportion(written_toy):
    assert chi_square(first_tokens(written_toy, top_k=2), {3: 5 / 8, 4: 3 / 8}) < CHI_SQUARE_2


@pytest.mark.slow
@pytest.mark.parametrize(("top_p", "left"), [(0.4, [3]), (0.5, [3]), (0.51, [3, 4]), (0.81, [3, 4, 2])])
def test_top_p_keeps_the_fewest_tokens_with_that_share(written_toy, top_p, left):
    share = sum(FIRST[()][token] for token in left)
    counts = first_tokens(written_toy, top_p=top_p)
    assert chi_square(counts, {token: FIRST[()][token] / share for token in left}) < CHI_SQUARE_2
    assert set(counts) == set(left)


@pytest.mark.slow
def test_top_p_is_a_share_of_the_tokens_that_top_k_keeps(written_toy):
    # 0.5 of the 0.8 that top_k leaves is enough; 0.6 of everything would need 3 and 4
    assert set(first_tokens(written_toy, top_k=2, top_p=0.6)) == {3}
    assert set(first_tokens(written_toy, top_k=2, top_p=0.7)) == {3, 4}


@pytest.mark.slow
@examples
@given(seed=SEEDS, dtype=DTYPES)
def test_top_1_sampling_is_greedy_search(random_toy, seed, dtype):
    step = random_toy(seed, sentences=3, vocab_size=7, dtype=dtype)
    arguments = {"max_lengths": [2, 11, 5], "prefixes": [[], [5], [3, 4]]}
    expected = greedy(step, **arguments)
    for narrow in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-9}):
        assert sample(step, seeds=[seed, 7, 11], **arguments, **narrow) == expected


@examples
@given(seed=SEEDS, top_k=st.sampled_from([0, 3, 7, 11]), top_p=st.sampled_from([0.7, 1.0]))
def test_a_sentence_is_sampled_alike_in_any_batch(random_toy, seed, top_k, top_p):
    step = random_toy(seed, sentences=4, vocab_size=7)
    max_lengths, seeds, prefixes = [3, 11, 1, 7], [seed, 5, seed, 2**32 - 1], [[4], [], [], [6, 5]]
    sampling = {"temperature": 1.3, "top_k": top_k, "top_p": top_p}
    together = sample(step, max_lengths=max_lengths, seeds=seeds, prefixes=prefixes, **sampling)
    for i, hypothesis in enumerate(together):
        arguments = {"max_lengths": max_lengths[i : i + 1], "seeds": seeds[i : i + 1], "prefixes": prefixes[i : i + 1]}
        assert sample(step.alone(i), **arguments, **sampling) == [hypothesis]


def test_equal_seeds_give_equal_samples_and_different_seeds_do_not(random_toy):
    step = random_toy(5, sentences=23, vocab_size=13)
    every = step.rule
    step.rule = lambda sentence, history: every(0, history)
    drawn = sample(step, max_lengths=[17] * 23, seeds=[*range(22), 0], temperature=2.0)
    assert drawn[22] == drawn[0]
    assert len({hypothesis.tokens for hypothesis in drawn}) > 11


def test_seeds_may_be_any_integers(random_toy):
    step = random_toy(5, sentences=3, vocab_size=13)
    drawn = [sample(step, max_lengths=[17] * 3, seeds=seeds) for seeds in ([7, -1, 2**77], [7 + 2**32, 2**32 - 1, 0])]
    assert drawn[0] == drawn[1]


@examples
@given(seed=SEEDS, dtype=DTYPES)
def test_log_probs_equal_those_of_forced_rescoring_at_any_temperature(random_toy, seed, dtype):
    step = random_toy(seed, sentences=3, vocab_size=7, dtype=dtype)
    drawn = sample(step, max_lengths=[2, 5, 11], seeds=[seed, 1, 2], temperature=3.0, top_k=5, top_p=0.9)
    for sentence, hypothesis in enumerate(drawn):
        assert hypothesis.token_log_probs == step.rescore(sentence, hypothesis.tokens)


@examples
@given(seed=SEEDS)
def test_impossible_and_special_tokens_are_never_sampled(random_toy, seed):
    step = random_toy(seed, sentences=3, vocab_size=7, holes=0.7)
    drawn = sample(step, max_lengths=[3, 5, 7], seeds=[seed, seed + 1, seed + 2], temperature=50.0)
    for hypothesis, max_length in zip(drawn, [3, 5, 7], strict=True):
        assert hypothesis.log_prob > -math.inf
        assert len(hypothesis.tokens) <= max_length
        assert not {0, 1, 2} & set(hypothesis.tokens[:-1])


@pytest.mark.parametrize("sampling", [{}, {"top_k": 3}, {"top_p": 0.8}])
def test_extreme_random_numbers_give_possible_tokens(sampling):
    log_probs = torch.tensor([-math.inf, 0.25, -math.inf, 0.75, -math.inf]).log_softmax(0).expand(2, 5)
    tokens = draw(
        log_probs, torch.tensor([2.0**-53, 1.0]), **{"temperature": 1.0, "top_k": 0, "top_p": 1.0, **sampling}
    )
    assert set(tokens.tolist()) == {1, 3}


def test_finished_sentences_leave_the_batch(written_toy):
    step = written_toy({(3,) * length: {3: 1 - 1e-12, 2: 1e-12} for length in range(7)}, copies=3)
    sample(step, max_lengths=[5, 2, 7], seeds=[1, 2, 3])
    assert step.seen == [3, 3, 2, 2, 2, 1, 1]


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
@pytest.mark.parametrize("sampling", [{}, {"top_k": 3}, {"top_p": 0.8}])
def test_a_sentence_without_a_possible_output_is_named(random_toy, impossible, sampling):
    step = random_toy(0, sentences=3)
    good = step.rule
    step.rule = lambda sentence, history: [impossible] * 5 if sentence == 1 else good(sentence, history)
    with pytest.raises(DecodingError, match=r"sentence 1 .* has no output"):
        sample(step, max_lengths=[5, 5, 5], seeds=[1, 2, 3], **sampling)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": 0.0}, r"decoding\.temperature: expected"),
        ({"temperature": -1.0}, r"decoding\.temperature: expected"),
        ({"temperature": math.inf}, r"decoding\.temperature: expected"),
        ({"temperature": math.nan}, r"decoding\.temperature: expected"),
        ({"top_k": -1}, r"decoding\.top_k: expected"),
        ({"top_p": 0.0}, r"decoding\.top_p: expected"),
        ({"top_p": 1.5}, r"decoding\.top_p: expected"),
        ({"seeds": [1, 2]}, "expected a seed for each of 1 sentences, got 2"),
        ({"max_lengths": [-5]}, "expected at least 1, for <eos>, got -5"),
        ({"prefixes": [[2]]}, "holds <eos>"),
    ],
)
def test_the_arguments_are_checked(random_toy, arguments, message):
    with pytest.raises((ConfigError, DecodingError), match=message):
        sample(random_toy(0), **{"max_lengths": [5], "seeds": [0], **arguments})
