"""The whole service as one ASGI application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import takewhile

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.errors import GlassformerError
from glassformer.serving.deepl import deepl_endpoints
from glassformer.serving.description import description_endpoints
from glassformer.serving.endpoints import Api, Endpoint
from glassformer.serving.explore import Explorers
from glassformer.serving.immersive import immersive_endpoints
from glassformer.serving.libretranslate import libretranslate_endpoints
from glassformer.serving.own import own_endpoints
from glassformer.serving.proxies import BehindProxies
from glassformer.serving.refusals import RequestError, failed
from glassformer.serving.requests import LimitedBodies
from glassformer.serving.service import Service
from glassformer.serving.translation_page import page_endpoints

__all__ = ["APIS", "Application"]

APIS: tuple[Callable[[], list[Endpoint]], ...] = (
    libretranslate_endpoints,
    deepl_endpoints,
    immersive_endpoints,
    own_endpoints,
    page_endpoints,
)
"""The functions that return the endpoints of each API. An address that belongs to no API has the first API's errors."""
CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-allow-methods", b"GET, POST"),
]
"""Headers that allow every web page to use the APIs, as LibreTranslate does."""


class Application:
    """The application of a service; if a model cannot be loaded, `failure` is the error."""

    failure: GlassformerError | None = None

    def __init__(self, service: Service) -> None:
        self.service = service
        self._explorers = Explorers(service.models.all)
        apis = [one for endpoints in APIS for one in endpoints()]
        table = [*apis, *description_endpoints(apis), *self._explorers.endpoints()]
        # Not a `Starlette` application, because Starlette's middleware takes a fifth of a request's time.
        router = Router([one.route() for one in table], lifespan=self._running)
        answers = LimitedBodies(_Answers(router, table, service), service.limits)
        self._answer: ASGIApp = BehindProxies(answers, service.proxies) if service.proxies else answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        scope["app"] = self
        await self._answer(scope, receive, send)

    @asynccontextmanager
    async def _running(self, _: object) -> AsyncIterator[None]:
        service = self.service
        tasks = [asyncio.create_task(one.process.run(), name=one.name) for one in service.models.all]
        try:
            try:
                await _until_ready(service, tasks)
            except GlassformerError as error:
                self.failure = error  # `listen` raises the error; raised here, it would be printed with a traceback
            yield
        finally:
            service.files.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._explorers.close()
            for readers in (service.texts, service.documents):
                readers.close()


async def _until_ready(service: Service, tasks: list[asyncio.Task[None]]) -> None:
    """Wait until every process has loaded its model; if a model cannot be loaded, raise the error."""
    while not service.models.is_ready:
        done, _ = await asyncio.wait(tasks, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


class _Answers:
    """Adds CORS headers to all answers, answers the preflight requests of browsers, and writes errors.

    `table` has the endpoints that `app` answers.
    """

    def __init__(self, app: ASGIApp, table: Sequence[Endpoint], service: Service) -> None:
        self.app, self.table, self.service = app, table, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        has_begun = False

        async def with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                message["headers"], has_begun = [*message.get("headers", []), *CORS], True
            await send(message)

        if scope["method"] == "OPTIONS":
            await Response(status_code=204)(scope, receive, with_headers)
            return
        try:
            await self.app(scope, receive, with_headers)
        except HTTPException as error:  # the address or the method is unknown
            refusal = RequestError(error.status_code, error.detail, error.headers)
            await self._api(scope).refused(refusal)(scope, receive, with_headers)
        except RequestError as refusal:
            await self._api(scope).refused(refusal)(scope, receive, with_headers)
        except Exception as error:
            unknown = failed(error, self.service.log, self.service.metrics, path=scope["path"])
            if has_begun:  # the client notices that the answer is incomplete when the connection ends
                raise
            await self._api(scope).refused(unknown)(scope, receive, with_headers)

    def _api(self, scope: Scope) -> Api:
        """Return the API in whose format the error of a request is written."""
        found: Endpoint | None = scope.get("endpoint")  # the router sets it, also if only the method is unknown
        return (found or max(self.table, key=lambda one: _shared_folders(one.path, scope["path"]))).api


def _shared_folders(one: str, other: str) -> int:
    """Return the number of folders with which both paths begin; "/v2/usage" and "/v2/x/y" share "/" and "/v2/"."""
    pairs = zip(one.split("/")[:-1], other.split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
