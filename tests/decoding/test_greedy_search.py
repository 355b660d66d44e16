"""Greedy search."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import greedy
from glassformer.errors import DecodingError
from profiles import scaled

SEEDS = st.integers(0, 10**6)
examples = scaled(40)


def test_each_token_is_the_most_probable(written_toy):
    step = written_toy({(): {3: 0.6, 4: 0.4}, (3,): {3: 0.2, 4: 0.5, 2: 0.3}, (3, 4): {2: 0.75, 4: 0.25}})
    (hypothesis,) = greedy(step, max_lengths=[7])
    assert hypothesis.tokens == (3, 4, 2)
    assert hypothesis.token_log_probs == (math.log(0.6), math.log(0.5), math.log(0.75))
    assert hypothesis.log_prob == pytest.approx(math.log(0.6 * 0.5 * 0.75))
    assert hypothesis.score == pytest.approx(hypothesis.log_prob / (8 / 6) ** 0.6)


@examples
@given(seed=SEEDS)
def test_log_probs_equal_those_of_forced_rescoring(random_toy, seed):
    step = random_toy(seed, sentences=3, vocab_size=7)
    for sentence, hypothesis in enumerate(greedy(step, max_lengths=[2, 5, 11])):
        assert hypothesis.token_log_probs == step.rescore(sentence, hypothesis.tokens)


@examples
@given(seed=SEEDS)
def test_a_batch_gives_the_same_results_as_single_sentences(random_toy, seed):
    step = random_toy(seed, sentences=5, vocab_size=7)
    max_lengths, prefixes = [3, 11, 1, 7, 2], [[4], [], [], [6, 5, 3], []]
    together = greedy(step, max_lengths=max_lengths, prefixes=prefixes)
    for sentence, (max_length, prefix) in enumerate(zip(max_lengths, prefixes, strict=True)):
        assert greedy(step.alone(sentence), max_lengths=[max_length], prefixes=[prefix]) == [together[sentence]]


@examples
@given(seed=SEEDS)
def test_bos_and_pad_are_never_written_and_eos_comes_last_only(random_toy, seed):
    max_lengths = [2, 3, 5, 7]
    hypotheses = greedy(random_toy(seed, sentences=4), max_lengths=max_lengths)
    for hypothesis, max_length in zip(hypotheses, max_lengths, strict=True):
        assert len(hypothesis.tokens) <= max_length
        assert hypothesis.tokens[-1] == 2
        assert not {0, 1, 2} & set(hypothesis.tokens[:-1])


def test_the_last_allowed_token_is_eos_with_its_own_probability(written_toy):
    endless = {(3,) * length: {3: 0.9, 2: 0.1} for length in range(7)}
    (hypothesis,) = greedy(written_toy(endless), max_lengths=[3])
    assert hypothesis.tokens == (3, 3, 2)
    assert hypothesis.log_prob == pytest.approx(math.log(0.9 * 0.9 * 0.1))


def test_a_prefix_is_kept_and_scored_whatever_its_probability(written_toy):
    step = written_toy({(): {3: 0.99, 4: 0.01}, (4,): {3: 0.25, 2: 0.75}, (4, 3): {4: 0.5, 2: 0.25, 3: 0.25}})
    (hypothesis,) = greedy(step, max_lengths=[5], prefixes=[[4, 3]])
    assert hypothesis.tokens == (4, 3, 4, 2)
    assert hypothesis.token_log_probs == (math.log(0.01), math.log(0.25), math.log(0.5), 0.0)


def test_finished_sentences_leave_the_batch(written_toy):
    step = written_toy({(3,) * length: {3: 0.9, 2: 0.1} for length in range(11)}, copies=4)
    greedy(step, max_lengths=[5, 2, 3, 2])
    assert step.seen == [4, 4, 2, 1, 1]


def test_no_sentences_give_no_hypotheses(random_toy):
    assert greedy(random_toy(0, sentences=0), max_lengths=[]) == []


def test_single_precision_probabilities_become_plain_floats(random_toy):
    (hypothesis,) = greedy(random_toy(3, dtype=torch.float32), max_lengths=[7])
    assert all(type(log_prob) is float for log_prob in hypothesis.token_log_probs)
    assert hypothesis.log_prob == math.fsum(hypothesis.token_log_probs)


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_a_sentence_without_a_possible_output_is_named(random_toy, impossible):
    step = random_toy(0, sentences=3)
    good = step.rule
    step.rule = lambda sentence, history: [impossible] * 5 if sentence == 1 else good(sentence, history)
    with pytest.raises(DecodingError, match=r"sentence 1 .* has no output"):
        greedy(step, max_lengths=[5, 5, 5])


def test_the_arguments_are_checked(random_toy):
    with pytest.raises(DecodingError, match="expected at least 1, for <eos>"):
        greedy(random_toy(0), max_lengths=[0])
    with pytest.raises(DecodingError, match="holds <eos>"):
        greedy(random_toy(0), max_lengths=[5], prefixes=[[2]])


LONG = """
import resource, torch
import glassformer as gf
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep
from glassformer.system.machine import keep_memory

keep_memory()
sizes = {"d_model": 256, "heads": 4, "d_ff": 256, "encoder_layers": 1, "decoder_layers": 3}
model = gf.Transformer(gf.ModelConfig(vocab_size=100, **sizes)).eval()
with torch.no_grad():
    model.output.weight[model.config.eos_id] = 0.0  # so that no output ends by itself
source = torch.randint(4, 100, (8, 1000))
source[0, -1] = 0
used = []
for length in (20, 1000):
    outputs = greedy(TransformerStep(model, source), max_lengths=[length] * 8)
    used.append(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
assert [len(output.tokens) for output in outputs] == [1000] * 8
print(used[1] - used[0])
"""


@pytest.mark.long
@pytest.mark.parametrize("time", range(2))
def test_long_outputs_do_not_fragment_memory(time):
    """Keys and values take 49 MB, and twice as much during a step; memory fragmentation once took up to 1.3 GB."""
    answer = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    assert int(answer.stdout) < 250e6
