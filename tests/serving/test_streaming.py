"""Streams of the service's own API over HTTP: an event for each text, and an event at the end."""

import http.client
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from serving.conftest import Served, until, until_in_engine

pytestmark = pytest.mark.slow
TEXTS = [
    "the cat sleeps.  A dog sees 3.5 cats.\r\n\r\n--\n the dog!\n",
    "a big black dog",
    "😀",
    "the 1234 cats see a dog. The cat sleeps.",
    *(f"the {one} cat sees a dog" for one in ("big", "black", "red")),
]


def asked(*texts: str, **more: Any) -> dict[str, Any]:
    return {"texts": texts, "stream": True, **more}


def streamed(served: Served, *texts: str, **more: Any) -> list[dict[str, Any]]:
    """Return the data of each text from the events of a stream, in the order of the texts."""
    answer = served.json("/v1/translate", asked(*texts, **more))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    fields = [
        dict(line.split(": ", 1) for line in event.splitlines()) for event in answer.body.decode().split("\n\n")[:-1]
    ]
    *events, end = [(one["event"], json.loads(one["data"])) for one in fields]
    assert end == ("end", {})
    assert [name for name, _ in events] == ["translation"] * len(texts)
    found = {data.pop("index"): data for _, data in events}
    return [found[index] for index in range(len(texts))]


@pytest.mark.parametrize("more", [{}, {"beam_size": 1}, {"n_best": 2}, {"retry": True}, {"prefix": "le chien noir"}])
def test_the_stream_says_what_the_answer_without_it_says(served, more) -> None:
    expected = [served.json("/v1/translate", {"texts": [text], **more}).json["translations"] for text in TEXTS]
    for one, [other] in zip(streamed(served, *TEXTS, **more), expected, strict=True):
        assert (one["text"], one["alternatives"]) == (other["text"], other["alternatives"])
        assert [part["tokens"] for part in one["sentences"]] == [part["tokens"] for part in other["sentences"]]


def test_a_sentence_that_cannot_be_translated_is_an_error_of_its_text_alone(served) -> None:
    assert served.json("/v1/translate", {"texts": ["the cat", "x " * 2000]}).status == 400
    good, bad = streamed(served, "the cat", "x " * 2000)
    assert good["text"] == served.json("/v1/translate", {"texts": ["the cat"]}).json["translations"][0]["text"]
    assert bad["error"].startswith("sentence 1 is too long")


def test_streams_and_other_requests_share_batches_and_change_nothing(served) -> None:
    alone = [served.json("/v1/translate", {"texts": [text]}).json["translations"][0]["text"] for text in TEXTS]
    with ThreadPoolExecutor(16) as clients:
        streams = [clients.submit(streamed, served, text) for text in TEXTS]
        others = [clients.submit(served.json, "/v1/translate", {"texts": [text]}) for text in TEXTS]
        assert [one.result().json["translations"][0]["text"] for one in others] == alone
        assert [one.result()[0]["text"] for one in streams] == alone


def test_a_client_that_reads_slowly_delays_nobody(served) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        body = json.dumps(asked(*[" ".join(["The cat sleeps."] * 20)] * 20))
        slow.request("POST", "/v1/translate", body, {"Content-Type": "application/json"})
        assert slow.getresponse().status == 200
        expected = served.json("/v1/translate", {"texts": [TEXTS[1]]}).json["translations"]
        assert [one["text"] for one in streamed(served, TEXTS[1])] == [one["text"] for one in expected]
    finally:
        slow.close()


def test_an_engine_that_is_killed_half_way_is_an_error_of_the_texts_in_it(start, run_folder) -> None:
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
        [engine] = served.engines()
        os.kill(engine, signal.SIGSTOP)
        with ThreadPoolExecutor(2) as client:
            waiting = [client.submit(streamed, served, TEXTS[1], n_best=best) for best in (1, 2)]
            until_in_engine(served)
            os.kill(engine, signal.SIGKILL)
            answers = [one.result(timeout=30)[0] for one in waiting]
        [refused] = (one["error"] for one in answers if "error" in one)
        assert "starts again" in refused
        until(lambda: served.get("/ready").status == 200, "the model has not been loaded again")
        assert streamed(served, TEXTS[1])[0]["text"]
