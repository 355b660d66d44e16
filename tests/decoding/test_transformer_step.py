"""The searches on a real model: their results equal forced decoding, alone and in a batch."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import Step, beam_search, greedy, length_penalty, sample
from glassformer.decoding.transformer_step import TransformerStep, target_log_probs
from profiles import scaled

EXACT = {"rtol": 0, "atol": 1e-10}
SEEDS = st.integers(0, 10**6)
few = scaled(5)


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


def step_for(model, sources):
    return TransformerStep(model, padded(sources))


def rescore(model, source, tokens):
    """Return the log probability of each token when the whole target is given at once."""
    tokens = list(tokens)
    return target_log_probs(model, padded([source]), torch.tensor([[1, *tokens[:-1]]]), torch.tensor([tokens]))[0]


def assert_rescored(model, source, hypothesis):
    forced = rescore(model, source, hypothesis.tokens)
    torch.testing.assert_close(torch.tensor(hypothesis.token_log_probs), forced, **EXACT)
    assert hypothesis.log_prob == pytest.approx(forced.sum().item(), abs=1e-10)


def assert_same(ours, theirs):
    assert ours.tokens == theirs.tokens
    assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-10)
    assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-10)


# The step


def test_a_transformer_step_is_a_step(make_task):
    model, sources = make_task(1)
    step = step_for(model, sources)
    assert isinstance(step, Step)
    assert (step.vocab_size, step.pad_id, step.bos_id, step.eos_id) == (7, 0, 1, 2)
    assert step.device == torch.device("cpu")


@few
@given(seed=SEEDS)
def test_decoding_step_by_step_equals_the_whole_target(make_task, seed):
    model, sources = make_task(seed, (2, 5, 3))
    step, target = step_for(model, sources), torch.randint(3, 7, (3, 5))
    whole = model(padded(sources), torch.cat([torch.ones(3, 1, dtype=torch.int64), target], 1)).log_softmax(-1)
    state, newest = step.start(), torch.ones(3, dtype=torch.int64)
    for position in range(6):
        log_probs, state = step.advance(newest, state)
        torch.testing.assert_close(log_probs, whole[:, position], **EXACT)
        newest = target[:, position] if position < 5 else newest


@few
@given(seed=SEEDS, data=st.data())
def test_reselected_rows_continue_as_if_fed_in_full(make_task, seed, data):
    model, sources = make_task(seed, (2, 5, 3))
    step, left = step_for(model, sources), [0, 1, 2]
    state, newest, histories, owners = step.start(), torch.tensor([1, 1, 1]), [(), (), ()], [0, 1, 2]
    for _ in range(5):
        log_probs, state = step.advance(newest, state)
        histories = [(*history, token) for history, token in zip(histories, newest.tolist(), strict=True)]
        whole = model(padded([sources[owner] for owner in owners]), torch.tensor(histories)).log_softmax(-1)
        torch.testing.assert_close(log_probs, whole[:, -1], **EXACT)

        stay = data.draw(st.lists(st.sampled_from(range(len(left))), min_size=1, unique=True).map(sorted))
        count, per_sentence = data.draw(st.integers(1, 3)), len(histories) // len(left)
        rows = [s * per_sentence + data.draw(st.integers(0, per_sentence - 1)) for s in stay for _ in range(count)]
        state = step.select(state, rows=torch.tensor(rows), sentences=torch.tensor(stay))
        left, histories, owners = (
            [left[s] for s in stay],
            [histories[row] for row in rows],
            [owners[row] for row in rows],
        )
        newest = torch.randint(3, 7, (len(rows),))


def test_a_search_may_write_into_the_returned_probabilities(make_task):
    model, sources = make_task(1)
    step = step_for(model, sources)
    first, _ = step.advance(torch.tensor([1]), step.start())
    first.fill_(0)
    second, _ = step.advance(torch.tensor([1]), step.start())
    assert second.exp().sum().item() == pytest.approx(1)


# Scores of given targets


def test_given_targets_are_scored_by_their_tokens_without_padding(make_task):
    model, sources = make_task(1, (3, 5))
    target_input, target_output = torch.tensor([[1, 4, 5], [1, 3, 0]]), torch.tensor([[4, 5, 2], [3, 2, 0]])
    log_probs = target_log_probs(model, padded(sources), target_input, target_output)
    with torch.no_grad():  # otherwise attention would be computed, and rounded, differently
        all_of_them = model(padded(sources), target_input).log_softmax(-1)
    for row, position in itertools.product(range(2), range(3)):
        token = target_output[row, position].item()
        assert log_probs[row, position] == (all_of_them[row, position, token] if token else 0)
    assert not log_probs.requires_grad


# The searches


@pytest.mark.slow
@few
@given(seed=SEEDS)
def test_every_search_returns_the_log_probabilities_of_forced_decoding(make_task, seed):
    model, sources = make_task(seed, (2, 5, 3))
    step, options = step_for(model, sources), {"max_lengths": [3, 7, 5]}
    drawn = sample(step, seeds=[1, 2, 3], temperature=1.7, top_p=0.9, **options)
    found = [*zip(sources, greedy(step, **options), strict=True), *zip(sources, drawn, strict=True)]
    for beam_size in (2, 5):
        beams = beam_search(step, beam_size=beam_size, n_best=2, **options)
        found += [(source, one) for source, beam in zip(sources, beams, strict=True) for one in beam]
    for source, hypothesis in found:
        assert_rescored(model, source, hypothesis)
        penalty = length_penalty(len(hypothesis.tokens), 0.6)
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / penalty, abs=1e-12)


@scaled(4)
@given(seed=SEEDS, alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_a_beam_as_large_as_the_space_of_outputs_finds_the_best_output(make_task, seed, alpha):
    model, sources = make_task(seed, (2, 5), target_vocab_size=6)
    outputs = [(*chosen, 2) for length in range(3) for chosen in itertools.product((3, 4, 5), repeat=length)]
    beams = beam_search(step_for(model, sources), beam_size=6**3, n_best=13, length_penalty=alpha, max_lengths=[3, 3])
    for source, beam in zip(sources, beams, strict=True):
        scored = ((rescore(model, source, one).sum().item() / length_penalty(len(one), alpha), one) for one in outputs)
        for (score, tokens), hypothesis in zip(sorted(scored, reverse=True), beam, strict=True):
            assert hypothesis.tokens == tokens
            assert hypothesis.score == pytest.approx(score, abs=1e-10)


SEARCHES = {
    "greedy": lambda step, seeds, **options: [[one] for one in greedy(step, **options)],
    "beam of 1": lambda step, seeds, **options: beam_search(step, beam_size=1, **options),
    "beam of 2": lambda step, seeds, **options: beam_search(step, beam_size=2, n_best=2, **options),
    "beam of 5": lambda step, seeds, **options: beam_search(step, beam_size=5, n_best=3, **options),
    "samples": lambda step, seeds, **options: [[one] for one in sample(step, seeds=seeds, **options)],
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@few
@given(seed=SEEDS, norm=st.sampled_from(["post", "pre"]))
def test_a_sentence_has_the_same_output_alone_and_in_a_batch(make_task, search, seed, norm):
    model, sources = make_task(seed, (2, 11, 1, 5), norm=norm)
    max_lengths, seeds, prefixes = [7, 3, 2, 5], [5, 3, 2, 7], [[], [4, 5], [], [3]]
    together = search(step_for(model, sources), seeds, max_lengths=max_lengths, prefixes=prefixes)
    for found, *alone in zip(together, sources, seeds, max_lengths, prefixes, strict=True):
        source, seed, max_length, prefix = alone
        single = search(step_for(model, [source]), [seed], max_lengths=[max_length], prefixes=[prefix])
        for ours, theirs in zip(found, single[0], strict=True):
            assert_same(ours, theirs)


@few
@given(seed=SEEDS)
def test_a_beam_of_one_is_greedy_search(make_task, seed):
    model, sources = make_task(seed, (2, 5, 3))
    options = {"max_lengths": [3, 7, 5]}
    beams = beam_search(step_for(model, sources), beam_size=1, **options)
    for greedily, [best] in zip(greedy(step_for(model, sources), **options), beams, strict=True):
        assert_same(greedily, best)


@few
@given(seed=SEEDS)
def test_greedy_search_is_the_argmax_of_the_whole_model(make_task, seed):
    model, sources = make_task(seed)
    [hypothesis] = greedy(step_for(model, sources), max_lengths=[7])
    target = [1]
    while len(target) < 7:
        logits = model(padded(sources), torch.tensor([target]))[0, -1]
        logits[[0, 1]] = -torch.inf
        target.append(logits.argmax().item())
        if target[-1] == 2:
            break
    target = target if target[-1] == 2 else [*target, 2]
    assert hypothesis.tokens == tuple(target[1:])


@few
@given(seed=SEEDS)
def test_the_order_of_the_sentences_does_not_matter(make_task, seed):
    model, sources = make_task(seed, (2, 5, 3, 7))
    forward = beam_search(step_for(model, sources), beam_size=3, max_lengths=[7] * 4)
    backward = beam_search(step_for(model, sources[::-1]), beam_size=3, max_lengths=[7] * 4)
    for [ours], [theirs] in zip(forward, backward[::-1], strict=True):
        assert_same(ours, theirs)


def test_a_search_keeps_no_gradients_and_leaves_the_model_unchanged(make_task):
    model, sources = make_task(1)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    beam_search(step_for(model, sources), beam_size=3, max_lengths=[7])
    assert all(torch.equal(before[name], weight) for name, weight in model.named_parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
