"""The description of the endpoints, made from their types: as OpenAPI 3.1, and as a page."""

import html
import inspect
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from glassformer.serving.endpoints import JSON, QUERY, Endpoint, OfService
from glassformer.serving.own import OWN
from glassformer.serving.service import Service

__all__ = ["description_endpoints", "openapi"]

REFUSED = {
    400: "The request is wrong",
    403: "The key is unknown",
    404: "Not found",
    408: "The request is too slow",
    413: "The request is too large",
    429: "Too many texts",
    503: "Busy: try again soon",
}
"""What the statuses of errors mean here; the meaning of another status is HTTP's."""
COMPONENTS = "#/components/schemas/{model}"


def description_endpoints(others: Iterable[Endpoint]) -> list[Endpoint]:
    """Return the endpoints that describe the other endpoints and themselves."""

    @cache
    def of(service: Service) -> dict[str, Any]:
        return openapi(service, described)

    async def document(service: Service, _: Request) -> Response:
        """The description of this service, as OpenAPI."""
        return JSONResponse(of(service))

    async def specification(service: Service, _: Request) -> Response:
        """The description of this service with LibreTranslate's title, which some clients look for."""
        return JSONResponse({**of(service), "info": {**of(service)["info"], "title": "LibreTranslate"}})

    async def page(service: Service, _: Request) -> Response:
        """The description of this service, as a page."""
        return HTMLResponse(_page(of(service)))

    own = [
        Endpoint(OWN, "GET", "/openapi.json", document, answer=dict[str, Any]),
        Endpoint(OWN, "GET", "/spec", specification, answer=dict[str, Any]),
        Endpoint(OWN, "GET", "/docs", page, gives="text/html"),
    ]
    described = [*others, *own]
    return own


def openapi(service: Service, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the description of a service as OpenAPI 3.1, with its limits and languages."""
    answers = {id(kind): kind for one in endpoints for kind in (one.answer, one.stream, one.api.error) if kind}
    schemas, definitions = TypeAdapter.json_schemas(
        [(name, "serialization", TypeAdapter(kind)) for name, kind in answers.items()], ref_template=COMPONENTS
    )
    paths: dict[str, dict[str, Any]] = {}
    by_type = {name: schema for (name, _), schema in schemas.items()}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, service, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "glassformer", "version": version("glassformer")},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Endpoint, service: Service, schemas: dict[int, dict[str, Any]]) -> dict[str, Any]:
    summary, _, more = inspect.cleandoc(one.handler.__doc__ or "").partition("\n\n")
    content = {one.gives: {"schema": schemas[id(one.answer)] if one.answer else {"type": "string"}}}
    if one.stream:
        content["text/event-stream"] = {"schema": schemas[id(one.stream)]}
    error = {JSON: {"schema": schemas[id(one.api.error)]}}
    operation: dict[str, Any] = {
        "tags": [one.api.name],
        "summary": summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", one.path)
        ],
        "responses": {
            **{str(status): {"description": _refused(status), "content": error} for status in one.errors},
            **{str(status): {"description": "The answer", "content": content} for status in one.statuses},
        },
    }
    if more:
        operation["description"] = more
    request = _asked(one.request, service) if one.request else {}
    if request and QUERY in one.takes:
        operation["parameters"] += [
            {"name": name, "in": "query", "required": name in request.get("required", ()), "schema": schema}
            for name, schema in _as_form(request)["properties"].items()
        ]
    elif request:
        operation["requestBody"] = {
            "required": "required" in request,
            "content": {kind: {"schema": request if kind == JSON else _as_form(request)} for kind in one.takes},
        }
    return operation


def _refused(status: int) -> str:
    return REFUSED.get(status) or HTTPStatus(status).phrase


def _asked(request: type[BaseModel], service: Service) -> dict[str, Any]:
    """Return the schema of a request, with the limits and the languages of a service."""
    schema = request.model_json_schema()
    for name, field in request.model_fields.items():
        for one in field.metadata:
            if isinstance(one, OfService):
                schema["properties"][name] |= one.schema(service)
    return schema


def _as_form(request: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a form: the first type of each field, without null."""
    fields = {name: {**one, **one.get("anyOf", [{}])[0]} for name, one in request["properties"].items()}
    return {
        **request,
        "properties": {
            name: {key: value for key, value in one.items() if key != "anyOf" and value is not None}
            for name, one in fields.items()
        },
    }


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>glassformer: the HTTP service</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  code, pre { font-family: ui-monospace, monospace }
  pre { overflow: auto; padding: .75rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent) }
  summary { padding: .4rem 0 }
</style>
<h1>The HTTP service</h1>
<p>The same as <a href="openapi.json">OpenAPI 3.1</a>.</p>
PARTS
</html>
"""


def _page(described: dict[str, Any]) -> str:
    groups: dict[str, str] = {}
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            title = f"<code>{method.upper()} {path}</code> {html.escape(one['summary'])}"
            shown = {key: one[key] for key in ("description", "parameters", "requestBody", "responses") if one.get(key)}
            [group] = one["tags"]
            groups[group] = groups.get(group, "") + _details(title, shown)
    groups["Schemas"] = "".join(
        _details(f"<code>{name}</code>", one) for name, one in described["components"]["schemas"].items()
    )
    return PAGE.replace("PARTS", "".join(f"<h2>{name}</h2>{parts}" for name, parts in groups.items()))


def _details(title: str, shown: dict[str, Any]) -> str:
    return f"<details><summary>{title}</summary><pre>{html.escape(json.dumps(shown, indent=2))}</pre></details>"
