"""The endpoints of the APIs: the function that answers each request, and the types that describe request and answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from glassformer.serving.refusals import RequestError, busy
from glassformer.serving.service import Service, address

__all__ = [
    "ASKED",
    "FORM",
    "JSON",
    "MULTIPART",
    "QUERY",
    "Api",
    "Endpoint",
    "Handler",
    "Model",
    "OfService",
    "checked",
    "header_key",
    "service_of",
    "text_or_texts_schema",
    "texts_schema",
]

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
QUERY = "query"
"""Marks that the fields of a request may be in its query; the media types above mark fields in its body."""
ASKED = (400, 403, 408, 413, 429, 503)
"""The statuses with which a request for a translation may be refused."""
CLIENT_GONE = 499
"""The status that the log shows for a request whose client has disconnected (nginx's number)."""

Model = TypeVar("Model", bound=BaseModel)
Handler = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API: its name, the format of its errors, and where a request holds the key."""

    name: str
    error: Any
    """The type of the JSON of an error."""
    write_error: Callable[[RequestError], Response]
    key: Callable[[Request], str]
    """A function that returns the key in the headers of a request; "" if there is none."""
    key_field: str = ""
    """The field of the body that may hold the key instead; the key is checked as soon as this field is read."""

    def refused(self, refusal: RequestError) -> Response:
        """Return the answer that refuses a request."""
        response = self.write_error(refusal)
        response.headers.update(refusal.headers)
        return response


@dataclass(frozen=True, slots=True)
class OfService:
    """An annotation of a field: a function that adds the limits and languages of a service to the field's schema."""

    schema: Callable[[Service], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path, as an ASGI application; the description shows the handler's docstring."""

    api: Api
    method: str
    path: str
    handler: Handler
    _: KW_ONLY
    needs_key: bool = False
    """Whether a request needs a key, if the service has keys."""
    request: type[BaseModel] | None = None
    """The type of the endpoint's request."""
    takes: tuple[str, ...] = (JSON,)
    """Where the fields of the request may be."""
    answer: Any = None
    """The type of the JSON of the answer; None if the answer is not JSON."""
    gives: str = JSON
    """The media type of the answer."""
    stream: Any = None
    """The type of the server-sent events, if the answer may also be a stream of events."""
    statuses: tuple[int, ...] = (200,)
    """The statuses that an answer may have."""
    errors: tuple[int, ...] = ()
    """The statuses that an error may have."""

    def route(self) -> Route:
        """Return the route of the endpoint."""
        return Route(self.path, self, methods=[self.method])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or write its error in the API's format, then count and log the request."""
        request, began = Request(scope, receive, send), perf_counter()
        service = service_of(request)
        request.state.entry = {"method": self.method, "path": self.path, "address": address(request)}
        service.open += 1
        try:
            response, status = await self._answered(service, request)
            seconds = perf_counter() - began
            service.metrics.answered(self.path, status, seconds)
            service.log.write(**request.state.entry, status=status, ms=round(1000 * seconds, 1))
            await response(scope, receive, send)
        finally:
            service.open -= 1

    async def _answered(self, service: Service, request: Request) -> tuple[Response, int]:
        try:
            if service.open > service.limits.connections:
                raise busy("too many connections")
            self._check_key(service, request)
            response = await service.in_time(self.handler(service, request))
        except ClientDisconnect:
            return Response(status_code=400), CLIENT_GONE
        except RequestError as refusal:
            response = self.api.refused(refusal)
        return response, response.status_code

    def _check_key(self, service: Service, request: Request) -> None:
        """Check the key before the body is read, unless the key may be in the body."""
        if not self.needs_key:
            request.state.client = ""
        elif (key := self.api.key(request)) or not self.api.key_field:
            service.identify(request, key)


def header_key(request: Request, scheme: str) -> str:
    """Return the key in a request's header, `Authorization: SCHEME KEY`; "" if there is none."""
    given, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if given.lower() == scheme.lower() else ""


def checked(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return the fields of a request, checked by their types one after another; a missing field is None."""
    required = (name for name, field in model.model_fields.items() if field.is_required())
    return model.model_validate({**dict.fromkeys(required), **given})


def texts_schema(service: Service) -> dict[str, Any]:
    """Return the schema of a list of texts."""
    limits = service.limits
    text = {"type": "string", "maxLength": limits.characters}
    return {"type": "array", "items": text, "minItems": 1, "maxItems": limits.texts}


def text_or_texts_schema(service: Service, *, least: int = 0) -> dict[str, Any]:
    """Return the schema of a list of texts, or of one text with at least `least` characters."""
    text = {"type": "string", "minLength": least, "maxLength": service.limits.characters}
    return {"anyOf": [text, texts_schema(service)]}


def service_of(request: Request) -> Service:
    """Return the service that answers a request."""
    found: Service = request.app.service
    return found
