"""The whole service as one ASGI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.errors import GlassformerError
from glassformer.serving.deepl import deepl_error, deepl_routes
from glassformer.serving.description import description_routes
from glassformer.serving.explore import Explorers
from glassformer.serving.libretranslate import libretranslate_error, libretranslate_routes
from glassformer.serving.own import own_routes
from glassformer.serving.page import page_routes
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import LimitedBodies
from glassformer.serving.service import Service

__all__ = ["http_application"]

CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-allow-methods", b"GET, POST"),
]
"""Any page may ask the APIs, as LibreTranslate allows."""


def http_application(service: Service) -> Starlette:
    """Return the application."""
    explorers = Explorers(service.models.all)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(one.process.run(), name=one.name) for one in service.models.all]
        try:
            try:
                await _until_ready(service, tasks)
            except GlassformerError as error:
                app.state.failure = error  # raised by `listen`; raised here, it would be printed with a traceback
            yield
        finally:
            service.files.close()
            service.documents.shutdown(wait=False, cancel_futures=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await explorers.close()

    app = Starlette(
        routes=[
            *libretranslate_routes(),
            *deepl_routes(),
            *own_routes(),
            *description_routes(),
            *page_routes(),
            *explorers.routes(),
        ],
        exception_handlers={HTTPException: _no_such_page, RequestError: _refused},
        lifespan=running,
    )
    app.add_middleware(_AnyOrigin)
    app.add_middleware(LimitedBodies, limits=service.limits)
    app.state.service, app.state.failure = service, None
    return app


async def _until_ready(service: Service, tasks: list[asyncio.Task[None]]) -> None:
    """Return when every process has loaded its model; raise the error of one that cannot."""
    while not service.models.is_ready:
        done, _ = await asyncio.wait(tasks, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


class _AnyOrigin:
    """Adds CORS headers to every answer, and answers a browser's question whether it may ask."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *CORS]
            await send(message)

        if scope["method"] == "OPTIONS":
            await Response(status_code=204)(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)


async def _no_such_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return await _refused(request, RequestError(error.status_code, error.detail, dict(error.headers or {})))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    write = deepl_error if request.url.path.startswith("/v2/") else libretranslate_error
    response = write(error)
    response.headers.update(error.headers)
    return response
