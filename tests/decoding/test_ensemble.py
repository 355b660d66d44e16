"""Ensembles: several models as one step, whose probabilities are the mean of the models' probabilities."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import EnsembleStep, Step, beam_search, greedy, sample
from glassformer.decoding.ensemble import mean_probability
from glassformer.decoding.transformer_step import TransformerStep, target_log_probs
from glassformer.errors import DecodingError
from profiles import scaled

examples = scaled(30)
few = scaled(5)
SEEDS = st.integers(0, 10**6)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])


def mixed(steps):
    """Return the toy whose rule is the mean of these toys' rules, in plain Python."""
    first = steps[0]

    def rule(sentence, history):
        rows = [step.rule(sentence, history) for step in steps]
        means = [sum(map(math.exp, several)) / len(steps) for several in zip(*rows, strict=True)]
        return [math.log(mean) if mean else -math.inf for mean in means]

    return type(first)(rule, first.sentences, first.vocab_size)


def assert_same(ours, theirs):
    assert [one.tokens for one in ours] == [one.tokens for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-12)
        assert (one.log_prob, one.score) == pytest.approx((other.log_prob, other.score), abs=1e-12)


# The mean


@given(st.lists(st.lists(st.floats(-1000, 0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_mean_of_probabilities_is_correct_for_any_size(rows):
    ours = mean_probability(torch.tensor(rows, dtype=torch.float64)).tolist()
    for x, several in zip(ours, zip(*rows, strict=True), strict=True):
        peak = max(several)
        assert x == pytest.approx(math.log(sum(math.exp(y - peak) for y in several) / len(several)) + peak, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("models", [1, 2, 3, 7])
def test_the_mean_of_equal_models_equals_each_of_them_exactly(seed, dtype, models):
    log_probs = torch.randn(5, 11, dtype=dtype).log_softmax(-1)
    assert torch.equal(mean_probability(log_probs.expand(models, 5, 11)), log_probs)


def test_tokens_impossible_for_all_stay_impossible_and_nan_stays_nan():
    inf, nan = math.inf, math.nan
    mean = mean_probability(torch.tensor([[-inf, 0.0, nan], [-inf, -inf, 0.0]])).tolist()
    assert mean[0] == -inf
    assert mean[1] == pytest.approx(math.log(0.5))
    assert math.isnan(mean[2])


# Tiny models


@examples
@given(seed=SEEDS, alpha=ALPHAS, beam_size=st.integers(1, 5), models=st.integers(2, 3))
def test_a_search_of_an_ensemble_equals_a_search_of_the_mean_model(random_toy, seed, alpha, beam_size, models):
    toys = [random_toy((seed, model), sentences=3, vocab_size=7) for model in range(models)]
    options = {"max_lengths": [5, 2, 7], "prefixes": [[], [3], [4, 3]], "length_penalty": alpha}
    beam = {"beam_size": beam_size, "n_best": beam_size}
    ours, theirs = (beam_search(step, **beam, **options) for step in (EnsembleStep(toys), mixed(toys)))
    for several, others in zip(ours, theirs, strict=True):
        assert_same(several, others)
    assert_same(greedy(EnsembleStep(toys), **options), greedy(mixed(toys), **options))
    drawn = [sample(step, seeds=[1, 2, 3], **options) for step in (EnsembleStep(toys), mixed(toys))]
    assert_same(*drawn)


@examples
@given(seed=SEEDS, alpha=ALPHAS, max_length=st.integers(1, 4))
def test_a_beam_as_large_as_the_space_of_outputs_finds_the_best_output(random_toy, seed, alpha, max_length):
    toys = [random_toy((seed, model), holes=0.4) for model in range(2)]
    size = 5**max_length
    [found] = beam_search(
        EnsembleStep(toys), beam_size=size, n_best=size, max_lengths=[max_length], length_penalty=alpha
    )
    expected = mixed(toys).outputs(0, max_length, alpha)
    assert [one.tokens for one in found] == [tokens for _, tokens in expected]
    assert [one.score for one in found] == pytest.approx([score for score, _ in expected])


def test_a_token_impossible_for_one_model_may_win(written_toy):
    sure = written_toy({(): {3: 0.9, 4: 0.1}})
    against = written_toy({(): {4: 0.6, 2: 0.4}})
    [best] = greedy(EnsembleStep([sure, against]), max_lengths=[2])
    assert best.tokens == (3, 2)
    assert best.token_log_probs[0] == pytest.approx(math.log(0.45))


def test_the_models_must_share_their_vocabulary(random_toy):
    with pytest.raises(DecodingError, match=r"the same vocab_size, got \[5, 7\]"):
        EnsembleStep([random_toy(1), random_toy(1, vocab_size=7)])
    with pytest.raises(DecodingError, match="at least one model"):
        EnsembleStep([])


# Transformers


@dataclass
class Naive:
    """A naive ensemble of two models, which read the whole prefix again at each step, one row at a time."""

    models: list
    sources: list

    vocab_size, pad_id, bos_id, eos_id, device = 7, 0, 1, 2, torch.device("cpu")

    def start(self):
        return [(source, ()) for source in self.sources]

    def advance(self, tokens, state):
        state = [(source, (*fed, token)) for (source, fed), token in zip(state, tokens.tolist(), strict=True)]
        rows = []
        for source, fed in state:
            shares = [model(torch.tensor([source]), torch.tensor([fed]))[0, -1].softmax(-1) for model in self.models]
            rows.append((sum(shares) / len(shares)).log())
        return torch.stack(rows), state

    def select(self, state, rows, sentences):
        return [state[row] for row in rows.tolist()]


@pytest.fixture
def two_models(make_model):
    """Return a function that makes two random models of different sizes, and steps of them."""

    def make(seed):
        torch.manual_seed(seed)
        models = [make_model(target_vocab_size=7, tie_output=False, **extra) for extra in ({}, {"d_model": 17})]
        for model in models:
            model.output.weight.data *= 3
        sources = [[*torch.randint(4, 19, (length - 1,)).tolist(), 2] for length in (2, 7, 5)]
        padded = torch.tensor([[*source, *[0] * (7 - len(source))] for source in sources])
        return models, sources, EnsembleStep([TransformerStep(model, padded) for model in models])

    return make


@pytest.mark.slow
@few
@given(seed=SEEDS)
def test_caches_batches_and_reordering_equal_two_whole_models(two_models, seed):
    models, sources, step = two_models(seed)
    assert isinstance(step, Step)
    options = {"beam_size": 3, "n_best": 3, "max_lengths": [3, 7, 5], "prefixes": [[], [4], []]}
    for ours, theirs in zip(beam_search(step, **options), beam_search(Naive(models, sources), **options), strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-10)


@few
@given(seed=SEEDS)
def test_a_found_output_has_the_mean_probability_of_forced_decoding(two_models, seed):
    models, sources, step = two_models(seed)
    for source, one in zip(sources, greedy(step, max_lengths=[5, 5, 5]), strict=True):
        tokens = torch.tensor([one.tokens])
        fed = torch.tensor([[1, *one.tokens[:-1]]])
        forced = [target_log_probs(model, torch.tensor([source]), fed, tokens)[0].exp() for model in models]
        assert one.token_log_probs == pytest.approx((sum(forced) / 2).log().tolist(), abs=1e-10)


def test_an_ensemble_of_a_model_with_itself_is_that_model(two_models):
    [model, _], sources, _ = two_models(1)
    alone = TransformerStep(model, torch.tensor([sources[1]]))
    options = {"beam_size": 3, "n_best": 3, "max_lengths": [7]}
    assert beam_search(EnsembleStep([alone, alone]), **options) == beam_search(alone, **options)
