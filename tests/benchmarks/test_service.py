"""A short load test of the service, with the code of the long load test."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.service import beside_an_adversary, endurance, ours, percentiles, translated_alone, worst_inputs

from serving.conftest import english_french_run  # noqa: F401

pytestmark = pytest.mark.slow
WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]


def test_many_clients_get_the_translations_of_each_text_alone(english_french_run):  # noqa: F811
    texts = [" ".join(WORDS[first : first + length]) for first in range(9) for length in range(1, 5)]
    alone = translated_alone(english_french_run, texts)
    assert len(set(alone.values())) > 5
    with ours(english_french_run, "serving.queue=300") as server, ThreadPoolExecutor(1) as thread:
        # This runs in a separate thread, because the browser tests keep an event loop in the main thread.
        found = thread.submit(asyncio.run, endurance(server, texts, alone, 4, clients=30)).result()
        assert 2 <= len(server.processes) <= 4  # two of them may read long requests
        assert server.cpu_seconds() > 0
    assert found["statuses"].keys() <= {"200", "429", "503"}
    assert found["texts"] > 0
    assert found["different"] == 0


@pytest.mark.long
def test_an_adversary_gets_no_error_of_the_server(english_french_run, tmp_path):  # noqa: F811
    with ThreadPoolExecutor(1) as thread:
        asked = (english_french_run, WORDS, 5, tmp_path)
        found = thread.submit(beside_an_adversary, *asked, alone_seconds=2).result()
    assert found["alone"]["health"]["statuses"].keys() == {"200"}
    assert found["alone"]["wrong key"]["statuses"].keys() == {"403"}
    assert found["alone"]["wrong key in the body"]["statuses"].keys() == {"403"}
    assert len(found["slowest_keys_in_bodies_ms"]) == 8
    assert found["probe"]["health"]["statuses"].keys() == {"200"}
    statuses = {status for counts in found["statuses"].values() for status in counts}
    assert not {status for status in statuses if status.startswith("5")} - {"503"}
    assert all(len(one.body) < 4_000_000 for one in worst_inputs())


def test_percentiles_are_in_milliseconds():
    assert percentiles([one / 1000 for one in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
