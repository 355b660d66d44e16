"""The service as a whole: many clients, limits, keys, bad clients, a model's process that is killed, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from glassformer.bundle import Bundle
from glassformer.cli import main
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.translating.combination import Combination, CombinationWeights
from glassformer.translator import Translator
from serving.conftest import Served, port_of, service, until, until_in_engine

pytestmark = pytest.mark.slow
ONE = {"q": "the cat sleeps", "source": "en", "target": "es"}
WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]


def test_requests_at_the_same_time_get_the_answers_that_they_get_alone(served, run_folder):
    texts = [" ".join(WORDS[first : first + 1 + first % 4]) for first in range(9)] * 4
    translator = Translator.load(run_folder, engine="ctranslate2")
    alone = {text: translator.translate([text])[0].text or text for text in set(texts)}
    with ThreadPoolExecutor(len(texts)) as clients:
        answers = list(clients.map(lambda text: served.json("/translate", {**ONE, "q": text}).json, texts))
    assert [one["translatedText"] for one in answers] == [alone[text] for text in texts]
    sizes = [line for line in served.get("/metrics").body.decode().splitlines() if line.startswith("glassformer_batch")]
    largest = next(line for line in sizes if 'le="1.0"' in line)
    count = next(line for line in sizes if "_count" in line)
    assert float(largest.rpartition(" ")[2]) < float(count.rpartition(" ")[2])  # at least one batch had several texts


def test_a_given_max_source_replaces_the_limit_of_a_sentence(start, run_folder):
    long = {**ONE, "q": " ".join(WORDS)}
    limit = ("--languages", "en:es", "--set", "serving.sentence=5", "--log", "nothing")
    statuses = []
    for given in ((), ("--set", "decoding.max_source=20")):
        with start(str(run_folder), *limit, *given) as served:
            statuses.append([served.json("/translate", one).status for one in (ONE, long)])
    assert statuses == [[200, 400], [200, 200]]


def test_rates_and_keys(start, run_folder, tmp_path):
    keys = tmp_path / "keys"
    made = [sys.executable, "-m", "glassformer", "serve", "--keys", str(keys), "--new-key"]
    first = subprocess.check_output([*made, "first"], text=True).strip()
    assert first not in keys.read_text()
    options = ("--languages", "en:es", "--keys", str(keys), "--set", "serving.rate=3/minute", "--log", "nothing")
    with start(str(run_folder), *options) as served:
        missing = served.json("/translate", ONE)
        assert (missing.status, missing.json["error"]) == (
            400,
            "Please contact the server operator to get an API key",
        )
        wrong = served.json("/translate", {**ONE, "api_key": "wrong"})
        assert (wrong.status, wrong.json) == (403, {"error": "Invalid API key"})
        assert served.json("/v2/translate", {"text": ["a"], "target_lang": "ES"}).status == 403
        assert served.json("/translate", {**ONE, "api_key": first}).status == 200
        deepl = {"text": ["a dog", "a cat"], "target_lang": "ES"}
        assert served.json("/v2/translate", deepl, authorization=f"DeepL-Auth-Key {first}").status == 200
        refused = served.json("/translate", {**ONE, "api_key": first})
        assert refused.status == 429
        assert refused.json["error"].startswith("Slowdown: ")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        second = subprocess.check_output([*made, "second"], text=True).strip()
        assert served.json("/v1/translate", {"texts": ["a"]}, authorization=f"Bearer {second}").status == 200


def test_clients_that_go_away_leave_nothing_behind(served):
    body = json.dumps({**ONE, "q": ["the cat sees a big black dog"] * 50}).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for size in (len(body), len(body) // 2, 0):
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(head.encode() + body[:size])
    assert served.json("/translate", ONE).status == 200
    until(lambda: served.metric('glassformer_queue{model="en-es"}') == 0, "texts still wait")


def test_silent_connections_do_not_keep_others_out(start, run_folder):
    options = ("--languages", "en:es", "--log", "nothing", "--set", "serving.connections=20")
    with start(str(run_folder), *options) as served:
        place = ("127.0.0.1", served.port)
        silent = [socket.create_connection(place) for _ in range(60)]
        for one in silent[40:]:
            one.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n")  # a request head that never ends
        assert served.json("/translate", ONE).status == 200
        for one in silent:
            one.close()
        busy = [socket.create_connection(place) for _ in range(20)]
        for one in busy:
            # a request without its body
            one.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        time.sleep(0.3)
        refused = served.get("/health")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        assert refused.json == {"error": "too many connections"}
        for one in busy:
            one.close()
        until(lambda: served.get("/health").status == 200, "the places are not free")


def test_sigterm_lets_a_begun_request_end(start, run_folder):
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served, ThreadPoolExecutor(2) as client:
        [engine] = served.engines()
        os.kill(engine, signal.SIGSTOP)
        waiting = [client.submit(served.json, "/translate", {**ONE, "alternatives": more}) for more in (0, 1)]
        until_in_engine(served)
        served.process.send_signal(signal.SIGTERM)
        threading.Timer(0.5, os.kill, (engine, signal.SIGCONT)).start()
        assert [one.result(timeout=30).status for one in waiting] == [200, 200]
        assert served.process.wait(timeout=30) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(engine, 0)


@pytest.mark.long
def test_sigterm_gives_a_begun_request_its_whole_time(start, run_folder):
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served, ThreadPoolExecutor(2) as client:
        [engine] = served.engines()
        os.kill(engine, signal.SIGSTOP)
        waiting = [client.submit(served.json, "/translate", {**ONE, "alternatives": more}) for more in (0, 1)]
        until_in_engine(served)
        served.process.send_signal(signal.SIGTERM)
        time.sleep(25)  # less than the half of serving.seconds that one batch may take
        assert not any(one.done() for one in waiting)
        os.kill(engine, signal.SIGCONT)
        assert [one.result(timeout=30).status for one in waiting] == [200, 200]
        assert served.process.wait(timeout=30) == 0


@contextmanager
def logging_service(*arguments):
    """Run a service; yield it and a list, which has the entries of its log after the context."""
    command = [sys.executable, "-m", "glassformer", "serve", *arguments, "--languages", "en:es", "--port", "0"]
    process, entries = subprocess.Popen(command, stderr=subprocess.PIPE, text=True), []
    yield Served(process, port_of(process)), entries
    process.send_signal(signal.SIGTERM)
    entries += map(json.loads, process.communicate(timeout=30)[1].splitlines())


ENTRY = {"path": "/translate", "status": 200, "texts": 1, "model": "en-es"}


def test_the_log_has_texts_if_asked(run_folder):
    with logging_service(str(run_folder), "--log", "texts") as (served, entries):
        served.json("/translate", {**ONE, "api_key": "secret"})
    [entry] = entries
    assert entry.items() >= {**ENTRY, "address": "127.0.0.1"}.items()
    assert "text" in entry
    assert "secret" not in str(entry)


def test_the_log_names_clients_behind_a_proxy_and_has_no_texts(run_folder):
    with logging_service(str(run_folder), "--behind-proxy", "1", "--set", "serving.rate=2/hour") as (served, entries):
        statuses = [
            served.json("/translate", {**ONE, "api_key": "secret"}, x_forwarded_for=f"{invented}, 203.0.113.7").status
            for invented in ("1.1.1.1", "2.2.2.2", "3.3.3.3")
        ]
        other = served.json("/translate", ONE, x_forwarded_for="203.0.113.8")
    assert statuses == [200, 200, 429]
    assert other.status == 200
    assert [entry["address"] for entry in entries] == ["203.0.113.7"] * 3 + ["203.0.113.8"]
    assert entries[0].items() >= ENTRY.items()
    assert not any("text" in entry for entry in entries)
    assert "secret" not in str(entries)


def test_the_log_says_why_an_engine_ended(run_folder):
    with logging_service(str(run_folder), "--set", "serving.seconds=2") as (served, entries):
        [engine] = served.engines()
        os.kill(engine, signal.SIGKILL)
        until(lambda: served.engines() not in ([], [engine]), "the engine has not been started again")
        until(lambda: served.get("/ready").status == 200, "the model has not been loaded again")
        [engine] = served.engines()
        os.kill(engine, signal.SIGSTOP)
        assert served.json("/translate", ONE).status == 503
        until(lambda: engine not in served.engines(), "the engine still runs")
        until(lambda: served.get("/ready").status == 200, "the model has not been loaded again")
    found = [entry for entry in entries if "event" in entry]
    assert [entry["event"] for entry in found] == ["engine ended", "engine ready"] * 2
    assert {entry["model"] for entry in found} == {"en-es"}
    ended = [(entry["reason"], entry["texts"]) for entry in found[::2]]
    assert ended == [("killed by SIGKILL", 0), ("took more than 1 s", 1)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "RUN: expected the folder of a run"),
        (["RUN"], "does not name its languages; give them, for example by --languages en:fr"),
        (
            ["RUN", "--languages", "en:fr", "--languages", "en:fr"],
            "--languages: expected one pair for each of 1 runs, got 2",
        ),
        (["RUN", "RUN", "--languages", "en:fr", "--languages", "en:fr"], "two runs translate en-fr"),
        (
            ["RUN", "--languages", "en:fr", "--set", "serving.rate=often"],
            "serving.rate: expected a number of texts per time",
        ),
        (["RUN", "--languages", "en:fr", "--keys", "nowhere"], "nowhere: No such file"),
        (["nowhere"], "'nowhere' does not exist"),
        (["--new-key", "me"], "--new-key needs --keys FILE"),
    ],
)
def test_mistakes_are_one_line(run_folder, capsys, arguments, error):
    with pytest.raises(SystemExit) as end:
        main(["serve", *(str(run_folder) if one == "RUN" else one for one in arguments)])
    assert end.value.code == 1
    [line] = capsys.readouterr().err.splitlines()
    assert error in line


def test_a_model_that_cannot_be_loaded_is_one_line(run_folder, tmp_path):
    export_ctranslate2(Bundle.load(run_folder), tmp_path / "exported")
    command = [sys.executable, "-m", "glassformer", "serve", str(tmp_path / "exported"), "--languages", "en:es"]
    done = subprocess.run([*command, "--engine", "torch", "--port", "0"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("without weights for the engine torch; give the exported run itself")


def test_a_port_in_use(served, run_folder):
    command = [sys.executable, "-m", "glassformer", "serve", str(run_folder), "--languages", "en:es"]
    done = subprocess.run(
        [*command, "--port", str(served.port)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_combination_is_served_in_place_of_a_run(start, english_french_run, tmp_path):
    combination = Combination(
        run=english_french_run, rescore=(english_french_run,), beam_size=2, weights=CombinationWeights.equal(1)
    )
    combination.save(tmp_path / "combination.json")
    text = "the big dog sleeps ."
    with start(str(tmp_path / "combination.json")) as one:
        answer = one.json("/translate", {"q": text, "source": "en", "target": "fr"})
        # shows the run, without the rest of the combination
        assert one.get("/explore", accept="text/html").status == 200
    assert answer.json["translatedText"] == Translator.load(tmp_path / "combination.json").translate([text])[0].text


HIDING = """
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {"jaxtyping", "safetensors", "torch"}
        return None if hidden else super().find_spec(name, path, target)


sys.meta_path[:] = [Hiding if one is PathFinder else one for one in sys.meta_path]
"""
"""The module `sitecustomize` of processes in which PyTorch cannot be imported."""


@pytest.mark.long
def test_an_export_is_served_where_pytorch_cannot_be_imported(run_folder, tmp_path, monkeypatch):
    """`tests/clients/test_deploy.py` proves the same in an environment without PyTorch."""
    export_ctranslate2(Bundle.load(run_folder), tmp_path / "exported")
    own = Translator.load(tmp_path / "exported", engine="ctranslate2").translate(["the cat sleeps"])
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with service(str(tmp_path / "exported"), "--languages", "en:es") as served:
        answer = served.json("/v1/translate", {"texts": ["the cat sleeps"]}).json
        explorer = served.get("/explore", accept="text/html")
    assert answer["translations"][0]["text"] == own[0].text
    assert explorer.status == 501
    assert explorer.json["error"].startswith("the explorer needs PyTorch")
