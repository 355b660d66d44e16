"""The trace of a search: every candidate is at the right place in the tree, with its numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import beam_search, length_penalty
from glassformer.decoding.search_trace import SearchTree

SEEDS = st.integers(0, 10**6)
ALPHAS = st.sampled_from([0.0, 0.6, 2.0])
SIZES = st.sampled_from([1, 2, 3, 5])

GARDEN_PATH = {
    (): {3: 0.6, 4: 0.4},
    (3,): {3: 0.4, 4: 0.3, 2: 0.3},
    (4,): {3: 0.05, 4: 0.05, 2: 0.9},
}


def watched(step, *, beam_size, max_lengths, **options):
    """Return, for each sentence, its hypotheses (the whole beam) and its search tree."""
    seen = []
    found = beam_search(
        step, beam_size=beam_size, n_best=beam_size, max_lengths=max_lengths, watch=seen.append, **options
    )
    trees = [SearchTree.of(seen, bos_id=step.bos_id, sentence=sentence) for sentence in range(len(max_lengths))]
    return list(zip(found, trees, strict=True))


def tokens_of(tree, node):
    return tuple(one.token for one in tree.path(node.id))


def of_state(tree, state):
    return [node for node in tree.nodes[1:] if node.state == state]


def test_a_small_search_has_the_expected_tree(written_toy):
    [(_, tree)] = watched(written_toy(GARDEN_PATH), beam_size=2, max_lengths=[2], length_penalty=0.0)
    seen = [(tokens_of(tree, node), round(math.exp(node.log_prob), 6), node.state) for node in tree.nodes[1:]]
    assert seen == [
        ((3,), 0.6, "kept"),
        ((4,), 0.4, "kept"),
        ((4, 2), 0.36, "finished"),  # at the last position, only <eos> is possible
        ((3, 2), 0.18, "finished"),
    ]


def test_the_root_is_the_beginning_of_the_sentence(random_toy):
    [(_, tree)] = watched(random_toy(1), beam_size=2, max_lengths=[3])
    root = tree.nodes[0]
    assert (root.id, root.parent, root.position, root.token, root.log_prob) == (0, None, -1, 1, 0.0)
    assert tree.path(0) == []
    assert [node.id for node in tree.nodes] == list(range(len(tree.nodes)))


@given(seed=SEEDS, alpha=ALPHAS, beam_size=SIZES)
def test_hypotheses_are_in_the_tree_with_identical_numbers(random_toy, seed, alpha, beam_size):
    step = random_toy(seed, sentences=2, vocab_size=7, dtype=torch.float32)
    for hypotheses, tree in watched(step, beam_size=beam_size, max_lengths=[7, 4], length_penalty=alpha):
        finished = {tokens_of(tree, node): node for node in of_state(tree, "finished")}
        for hypothesis in hypotheses:
            node = finished[hypothesis.tokens]
            path = tree.path(node.id)
            assert tuple(one.token_log_prob for one in path) == hypothesis.token_log_probs
            assert (node.log_prob, node.score) == (hypothesis.log_prob, hypothesis.score)


@given(seed=SEEDS, alpha=ALPHAS, beam_size=SIZES)
def test_each_log_probability_equals_the_rescored_sum_of_its_path(random_toy, seed, alpha, beam_size):
    step = random_toy(seed, vocab_size=7)
    [(_, tree)] = watched(step, beam_size=beam_size, max_lengths=[5], length_penalty=alpha)
    for node in tree.nodes[1:]:
        path = tree.path(node.id)
        assert [one.position for one in path] == list(range(node.position + 1))
        assert tuple(one.token_log_prob for one in path) == step.rescore(0, tokens_of(tree, node))
        assert node.log_prob == math.fsum(one.token_log_prob for one in path)
        expected = node.log_prob / length_penalty(len(path), alpha) if node.state == "finished" else None
        assert node.score == expected


@given(seed=SEEDS, beam_size=SIZES, holes=st.sampled_from([0.0, 0.5]))
def test_a_step_has_the_best_candidates_of_its_beam(random_toy, seed, beam_size, holes):
    step = random_toy(seed, vocab_size=7, holes=holes)
    [(_, tree)] = watched(step, beam_size=beam_size, max_lengths=[5])
    beam = [(0.0, ())]
    for position, nodes in enumerate(tree.steps()):
        allowed = [2] if position == 4 else range(2, 7)
        ways = [
            (so_far + step.rule(0, tokens)[token], (*tokens, token)) for so_far, tokens in beam for token in allowed
        ]
        ways = sorted((way for way in ways if way[0] > -math.inf), reverse=True)[: 2 * beam_size]
        assert [tokens_of(tree, node) for node in nodes] == [tokens for _, tokens in ways]
        assert [node.log_prob for node in nodes] == pytest.approx([log_prob for log_prob, _ in ways])
        beam = [way for way in ways if way[1][-1] != 2][:beam_size]


@given(seed=SEEDS, beam_size=SIZES)
def test_candidates_are_kept_finished_or_pruned_as_the_beam_decides(random_toy, seed, beam_size):
    [(_, tree)] = watched(random_toy(seed, vocab_size=7), beam_size=beam_size, max_lengths=[6])
    parents = {node.parent for node in tree.nodes[1:]}
    assert parents <= {0, *(node.id for node in of_state(tree, "kept"))}
    for nodes in tree.steps():
        going_on = [node for node in nodes if node.token != 2]
        assert [node.state for node in going_on] == ["kept"] * len(going_on[:beam_size]) + ["pruned"] * len(
            going_on[beam_size:]
        )
        for place, node in enumerate(nodes):
            if node.token == 2:
                assert node.state == ("finished" if place < beam_size else "pruned")


@pytest.mark.slow
@given(seed=SEEDS, beam_size=SIZES)
def test_a_tree_does_not_depend_on_the_batch(random_toy, seed, beam_size):
    step = random_toy(seed, sentences=4, vocab_size=7)
    max_lengths, prefixes = [3, 7, 1, 5], [[4], [], [], [6, 5]]
    together = watched(step, beam_size=beam_size, max_lengths=max_lengths, prefixes=prefixes)
    for sentence, (max_length, prefix) in enumerate(zip(max_lengths, prefixes, strict=True)):
        alone = watched(step.alone(sentence), beam_size=beam_size, max_lengths=[max_length], prefixes=[prefix])
        assert alone == [together[sentence]]


@pytest.mark.slow
@given(seed=SEEDS, beam_size=SIZES)
def test_tracing_changes_no_result(random_toy, seed, beam_size):
    arguments = {"beam_size": beam_size, "n_best": beam_size, "max_lengths": [7, 3, 5]}
    step = random_toy(seed, sentences=3, vocab_size=7)
    seen = []
    assert beam_search(step, watch=seen.append, **arguments) == beam_search(step, **arguments)
    assert {one.sentence for one in seen} == {0, 1, 2}


def test_a_prefix_is_a_path_without_branches(random_toy):
    [(_, tree)] = watched(random_toy(3, vocab_size=7), beam_size=3, max_lengths=[6], prefixes=[[5, 3]])
    first, second, third, *_ = tree.steps()
    assert [node.token for node in (*first, *second)] == [5, 3]
    assert len(third) > 1


def test_a_token_whose_probability_is_nan_is_not_a_candidate(written_toy):
    step = written_toy(GARDEN_PATH)
    good = step.rule
    step.rule = lambda sentence, history: [math.nan] * 5 if history == (4,) else good(sentence, history)
    [(_, tree)] = watched(step, beam_size=2, max_lengths=[3])
    assert all(math.isfinite(node.log_prob) for node in tree.nodes)
    assert not [node for node in tree.nodes if tokens_of(tree, node)[:1] == (4,) and node.position > 0]
