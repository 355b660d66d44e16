"""The queue of a model: each request gets a fair share of the work, not of the number of texts."""

import asyncio
import io
from pathlib import Path

import pytest

from glassformer.serving.limits import Limits
from glassformer.serving.log import ServiceLog
from glassformer.serving.metrics import Counters
from glassformer.serving.process import MOST_PADDED, MOST_TEXTS, LoadedTranslator, ModelProcess
from glassformer.serving.reading import LONG_SENTENCE, read_sentences
from serving.conftest import finished
from serving.test_failures import running, status

LONG = "the big brown cat sleeps " * 200


def batches_of(*steps):
    """Return the batches of a queue; each step is a list of requests that come before the next batch is taken."""

    async def work():
        model = ModelProcess("en-es", LoadedTranslator(Path(), {}), Limits(), Counters(), ServiceLog())
        tasks, batches = [], []
        for requests in steps:
            tasks += [asyncio.create_task(model.translate(texts, options)) for texts, options in requests]
            await asyncio.sleep(0)
            batches.append([one.text for one in model._next()])
        while rest := [one.text for one in model._next()]:
            batches.append(rest)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return batches

    return finished(work())


def test_a_short_request_waits_for_one_batch_of_many_long_ones():
    greedy = [([f"{LONG} {client} {text}" for text in range(6)], {}) for client in "abc"]
    found = batches_of(greedy, [(["short"], {})])
    assert len(found[0]) == 1
    assert found[1] == ["short"]
    order = [one.split()[-2] for [one] in (found[0], *found[2:])]
    assert order == [*"abcabcabcabcabcabc"]


def test_a_later_request_does_not_wait_for_the_rest_of_a_large_one():
    found = batches_of([([f"text {number}" for number in range(1000)], {})], [(["later"], {})])
    assert len(found[0]) == MOST_TEXTS
    assert "later" in found[1]


def test_short_texts_share_a_batch_and_a_long_text_is_alone():
    texts = ["a" * 50] * 40 + ["b" * (MOST_PADDED // 2 + 1)] + ["c" * 50] * 24
    found = batches_of([(texts, {})])
    assert sorted(map(len, found)) == [1, 64]
    assert all(len(batch) * max(map(len, batch)) <= MOST_PADDED for batch in found)


@pytest.mark.parametrize(
    ("options", "most"), [({"beam_size": 8}, 64), ({"beam_size": 64}, 16), ({"beam_size": 64, "retry": True}, 8)]
)
def test_a_batch_with_a_large_beam_has_fewer_texts(options, most):
    found = batches_of([(["a" * 64] * 64, options)], [(["short"], {})])
    assert len(found[0]) == most
    assert "short" in found[1] or most == 64


def test_texts_with_other_options_wait_for_their_own_batch():
    found = batches_of([(["one"], {"beam_size": 2}), (["two"], {}), (["three"], {"beam_size": 2})])
    assert sorted(map(sorted, found)) == [["one", "three"], ["two"]]


class SlowTranslator(LoadedTranslator):
    """Translates, but a text that begins with "slow" takes for ever."""

    def __call__(self, texts, options):
        """Translate."""
        while any(text.startswith("slow") for text in texts):
            pass
        return super().__call__(texts, options)


@pytest.mark.slow
def test_a_batch_that_takes_too_long_refuses_only_the_request_with_the_longest_text(run_folder):
    async def work():
        load, log = SlowTranslator(run_folder, {"engine": "torch"}), io.StringIO()
        async with running(load, log, Limits(seconds=4)) as model:
            requests = (["the cat"], ["slow and long, very long", "the dog"], ["a big cat", "the cat"])
            return await asyncio.gather(*(model.translate(one, {}) for one in requests), return_exceptions=True)

    assert [status(one) for one in finished(work())] == [200, 503, 200]


def test_long_sentences_are_cut_at_their_clauses():
    clause = "the big brown cat sleeps in the garden, "
    text = f"Short one. {clause * 40}and ends. Last one."
    [spans] = read_sentences([text], "en", 1000)
    parts = [text[begin:end] for begin, end in spans]
    assert parts[0] == "Short one."
    assert parts[-1] == "Last one."
    assert len(parts) == 5
    assert all(len(one) <= LONG_SENTENCE for one in parts)
    assert " ".join(parts) == text
    assert read_sentences([text], None, 1000) == [[(0, len(text))]]
    assert read_sentences([text], "en", 4) is None
