"""LibreTranslate's API: its requests, answers and error texts.

Different on purpose: nothing is done to a translation (LibreTranslate adapts its last punctuation and its case to the
source and undoes HTML's entities also in plain text), U+2028 and form feed do not end lines, and limits are set unless
they are switched off.
"""

import asyncio
import html
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from glassformer.serving.detection import DetectedLanguage, detected_languages
from glassformer.serving.models import ServedModel, code_of
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import fields
from glassformer.serving.service import Service, endpoint
from glassformer.text.languages import language_name
from glassformer.translating.documents.document import SUFFIXES, Document, DocumentOptions, is_document
from glassformer.translating.documents.sentences import DocumentSentences

__all__ = ["libretranslate_error", "libretranslate_routes"]

NEED_KEY = "Please contact the server operator to get an API key"
FRONTEND_TIMEOUT = 500
"""Milliseconds that LibreTranslate's own page waits after the last key."""


def libretranslate_routes() -> list[Route]:
    """Return the API's routes."""
    table = (
        ("/translate", "POST", _translate),
        ("/languages", "GET", _languages),
        ("/detect", "POST", _detect),
        ("/frontend/settings", "GET", _settings),
        ("/health", "GET", _health),
        ("/suggest", "POST", _suggest),
        ("/translate_file", "POST", _translate_file),
        ("/download_file/{name}", "GET", _download_file),
    )
    return [endpoint(path, method, handler, libretranslate_error) for path, method, handler in table]


def libretranslate_error(refusal: RequestError) -> Response:
    """Return an error as LibreTranslate writes it."""
    if refusal.status == 401:
        return JSONResponse({"error": NEED_KEY}, 400)
    text = f"Slowdown: {refusal.text}" if refusal.status == 429 else refusal.text
    return JSONResponse({"error": text}, refusal.status)


async def _translate(service: Service, request: Request) -> Response:
    asked, is_json = await fields(request)
    texts, is_list = _texts(asked.get("q"), is_json)
    source, target = (_required(asked, name) for name in ("source", "target"))
    alternatives = _alternatives(asked.get("alternatives", 0), service.limits.alternatives)
    _check_size(texts, is_list, service)
    service.admit(request, _key(request, asked), texts)
    model, detected = await _model(service, source, target, texts, asked.get("format"))
    is_html = asked.get("format") == "html"
    if is_html and any(mark in text for text in texts for mark in "<&"):
        raise RequestError(400, "html format is not supported for texts with markup")
    passages = await service.translate(request, model, texts, alternatives=alternatives)
    answer: dict[str, Any] = {"translatedText": _one_or_all([_written(one.text, is_html) for one in passages], is_list)}
    if source.lower() == "auto":
        answer["detectedLanguage"] = _one_or_all([detected._asdict() for _ in texts], is_list)
    if alternatives:
        answer["alternatives"] = _one_or_all([[] if is_html else list(one.alternatives) for one in passages], is_list)
    return JSONResponse(answer)


def _written(text: str, is_html: bool) -> str:
    return html.escape(text, quote=False) if is_html else text


def _texts(given: object, is_json: bool) -> tuple[list[str], bool]:
    """Return the texts to translate, and whether they came as a list; in forms, each line ends at LF."""
    if not given:
        raise _missing("q")
    if isinstance(given, str):
        return [given if is_json else given.replace("\r\n", "\n").replace("\r", "\n")], False
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given, True
    raise RequestError(400, "Invalid request: q parameter is neither a text nor a list of texts")


def _required(asked: Mapping[str, Any], name: str) -> str:
    value = asked.get(name)
    if not value:
        raise _missing(name)
    if not isinstance(value, str):
        raise RequestError(400, f"Invalid request: {name} parameter is not a text")
    return value


def _missing(name: str) -> RequestError:
    return RequestError(400, f"Invalid request: missing {name} parameter")


def _alternatives(given: object, most: int) -> int:
    try:
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise ValueError
        number = max(0, int(given))
    except ValueError as error:
        raise RequestError(400, "Invalid request: alternatives parameter is not a number") from error
    if number > most:
        raise RequestError(400, f"Invalid request: alternatives parameter must be <= {most}")
    return number


def _check_size(texts: Iterable[str], is_list: bool, service: Service) -> None:
    sizes, limits = [len(text) for text in texts], service.limits
    if is_list and len(sizes) > limits.texts:
        raise _exceeds(len(sizes), limits.texts)
    for size in sizes:
        if size > limits.characters:
            raise _exceeds(size, limits.characters)


def _exceeds(size: int, limit: int) -> RequestError:
    return RequestError(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


async def _model(
    service: Service, source: str, target: str, texts: Iterable[str], form: object = None
) -> tuple[ServedModel, DetectedLanguage]:
    """Return the model of a direction, and the language that "auto" means for these texts."""
    models = service.models
    to = models.code(target)
    detected = DetectedLanguage(0.0, "")
    if source.lower() == "auto":
        fitting = [one.source for one in models.all if one.target == to] or models.sources
        detected = (await _detected(service, texts, fitting))[0]
    of = detected.language or models.code(source)
    if of is None:
        raise RequestError(400, f"{code_of(source)} is not supported")
    if to is None:
        raise RequestError(400, f"{code_of(target)} is not supported")
    if form not in (None, "", "text", "html"):
        raise RequestError(400, f"{form} format is not supported")
    model = models.find(of, to)
    if model is None:
        names = f"{language_name(to)} ({to}) is not available as a target language from {language_name(of)} ({of})"
        raise RequestError(400, names)
    return model, detected


async def _detected(service: Service, texts: Iterable[str], among: Sequence[str]) -> list[DetectedLanguage]:
    """Return these languages that texts may be in, best first; the first of them with confidence 0 if nothing tells."""
    found = await asyncio.to_thread(detected_languages, "\n".join(texts), list(service.models.languages))
    return [one for one in found if one.language in among] or [DetectedLanguage(0.0, among[0])]


def _one_or_all(found: list[Any], is_list: bool) -> object:
    return found if is_list else found[0]


def _key(request: Request, asked: Mapping[str, Any]) -> str:
    key = asked.get("api_key")
    if key is not None and not isinstance(key, str):
        raise RequestError(400, "Invalid request: api_key parameter is not a text")
    return key or request.headers.get("authorization", "").removeprefix("Bearer ")


async def _languages(service: Service, _: Request) -> Response:
    found = service.models.languages.items()
    return JSONResponse([{"code": code, "name": language_name(code), "targets": targets} for code, targets in found])


async def _detect(service: Service, request: Request) -> Response:
    asked, is_json = await fields(request)
    texts, is_list = _texts(asked.get("q"), is_json)
    _check_size(texts, is_list, service)
    service.admit(request, _key(request, asked), texts)
    among = list(dict.fromkeys([*service.models.sources, *service.models.languages]))
    return JSONResponse([one._asdict() for one in await _detected(service, texts, among)])


async def _settings(service: Service, _: Request) -> Response:
    first = service.models.all[0]
    return JSONResponse(
        {
            "charLimit": service.limits.characters,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "apiKeys": service.keys is not None,
            "keyRequired": service.keys is not None,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(SUFFIXES),
            "language": {
                side: {"code": code, "name": language_name(code)}
                for side, code in (("source", first.source), ("target", first.target))
            },
        }
    )


async def _health(_: Service, __: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _suggest(_: Service, __: Request) -> Response:
    raise RequestError(403, "Suggestions are disabled on this server.")


async def _translate_file(service: Service, request: Request) -> Response:
    asked, _ = await fields(request)
    upload = asked.get("file")
    if not isinstance(upload, UploadFile):
        raise _missing("file")
    source, target = (_required(asked, name) for name in ("source", "target"))
    if not upload.filename:
        raise RequestError(400, "Invalid request: empty file")
    if not is_document(upload.filename):
        raise RequestError(400, "Invalid request: file format not supported")
    name, data = PurePath(upload.filename).name, await upload.read()
    lines = _lines(asked.get("lines", "false"), name)
    in_background = partial(asyncio.get_running_loop().run_in_executor, service.documents)
    document = await in_background(Document.read, name, data, DocumentOptions(lines=lines))
    texts = (chunk.text for unit in document.units for chunk in unit.chunks if chunk.role == "text")
    model, _ = await _model(service, source, target, texts)
    sentences = await in_background(partial(DocumentSentences, document, model.source, lines=lines))
    wanted = sentences.wanted
    service.admit(request, _key(request, asked), wanted)
    found = await service.translate_sentences(request, model, wanted, links=sentences.has_tags)
    translated, _ = await in_background(sentences.rebuilt, found)
    kept = service.files.keep(translated, PurePath(name).suffix.lower())
    return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{kept}"})


def _lines(given: object, name: str) -> bool:
    """Return whether each line of a text file is one sentence, which LibreTranslate does not offer."""
    if given not in ("true", "false"):
        raise RequestError(400, "Invalid request: lines parameter is not true or false")
    if given == "true" and PurePath(name).suffix.lower() != ".txt":
        raise RequestError(400, "Invalid request: lines parameter is for .txt files")
    return given == "true"


async def _download_file(service: Service, request: Request) -> Response:
    name = request.path_params["name"]
    data = service.files.find(name)
    if data is None:
        raise RequestError(404, "Invalid filename")
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type="application/octet-stream", headers=headers)
