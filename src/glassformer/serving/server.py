"""Listen for requests."""

import asyncio
import re
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from glassformer.errors import ConfigError
from glassformer.serving.app import Application
from glassformer.serving.limits import Limits

__all__ = ["listen"]

BACKLOG = 1024
"""Connections that wait to be accepted."""
ACCEPTED_AT_ONCE = 8
"""Connections that are accepted before those that are too many are ended."""
SPARE_FILES = 64
"""Open files that are not connections."""
STOP_SECONDS = 30
"""Seconds that begun requests have to end when the service stops."""
MOST_UNFINISHED = 65_536
"""Maximum number of bytes of a request's head, and of anything else that the parser keeps until its end has arrived."""
MOST_PIPELINED = 16
"""Maximum number of requests that wait on a connection for the answer to the one before."""


REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Length: 34\r\n\r\n" + b'{"error":"too many connections"}\r\n'
)
"""The answer to a connection that is one too many."""


class _Connection(HttpToolsProtocol):
    """A connection; the head of each request must arrive in time, and before others need its place.

    The parser itself bounds neither heads nor trailers nor pipelined requests.
    """

    limits = Limits()
    silent: "dict[_Connection, None]"
    """The connections that wait for the head of a request, those that wait longest first."""
    _overdue: asyncio.TimerHandle
    _unread: asyncio.TimerHandle | None = None
    _unfinished = 0
    """Bytes that have arrived since the parser last came to the end of something."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a whole head has arrived."""
        if self.transport.is_closing():
            return
        if self in self.silent and b"pgrade:" in data:
            data = _without_upgrade(data)
        self._unfinished += len(data)
        super().data_received(data)
        if max(self._unfinished / MOST_UNFINISHED, len(self.pipeline) / MOST_PIPELINED) > 1:
            self.send_400_response("The request is too long.")
        self._stop_waiting_if_asked()

    def on_headers_complete(self) -> None:
        """Begin a request."""
        self._unfinished = 0
        super().on_headers_complete()
        if self.parser.should_upgrade():  # the parser reads nothing after this head
            self.cycle.keep_alive = False

    def on_chunk_header(self) -> None:
        """Begin a chunk of a body, or what follows the last one."""
        self._unfinished = 0

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._unfinished = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may have arrived already."""
        self._wait()
        super().on_response_complete()
        self._stop_waiting_if_asked()

    def pause_writing(self) -> None:
        """Give the client a time to read what it has asked for."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._stop_writing_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._stop_writing_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP; it may follow the head of a request, which then gets no other answer."""
        cycle = self.cycle
        has_answered = cycle is not None and cycle.response_started and (cycle.more_body or not cycle.response_complete)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if has_answered:
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _wait(self) -> None:
        self._overdue = self.loop.call_later(self.limits.body_seconds, self._end)
        self.silent[self] = None

    def _stop_waiting_if_asked(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        self._overdue.cancel()
        self.silent.pop(self, None)

    def _stop_writing_timer(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def _end(self) -> None:
        """End the connection, unless its client still reads an answer, which has a time of its own."""
        if self.flow.write_paused:
            self._overdue = self.loop.call_later(self.limits.body_seconds, self._end)
        else:
            self.transport.abort()  # `close` would wait until the client has read everything

    def _make_room(self) -> None:
        """End the connection that has been silent for the longest; if it is this one, say why."""
        oldest = next(iter(self.silent))
        del self.silent[oldest]  # so that the next connection ends another one
        if oldest is self:
            self.transport.write(REFUSAL)
            self.transport.close()
        else:
            oldest.transport.abort()


_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*(?=\r\n)", re.IGNORECASE)


def _without_upgrade(data: bytes) -> bytes:
    """Return the beginning of a request without the wish to speak another protocol, as Java's client has it.

    A server may ignore this wish (RFC 9110, 7.8); the parser would not read the body of such a request.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head + end) + body


def listen(
    app: Application,
    host: str,
    port: int,
    limits: Limits,
    *,
    behind_proxy: bool = False,
    on_start: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve an application until SIGTERM or Ctrl-C; `on_start` gets its address when it answers.

    Raises:
        ConfigError: the address cannot be listened on.
        GlassformerError: a model cannot be loaded.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
    own = {"limits": replace(limits, connections=min(limits.connections, files)), "silent": {}}
    config = uvicorn.Config(
        app,
        http=type("_LimitedConnection", (_Connection,), own),
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=STOP_SECONDS,
        proxy_headers=behind_proxy,
        forwarded_allow_ips="*" if behind_proxy else None,
    )
    _Server(config, app, on_start).run(sockets=[_socket(host, port)])
    if app.failure:
        raise app.failure


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Application, on_start: Callable[[str], object]) -> None:
        super().__init__(config)
        self.app, self.on_start = app, on_start

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in good order on SIGTERM and Ctrl-C; uvicorn would raise the signal again afterwards."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start answering, and say where."""
        await super().startup(sockets=sockets)
        self.should_exit = self.should_exit or bool(self.app.failure)
        assert sockets
        sockets[0].listen(BACKLOG)  # asyncio would accept as many at once, and run out of files
        host, port = sockets[0].getsockname()[:2]
        if self.started and not self.should_exit:
            self.on_start(f"http://{f'[{host}]' if ':' in host else host}:{port}/")


def _socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; give another --host or --port"
        ) from error
    return found
