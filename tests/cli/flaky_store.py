"""An object store with the protocol of S3 on the loopback address, behind a proxy that refuses a share of requests."""

import http.client
import logging
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

HOST = "127.0.0.1"
REFUSAL = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class FlakyProxy(ThreadingHTTPServer):
    """A proxy of a server that fails for a share of requests: it answers with status 503, or cuts the answer."""

    daemon_threads = True

    def __init__(self, port: int, share: float) -> None:
        super().__init__((HOST, 0), _Handler)
        self.port, self.share, self.chance = port, share, random.Random(4)
        self.passed, self.refused = 0, 0
        self.read: list[str] = []
        """The path of each request for a file, or for the rest of a file, that was answered completely."""
        self.turn = threading.Lock()

    def refuses(self) -> str:
        """Return how the next request fails: "503" or "cut"; "" if it is passed on."""
        with self.turn:
            refused = self.chance.random() < self.share
            self.refused += refused
            self.passed += not refused
            return self.chance.choice(("503", "cut")) if refused else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FlakyProxy

    def answer(self) -> None:
        body, fails = self._body(), self.server.refuses()
        if fails == "503" or (fails and self.command != "GET"):
            self._send(503, {"Content-Type": "application/xml"}, REFUSAL)
            return
        connection = http.client.HTTPConnection(HOST, self.server.port)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if fails and content:
            self._send(answer.status, dict(answer.getheaders()), content, cut=True)
            return
        if self.command == "GET":
            self.server.read.append(self.path.partition("?")[0])
        self._send(answer.status, dict(answer.getheaders()), content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 (names that http.server calls)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _send(self, status: int, headers: dict[str, str], body: bytes, *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                self.send_header(name, value)
        length = headers.get("Content-Length", len(body)) if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def flaky_store(share: float) -> Iterator[FlakyProxy]:
    """Serve an empty object store behind a proxy; `share` is the share of refused requests."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ThreadedMotoServer(HOST, 0)
    store.start()
    port = store.get_host_and_port()[1]
    _empty(port)
    S3FileSystem.clear_instance_cache()  # otherwise, fsspec would use a store that this process had opened earlier
    proxy = FlakyProxy(port, share)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
        store.stop()


def _empty(port: int) -> None:
    """Delete the contents of this process's earlier stores, because moto keeps one memory for all stores."""
    connection = http.client.HTTPConnection(HOST, port)
    connection.request("POST", "/moto-api/reset")
    assert connection.getresponse().status == 200
    connection.close()
