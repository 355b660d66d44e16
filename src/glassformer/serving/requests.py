"""The fields of a request, whatever way a client sends them, read within limits."""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.serving.limits import Limits
from glassformer.serving.refusals import RequestError, busy

__all__ = ["LimitedBodies", "fields", "gone", "json_object"]

MOST_FIELDS = 2_000
LARGE_BODIES = 64
"""Number of bodies of the maximum size that may be in memory at once."""


class LimitedBodies:
    """Refuses a body while it is read, once it is too large or too slow.

    All bodies that are in memory share an amount of it. Once that is used up, bodies are refused that take more than
    a request's part of it, so that small requests are still answered. A connection is closed after an answer that does
    not wait for the whole body, because nothing bounds the time in which the rest would arrive.
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
            if is_whole:  # the only message left is an empty one, or that the client went away
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
                await asyncio.sleep(0)  # what has arrived of the body may have ended the connection
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


async def fields(request: Request) -> tuple[dict[str, Any], bool]:
    """Return a request's fields, and whether they came as JSON; else they are those of its form and its query.

    Raises:
        RequestError: they cannot be read.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return json_object(await request.body()), True
    try:
        form = await request.form(max_fields=MOST_FIELDS, max_files=1) if request.method == "POST" else {}
    except (RequestError, ClientDisconnect):
        raise
    except Exception as error:  # python-multipart and Starlette raise several kinds
        raise RequestError(400, "Invalid request: the form cannot be read") from error
    return {**form, **request.query_params}, False


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds.

    Raises:
        RequestError: it holds anything else.
    """
    try:
        found = _JSON.decode(body.decode(json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "Invalid JSON format") from error
    if not isinstance(found, dict):
        raise RequestError(400, "Invalid JSON format")
    return found


def _number(text: str) -> float:
    """Return a number; 3.0 is the integer 3, as JSON does not tell them apart."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse, parse_float=_number)
"""`json.loads` would make one for each request."""


async def gone(request: Request) -> None:
    """Return when the client has gone away. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
