"""Clients that are slow, greedy or broken do no harm: other clients are served at the same time."""

import http.client
import json
import os
import re
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import psutil
import pytest

from serving.conftest import QUEUE, Served, connected, connections, service, until, until_ended, until_in_engine

pytestmark = pytest.mark.slow
ONE = {"q": "the cat sleeps", "source": "en", "target": "es"}
OWN = {"texts": ["the cat sleeps"]}
DEEPL = {"text": ["the cat sleeps"], "target_lang": "ES"}
HALF = "\ud800"
HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
OWN_HEAD = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def attacked(run_folder) -> Iterator[Served]:
    """Return a service with the default limits, but short times."""
    times = ("--set", "serving.body_seconds=1", "--set", "serving.seconds=3")
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing", *times) as one:
        yield one


@pytest.fixture(scope="module")
def quiet(run_folder) -> Iterator[Served]:
    """Return a service with the default limits and times."""
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as one:
        yield one


def memory(served: Served) -> int:
    """Return the resident bytes of the service's main process."""
    return psutil.Process(served.process.pid).memory_info().rss


@pytest.mark.parametrize(
    ("before", "drop"),
    [
        (HEAD + b"Content-Length: 1000\r\n\r\n", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (HEALTH + b"Content-Length: 1000000\r\n\r\n", b" "),
        (b"POST /absent HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", b" "),
    ],
    ids=["body", "chunks", "body of a GET", "body after the answer"],
)
def test_a_client_that_sends_a_byte_now_and_then_is_ended(attacked, before, drop):
    until_ended(attacked, before, drop)
    assert attacked.json("/translate", ONE).status == 200


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/translate", "/translate_file", "/absent"])
@pytest.mark.parametrize("how", ["Content-Length: 100000000", "Transfer-Encoding: chunked"])
def test_a_body_of_100_megabytes_takes_no_memory(attacked, path, how):
    before = memory(attacked)
    block = b"x" * 65536
    sent = b"10000\r\n" + block + b"\r\n" if "chunked" in how else block
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{how}\r\n\r\n".encode()
    with connected(attacked, head) as client, suppress(OSError):
        for _ in range(100 * MEGABYTE // len(block)):
            client.sendall(sent)
    assert memory(attacked) - before < 30 * MEGABYTE
    assert attacked.json("/translate", ONE).status == 200


def test_clients_that_do_not_read_their_answers_are_ended(attacked, quiet):
    body = json.dumps({"texts": ["the cat sees a dog. " * 100] * 30, "n_best": 4}).encode()
    # the answer does not fit into the system's buffers
    assert len(quiet.ask("/v1/translate", body=body).body) > MEGABYTE
    with ExitStack() as clients:
        for _ in range(3):
            clients.enter_context(connected(attacked, OWN_HEAD % len(body) + body))
        assert attacked.json("/translate", ONE).status == 200
        until(lambda: connections(attacked) == 0, "the connections are still open")


def test_requests_without_end_on_one_connection_take_no_memory(attacked):
    before = memory(attacked)
    with connected(attacked) as client:
        client.settimeout(1)
        with suppress(OSError):  # the service has stopped reading
            while True:
                client.sendall((HEALTH + b"\r\n") * 1000)
        assert attacked.json("/translate", ONE).status == 200
    assert memory(attacked) - before < 30 * MEGABYTE


def test_large_bodies_at_the_same_time_share_a_bounded_memory(run_folder):
    sizes = ("--set", "serving.body=100000", "--set", "serving.connections=100")
    large = {**ONE, "x": "x" * 99_000}
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing", *sizes) as served, ExitStack() as clients:
        assert served.json("/translate", large).status == 200
        for _ in range(80):  # more than the 64 that are allowed
            clients.enter_context(connected(served, HEAD + b"Content-Length: 99999\r\n\r\n" + b" " * 99_000))
        until(lambda: served.json("/translate", large).status == 503, "large bodies are still accepted")
        assert served.json("/translate", ONE).status == 200
        clients.close()
        until(lambda: served.json("/translate", large).status == 200, "large bodies are still refused")


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        *(("/translate", {**ONE, name: HALF}, 400) for name in ("q", "source", "target", "format")),
        *(("/v2/translate", {**DEEPL, name: HALF}, 400) for name in ("target_lang", "source_lang", "formality")),
        *(("/v1/translate", {**OWN, name: HALF}, 400) for name in ("source", "target", "prefix", HALF)),
        ("/v1/translate", {"texts": [HALF]}, 400),
        ("/v2/translate", {**DEEPL, "text": [HALF]}, 400),
        ("/translate", {**ONE, "api_key": HALF}, 200),
        ("/translate", {**ONE, "q": "the \0 cat"}, 200),
        ("/translate", {**ONE, "q": "\u202ethe\u2066 <b onclick='x'>cat</b> \u200f&amp;"}, 200),
        ("/translate", {**ONE, "q": "\n" * 19_000}, 200),
        ("/translate", {**ONE, "q": "a cat. " * 2800 + "\n"}, 200),
        ("/translate", {**ONE, "q": ["a? " * 6000] * 90}, 503),  # more texts than may wait
        ("/translate", {**ONE, "q": [["the cat"]]}, 400),
        ("/translate", {**ONE, "q": [True]}, 400),
        ("/translate", {**ONE, "q": [None]}, 400),
        ("/translate", {**ONE, "source": ["en"]}, 400),
        ("/v1/translate", {**OWN, "n_best": True}, 400),
        ("/v1/translate", {**OWN, "n_best": 10_000}, 400),
        ("/v1/translate", {**OWN, "beam_size": 10_000}, 400),
        ("/v1/translate", {**OWN, "prefix": "le chat " * 500}, 400),
    ],
)
def test_each_field_is_checked(quiet, path, fields, status):
    answer = quiet.json(path, fields)
    assert answer.status == status
    assert ("error" in answer.json or "message" in answer.json) == (status != 200)
    assert ("with fewer texts" in str(answer.json)) == (status == 503)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"q": "a", "q": "the cat", "source": "en", "target": "es"}', 200),
        (b'{"q": "the cat", "source": "en", "target": "es", "alternatives": NaN}', 400),
        (b'{"q": "the cat", "source": "en", "target": "es", "alternatives": 1e999}', 400),
        (b'{"q": "the cat", "source": "en", "target": "es", "alternatives": 1e308}', 400),
        (b'{"q": "the cat", "source": "en", "target": "es", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"q": "\xff", "source": "en", "target": "es"}', 400),
        (b'{"q": "the cat", "source": "en", "target": "es"}'.decode().encode("utf-16"), 200),
    ],
)
def test_each_kind_of_json_is_read_or_refused(attacked, body, status):
    answer = attacked.ask("/translate", body=body, content_type="application/json")
    assert answer.status == status
    assert ("error" in answer.json) == (status != 200)


@pytest.mark.parametrize("query", ["alternatives=10000", f"alternatives={'9' * 5000}", "alternatives=NaN"])
def test_alternatives_of_a_query_are_limited(attacked, query):
    answer = attacked.ask(f"/translate?q=the+cat&source=en&target=es&{query}")
    assert answer.status == 400
    assert "alternatives" in answer.json["error"]


@pytest.mark.parametrize(
    "body",
    [b'{"texts": [' + b"1," * 1_900_000 + b"1]}", b"{" + b",".join(b'"%d":1' % one for one in range(300_000)) + b"}"],
    ids=["wrong texts", "unknown fields"],
)
def test_a_million_mistakes_are_one_error(attacked, body):
    before = memory(attacked)
    answer = attacked.ask("/v1/translate", body=body)
    assert answer.status == 400
    assert len(answer.body) < 200
    assert memory(attacked) - before < 150 * MEGABYTE  # the parsed request itself takes this much


LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        *(("/translate", {**ONE, name: LONG}) for name in ("q", "source", "target", "format", "alternatives")),
        *(("/v2/translate", {**DEEPL, name: LONG}) for name in ("text", "target_lang", "source_lang", "formality")),
        *(("/v2/translate", {**DEEPL, name: LONG}) for name in ("glossary_id", "tag_handling")),
        *(
            ("/v1/translate", {**OWN, name: LONG})
            for name in ("source", "target", "n_best", "beam_size", "stream", LONG)
        ),
        ("/v1/translate", {**OWN, "glossary": {LONG: "x"}}),
        ("/v1/translate", {**OWN, "glossary": {"x": LONG}}),
        ("/v1/translate", {**OWN, "glossary": {"cat " * 50: "", "the": "x"}}),
        ("/v1/translate", {**OWN, "glossary": {"cat": ["x" * 1000]}}),
        ("/v1/translate", {**OWN, "prefix": LONG}),
        ("/detect", {"q": LONG}),
        (f"/translate?q=a&q=b&{'y' * 60_000}=1&{'y' * 60_000}=2", ONE),
        ("/explore/api", {"kind": LONG}),
        ("/explore/api", {"kind": "encode", "side": LONG, "text": LONG}),
        ("/explore/api", {"kind": "trace", "source_ids": [LONG], "target_ids": [], LONG: 1}),
        (f"/explore/api?run={'x' * 60_000}", {}),
        (f"/{'x' * 60_000}", {}),
        (f"/v2/{'x' * 60_000}", {}),
        (f"/download_file/{'x' * 60_000}", {}),
    ],
)
def test_an_error_quotes_a_few_dozen_characters(attacked, path, fields):
    answer = attacked.json(path, fields)
    assert answer.status >= 400 or path.startswith("/explore")
    assert len(answer.body) < 500


@pytest.mark.parametrize("field", ["source", "target", "lines", "filename", "type", "charset"])
def test_an_error_about_a_file_quotes_a_few_dozen_characters(attacked, field):
    given = {"source": "en", "target": "es", "lines": "false", "filename": "a.html", "type": "text/html"}
    file = f"<meta charset={'x' * 4000}>" if field == "charset" else "\xff"
    if field in given:
        given[field] = LONG[:1000] + given[field]
    parts = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{given[name]}\r\n'
        for name in ("source", "target", "lines")
    )
    head = f'name="file"; filename="{given["filename"]}"\r\nContent-Type: {given["type"]}'
    body = f"{parts}--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{file}\r\n--x--\r\n".encode("latin-1")
    answer = attacked.ask("/translate_file", body=body, content_type="multipart/form-data; boundary=x")
    assert answer.status == 400
    assert len(answer.body) < 500


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"q": [' + b"[]," * 1_300_000 + b"1]}", "application/json"),
        (b'{"q": [' + b'"",' * 1_300_000 + b'""]}', "application/json"),
        (b"{" + b",".join(b'"%d":1' % one for one in range(300_000)) + b"}", "application/json"),
        (b"&" * 3_900_000, "application/x-www-form-urlencoded"),
        (b"a&" * 1_900_000, "application/x-www-form-urlencoded"),
    ],
    ids=["lists", "texts", "names", "no fields", "fields"],
)
@pytest.mark.parametrize("path", ["/translate", "/v2/translate"])
def test_a_body_of_too_many_parts_is_refused(attacked, path, body, kind):
    answer = attacked.ask(path, body=body, content_type=kind)
    assert answer.status == 400
    assert "expected at most " in str(answer.json)


def reader_of(served: Served) -> int:
    """Return the id of the process that the service started last."""
    return max(served.engines(), key=lambda one: psutil.Process(one).create_time())


PAGE = (
    b'--x\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
    b'--x\r\nContent-Disposition: form-data; name="target"\r\n\r\nes\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n<p>the cat</p>\r\n--x--\r\n'
)
JSON = "application/json"


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/translate", json.dumps({**ONE, "q": "the cat. " * 300}).encode(), JSON),
        ("/v2/translate", json.dumps({**DEEPL, "text": ["the cat. " * 300]}).encode(), JSON),
        ("/v1/translate", json.dumps({"texts": ["the cat. " * 300]}).encode(), JSON),
        ("/translate", json.dumps({**ONE, "x": "x" * 100_000}).encode(), JSON),
        ("/translate", b"q=the+cat&source=en&target=es&x=" + b"x" * 100_000, "application/x-www-form-urlencoded"),
        ("/translate", json.dumps({**ONE, "source": "auto"}).encode(), JSON),
        ("/detect", json.dumps({"q": "the cat"}).encode(), JSON),
        ("/translate_file", PAGE, "multipart/form-data; boundary=x"),
    ],
    ids=["text", "DeepL", "own", "JSON", "form", "auto", "detect", "file"],
)
def test_what_may_take_long_is_read_by_another_process(quiet, path, body, kind):
    with ThreadPoolExecutor(1) as client:
        assert quiet.ask(path, body=body, content_type=kind).status == 200
        _, *readers = quiet.engines()  # the model's process is the oldest
        assert readers
        for reader in readers:
            os.kill(reader, signal.SIGSTOP)
        waiting = client.submit(quiet.ask, path, body=body, content_type=kind)
        assert quiet.get("/health").status == 200
        assert quiet.json("/translate", ONE).status == 200
        time.sleep(0.2)
        assert not waiting.done()
        for reader in readers:
            os.kill(reader, signal.SIGCONT)
        assert waiting.result(timeout=60).status == 200


def test_a_reader_that_ends_or_hangs_is_replaced(run_folder):
    options = ("--languages", "en:es", "--log", "nothing", "--set", "serving.seconds=2")
    long = {**ONE, "q": "the cat. " * 300}
    with service(str(run_folder), *options) as served, ThreadPoolExecutor(1) as client:
        whole = served.json("/translate", long)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            reader = reader_of(served)
            os.kill(reader, signal.SIGSTOP)
            waiting = client.submit(served.json, "/translate", long)
            assert served.get("/health").status == 200
            os.kill(reader, number)
            assert waiting.result(timeout=30).status == 503
            assert served.json("/translate", long).body == whole.body
            assert reader not in served.engines()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # how TLS begins
        b"GET / HTTP/1.1\r\nA: " + b"x" * 200_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + b"x" * 200_000,
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
        b"POST /absent HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
def test_what_is_not_http_is_refused_without_a_trace_in_the_log(attacked, data):
    with connected(attacked) as client, suppress(OSError):
        client.sendall(data)
        assert client.recv(65536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
        client.sendall(b"zz\r\n")
        client.recv(65536)
    assert attacked.json("/translate", ONE).status == 200


def in_chunks(*sizes: int) -> bytes:
    """Return a complete chunked body: a valid request, padded with spaces, in chunks of these sizes."""
    fields = json.dumps(ONE).encode()
    chunks = [fields, *(b" " * size for size in sizes)]
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "sizes",
    [[1] * 2000, [15] * 2000, [400] * 4000, [*[50_000] * 40, *[1] * 2000]],
    ids=["of a byte", "of 15 bytes", "of 400 bytes", "of a byte after large ones"],
)
def test_a_body_in_many_small_chunks_is_refused(attacked, sizes):
    with connected(attacked) as client:
        with suppress(OSError):  # the service closes the connection before everything is sent
            client.sendall(CHUNKED + in_chunks(*sizes))
        with suppress(ConnectionError):
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert answer.status == 400
            assert b"send chunks of 512 bytes or more" in answer.read()
            assert client.recv(1) == b""
    assert attacked.json("/translate", ONE).status == 200


@pytest.mark.parametrize(
    "sizes", [[1] * 200, [512] * 4000, [*[1] * 200, *[100_000] * 3, *[1] * 200]], ids=["small", "many", "both"]
)
def test_a_body_in_chunks_is_read(attacked, sizes):
    with connected(attacked) as client:
        for _ in range(3):  # the limit counts requests, not connections
            client.sendall(CHUNKED + in_chunks(*sizes))
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert answer.status == 200
            assert answer.read()


def test_a_refusal_of_small_chunks_may_cross_another_answer(attacked):
    """The service must not write to stderr; this is checked when the service ends."""
    head = b"POST /absent HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(300):
        with connected(attacked, head) as client, suppress(OSError):
            client.sendall(in_chunks(*[1] * 1000))
            assert client.recv(65536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))


def test_a_wish_for_another_protocol_is_ignored(attacked):
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
    body = b"source=en&target=es&q=the cat\r\nUpgrade: h2c\r\nsleeps"
    kind = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n" % len(body)
    with connected(attacked) as client:
        for more in (wish, b""):  # the connection must stay open
            client.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n" + more + kind + b"\r\n" + body)
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert answer.status == 200
            assert json.loads(answer.read())["translatedText"].count("\n") == 2


def test_pipelined_requests_are_answered_in_order(attacked):
    with connected(attacked) as client:
        client.sendall(b"".join(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in (b"health", b"absent") * 500))
        got = b""
        while got.count(b"HTTP/1.1 ") < 1000 or not got.endswith(b"}"):
            got += client.recv(65536)
    assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200", b"404"] * 500


@pytest.mark.long
def test_ten_thousand_connections(run_folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
            with ExitStack() as silent:
                for _ in range(10_000 if hard == resource.RLIM_INFINITY else min(10_000, hard - 500)):
                    silent.enter_context(connected(served))  # waits in the queue, like the request
                assert served.json("/translate", ONE).status == 200
                assert memory(served) < 200 * MEGABYTE
            until(lambda: connections(served) == 0, "the connections are still open")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_small_request_need_not_wait_for_a_large_one(quiet):
    engine, *_ = quiet.engines()  # the model's process is the oldest
    with ThreadPoolExecutor(1) as client:
        os.kill(engine, signal.SIGSTOP)
        large = client.submit(quiet.json, "/translate", {**ONE, "q": "the cat\n" * 2400})
        until(lambda: quiet.metric(QUEUE) > 2000, "the large request does not wait")
        os.kill(engine, signal.SIGCONT)
        assert quiet.json("/translate", ONE).status == 200
        assert quiet.metric(QUEUE) > 1000
        assert large.result().status == 200


@pytest.fixture(scope="module")
def crowded(run_folder) -> Iterator[Served]:
    """Return a service in which ten texts may wait."""
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing", "--set", "serving.queue=10") as one:
        yield one


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_is_cancelled_frees_its_places_in_the_queue(crowded, stream):
    served = crowded
    engine, *_ = served.engines()
    os.kill(engine, signal.SIGSTOP)
    asked = (OWN, {**OWN, "n_best": 2}, {"texts": ["the cat"] * 8, "stream": stream})
    first, other, texts = (OWN_HEAD % len(body) + body for body in (json.dumps(one).encode() for one in asked))
    with connected(served, first) as client, connected(served, other):
        until_in_engine(served)
        with connected(served, texts):
            until(lambda: served.metric(QUEUE) == 9, "the others do not wait")
            assert served.json("/translate", {**ONE, "q": ["the cat"] * 2}).status == 503
        until(lambda: served.metric(QUEUE) == 1, "the places are not free")
        os.kill(engine, signal.SIGCONT)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
    until(lambda: served.metric(QUEUE) == 0, "the other text still waits")
    assert served.json("/translate", {**ONE, "q": ["the cat"] * 10}).status == 200


WORST = {
    "zeros": "%" + "0" * 19_900,
    "dots": "http://a" + "." * 19_900,
    "names": "a." * 9_900 + "@",
    "braces": "{{" + "a" * 19_900,
    "dollar": "$" + "a" * 19_900,
    "spaces": "a" + " " * 19_900 + "\nb",
    "quotes": "“" * 19_900,
    "messages": "{a, plural, " * 1_600,
}


@pytest.mark.parametrize("name", WORST)
def test_no_text_holds_the_service(quiet, name):
    assert quiet.json("/translate", ONE).status == 200
    processes = quiet.engines()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(quiet.json, "/translate", {**ONE, "q": WORST[name]})
        while not answer.done():
            assert quiet.get("/health").status == 200
    answered = answer.result()
    assert quiet.json("/translate", ONE).status == 200
    assert answered.status in (200, 400)  # 400 only if the text exceeds the model's 1,024 tokens
    assert {*processes} <= {*quiet.engines()}


@pytest.mark.parametrize("suffix", ["txt", "html"])
def test_no_file_holds_the_service(quiet, suffix):
    assert quiet.json("/translate", ONE).status == 200
    processes = quiet.engines()
    text = "\n\n".join(one[:2_000] for one in WORST.values())
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="a.{suffix}"\r\n\r\n{text}\r\n'
    fields = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("source", "en"), ("target", "es"))
    )
    body = f"{head}{fields}--x--\r\n".encode()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(quiet.ask, "/translate_file", body=body, content_type="multipart/form-data; boundary=x")
        while not answer.done():
            assert quiet.get("/health").status == 200
    answered = answer.result()
    assert quiet.json("/translate", ONE).status == 200
    assert answered.status == 200
    assert {*processes} <= {*quiet.engines()}
