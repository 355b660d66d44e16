"""The process of a model that is killed, hangs, or cannot start again: the service answers, and recovers."""

import json
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving.conftest import until, until_in_engine

pytestmark = pytest.mark.slow
ONE = {"q": "the cat sleeps", "source": "en", "target": "es"}
RESTARTS = 'glassformer_restarts_total{model="en-es"}'


def test_a_killed_engine_is_refused_and_started_again(start, run_folder):
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
        before = served.json("/translate", ONE).json
        [engine] = served.engines()
        os.kill(engine, signal.SIGSTOP)  # keeps the request in the engine until the engine is killed
        with ThreadPoolExecutor(2) as client:
            waiting = [client.submit(served.json, "/translate", {**ONE, "alternatives": more}) for more in (0, 1)]
            until_in_engine(served)
            os.kill(engine, signal.SIGKILL)
            translated, refused = sorted((one.result(timeout=30) for one in waiting), key=lambda one: one.status)
        assert translated.status == 200
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        assert served.json("/translate", ONE).json == before
        assert served.engines() != [engine]
        assert served.metric(RESTARTS) == 1


def test_no_request_is_refused_for_an_engine_that_was_killed_while_it_was_idle(start, run_folder):
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
        [engine] = served.engines()
        os.kill(engine, signal.SIGKILL)
        until(lambda: served.metric(RESTARTS) == 1, "the death has not been noticed")
        assert served.json("/translate", ONE).status == 200
        assert served.get("/ready").status == 200


def test_kills_under_load_refuse_some_requests_and_change_none(start, run_folder):
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing") as served, ThreadPoolExecutor(8) as clients:
        before = served.json("/translate", ONE).json["translatedText"]
        for kill in range(1, 4):
            waiting = [clients.submit(served.json, "/translate", {**ONE, "q": [ONE["q"]] * 20}) for _ in range(24)]
            os.kill(served.engines()[0], signal.SIGKILL)
            answers = [one.result(timeout=60) for one in waiting]
            assert {one.status for one in answers} <= {200, 503}
            assert all(one.json["translatedText"] == [before] * 20 for one in answers if one.status == 200)
            until(lambda kill=kill: served.metric(RESTARTS) == kill, "the process has not been started again")
            until(lambda: served.get("/ready").status == 200, "the model has not been loaded again")
        assert served.json("/translate", ONE).json["translatedText"] == before


def test_an_engine_that_hangs_is_started_again(start, run_folder):
    seconds = ("--set", "serving.seconds=2")
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing", *seconds) as served:
        os.kill(served.engines()[0], signal.SIGSTOP)
        assert served.json("/translate", ONE).status == 503
        until(lambda: served.json("/translate", ONE).status == 200, "the service has not recovered")
        assert served.metric(RESTARTS) == 1


def test_a_model_that_cannot_be_loaded_again_is_tried_less_and_less_often(start, run_folder, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    with start(str(folder), "--languages", "en:es", "--log", "nothing", "--set", "serving.seconds=1") as served:
        moved = folder.rename(tmp_path / "moved")
        began = time.monotonic()
        os.kill(served.engines()[0], signal.SIGKILL)
        until(lambda: served.metric(RESTARTS) >= 3, "the process has not been started again")
        assert time.monotonic() - began >= 0.5 + 1  # the service pauses after each of the first two deaths
        ready = served.get("/ready")
        assert (ready.status, json.loads(ready.body)["models"]) == (503, {"en-es": False})
        assert served.get("/health").status == 200
        assert served.json("/translate", ONE).status == 503
        moved.rename(folder)
        until(lambda: served.json("/translate", ONE).status == 200, "the service has not recovered")
