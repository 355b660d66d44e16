"""The description of the APIs: as OpenAPI 3.1, as Swagger 2.0 (LibreTranslate's endpoints only), and as a page."""

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from glassformer.serving.deepl import target_codes
from glassformer.serving.own import TranslateRequest, own_error
from glassformer.serving.service import Service, endpoint

__all__ = ["description_routes", "openapi", "swagger"]

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
MAYBE = {"type": ["number", "null"]}
TEXTS = {"type": "array", "items": TEXT}
KEY = {"type": ["string", "null"]}
ONE_OR_MORE = {"oneOf": [TEXT, TEXTS]}
FILE = {"type": "string", "format": "binary"}
LINE_SWITCH = TEXT | {"enum": ["true", "false"], "description": "Whether each line of a .txt file is one sentence"}
JSON = "application/json"
MULTIPART = "multipart/form-data"
FORM = "application/x-www-form-urlencoded"
REFUSED = {400: "The request is wrong", 403: "The key is unknown", 429: "Too many texts", 503: "Busy: try again soon"}


def _object(required: Iterable[str] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list_of(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(properties, **properties)}


DETECTED = _object(("confidence", "language"), confidence=NUMBER, language=TEXT)
SPAN = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
LINK = {**SPAN, "minItems": 4, "maxItems": 4}
SENTENCE = _object(
    (
        *("text", "source", "target", "status", "reasons", "retry", "kept", "confidence"),
        *("log_prob", "score", "tokens", "token_log_probs", "links"),
    ),
    text=TEXT,
    source=SPAN | {"description": "Where the source sentence is in the text: [begin, end) in characters"},
    target=SPAN | {"description": "Where the sentence is in the translation"},
    status=TEXT,
    reasons=TEXTS,
    retry=TEXT | {"description": 'The search that made the text, if the first output was suspicious; "" otherwise'},
    kept=TEXT | {"description": "How protected spans and glossary terms came in: output, placed or lost"},
    confidence={"type": ["object", "null"], "properties": dict.fromkeys(("exact", "close"), MAYBE)},
    log_prob=MAYBE,
    score=MAYBE,
    tokens=TEXTS,
    token_log_probs={"type": "array", "items": MAYBE},
    links={
        "type": "array",
        "items": LINK,
        "description": "Words and their source words: [source begin, source end, target begin, target end)",
    },
)
PASSAGE = _object(
    ("text", "alternatives", "sentences"), text=TEXT, alternatives=TEXTS, sentences={"type": "array", "items": SENTENCE}
)
ADDITION = _object(
    ("index", "begin", "text"),
    index={"type": "integer", "description": "Which of the texts, counted from 0"},
    begin={"type": "integer", "description": "Number of characters of the translation that were sent before"},
    text=TEXT | {"description": "What follows them; no later event takes it back"},
)
EVENT = _object(
    ("event", "data"),
    event={"enum": ["partial", "translation", "end"]},
    data=TEXT
    | {
        "description": "As JSON: for partial, what greedy search has added to a translation; for translation, its "
        "index and the fields of an answer's text, or error; for end, an empty object",
        "contentMediaType": JSON,
        "contentSchema": {
            "oneOf": [ADDITION, {**PASSAGE, "required": ["index"]}, {"type": "object", "maxProperties": 0}]
        },
    },
)
QUERY = _object(
    ("q", "source", "target"),
    q=ONE_OR_MORE,
    source=TEXT | {"description": 'Code of the source language, or "auto"'},
    target=TEXT,
    format={"type": ["string", "null"], "enum": ["text", "html", "", None], "default": "text"},
    alternatives={"type": "integer", "description": "Number of other translations"},
    api_key=KEY,
)
"""The request of LibreTranslate's API; the limits and the languages are those of a service (`_of_service`)."""


@dataclass(frozen=True, slots=True)
class _Described:
    """An endpoint, for a reader."""

    path: str
    method: str
    about: str
    answer: dict[str, Any] | None
    """The schema of its JSON; None if it answers with something else."""
    request: dict[str, Any] | None = None
    """The schema of its request."""
    forms: bool = False
    """Whether the request may also be a form or a query."""
    errors: tuple[int, ...] = ()
    error: str = "error"
    """The field of an error's sentence."""
    kind: str = "application/json"
    """The media type of its answer."""
    may_stream: bool = False
    """Whether it may also answer with server-sent events."""


LIBRETRANSLATE = (
    _Described(
        "/translate",
        "post",
        "Translate one text or a list of texts",
        _object(("translatedText",), translatedText=ONE_OR_MORE, detectedLanguage={}, alternatives={"type": "array"}),
        QUERY,
        forms=True,
        errors=(400, 403, 408, 413, 429, 503),
    ),
    _Described(
        "/languages",
        "get",
        "The languages, each with those that it can be translated into",
        _list_of(code=TEXT, name=TEXT, targets=TEXTS),
    ),
    _Described(
        "/detect",
        "post",
        "The language of a text; without a detector (extra detect), the first source language, with confidence 0",
        {"type": "array", "items": DETECTED},
        _object(("q",), q=ONE_OR_MORE, api_key=KEY),
        forms=True,
        errors=(400, 403, 408, 413, 429, 503),
    ),
    _Described(
        "/translate_file",
        "post",
        "Translate a document; the answer is the address of its translation, which is kept for 20 minutes",
        _object(("translatedFileUrl",), translatedFileUrl=TEXT),
        _object(("file", "source", "target"), file=FILE, source=TEXT, target=TEXT, lines=LINE_SWITCH, api_key=KEY),
        errors=(400, 403, 408, 413, 429, 503),
    ),
    _Described(
        "/download_file/{name}", "get", "A translated document", None, errors=(404,), kind="application/octet-stream"
    ),
    _Described("/frontend/settings", "get", "The limits and the first languages", _object()),
    _Described("/health", "get", "Whether the service runs", _object(("status",), status=TEXT)),
)
DEEPL = (
    _Described(
        "/v2/translate",
        "post",
        "Translate texts (DeepL's API)",
        _object(
            ("translations",),
            translations=_list_of(detected_source_language=TEXT, text=TEXT, billed_characters={"type": "integer"}),
        ),
        _object(("text", "target_lang"), text=ONE_OR_MORE, target_lang=TEXT, source_lang={"type": ["string", "null"]}),
        errors=(400, 403, 404, 408, 413, 429, 503),
        error="message",
    ),
    _Described(
        "/v2/languages",
        "get",
        "The languages of one side: type=source or type=target",
        {"type": "array", "items": _object(("language", "name"), language=TEXT, name=TEXT)},
        errors=(400, 403, 408, 413),
        error="message",
    ),
    _Described(
        "/v2/usage",
        "get",
        "The characters translated so far",
        _object(
            ("character_count", "character_limit"),
            character_count={"type": "integer"},
            character_limit={"type": "integer"},
        ),
        errors=(400, 403, 408, 413),
        error="message",
    ),
)
OWN = (
    _Described(
        "/v1/translate",
        "post",
        "Translate texts, with alternatives and, sentence by sentence, tokens, log probabilities and status; with "
        "stream, server-sent events: partial (what greedy search has added to a text: index, begin, text), translation "
        "(a whole text, with its index), and end",
        _object(("model", "translations"), model=TEXT, translations={"type": "array", "items": PASSAGE}),
        TranslateRequest.model_json_schema(),
        errors=(400, 403, 408, 413, 429, 503),
        may_stream=True,
    ),
    _Described("/ready", "get", "Whether each model is loaded", _object(("ready", "models")), errors=(503,)),
    _Described("/metrics", "get", "Counters for Prometheus", None, kind="text/plain"),
    _Described("/", "get", "The translation page", None, kind="text/html"),
    _Described("/openapi.json", "get", "This description", _object()),
    _Described("/spec", "get", "LibreTranslate's endpoints as Swagger 2.0", _object()),
    _Described("/docs", "get", "This description as a page", None, kind="text/html"),
)
_ALL = (*LIBRETRANSLATE, *DEEPL, *OWN)


def description_routes() -> list[Route]:
    """Return the routes of the description."""
    table = (("/openapi.json", _openapi), ("/spec", _swagger), ("/docs", _page))
    return [endpoint(path, "GET", handler, own_error) for path, handler in table]


def openapi(service: Service) -> dict[str, Any]:
    """Return the description of a service as OpenAPI 3.1, with its limits and languages."""
    paths: dict[str, dict[str, Any]] = {}
    for one in _ALL:
        request = one.request and _of_service(one.request, service)
        paths.setdefault(one.path, {})[one.method] = _operation(replace(one, request=request))
    key = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "glassformer", "version": version("glassformer")},
        "paths": paths,
        "components": {"securitySchemes": {"key": key}},
    }


def _of_service(request: Mapping[str, Any], service: Service) -> dict[str, Any]:
    """Return the schema of a request with the limits and the languages of a service."""
    limits, models = service.limits, service.models
    text = {"type": "string", "minLength": 1, "maxLength": limits.characters}
    texts = {"type": "array", "items": {**text, "minLength": 0}, "minItems": 1, "maxItems": limits.texts}
    sources, targets = models.sources, list(dict.fromkeys(one.target for one in models.all))
    optional = {"type": ["string", "null"]}
    is_libretranslate = bool({"q", "file"} & {*request["properties"]})
    known: dict[str, Any] = {
        "q": {"oneOf": [text, texts]},
        "texts": texts,
        "text": {"oneOf": [text | {"minLength": 0}, texts]},
        "source": {"enum": ["auto", *sources]} if is_libretranslate else optional | {"enum": [None, *sources]},
        "target": {"enum": targets} if is_libretranslate else optional | {"enum": [None, *targets]},
        "source_lang": optional | {"enum": [None, *map(str.upper, sources)]},
        "target_lang": {"enum": [code for target in targets for code in target_codes(target)]},
        "alternatives": {"type": "integer", "maximum": limits.alternatives},
        "n_best": {"type": "integer", "minimum": 1, "maximum": limits.alternatives + 1, "default": 1},
    }
    properties = {
        name: known[name] if "oneOf" in schema else {**schema, **known.get(name, {})}
        for name, schema in request["properties"].items()
    }
    return {**request, "properties": properties}


def _operation(one: _Described) -> dict[str, Any]:
    content = {one.kind: {"schema": one.answer or TEXT}}
    if one.may_stream:
        content["text/event-stream"] = {"schema": EVENT}
    responses: dict[str, Any] = {"200": {"description": "The answer", "content": content}}
    error = _object((one.error,), **{one.error: TEXT})
    for status in one.errors:
        described = REFUSED.get(status, "The request is too large or too slow")
        responses[str(status)] = {"description": described, "content": {"application/json": {"schema": error}}}
    operation: dict[str, Any] = {"summary": one.about, "responses": responses}
    if one.path == "/ready":
        responses["503"]["content"]["application/json"]["schema"] = one.answer
    if "{name}" in one.path:
        operation["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": TEXT}]
    if one.path == "/v2/languages":
        sides = {"type": "string", "enum": ["source", "target"]}
        operation["parameters"] = [{"name": "type", "in": "query", "schema": sides}]
    if one.request:
        kinds = [MULTIPART] if _is_file(one.request) else [JSON, *([FORM] if one.forms else [])]
        operation["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": one.request if kind == JSON else _as_form(one.request)} for kind in kinds},
        }
    return operation


def _is_file(request: Mapping[str, Any]) -> bool:
    return "file" in request["properties"]


def _as_form(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form, in which q is one text and nothing is null."""
    properties = {name: _not_null(schema.get("oneOf", [schema])[0]) for name, schema in request["properties"].items()}
    return {**request, "properties": properties}


def _not_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {"enum": [one for one in schema["enum"] if one is not None]} if "enum" in schema else {}
    return {**schema, **chosen, "type": _type(schema)}


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a field of a form: forms know no null, nor does Swagger 2.0."""
    kind = schema.get("type", "string")
    return kind if isinstance(kind, str) else kind[0]


def _swagger_type(schema: Mapping[str, Any]) -> str:
    return "file" if schema.get("format") == "binary" else _type(schema)


def swagger() -> dict[str, Any]:
    """Return the description of LibreTranslate's endpoints as Swagger 2.0."""
    return {
        "swagger": "2.0",
        "info": {"title": "glassformer", "version": version("glassformer")},
        "paths": {one.path: {one.method: _swagger_operation(one)} for one in LIBRETRANSLATE},
    }


def _swagger_operation(one: _Described) -> dict[str, Any]:
    fields = one.request["properties"] if one.request else {}
    required = one.request["required"] if one.request else []
    return {
        "summary": one.about,
        "consumes": [MULTIPART if one.request and _is_file(one.request) else FORM],
        "parameters": [
            {"name": name, "in": "formData", "type": _swagger_type(schema), "required": name in required}
            for name, schema in fields.items()
        ]
        + [{"name": "name", "in": "path", "type": "string", "required": True}] * ("{name}" in one.path),
        "responses": {"200": {"description": "The answer"}}
        | {str(status): {"description": REFUSED.get(status, "Refused")} for status in one.errors},
    }


async def _openapi(service: Service, _: Request) -> Response:
    return JSONResponse(openapi(service))


async def _swagger(_: Service, __: Request) -> Response:
    return JSONResponse(swagger())


async def _page(_: Service, __: Request) -> Response:
    parts = "".join(_section(name, some) for name, some in _GROUPS.items())
    return HTMLResponse(PAGE.replace("PARTS", parts))


_GROUPS = {"LibreTranslate's API": LIBRETRANSLATE, "DeepL's API": DEEPL, "Our own": OWN}
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
<p>The same as <a href="openapi.json">OpenAPI 3.1</a>; LibreTranslate's part also as <a href="spec">Swagger 2.0</a>.</p>
PARTS
</html>
"""


def _section(name: str, endpoints: Iterable[_Described]) -> str:
    return f"<h2>{name}</h2>" + "".join(map(_details, endpoints))


def _details(one: _Described) -> str:
    title = f"<code>{one.method.upper()} {one.path}</code> {html.escape(one.about)}"
    schemas = (("Request", one.request), ("Answer", one.answer))
    bodies = "".join(
        f"<p>{what}</p><pre>{html.escape(json.dumps(schema, indent=2))}</pre>" for what, schema in schemas if schema
    )
    return f"<details><summary>{title}</summary>{bodies}</details>"
