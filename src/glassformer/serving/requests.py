"""The fields of a request, in a query, a form or JSON, read within size and time limits."""

import asyncio
from collections.abc import Callable, Container
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.errors import shortened
from glassformer.serving.endpoints import FORM, JSON, MULTIPART
from glassformer.serving.limits import Limits
from glassformer.serving.reading import MOST_FIELDS, SHORT_BODY, decoded_form, decoded_json, field_of_form
from glassformer.serving.refusals import RequestError, busy
from glassformer.serving.service import Service

__all__ = ["LimitedBodies", "fields", "json_object"]

Result = TypeVar("Result")
LARGE_BODIES = 64
"""Number of bodies of the maximum size that may be in memory at once."""


class LimitedBodies:
    """Refuses a body as soon as it turns out to be too large or too slow.

    All bodies share a limited amount of memory. Once this memory is used up, a body is refused if it takes more than
    its part (the memory divided by the maximum number of connections), so small requests are still answered. If an
    answer is sent before the whole body has arrived, the connection is closed, because no limit applies to the rest of
    the body.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits
        self.held = 0
        self.most_held = LARGE_BODIES * limits.body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.limits.body_seconds
        size, is_whole = 0, not _has_body(scope)

        async def limited() -> Message:
            nonlocal size, is_whole
            if is_whole:  # only an empty message or a disconnection can follow
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                why = f"the request did not arrive within {self.limits.body_seconds:g} s"
                raise RequestError(408, why) from error
            size += len(message.get("body", b""))
            self.held += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if size > self.limits.body:
                why = f"the request has more than {self.limits.body} bytes: send less text"
                raise RequestError(413, why)
            if self.held > self.most_held and size > self.most_held // self.limits.connections:
                raise busy("the service is busy: try again in a moment, or with less text")
            return message

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and not is_whole:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
                await asyncio.sleep(0)  # lets a connection end that has ended while the rest of the body was read
            await send(message)

        try:
            await self.app(scope, limited, closing)
        finally:
            self.held -= size


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


async def fields(
    service: Service, request: Request, known: Container[str], *, repeated: str, key: str
) -> tuple[dict[str, Any], bool]:
    """Return the known fields of a request's body and query, and whether the body is JSON.

    If the field `repeated` occurs several times in a form or a query, its value is the list of all its values in order.
    The field `key` holds the client's key, unless the key is in the request's headers; it is checked first.

    Raises:
        RequestError: the key is wrong, the body cannot be read, or a field other than `repeated` has several values.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == JSON or kind.endswith("+json")
    if is_json:
        given: list[tuple[str, Any]] = [*(await json_object(service, request)).items()]
    elif kind == FORM:
        service.identify(request, field_of_form(await request.body(), key))
        given = [*await _read(service, request, decoded_form)]
    else:
        given = await _parts(request) if kind == MULTIPART else []
    service.identify(request, next((value for name, value in given if name == key), None))
    values: dict[str, list[Any]] = {}
    for name, value in (*given, *request.query_params.multi_items()):
        if name in known:
            values.setdefault(name, []).append(value)
    for name, (first, *others) in values.items():
        if (is_json or name != repeated) and any(other != first for other in others):
            raise RequestError(400, f"Invalid request: {shortened(name)} is given more than once")
    is_list = {repeated} if not is_json and len(values.get(repeated, ())) > 1 else set()
    return {name: found if name in is_list else found[0] for name, found in values.items()}, is_json


async def _parts(request: Request) -> list[tuple[str, Any]]:
    """Return the fields of a multipart form, which may include a file."""
    try:
        return (await request.form(max_fields=MOST_FIELDS, max_files=1)).multi_items()
    except (RequestError, ClientDisconnect):
        raise
    except Exception as error:  # python-multipart and Starlette raise exceptions of several types
        raise RequestError(400, "Invalid request: the form cannot be read") from error


async def json_object(service: Service, request: Request) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        RequestError: the body is not a JSON object.
    """
    return await _read(service, request, decoded_json)


async def _read(service: Service, request: Request, read: Callable[[bytes], Result]) -> Result:
    body = await request.body()
    return await service.texts.run(len(body) <= SHORT_BODY, read, body)
