"""The service behind nginx, as deploy/nginx.conf sets it up, with shorter times and without TLS."""

import http.client
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from serving.conftest import Served, connected, connections, service, until, until_ended

pytestmark = [pytest.mark.client, pytest.mark.long]
SITE = Path(__file__).parents[2] / "deploy/nginx.conf"
MAIN = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {folders}
    include {site};
}}
"""
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
ONE = {"q": "the cat sleeps", "source": "en", "target": "es"}
HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Proxied(Served):
    """A service and the port of nginx in front of it."""

    own: Served
    """The service itself."""


@pytest.fixture(scope="module")
def proxied(client, run_folder, tmp_path_factory) -> Iterator[Proxied]:
    program, folder = client("nginx") / "nginx", tmp_path_factory.mktemp("nginx")
    options = ("--languages", "en:es", "--log", "nothing", "--behind-proxy", "1", "--set", "serving.rate=1000/hour")
    with service(str(run_folder), *options) as own:
        port = free_port()
        configure(folder, port, own.port)
        nginx = subprocess.Popen([program, "-p", folder, "-c", folder / "main.conf", "-e", folder / "error.log"])
        try:
            until(lambda: answers(port), "nginx does not answer")
            yield Proxied(own.process, port, own)
        finally:
            nginx.terminate()
            nginx.wait(timeout=30)


def configure(folder: Path, port: int, of_service: int) -> None:
    """Write nginx's configuration: the file of deploy/ for another port, with times of a second."""
    site = SITE.read_text().replace("127.0.0.1:5000", f"127.0.0.1:{of_service}")
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    site = re.sub(r" +ssl_.*\n", "", site)
    for name in ("client_header_timeout", "client_body_timeout", "keepalive_timeout", "send_timeout"):
        site, found = re.subn(rf"\b{name} \d+s;", f"{name} 1s;", site)
        assert found == 1, name
    (folder / "site.conf").write_text(site)
    folders = " ".join(f"{name}_temp_path {folder / name};" for name in FOLDERS)
    (folder / "main.conf").write_text(MAIN.format(folders=folders, site=folder / "site.conf"))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("before", "drop"),
    [(b"", b"G"), (HEAD, b"A: b\r\n"), (HEALTH, b"G"), (HEAD + b"Content-Length: 1000\r\n\r\n", b"")],
    ids=["head", "endless head", "second head", "body that stops"],
)
def test_a_client_that_sends_slowly_is_ended(proxied, before, drop):
    until_ended(proxied, before, drop)
    assert proxied.json("/translate", ONE).status == 200


def test_clients_that_do_not_read_their_answers_are_ended(proxied):
    body = json.dumps({"texts": ["the cat sees a dog. " * 100] * 30, "n_best": 4}).encode()
    with connected(proxied, b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body):
        until(lambda: connections(proxied.own) == 1, "the request has not arrived")
        until(lambda: connections(proxied.own) == 0, "the connection is still open")


def is_answered(served: Served) -> bool:
    try:
        return served.json("/translate", ONE).status == 200
    except OSError:
        return False


@pytest.mark.parametrize("begun", [b"", b"POST /translate HTTP/1.1\r\nHost: x\r\n"], ids=["silent", "head without end"])
def test_many_connections_do_not_keep_others_out(proxied, begun):
    with ExitStack() as many:
        for _ in range(2000):
            many.enter_context(connected(proxied, begun))
        until(lambda: is_answered(proxied), "the places of the others are not free")
        assert connections(proxied.own) <= 1


def test_an_offer_of_another_protocol_is_ignored(proxied):
    body = b"source=en&target=es&q=the cat sleeps"
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
    kind = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body)
    with connected(proxied, b"POST /translate HTTP/1.1\r\nHost: x\r\n" + wish + kind + body) as client:
        answer = http.client.HTTPResponse(client)
        answer.begin()
        assert answer.status == 200
        assert "translatedText" in json.loads(answer.read())


def test_a_body_in_chunks_of_a_byte_reaches_the_service_whole(proxied):
    """The service itself refuses such a body."""
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in json.dumps(ONE).encode() + b" " * 100_000)
    with connected(proxied, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n") as client:
        answer = http.client.HTTPResponse(client)
        answer.begin()
        assert answer.status == 200
        assert "translatedText" in json.loads(answer.read())


def test_a_stream_comes_through(proxied):
    answer = proxied.json("/v1/translate", {"texts": ["the cat"] * 3, "stream": True})
    assert answer.body.decode().count("event: translation\n") == 3


def test_a_client_cannot_choose_the_address_by_which_it_is_counted(proxied):
    many = {**ONE, "q": ["the cat"] * 250}
    statuses = [proxied.json("/translate", many, x_forwarded_for=f"192.0.2.{at}").status for at in range(6)]
    assert statuses[-1] == 429
