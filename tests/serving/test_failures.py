"""Unexpected errors: they end the request that caused them, and nothing else."""

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from itertools import product

import pytest
from starlette.responses import StreamingResponse

from glassformer.errors import DataError
from glassformer.serving.app import APIS, Application
from glassformer.serving.endpoints import Endpoint
from glassformer.serving.limits import Limits
from glassformer.serving.log import ServiceLog
from glassformer.serving.metrics import Counters
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.own import OWN
from glassformer.serving.process import LoadedTranslator, ModelProcess
from glassformer.serving.refusals import RequestError
from glassformer.serving.service import Service
from serving.conftest import finished
from tiers import in_tiers


class NeedsTwoError(Exception):
    """An error that cannot be created again from its pickle."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class HasCallbackError(Exception):
    """An error that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("has a callback")
        self.callback = lambda: None


ERRORS: tuple[Callable[[], Exception], ...] = (
    lambda: IndexError("list index out of range"),
    lambda: KeyError("a"),
    lambda: RecursionError("maximum recursion depth exceeded"),
    lambda: MemoryError(),
    lambda: AssertionError(),
    lambda: OSError(28, "No space left on device"),
    lambda: EOFError(),
    lambda: TimeoutError("a timeout"),
    lambda: StopIteration(),
    lambda: RuntimeError("CUDA error"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    lambda: NeedsTwoError(1, 2),
    HasCallbackError,
)
TRANSLATING = "glassformer.translating"
LAYERS = (
    f"{TRANSLATING}.layers.rewritten_texts",
    f"{TRANSLATING}.layers.messages_of",
    f"{TRANSLATING}.tagging.TaggedText.restored",
    f"{TRANSLATING}.inside_messages.InsideMessages.__call__",
    f"{TRANSLATING}.retrying.Retrying.__call__",
    f"{TRANSLATING}.judge.Judging.__call__",
    f"{TRANSLATING}.keeping.KeepingTerms.__call__",
    f"{TRANSLATING}.reading.Reader.read",
    f"{TRANSLATING}.searching.Searching.__call__",
    f"{TRANSLATING}.writing.Writer.translations",
)
ENGINES = {
    "torch": "glassformer.decoding.torch_engine.TorchEngine.decode",
    "ctranslate2": "glassformer.interop.ctranslate2.engine.CTranslate2Engine.decode",
}
GOOD, OTHER = "the black cat", "a big brown cat sleeps"
BAD = "<b>the</b> {n, plural, other {cats}} %s sleeps"
"""A text that every layer has something to do with."""


class FullDisk(io.StringIO):
    """A file whose disk is full."""

    def flush(self) -> None:
        """Raise an error."""
        raise OSError(28, "No space left on device")


class FaultyTranslator(LoadedTranslator):
    """Translates; a text that begins with BAD ends with a number, which says which fault happens in which layer."""

    def __init__(self, folder, engine: str) -> None:
        super().__init__(folder, {"engine": engine})
        self.faults = faults_of(engine)

    def __call__(self, texts, options):
        """Translate, perhaps with a fault."""
        with pytest.MonkeyPatch.context() as patch:
            for text in texts:
                if text.startswith(BAD):
                    place, error = self.faults[int(text.split()[-1])]

                    def fail(*_, error=error, **__):
                        raise ERRORS[error]()

                    patch.setattr(place, fail)
            return super().__call__(texts, options)


def faults_of(engine: str) -> list[tuple[str, int]]:
    """Return each layer with the index of each error."""
    return list(product((*LAYERS, ENGINES[engine]), range(len(ERRORS))))


class EndingTranslator(LoadedTranslator):
    """Translates, but the text BAD ends the process."""

    def __call__(self, texts, options):
        """Translate, or end the process."""
        if BAD in texts:
            raise SystemExit(3)
        return super().__call__(texts, options)


class NoPickleTranslator(LoadedTranslator):
    """Translates, but the answer to the text BAD cannot be pickled."""

    def __call__(self, texts, options):
        """Translate."""
        return [lambda: None] if BAD in texts else super().__call__(texts, options)


@asynccontextmanager
async def running(load: LoadedTranslator, file: io.StringIO, limits: Limits | None = None) -> Iterator[ModelProcess]:
    """Yield a model's process once it is ready."""
    model = ModelProcess("en-es", load, limits or Limits(), Counters(), ServiceLog(file))
    task = asyncio.create_task(model.run())
    try:
        while not model.is_ready:
            await asyncio.sleep(0.02)
            assert not task.done(), task.result()
        yield model
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def tokens(answer: object) -> tuple[str, ...]:
    """Return the tokens of the only translation of an answer."""
    [translation] = answer
    return translation.tokens


def counted(metric) -> float:
    """Return the sum of a counter over its labels."""
    return sum(one.value for each in metric.collect() for one in each.samples if one.name.endswith("_total"))


def status(answer: object) -> int:
    """Return the status of an answer of `ModelProcess.translate`."""
    return answer.status if isinstance(answer, RequestError) else 200 if isinstance(answer, list) else 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", in_tiers(ENGINES, ["ctranslate2"]))
def test_each_error_of_each_layer_ends_only_its_own_request(run_folder, engine):
    log, faults = io.StringIO(), faults_of(engine)

    async def work():
        async with running(FaultyTranslator(run_folder, engine), log) as model:
            process = model._worker._process.pid
            before = [one.tokens for one in await model.translate([GOOD, OTHER], {})]
            for number, fault in enumerate(faults):
                options = {"retry": True} if "Retrying" in fault[0] else {}
                asked = [model.translate([one], options) for one in (GOOD, f"{BAD} {number}", OTHER)]
                one, failed, other = await asyncio.gather(*asked, return_exceptions=True)
                assert (tokens(one), status(failed), tokens(other)) == (before[0], 500, before[1]), fault
                assert model.is_ready, fault
            assert model._worker._process.pid == process
            return model.metrics

    metrics = finished(work())
    entries = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(one["event"], one["model"]) for one in entries] == [("failed", "en-es")] * len(faults)
    assert entries[0].keys() == {"time", "event", "model", "error", "at"}
    assert {one["error"] for one in entries} == {*(type(one()).__name__ for one in ERRORS[:11]), "RuntimeError"} - {
        "StopIteration"
    }
    assert all(re.fullmatch(r"[\w/]+\.py:\d+ in [\w<>]+", one["at"]) for one in entries), entries
    assert counted(metrics.failed) == len(faults)
    assert counted(metrics.restarts) == 0


@pytest.mark.slow
def test_one_bad_text_among_many_of_a_batch_is_refused_alone(run_folder):
    async def work():
        async with running(FaultyTranslator(run_folder, "torch"), io.StringIO()) as model:
            texts = [GOOD, OTHER] * 31
            asked = [model.translate([one], {}) for one in (*texts[:40], f"{BAD} 0", *texts[40:], f"{BAD} 14")]
            return await asyncio.gather(*asked, return_exceptions=True)

    found = [status(one) for one in finished(work())]
    assert found == [200] * 40 + [500] + [200] * 22 + [500]


@pytest.mark.slow
@pytest.mark.parametrize("load", [EndingTranslator, NoPickleTranslator])
def test_a_model_whose_process_ends_is_started_again(run_folder, load):
    log = io.StringIO()

    async def work():
        async with running(load(run_folder, {"engine": "torch"}), log) as model:
            [before] = await model.translate([GOOD], {})
            with pytest.raises(RequestError) as refused:
                await model.translate([BAD], {})
            [after] = await model.translate([GOOD], {})  # waits for the new process
            assert after.tokens == before.tokens
            return refused.value.status, model.is_ready

    expected = (503, "engine ended") if load is EndingTranslator else (500, "failed")
    assert finished(work()) == (expected[0], True)
    assert json.loads(log.getvalue().splitlines()[0])["event"] == expected[1]


@pytest.mark.slow
def test_an_error_in_the_queue_itself_starts_the_model_again(run_folder, monkeypatch):
    """The task of a model never ends by an error, wherever the error is."""
    log = io.StringIO()

    async def work():
        async with running(LoadedTranslator(run_folder, {"engine": "torch"}), log) as model:
            with monkeypatch.context() as patch:
                patch.setattr(model, "_next", lambda: 1 // 0)
                waiting = asyncio.create_task(model.translate([GOOD], {}))
                while model.is_ready:
                    await asyncio.sleep(0.01)
            return await waiting, model.is_ready

    [translation], is_ready = finished(work())
    assert translation.tokens
    assert is_ready
    ended, started = [json.loads(line) for line in log.getvalue().splitlines()]
    assert ended["reason"].startswith("ZeroDivisionError at serving/process.py:")
    assert started["event"] == "engine ready"


@pytest.mark.slow
def test_a_model_whose_task_has_ended_is_not_ready(run_folder):
    async def work():
        async with running(LoadedTranslator(run_folder, {"engine": "torch"}), io.StringIO()) as model:
            model._task.cancel()
            await asyncio.gather(model._task, return_exceptions=True)
            return Service(models=Models([ServedModel(source="en", target="es", process=model)])).models.is_ready

    assert not finished(work())


def ask(service: Service, path: str, method: str = "GET", body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of an answer."""
    sent, received = [], [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return received.pop() if received else await asyncio.get_running_loop().create_future()

    async def send(message):
        sent.append(message)

    kind = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": kind, "client": ("::1", 1)}
    finished(Application(service)(scope, receive, send))
    start, *rest = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(message["body"] for message in rest)


@pytest.mark.parametrize("message", [None, "'secret text'"])
@pytest.mark.parametrize(
    ("path", "name"), [("/translate", "error"), ("/v2/translate", "message"), ("/v1/translate", "error")]
)
def test_an_unexpected_error_of_the_service_has_the_format_of_the_api(path, name, message, monkeypatch):
    log = io.StringIO()
    service = Service(models=Models([]), log=ServiceLog(log, has_texts=message is not None))
    monkeypatch.setattr(Models, "code", lambda *_: {}["secret text"])
    wanted = {"q": "a", "text": ["a"], "texts": ["a"], "source": "en", "target": "es", "target_lang": "ES"}
    if path == "/v1/translate":
        wanted = {"texts": ["a"], "source": "en", "target": "es"}
    answered, headers, body = ask(service, path, "POST", json.dumps(wanted).encode())
    assert (answered, headers["access-control-allow-origin"], headers["content-type"]) == (500, "*", "application/json")
    assert list(json.loads(body)) == [name]
    assert b"secret" not in body
    failed, request = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (failed["event"], failed["error"], failed.get("message")) == ("failed", "KeyError", message)
    assert (request["path"], request["status"]) == (path, 500)
    assert counted(service.metrics.failed) == 1


def test_an_error_outside_the_endpoints_is_answered_too(monkeypatch):
    log = io.StringIO()
    service = Service(models=Models([]), log=ServiceLog(log))
    monkeypatch.setattr(Endpoint, "_check_key", lambda *_: 1 // 0)
    answered, headers, body = ask(service, "/v2/usage")
    assert (answered, headers["access-control-allow-origin"], list(json.loads(body))) == (500, "*", ["message"])
    [entry] = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (entry["event"], entry["path"]) == ("failed", "/v2/usage")


def test_an_error_after_the_beginning_of_an_answer_ends_the_connection(monkeypatch):
    async def broken():
        yield b"one"
        raise DataError("the rest is missing")

    async def handler(*_):
        return StreamingResponse(broken())

    monkeypatch.setattr("glassformer.serving.app.APIS", (*APIS, lambda: [Endpoint(OWN, "GET", "/broken", handler)]))
    log = io.StringIO()
    with pytest.raises(DataError):  # the server closes the connection
        ask(Service(models=Models([]), log=ServiceLog(log)), "/broken")
    assert json.loads(log.getvalue().splitlines()[-1])["error"] == "DataError"


def test_a_log_that_cannot_be_written_ends_nothing():
    full = FullDisk()
    assert ask(Service(models=Models([]), log=ServiceLog(full)), "/ready")[0] == 200
    assert full.getvalue() != ""
