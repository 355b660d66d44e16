"""Searches among the candidates of each source."""

import itertools
import random
from dataclasses import replace

import pytest
import torch

from glassformer.decoding.engine import Job, Search
from glassformer.decoding.quantisation import QUANTIZED_LINEARS
from glassformer.decoding.torch_engine import TorchEngine
from glassformer.model.fast.linear import Linear
from glassformer.recipes.configuration import DecodingConfig
from models import random_model

SIZE = 23
GREEDY = Search(settings=DecodingConfig(beam_size=1, shortlist=5))
BEAM = Search(settings=DecodingConfig(beam_size=3, shortlist=5), n_best=3)
SAMPLE = Search(settings=DecodingConfig(beam_size=1, shortlist=5), sample=True)
SEARCHES = pytest.mark.parametrize("search", [GREEDY, BEAM, SAMPLE], ids=["greedy", "beam", "sample"])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return random_model().double()


def some(count, seed=1, fewest=2):
    """Return jobs with random sources and candidates."""
    draw = random.Random(seed)
    jobs = []
    for number in range(count):
        source = (*draw.choices(range(4, 19), k=draw.randint(1, 9)), 2)
        candidates = sorted({2, 3, *draw.sample(range(4, SIZE), draw.randint(fewest, 9))})
        jobs.append(Job((source,), (), len(source) + 4, number, tuple(candidates)))
    return jobs


def tokens(found):
    return [[one.tokens for one in several] for several in found]


@SEARCHES
@pytest.mark.parametrize("budget", [6000, 60, 1])
def test_with_all_tokens_as_candidates_the_outputs_are_those_of_the_whole_vocabulary(model, search, budget):
    every = [job._replace(candidates=tuple(range(SIZE))) for job in some(16)]
    free = [job._replace(candidates=()) for job in every]
    engine = TorchEngine(model, budget=budget)
    found, expected = list(engine.decode(every, search)), list(engine.decode(free, search))
    assert tokens(found) == tokens(expected)
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-12)
        assert one.score == pytest.approx(other.score, abs=1e-12)


@SEARCHES
@pytest.mark.parametrize("budget", [6000, 60, 1])
def test_an_output_consists_of_its_own_candidates_and_does_not_depend_on_other_texts(model, search, budget):
    jobs = some(16)
    together = list(TorchEngine(model, budget=budget).decode(jobs, search))
    for job, several in zip(jobs, together, strict=True):
        [alone] = TorchEngine(model).decode([job], search)
        assert tokens([several]) == tokens([alone])
        for one in several:
            assert {*one.tokens} <= {*job.candidates}


def best_by_enumeration(model, job, alpha):
    """Return the output with the highest score, by the whole model, among all outputs that candidates can form."""
    source, allowed = torch.tensor(job.sources), [one for one in job.candidates if one != 2]
    found = {}
    for length in range(job.max_length):
        for output in itertools.product(allowed, repeat=length):
            target = (*output, 2)
            logits = model(source, torch.tensor([[1, *output]]))[0]
            shown = [0, 1, *job.candidates]  # <pad> and <bos> keep their probability
            log_probs = logits[:, shown].log_softmax(-1)
            total = sum(float(log_probs[place, shown.index(token)]) for place, token in enumerate(target))
            found[target] = total / ((5 + len(target)) / 6) ** alpha
    return max(found, key=found.__getitem__)


@pytest.mark.slow
@torch.no_grad()
def test_a_large_beam_finds_the_best_of_all_outputs_of_candidates(model):
    search = Search(settings=DecodingConfig(beam_size=300, length_penalty=0.7, shortlist=5), log_probs=False)
    for number, candidates in enumerate([(2, 3, 7, 11), (2, 5, 19), (2, 3, 4, 20, 22)]):
        job = Job(((5 + number, 9, 2),), (), 5, 0, candidates)
        [[best, *_]] = TorchEngine(model).decode([job], search)
        assert best.tokens == best_by_enumeration(model, job, 0.7)


@SEARCHES
def test_log_probabilities_count_all_tokens(model, search):
    jobs, engine = some(20), TorchEngine(model)
    found = list(engine.decode(jobs, search))
    pairs = [(job.sources, one.tokens) for job, several in zip(jobs, found, strict=True) for one in several]
    assert [one.token_log_probs for several in found for one in several] == engine.score(pairs)
    for several in found:
        assert [one.score for one in several] == sorted((one.score for one in several), reverse=True)


def test_without_log_probabilities_only_tokens_are_given(model):
    search = replace(BEAM, n_best=1)
    jobs, engine = some(20), TorchEngine(model)
    with_them, without = engine.decode(jobs, search), list(engine.decode(jobs, replace(search, log_probs=False)))
    assert tokens(without) == tokens(with_them)
    assert all(one.token_log_probs == () and one.score != one.score for several in without for one in several)


def test_jobs_with_a_prefix_or_no_candidates_are_searched_among_all_tokens(model):
    jobs = [job._replace(max_length=20) for job in some(12)]
    jobs[1:3] = [jobs[1]._replace(candidates=()), jobs[2]._replace(prefix=(21,))]
    found = list(TorchEngine(model).decode(jobs, BEAM))
    for job, several in zip(jobs, found, strict=True):
        [alone] = TorchEngine(model).decode([job if job.is_limited else job._replace(candidates=())], BEAM)
        assert tokens([several]) == tokens([alone])
        assert not job.prefix or all(21 in one.tokens for one in several)


@SEARCHES
def test_the_models_of_an_ensemble_have_the_same_candidates(model, search):
    torch.manual_seed(9)
    other = random_model(d_model=13).double()
    jobs = [job._replace(sources=job.sources * 2) for job in some(20)]
    found = list(TorchEngine(model, other, budget=60).decode(jobs, search))
    for job, several in zip(jobs, found, strict=True):
        [alone] = TorchEngine(model, other).decode([job], search)
        assert tokens([several]) == tokens([alone])
    every = [job._replace(candidates=tuple(range(SIZE))) for job in jobs]
    free = [job._replace(candidates=()) for job in jobs]
    both = (TorchEngine(model, other).decode(each, search) for each in (every, free))
    assert tokens(next(both)) == tokens(next(both))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["float32", *QUANTIZED_LINEARS])
def test_columns_are_those_of_the_whole_product(kind, bias):
    torch.manual_seed(1)
    whole = Linear(64, 90, bias=bias)
    layer = whole if kind == "float32" else QUANTIZED_LINEARS[kind](whole)
    x, ids = torch.randn(7, 64), torch.tensor([3, 88, 5, 41])
    with torch.no_grad():
        torch.testing.assert_close(layer.of_columns(ids)(x), layer(x)[:, ids], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_several_processes_find_the_same_as_one(model):
    jobs = some(300)
    engine = TorchEngine(model, workers=2)
    assert tokens(engine.decode(jobs, BEAM)) == tokens(TorchEngine(model).decode(jobs, BEAM))
