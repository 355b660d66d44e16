"""The application: the table of all APIs, and the format of the errors that no endpoint writes."""

import inspect
import json
from importlib import import_module
from pkgutil import iter_modules

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import glassformer.serving
from glassformer.serving.app import APIS, Application
from glassformer.serving.endpoints import Api, Endpoint
from glassformer.serving.models import Models
from glassformer.serving.service import Service
from serving.conftest import finished


def ask(path, method="GET"):
    """Return the status and the body of the answer of a service without models."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [], "client": ("::1", 1)}
    finished(Application(Service(models=Models([])))(scope, receive, send))
    start, *rest = sent
    return start["status"], b"".join(message["body"] for message in rest)


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/nothing", 404, b'{"error":"Not Found"}'),
        ("GET", "/v", 404, b'{"error":"Not Found"}'),
        ("GET", "/v2", 404, b'{"error":"Not Found"}'),
        ("GET", "/v2x/translate", 404, b'{"error":"Not Found"}'),
        ("GET", "/v2/", 404, b'{"message":"Not Found"}'),
        ("GET", "/v2/glossaries", 404, b'{"message":"Not Found"}'),
        ("GET", "/v2/translate/more/yet", 404, b'{"message":"Not Found"}'),
        ("GET", "/v1/nothing", 404, b'{"error":"Not Found"}'),
        ("GET", "/explore/nothing", 404, b'{"error":"Not Found"}'),
        ("GET", "/v2/translate", 405, b'{"message":"Method Not Allowed"}'),
        ("GET", "/v1/translate", 405, b'{"error":"Method Not Allowed"}'),
        ("PUT", "/download_file/a.txt", 405, b'{"error":"Method Not Allowed"}'),
    ],
)
def test_an_address_without_an_endpoint_has_the_error_of_the_nearest_api(method, path, status, body):
    assert ask(path, method) == (status, body)


async def _echo(service: Service, request: Request) -> Response:
    """Return an empty answer."""
    return JSONResponse({})


ECHO = Api(
    name="Echo's API",
    error=dict[str, str],
    write_error=lambda refusal: JSONResponse({"echo": refusal.text}, refusal.status),
    key=lambda _: "",
)


def test_a_function_in_the_table_makes_a_new_api(monkeypatch):
    monkeypatch.setattr(
        "glassformer.serving.app.APIS", (*APIS, lambda: [Endpoint(ECHO, "GET", "/v2/echo/text", _echo)])
    )
    assert ask("/v2/echo/text") == (200, b"{}")
    assert ask("/v2/echo/text", "POST") == (405, b'{"echo":"Method Not Allowed"}')
    assert ask("/v2/echo/other") == (404, b'{"echo":"Not Found"}')
    assert ask("/v2/other") == (404, b'{"message":"Not Found"}')
    described = json.loads(ask("/openapi.json")[1])["paths"]["/v2/echo/text"]["get"]
    assert (described["tags"], described["summary"]) == (["Echo's API"], "Return an empty answer.")


@pytest.mark.parametrize("status", [406, 422, 501])
def test_an_error_of_any_status_is_described(monkeypatch, status):
    endpoint = Endpoint(ECHO, "GET", "/echo", _echo, errors=(status,))
    monkeypatch.setattr("glassformer.serving.app.APIS", (*APIS, lambda: [endpoint]))
    [response, _] = json.loads(ask("/openapi.json")[1])["paths"]["/echo"]["get"]["responses"].values()
    assert response["description"]


def test_every_api_and_every_handler_is_in_the_table():
    modules = [import_module(f"glassformer.serving.{one.name}") for one in iter_modules(glassformer.serving.__path__)]
    functions = {
        one: inspect.signature(one)
        for module in modules
        for one in vars(module).values()
        if inspect.isfunction(one) and one.__module__ == module.__name__
    }
    apis = {one for one, how in functions.items() if how.return_annotation == list[Endpoint] and not how.parameters}
    assert apis == {*APIS}
    handlers = {
        one
        for one, how in functions.items()
        if how.return_annotation is Response
        and [parameter.annotation for parameter in how.parameters.values()] == [Service, Request]
    }
    assert handlers == {endpoint.handler for endpoints in APIS for endpoint in endpoints()}
    assert all(one.__doc__ for one in handlers)
