"""A short load on the service, by the code of the long one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.service import endurance, ours, percentiles, translated_alone

from serving.conftest import english_french_run  # noqa: F401

pytestmark = pytest.mark.slow
WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]


def test_many_clients_get_the_translations_of_each_text_alone(english_french_run):  # noqa: F811
    texts = [" ".join(WORDS[first : first + length]) for first in range(9) for length in range(1, 5)]
    alone = translated_alone(english_french_run, texts)
    assert len(set(alone.values())) > 5
    with ours(english_french_run, "serving.queue=300") as server, ThreadPoolExecutor(1) as thread:
        # In a thread, because the tests in a browser keep an event loop in this one.
        found = thread.submit(asyncio.run, endurance(server, texts, alone, 4, clients=30)).result()
        assert len(server.processes) == 2
        assert server.cpu_seconds() > 0
    assert found["statuses"].keys() <= {"200", "429", "503"}
    assert found["texts"] > 0
    assert found["different"] == 0


def test_percentiles_are_in_milliseconds():
    assert percentiles([one / 1000 for one in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
