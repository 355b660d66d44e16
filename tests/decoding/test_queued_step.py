"""A queue of sentences: each output is the same as alone, and the budget limits the rows in progress."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import beam_search, greedy, sample
from glassformer.decoding.ensemble import EnsembleStep
from glassformer.decoding.queued_step import QueuedStep
from glassformer.decoding.search_trace import SearchTree
from glassformer.decoding.transformer_step import TransformerStep, padded
from profiles import scaled

SEEDS = st.integers(0, 10**6)
LENGTHS = st.lists(st.integers(2, 7), min_size=1, max_size=9).map(lambda lengths: sorted(lengths, reverse=True))
few = scaled(10)


class Watched(TransformerStep):
    """A step that records its numbers of rows, and the numbers of source positions in progress."""

    seen: list[tuple[int, int, int]]

    def advance(self, tokens, state):
        B, _, _, S = state.memory_mask.shape
        self.seen.append((len(tokens), B, S))
        return super().advance(tokens, state)


def queue_of(model, sources, budget, seen=None):
    def step_of(places):
        step = Watched(model, padded(model, [sources[place] for place in places]))
        step.seen = [] if seen is None else seen
        return step

    return QueuedStep(step_of, [len(source) for source in sources], budget)


def assert_same(ours, theirs):
    assert ours.tokens == theirs.tokens
    # float64, summed in a different order
    assert ours.token_log_probs == pytest.approx(theirs.token_log_probs, abs=1e-10)
    assert (ours.log_prob, ours.score) == pytest.approx((theirs.log_prob, theirs.score), abs=1e-10)


@few
@given(seed=SEEDS, lengths=LENGTHS, budget=st.integers(1, 30), positions=st.sampled_from(["interleaved", "learned"]))
def test_greedy_search_writes_the_same_as_for_each_sentence_alone(make_task, seed, lengths, budget, positions):
    model, sources = make_task(seed, lengths, positions=positions)
    longest = [3 + place % 5 for place in range(len(sources))]
    found = greedy(queue_of(model, sources, budget), max_lengths=longest)
    for source, length, ours in zip(sources, longest, found, strict=True):
        [alone] = greedy(TransformerStep(model, torch.tensor([source])), max_lengths=[length])
        assert_same(ours, alone)


@few
@given(seed=SEEDS, lengths=LENGTHS, budget=st.integers(1, 30), beam_size=st.integers(1, 4))
def test_beam_search_finds_the_same_as_for_each_sentence_alone(make_task, seed, lengths, budget, beam_size):
    model, sources = make_task(seed, lengths)
    options = {"beam_size": beam_size, "n_best": beam_size, "length_penalty": 0.7}
    longest = [2 + place % 6 for place in range(len(sources))]
    prefixes = [[3 + place % 4] if place % 3 == 1 else [] for place in range(len(sources))]
    longest = [length + len(prefix) for length, prefix in zip(longest, prefixes, strict=True)]
    seen = []
    queue = queue_of(model, sources, budget)
    found = beam_search(queue, max_lengths=longest, prefixes=prefixes, watch=seen.append, **options)
    for place, (source, ours) in enumerate(zip(sources, found, strict=True)):
        watched = []
        step = TransformerStep(model, torch.tensor([source]))
        [alone] = beam_search(
            step, max_lengths=[longest[place]], prefixes=[prefixes[place]], watch=watched.append, **options
        )
        for one, other in zip(ours, alone, strict=True):
            assert_same(one, other)
        ours_tree = SearchTree.of(seen, bos_id=1, sentence=place)
        alone_tree = SearchTree.of(watched, bos_id=1)
        assert [(node.parent, node.token, node.state) for node in ours_tree.nodes] == [
            (node.parent, node.token, node.state) for node in alone_tree.nodes
        ]


@few
@given(seed=SEEDS, lengths=LENGTHS, budget=st.integers(1, 30))
def test_a_draw_depends_on_its_own_seed_alone(make_task, seed, lengths, budget):
    model, sources = make_task(seed, lengths)
    longest, seeds = [6] * len(sources), list(range(len(sources)))
    found = sample(queue_of(model, sources, budget), max_lengths=longest, seeds=seeds)
    for source, own, ours in zip(sources, seeds, found, strict=True):
        [alone] = sample(TransformerStep(model, torch.tensor([source])), max_lengths=[6], seeds=[own])
        assert_same(ours, alone)


def test_an_ensemble_admits_sentences_like_one_model(make_task):
    models = [make_task(seed, [2])[0] for seed in (1, 2)]
    _, sources = make_task(3, [6, 5, 5, 4, 3, 2, 2])

    def step_of(places):
        source = padded(models[0], [sources[place] for place in places])
        return EnsembleStep([TransformerStep(model, source) for model in models])

    queue = QueuedStep(step_of, [len(source) for source in sources], 12)
    found = beam_search(queue, beam_size=3, max_lengths=[7] * 7)
    whole = beam_search(step_of(range(7)), beam_size=3, max_lengths=[7] * 7)
    for [ours], [theirs] in zip(found, whole, strict=True):
        assert_same(ours, theirs)


def test_free_rows_are_refilled_within_the_budget(make_task):
    """Outputs have 2 and 12 tokens in turn; batches of four that wait for the longest output would take 36 steps."""
    model, sources = make_task(1, [6] * 12)
    longest = [2 if place % 2 else 12 for place in range(12)]
    prefixes = [[3] * (length - 1) for length in longest]  # so that every output gets its maximum length
    seen = []
    found = greedy(queue_of(model, sources, 24, seen), max_lengths=longest, prefixes=prefixes)
    assert [len(one.tokens) for one in found] == longest
    assert len(seen) < 30
    assert all(rows == B <= 4 and B * S <= 24 for rows, B, S in seen)
    assert sum(rows for rows, _, _ in seen) == sum(longest)  # finished sentences are no longer decoded


def test_a_sentence_beyond_the_budget_is_decoded_alone(make_task):
    model, sources = make_task(1, [9, 3, 3])
    seen = []
    greedy(queue_of(model, sources, 6, seen), max_lengths=[4, 4, 4])
    assert seen[0] == (1, 1, 9)
    assert {(B, S) for _, B, S in seen[4:]} <= {(1, 3), (2, 3)}
