"""Grid beam search: outputs that contain given phrases."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding import beam_search, grid_beam_search
from glassformer.decoding.engine import Job, Search, WordEdges
from glassformer.decoding.torch_engine import TorchEngine
from glassformer.errors import DecodingError
from glassformer.recipes.configuration import DecodingConfig
from profiles import scaled

examples = scaled(40)
SEEDS = st.integers(0, 10**6)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])

# Tokens of the toys: 0 <pad>, 1 <bos>, 2 <eos>, and words from 3 on.
spellings = st.lists(st.integers(3, 5), min_size=1, max_size=3).map(tuple)
phrase = st.lists(spellings, min_size=1, max_size=2, unique=True).map(tuple)
some_phrases = st.lists(phrase, max_size=2).map(tuple)
some_edges = st.none() | st.tuples(*[st.tuples(*[st.integers(0, 2)] * 7)] * 2).map(lambda both: WordEdges(*both))


def placements(tokens, phrases, edges, taken=frozenset()):
    """Yield the places of the tokens of all phrases, without overlaps, for all ways to place all spellings."""
    if not phrases:
        yield taken
        return
    first, *others = phrases
    for spelling in first:
        for begin in range(len(tokens) - len(spelling) + 1):
            end = begin + len(spelling)
            if tokens[begin:end] == spelling and not joins(tokens, begin, edges) and not joins(tokens, end, edges):
                places = frozenset(range(begin, end))
                if not places & taken:
                    yield from placements(tokens, others, edges, taken | places)


def contains(tokens, phrases, edges):
    return any(True for _ in placements(tokens, phrases, edges))


def ranked(step, max_length, phrases, edges, alpha):
    """Return all outputs that contain the phrases, with their ranks, best first."""
    found = []
    for _, tokens in step.outputs(0, max_length, alpha):
        log_probs, penalty = step.rescore(0, tokens), ((5 + len(tokens)) / 6) ** alpha
        ranks = [
            sum(value if place in taken else value / penalty for place, value in enumerate(log_probs))
            for taken in placements(tokens, phrases, edges)
        ]
        found += [(max(ranks), tokens)] if ranks else []
    return sorted(found, reverse=True)


def joins(tokens, place, edges):
    """Return whether the tokens before and after a place are in one word."""
    if edges is None or not 0 < place < len(tokens):
        return False
    before, after = edges.ends[tokens[place - 1]], edges.begins[tokens[place]]
    return before == after != 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_every_pair_of_short_phrases_has_its_best_output(random_toy, alpha):
    step = random_toy(3, vocab_size=5)
    words = [*itertools.product((3, 4), repeat=1), *itertools.product((3, 4), repeat=2)]
    for edges in (None, WordEdges((0, 0, 0, 1, 2), (0, 0, 0, 1, 2)), WordEdges((0, 0, 0, 1, 1), (0, 0, 0, 1, 0))):
        for several in itertools.product(itertools.combinations(words, 2), repeat=2):
            check_exhaustive(step, several, edges, alpha)


@examples
@given(seed=SEEDS, alpha=ALPHAS, several=some_phrases, edges=some_edges, holes=st.sampled_from([0.0, 0.3]))
def test_a_beam_as_large_as_the_space_of_outputs_is_exhaustive_search(random_toy, seed, alpha, several, edges, holes):
    step = random_toy(seed, vocab_size=7, holes=holes)
    check_exhaustive(step, several, edges, alpha)


def check_exhaustive(step, several, edges, alpha):
    beam_size = 600  # more than there are outputs with up to 4 of 4 words, in all states
    ((*found,),) = grid_beam_search(
        step, max_lengths=[5], phrases=[several], edges=edges, beam_size=beam_size, n_best=11, length_penalty=alpha
    )
    expected = ranked(step, 5, several, edges, alpha)[:11]
    assert [one.tokens for one in found] == [tokens for _, tokens in expected]
    assert all(one.token_log_probs == step.rescore(0, one.tokens) for one in found)


@examples
@given(seed=SEEDS, several=some_phrases, edges=some_edges, beam_size=st.integers(1, 4))
def test_outputs_contain_their_phrases_with_any_beam(random_toy, seed, several, edges, beam_size):
    step = random_toy(seed, vocab_size=7)
    (found,) = grid_beam_search(
        step, max_lengths=[11], phrases=[several], edges=edges, beam_size=beam_size, n_best=beam_size
    )
    assert len({one.tokens for one in found}) == len(found)
    for one in found:
        assert contains(one.tokens, several, edges)
        assert one.tokens[-1] == 2
        assert not {0, 1, 2} & set(one.tokens[:-1])
        assert one.token_log_probs == step.rescore(0, one.tokens)


@examples
@given(seed=SEEDS, several=some_phrases, beam_size=st.integers(1, 4))
def test_an_output_is_found_wherever_one_is_long_enough(random_toy, seed, several, beam_size):
    step, room = random_toy(seed, vocab_size=7), sum(min(map(len, one)) for one in several) + 1
    (found,) = grid_beam_search(step, max_lengths=[room], phrases=[several], beam_size=beam_size)
    assert found
    if several:
        assert grid_beam_search(step, max_lengths=[room - 1], phrases=[several], beam_size=beam_size) == [[]]


@examples
@given(seed=SEEDS, alpha=ALPHAS, beam_size=st.integers(1, 5))
def test_without_phrases_it_is_beam_search(random_toy, seed, alpha, beam_size):
    step = random_toy(seed, sentences=3, vocab_size=7)
    arguments = {"max_lengths": [2, 11, 5], "beam_size": beam_size, "n_best": beam_size, "length_penalty": alpha}
    arguments["prefixes"] = [[], [5], [3, 4]]
    assert grid_beam_search(step, phrases=[()] * 3, **arguments) == beam_search(step, **arguments)


@examples
@given(seed=SEEDS, several=st.lists(some_phrases, min_size=5, max_size=5), edges=some_edges)
def test_a_batch_gives_the_same_results_as_single_sentences(random_toy, seed, several, edges):
    step = random_toy(seed, sentences=5, vocab_size=7)
    max_lengths, prefixes = [9, 11, 1, 13, 8], [[4], [], [], [6, 5, 3], []]
    how = {"edges": edges, "beam_size": 3, "n_best": 3}
    together = grid_beam_search(step, max_lengths=max_lengths, phrases=several, prefixes=prefixes, **how)
    for sentence, (max_length, each, prefix) in enumerate(zip(max_lengths, several, prefixes, strict=True)):
        alone = grid_beam_search(
            step.alone(sentence), max_lengths=[max_length], phrases=[each], prefixes=[prefix], **how
        )
        assert alone == [together[sentence]]
        assert all(list(one.tokens[: len(prefix)]) == prefix for one in together[sentence])


def test_a_phrase_is_written_where_it_costs_least(written_toy):
    # "3 4" is needed; after 5 the model nearly writes it by itself, at the start it would be improbable.
    table = {(): {5: 0.9, 3: 0.1}, (5,): {3: 0.5, 2: 0.5}, (5, 3): {4: 1.0}, (3,): {4: 0.1, 2: 0.9}}
    step = written_toy(table, vocab_size=6)
    ((found,),) = grid_beam_search(step, max_lengths=[7], phrases=[[((3, 4),)]], beam_size=2, length_penalty=0.0)
    assert found.tokens == (5, 3, 4, 2)
    assert found.log_prob == pytest.approx(math.log(0.45))


def test_improbable_phrases_do_not_make_outputs_longer(written_toy):
    # Each word costs 1 nat, <eos> 0.5, and the phrase 100 nats, which a long output would share among many tokens.
    history = {(): {3: math.exp(-100), 4: math.exp(-1), 2: math.exp(-0.5)}}
    rule = {
        words: history[()]
        for length in range(20)
        for words in (
            (4,) * length,
            *[((4,) * before + (3,) + (4,) * (length - before)) for before in range(length + 1)],
        )
    }
    step = written_toy(rule)
    ((found,),) = grid_beam_search(step, max_lengths=[15], phrases=[[((3,),)]], beam_size=3, length_penalty=1.0)
    assert found.tokens == (3, 2)


def test_no_sentences_give_no_results(random_toy):
    assert grid_beam_search(random_toy(0, sentences=0), max_lengths=[], phrases=[], beam_size=2) == []


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ([], "expected a list for each of 1 sentences, got 0"),
        ([[((),)]], r"phrases of sentence 0: expected spellings of ids from 0 to 4.*got \[\]"),
        ([[()]], r"phrases of sentence 0: expected spellings"),
        ([[((3, 5),)]], r"got \[3, 5\]"),
        ([[((3,), (4, 2))]], r"got \[4, 2\]"),
    ],
)
def test_the_phrases_are_checked(random_toy, phrases, message):
    with pytest.raises(DecodingError, match=message):
        grid_beam_search(random_toy(0), max_lengths=[5], phrases=phrases, beam_size=2)


def test_edges_are_those_of_the_vocabulary(random_toy):
    with pytest.raises(DecodingError, match="edges: expected those of 5 tokens, got 3"):
        grid_beam_search(random_toy(0), max_lengths=[5], phrases=[[]], edges=WordEdges((0,) * 3, (0,) * 3), beam_size=2)


def test_the_engine_decodes_jobs_with_and_without_phrases_in_any_batch(make_task):
    model, sources = make_task(5, lengths=(5, 7, 3, 6, 4))
    phrases = [(), (((3, 5), (5, 3)),), (), (((6,),), ((6,),)), (((4, 4, 4),),)]
    jobs = [Job((tuple(ids),), (), 13, 0, each) for ids, each in zip(sources, phrases, strict=True)]
    search = Search(settings=DecodingConfig(beam_size=3), n_best=2)
    together = list(TorchEngine(model, budget=10**6).decode(jobs, search))
    for job, found in zip(jobs, together, strict=True):
        [alone] = TorchEngine(model).decode([job], search)
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        # float64: a different batch sums the same numbers in a different order.
        assert [one.log_prob for one in alone] == pytest.approx([one.log_prob for one in found], abs=1e-10)
        assert all(contains(one.tokens, job.phrases, None) for one in found)
    narrow = list(TorchEngine(model, budget=1).decode(jobs, search))
    assert [[one.tokens for one in found] for found in narrow] == [[one.tokens for one in found] for found in together]
