"""Decoding by several processes gives the same results as by one."""

import gc
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import torch

import glassformer as gf
from glassformer.decoding import workers
from glassformer.decoding.engine import Job, Search
from glassformer.decoding.torch_engine import TorchEngine
from glassformer.errors import DataError, DecodingError
from glassformer.recipes.configuration import DecodingConfig

GREEDY = Search(settings=DecodingConfig(beam_size=1))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(5)
    return gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=19)).eval()


@pytest.fixture(scope="module")
def engine(model):
    """Return an engine that all tests share: its processes start at the first use, and again after an error."""
    return TorchEngine(model, workers=3)


def some(count, seed=1, **options):
    draw = random.Random(seed)
    lengths = [draw.randint(1, 9) for _ in range(count)]
    return [
        Job(((*draw.choices(range(4, 19), k=length), 2),), max_length=length + 4, seed=number, **options)
        for number, length in enumerate(lengths)
    ]


def children():
    """Return the running child processes of this process, including those of other tests."""
    return {child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}


@pytest.fixture(scope="module")
def of_engine(engine):
    """Return a function that returns the processes of the shared engine."""
    before = children()
    return lambda: children() - before


@pytest.fixture
def others():
    """Return a function that returns the processes started since the test began."""
    before = children()
    return lambda: children() - before


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert [hypothesis.tokens for hypothesis in one] == [hypothesis.tokens for hypothesis in other]
        for mine, yours in zip(one, other, strict=True):
            # The batches have different sizes, so the float32 sums over about ten tokens are rounded differently.
            assert mine.token_log_probs == pytest.approx(yours.token_log_probs, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "search",
    [GREEDY, Search(settings=DecodingConfig(beam_size=3), n_best=2), Search(settings=DecodingConfig(), sample=True)],
)
def test_several_processes_find_the_same_as_one(model, engine, of_engine, search):
    jobs = some(300)
    assert_same(engine.decode(jobs, search), TorchEngine(model).decode(jobs, search))
    assert len(of_engine()) == 2
    assert_same(engine.decode(jobs[:150], search), TorchEngine(model).decode(jobs[:150], search))


@pytest.mark.slow
def test_threads_that_share_an_engine_get_their_own_results(model, engine):
    parts = [some(200, seed) for seed in range(4)]
    with ThreadPoolExecutor(len(parts)) as threads:
        found = list(threads.map(lambda jobs: list(engine.decode(jobs, GREEDY)), parts))
    for jobs, ours in zip(parts, found, strict=True):
        assert_same(ours, TorchEngine(model).decode(jobs, GREEDY))


def test_few_sentences_start_no_process(model, others):
    engine = TorchEngine(model, workers=3)
    assert len(list(engine.decode(some(workers.SMALLEST_PARCEL), GREEDY))) == workers.SMALLEST_PARCEL
    assert not others()


@pytest.mark.slow
def test_torch_gets_its_threads_back(engine):
    before = torch.get_num_threads()
    list(engine.decode(some(200), GREEDY))
    assert torch.get_num_threads() == before


@pytest.mark.slow
def test_a_killed_process_is_an_error_and_is_replaced(model, engine, of_engine):
    list(engine.decode(some(200), GREEDY))
    os.kill(of_engine().pop().pid, signal.SIGKILL)
    time.sleep(0.1)
    with pytest.raises(
        DataError, match=r"a process that translates was killed.*: run the same command again, or set workers=1"
    ):
        list(engine.decode(some(200), GREEDY))
    assert not of_engine()
    assert_same(engine.decode(some(200), GREEDY), TorchEngine(model).decode(some(200), GREEDY))


@pytest.mark.slow
def test_an_error_in_a_process_is_raised_in_the_caller(engine):
    with pytest.raises(DecodingError, match="the prefix of sentence"):
        list(engine.decode(some(300, prefix=tuple(range(4, 19))), GREEDY))


@pytest.mark.slow
def test_the_processes_end_with_the_engine(model, others):
    engine = TorchEngine(model, workers=2)
    list(engine.decode(some(200), GREEDY))
    [process] = others()
    del engine
    gc.collect()
    assert not process.is_running()
