"""Listen for requests."""

import asyncio
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from glassformer.errors import ConfigError
from glassformer.serving.limits import Limits

__all__ = ["listen"]

BACKLOG = 1024
"""Connections that wait to be accepted."""
SPARE_FILES = 64
"""Open files that are not connections."""
STOP_SECONDS = 30
"""Seconds that begun requests have to end when the service stops."""


REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Length: 34\r\n\r\n" + b'{"error":"too many connections"}\r\n'
)
"""The answer to a connection that is one too many."""


class _Connection(H11Protocol):
    """A connection; the head of its first request must arrive in time, and before others need its place."""

    limits = Limits()
    silent: "dict[_Connection, None]"
    """The connections without a whole head so far, oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._overdue = self.loop.call_later(self.limits.body_seconds, self.transport.close)
        self.silent[self] = None
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a whole head has arrived."""
        super().data_received(data)
        if self.cycle is not None:
            self._heard()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._heard()
        super().connection_lost(exc)

    def _heard(self) -> None:
        self._overdue.cancel()
        self.silent.pop(self, None)

    def _make_room(self) -> None:
        """Close the connection that has been silent for the longest; if it is this one, say why."""
        oldest = next(iter(self.silent))
        if oldest is self:
            self.transport.write(REFUSAL)
        oldest.transport.close()


def listen(
    app: Starlette,
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
        backlog=BACKLOG,
        timeout_graceful_shutdown=STOP_SECONDS,
        proxy_headers=behind_proxy,
        forwarded_allow_ips="*" if behind_proxy else None,
    )
    _Server(config, app, on_start).run(sockets=[_socket(host, port)])
    if app.state.failure:
        raise app.state.failure


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, app: Starlette, on_start: Callable[[str], object]) -> None:
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
        self.should_exit = self.should_exit or bool(self.app.state.failure)
        assert sockets
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
