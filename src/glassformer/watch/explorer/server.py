"""The explorer's server on this machine: it sends one page, and Python answers the questions of this page.

The server listens only on the loopback address. A foreign web page could make its own host name resolve to this address
(DNS rebinding). Therefore, requests must name this machine as their host, and questions must come from the server's own
page.
"""

import json
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from numpy.typing import NDArray

from glassformer.errors import ConfigError, GlassformerError, shortened
from glassformer.system.machine import LOOPBACK
from glassformer.system.page_headers import EXPLORER_HEADERS
from glassformer.translator import Translator
from glassformer.watch.explorer.packing import number_bytes
from glassformer.watch.explorer.payload import MOST_CHECKPOINTS, payload
from glassformer.watch.explorer.remote import Remote
from glassformer.watch.explorer.standalone import page_html, translation

__all__ = ["DEFAULT_PORT", "Server", "framed", "serve"]

DEFAULT_PORT = 8765
HOSTS = (LOOPBACK, "localhost")
API = "api"
LARGEST_REQUEST = 4_000_000
"""Maximum size in bytes of a question."""


class Server(ThreadingHTTPServer):
    """A server that sends one page at the address `url`, and answers the questions of the page."""

    daemon_threads = True
    request_queue_size = 256
    """Maximum number of waiting connections, because a page fetches many tensors at once, and several pages may be
    open."""

    def __init__(self, page: str, remote: Remote, port: int) -> None:
        self.page = page.encode("utf-8", "replace")
        self.remote = remote
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, unless the browser has merely closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(translator: Translator, sentence: str = "", port: int | None = None) -> Server:
    """Return a server of the explorer that accepts connections; call its method `serve_forever()` to answer requests.

    If no port is given, the server uses the default port, or a free port if the default port is in use.

    Raises:
        ConfigError: the port is not available.
        DataError: the sentence cannot be translated.
    """
    shown = payload(translator, sentence, checkpoints=MOST_CHECKPOINTS, host=API, story="first")
    page, remote = page_html(shown, translation(translator, shown)), Remote(translator)
    try:
        return Server(page, remote, DEFAULT_PORT if port is None else port)
    except OSError as error:
        if port is None:
            return Server(page, remote, 0)
        raise ConfigError(
            f"cannot listen on port {port}: {error.strerror or error}; give another --port, or 0 for any free port"
        ) from error


class _RequestError(Exception):
    """The refusal of a request: an HTTP status, and the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class _Handler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    server: Server
    server_version, sys_version = "glassformer", ""
    timeout = 60
    """Seconds to wait for data from a client."""

    def do_GET(self) -> None:
        """Send the page."""
        with self._refusing():
            self._check("/")
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)

    def do_HEAD(self) -> None:
        """Send the headers of the page."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a question."""
        with self._refusing():
            self._check(f"/{API}")
            self._answer(self._message())

    def log_message(self, *_: object) -> None:
        """Log nothing, because the terminal belongs to the user."""

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except _RequestError as error:
            self.close_connection = True
            self._send(error.status, "application/octet-stream", framed({"error": error.why}, []))

    def _check(self, path: str) -> None:
        """Refuse requests for a different host or path, and requests from a foreign page."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        # any port is allowed, because a tunnel may change the port
        if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
            raise _RequestError(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"Host: expected the host of {self.server.url}, got {shortened(host)}; open {self.server.url}",
            )
        if origin not in (None, f"http://{host}"):
            raise _RequestError(
                HTTPStatus.FORBIDDEN,
                f"Origin: expected this page, got {shortened(str(origin))}; open {self.server.url} itself",
            )
        if self.path.partition("?")[0] != path:
            raise _RequestError(HTTPStatus.NOT_FOUND, f"the only page is {self.server.url}")

    def _message(self) -> dict[str, Any]:
        """Return the JSON object that the request contains."""
        length = self.headers.get("Content-Length", "").lstrip("0") or "0"
        if "Content-Length" not in self.headers or not (length.isascii() and length.isdecimal()):
            raise _RequestError(
                HTTPStatus.LENGTH_REQUIRED, "Content-Length: expected the length of the request in bytes"
            )
        if len(length) > len(str(LARGEST_REQUEST)) or int(length) > LARGEST_REQUEST:
            why = f"Content-Length: expected at most {LARGEST_REQUEST} bytes"
            raise _RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        try:
            message = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise _RequestError(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return message

    def _answer(self, message: Mapping[str, Any]) -> None:
        try:
            header, arrays = self.server.remote.answer(message, self._check_client)
        except GlassformerError as error:
            header, arrays = {"error": str(error)}, []
        self._send(HTTPStatus.OK, "application/octet-stream", framed(header, arrays))

    def _check_client(self) -> None:
        """Raise a ConnectionError if the client has closed the connection and no longer waits for the answer."""
        self.connection.settimeout(0)
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError("the client has closed the connection")
        except BlockingIOError:  # nothing to read: the client is still waiting
            pass
        finally:
            self.connection.settimeout(self.timeout)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**EXPLORER_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def framed(header: Mapping[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    """Return an answer as one body: the length of its JSON (uint32, little-endian), the JSON, and the arrays."""
    text = json.dumps(header).encode()
    return b"".join([struct.pack("<I", len(text)), text, *map(number_bytes, arrays)])
