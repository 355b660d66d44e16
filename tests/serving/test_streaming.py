"""Streams of our own API over HTTP: what greedy search has written so far, with both engines."""

import http.client
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from glassformer.bundle import Bundle
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from models import random_translator
from serving.conftest import Served, service, until

pytestmark = pytest.mark.slow
TEXTS = [
    "the cat sleeps.  A dog sees 3.5 cats.\r\n\r\n--\n the dog!\n",
    "a big black dog",
    "😀",
    "the 1234 cats see a dog. The cat sleeps.",
    *(f"the {one} cat sees a dog" for one in ("big", "black", "red")),
]
GREEDY = {"beam_size": 1, "stream": True}
TOKENS = 'glassformer_tokens_total{model="en-fr"}'
SLOW = {"texts": ["a big black dog"], "target": "fr"}
MANY = 2000
"""More tokens than the slow model writes until a client has acted on the first one."""


def endless_run(folder: Path, name: str, length: int, **sizes: int) -> str:
    """Return a run whose outputs have as many tokens as those of their sources and a length."""
    settings = {"extra_length": length, "max_length": length + 50, "output_bias": True, **sizes}
    translator = random_translator(folder, name=name, **settings)
    model = translator.model
    model.output.bias.data[[model.config.eos_id, translator.bundle.target_tokenizer.unk_id]] = -30
    translator.bundle.save(model)
    return str(translator.bundle.folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return a small run and a slow one."""
    folder = tmp_path_factory.mktemp("endless")
    slow = {"d_model": 256, "d_ff": 1024, "encoder_layers": 1, "decoder_layers": 6}
    return endless_run(folder, "small", 60), endless_run(folder, "slow", MANY, **slow)


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def streaming(request, runs, tmp_path_factory) -> Iterator[Served]:
    """Return a service of the small run, into Spanish, and of the slow one, into French."""
    languages = ("--languages", "en:es", "--languages", "en:fr")
    if request.param == "ctranslate2":
        exported = [tmp_path_factory.mktemp("exported") / "model" for _ in runs]
        for run, folder in zip(runs, exported, strict=True):
            export_ctranslate2(Bundle.load(run), folder, "float32")
        runs = map(str, exported)
    with service(*runs, *languages, "--engine", request.param, "--log", "nothing") as one:
        yield one


@dataclass
class Stream:
    """What a client has got so far."""

    answer: http.client.HTTPResponse
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def read_event(self) -> tuple[str, dict[str, Any]] | None:
        lines = []
        for line in iter(lambda: self.answer.readline().decode(), "\n"):
            if not line:
                return None
            lines.append(line.rstrip("\n").split(": ", 1))
        fields = dict(lines)
        self.events.append((fields["event"], json.loads(fields["data"])))
        return self.events[-1]

    def of(self, kind: str, index: int) -> list[dict[str, Any]]:
        return [one for name, one in self.events if name == kind and one["index"] == index]


@contextmanager
def stream(served: Served, **fields: Any) -> Iterator[Stream]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    try:
        connection.request("POST", "/v1/translate", json.dumps(GREEDY | fields), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        yield Stream(answer)
    finally:
        connection.close()


def whole_stream(served: Served, **fields: Any) -> Stream:
    with stream(served, **fields) as one:
        while one.read_event():
            pass
        return one


def test_partial_texts_grow_into_the_final_text(streaming) -> None:
    alone = [streaming.json("/v1/translate", {"texts": [text], "beam_size": 1}).json for text in TEXTS]
    got = whole_stream(streaming, texts=TEXTS)
    assert got.events[-1] == ("end", {})
    for index, [expected] in enumerate(one["translations"] for one in alone):
        [final] = got.of("translation", index)
        assert final["text"] == expected["text"]
        assert [one["tokens"] for one in final["sentences"]] == [one["tokens"] for one in expected["sentences"]]
        text = ""
        for one in got.of("partial", index):
            assert (one["begin"], bool(one["text"])) == (len(text), True)
            text += one["text"]
        assert text == final["text"]  # so each partial text begins the next one, and the last one is the final text
        of_text = [name for name, one in got.events if one.get("index") == index]
        assert of_text.index("translation") == len(of_text) - 1
    assert len(got.of("partial", 2)) == 1  # nothing in it is translated


def test_a_sentence_whose_terms_may_be_put_in_later_is_shown_whole(streaming) -> None:
    got = whole_stream(streaming, texts=[TEXTS[3], "the cat"], glossary={"cat": "gato"})
    for index in range(2):
        [final] = got.of("translation", index)
        assert [one["text"] for one in got.of("partial", index)] == [final["text"]]


@pytest.mark.parametrize("more", [{"beam_size": 2}, {"n_best": 2}, {"retry": True}, {"beam_size": None}])
def test_only_greedy_search_is_shown_before_its_end(streaming, more) -> None:
    got = whole_stream(streaming, texts=TEXTS[1:3], **more)
    assert sorted(name for name, _ in got.events) == ["end", "translation", "translation"]


def test_a_prefix_comes_first(streaming) -> None:
    got = whole_stream(streaming, texts=["the cat"], prefix="le chien noir")
    assert "".join(one["text"] for one in got.of("partial", 0)).startswith("le chien noir ")


def test_a_sentence_that_cannot_be_translated_is_an_error_of_its_text_alone(streaming) -> None:
    got = whole_stream(streaming, texts=["x " * 2000, "the cat"])
    assert "too long" in got.of("translation", 0)[0]["error"]
    assert got.of("translation", 1)[0]["text"] == "".join(one["text"] for one in got.of("partial", 1))


def test_streams_and_other_requests_share_batches_and_change_nothing(streaming) -> None:
    asked = [{"texts": [text], "beam_size": 1} for text in TEXTS]
    alone = [streaming.json("/v1/translate", one).json["translations"][0]["text"] for one in asked]
    with ThreadPoolExecutor(16) as clients:
        streams = [clients.submit(whole_stream, streaming, texts=[text]) for text in TEXTS]
        others = [clients.submit(streaming.json, "/v1/translate", one) for one in asked]
        assert [one.result().json["translations"][0]["text"] for one in others] == alone
        for one, text in zip(streams, alone, strict=True):
            got = one.result()
            assert got.of("translation", 0)[0]["text"] == text
            assert "".join(part["text"] for part in got.of("partial", 0)) == text


def test_a_client_that_goes_away_half_way_ends_the_search_for_its_text(streaming) -> None:
    before = streaming.metric(TOKENS)
    with stream(streaming, **SLOW) as left:
        assert left.read_event()
    other = whole_stream(streaming, texts=[TEXTS[1]])
    until(lambda: streaming.metric(TOKENS) > before, "the search has not ended")
    assert streaming.metric(TOKENS) - before < MANY
    assert streaming.get("/ready").status == 200
    assert other.of("translation", 0)[0]["text"] == "".join(one["text"] for one in other.of("partial", 0))


def test_a_client_that_reads_slowly_delays_nobody(streaming) -> None:
    with stream(streaming, texts=[" ".join(["The cat sleeps."] * 20)] * 20):
        expected = streaming.json("/v1/translate", {"texts": [TEXTS[1]], "beam_size": 1}).json
        assert (
            whole_stream(streaming, texts=[TEXTS[1]]).of("translation", 0)[0]["text"]
            == (expected["translations"][0]["text"])
        )


def test_an_engine_that_is_killed_half_way_is_an_error_of_the_texts_in_it(streaming) -> None:
    with stream(streaming, **SLOW) as one:
        assert one.read_event()
        for engine in streaming.engines():
            os.kill(engine, signal.SIGKILL)
        while one.read_event():
            pass
    assert one.events[-1] == ("end", {})
    assert "starts again" in one.of("translation", 0)[0]["error"]
    until(lambda: streaming.get("/ready").status == 200, "the model has not been loaded again")
    assert whole_stream(streaming, texts=[TEXTS[1]]).of("translation", 0)[0]["text"]
