"""Listen for requests."""

import asyncio
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from glassformer.errors import ConfigError
from glassformer.serving.app import Application
from glassformer.serving.connections import BoundedProtocol
from glassformer.serving.limits import Limits

__all__ = ["listen"]

BACKLOG = 1024
"""Maximum number of connections that wait to be accepted."""
STOP_SECONDS = 5
"""When the service stops, open requests may take their maximum time (`Limits.seconds`) and this many more seconds."""


def listen(
    app: Application,
    host: str,
    port: int,
    limits: Limits,
    *,
    on_start: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve an application until SIGTERM or Ctrl-C; once it answers requests, call `on_start` with its address.

    Raises:
        ConfigError: the service cannot listen on this address.
        GlassformerError: a model cannot be loaded.
    """
    config = uvicorn.Config(
        app,
        # The parser is h11: httptools loses the body of a request that offers HTTP/2, as Java's client does.
        http=BoundedProtocol,
        ws="none",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=max(1, round(limits.body_seconds)),
        timeout_graceful_shutdown=math.ceil(limits.seconds) + STOP_SECONDS,
        proxy_headers=False,  # `BehindProxies` handles them
    )
    server = uvicorn.Server(config)
    with _socket(host, port, limits) as found, _stopped_by_signals(server):
        asyncio.run(_serve(server, app, found, on_start))
    if app.failure:
        raise app.failure


async def _serve(
    server: uvicorn.Server, app: Application, found: socket.socket, on_start: Callable[[str], object]
) -> None:
    host, port = found.getsockname()[:2]
    answering = asyncio.create_task(server.serve(sockets=[found]))
    while not (server.started or answering.done()):
        await asyncio.sleep(0.02)
    if app.failure:
        server.should_exit = True
    elif not server.should_exit:
        on_start(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
    await answering


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Return normally after SIGTERM and Ctrl-C, although uvicorn sends the signal again to the previous handler."""

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _socket(host: str, port: int, limits: Limits) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Where the system supports it, close connections whose clients do not read their answers.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * limits.seconds))
        found.bind(address)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}; give another --host or --port"
        ) from error
    return found
