"""The server behind the page: it answers only the page on this machine."""

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import numpy as np
import pytest

from glassformer.errors import ConfigError
from glassformer.watch.explorer.remote import Remote
from glassformer.watch.explorer.server import DEFAULT_PORT, LARGEST_REQUEST, Server, framed, serve

ENCODE = {"kind": "encode", "side": "source", "text": "the cat"}


@pytest.fixture
def start(make_translator, serving) -> Callable[..., Server]:
    """Return a function that starts a server, which ends with the test."""

    def start(translator: Any = None, port: int | None = 0) -> Server:
        return serving(translator or make_translator(), "the cat sleeps .", port)

    return start


@pytest.fixture
def server(start) -> Server:
    return start()


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[HTTPResponse, bytes]:
    """Return the server's response; headers are written with _ for -."""
    with closing(HTTPConnection("127.0.0.1", server.server_port, timeout=20)) as connection:
        text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, text, named)
        response = connection.getresponse()
        return response, response.read()


def header_of(body: bytes) -> dict[str, Any]:
    """Return the JSON of an answer."""
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + length])


def test_the_server_listens_to_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"


def test_the_page_is_sent_completely(server):
    response, body = ask(server, "GET", "/?any#thing")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-store"
    assert body == server.page
    assert b'"host":{"url":"api"}' in body
    head, nothing = ask(server, "HEAD", "/")
    assert (int(head.headers["Content-Length"]), nothing) == (len(body), b"")


def test_a_question_is_answered(server):
    response, body = ask(server, "POST", "/api", ENCODE)
    assert response.status == 200
    assert header_of(body)["tokens"] == ["the", "cat"]


def test_numbers_follow_the_header(server):
    _, body = ask(server, "POST", "/api", {"kind": "trace", "source_ids": [4, 2], "target_ids": [1], "names": None})
    header = header_of(body)
    numbers = np.frombuffer(body[4 + int.from_bytes(body[:4], "little") :], "<f4")
    first, last = header["points"][0], header["points"][-1]
    np.testing.assert_allclose(numbers[: 4 * 2 * 2].reshape(first["shape"]).sum(-1), 1, atol=1e-6)
    assert len(numbers) == last["offset"] + np.prod(last["shape"])


def test_an_answer_consists_of_length_json_and_numbers():
    body = framed({"a": "é"}, [np.array([[1.0]], np.float32), np.array([2.0], ">f4")])
    text = b'{"a": "\\u00e9"}'
    assert body == len(text).to_bytes(4, "little") + text + b"\0\0\x80\x3f\0\0\0\x40"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil", "localhost.evil:1", ""])
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/api")])
def test_requests_for_other_hosts_are_refused(server, method, path, host):
    response, body = ask(server, method, path, ENCODE, Host=host)
    assert response.status == 421
    assert "error" in header_of(body)


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "localhost"])
def test_this_machine_can_be_reached_through_a_tunnel(server, host):
    assert ask(server, "GET", "/", Host=host)[0].status == 200
    assert ask(server, "POST", "/api", ENCODE, Host=host, Origin=f"http://{host}")[0].status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1:{port}"])
def test_foreign_pages_are_refused(server, origin):
    response, body = ask(server, "POST", "/api", ENCODE, Origin=origin.format(port=server.server_port))
    assert response.status == 403
    assert "expected this page" in header_of(body)["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/other", None, 404),
        ("GET", "/../../etc/passwd", None, 404),
        ("POST", "/", ENCODE, 404),
        ("POST", "/api", b"not JSON", 400),
        ("POST", "/api", b"[1]", 400),
        ("POST", "/api", b"[" * 100_000, 400),
        ("POST", "/api", b"\xff", 400),
        ("PUT", "/api", ENCODE, 501),
    ],
)
def test_requests_that_the_page_never_makes_are_refused(server, method, path, body, status):
    assert ask(server, method, path, body)[0].status == status


def test_a_request_must_say_its_length_and_be_short(server):
    assert ask(server, "POST", "/api", b"", Content_Length=str(LARGEST_REQUEST + 1))[0].status == 413
    assert ask(server, "POST", "/api", b"", Content_Length="9" * 5000)[0].status == 413
    assert ask(server, "POST", "/api", b"", Content_Length="-1")[0].status == 411
    assert ask(server, "POST", "/api", b"{}", Transfer_Encoding="chunked")[0].status == 411


def test_an_invalid_question_is_answered_by_an_error_and_the_next_works(server):
    response, body = ask(server, "POST", "/api", {"kind": "trace", "source_ids": [], "target_ids": [1]})
    assert response.status == 200
    assert "expected 1 to 1075, got 0" in header_of(body)["error"]
    assert "ids" in header_of(ask(server, "POST", "/api", ENCODE)[1])


@pytest.mark.slow
def test_two_hundred_simultaneous_visitors_are_answered(server):
    with ThreadPoolExecutor(200) as visitors:
        statuses = list(visitors.map(lambda _: ask(server, "GET", "/")[0].status, range(200)))
    assert statuses == [200] * 200


def test_a_port_in_use_is_an_error_with_advice(start, make_translator):
    taken = start().server_port
    with pytest.raises(ConfigError, match=rf"port {taken}: Address already in use; give another --port"):
        serve(make_translator(), port=taken)


def test_without_a_port_any_free_port_is_used(start):
    with closing(socket.socket()) as busy:
        busy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            busy.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError:
            pass  # another process already uses the port, so this one cannot
        else:
            busy.listen()
        server = start(port=None)
        assert server.server_port != DEFAULT_PORT
        assert ask(server, "GET", "/")[0].status == 200


def test_a_search_ends_when_its_client_leaves(start, make_translator, capsys):
    translator = make_translator()
    server, steps, searching, left = start(translator), [], [], threading.Event()
    at_third_step = threading.Event()

    def hold(*_):
        steps.append(1)
        if len(steps) == 3:
            searching.append(threading.current_thread())
            at_third_step.set()
            left.wait(20)

    translator.model.output.register_forward_hook(hold)
    question = {"kind": "search", "source_ids": [4, 2], "prefix_ids": [9] * 40, "n_best": 1}
    body = json.dumps({**question, "beam_size": 3, "length_penalty": 0.6}).encode()
    with closing(socket.create_connection(server.server_address)) as client:
        head = f"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        assert at_third_step.wait(20)
    left.set()
    searching[0].join(20)
    _, answer = ask(server, "POST", "/api", ENCODE)
    assert header_of(answer)["tokens"] == ["the", "cat"]
    assert len(steps) == 3
    assert capsys.readouterr().err == ""


def test_a_client_that_disconnects_is_not_reported(server, capsys):
    with closing(socket.create_connection(server.server_address)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ask(server, "GET", "/")[0].status == 200
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_search_ends_when_its_client_has_left(make_translator, start):
    """A beam of 64 over 1 000 words takes longer than the second client waits."""
    translator = make_translator()
    server = start(translator)
    server.remote = Remote(translator, search_seconds=3600)
    search = {"kind": "search", "source_ids": [4] * 1000, "beam_size": 64, "length_penalty": 0.6, "n_best": 1}
    body = json.dumps(search).encode()
    with socket.create_connection(("127.0.0.1", server.server_port)) as gone:
        gone.sendall(b"POST /api HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    response, _ = ask(server, "POST", "/api", ENCODE)
    assert response.status == 200
