"""LibreTranslate's API: its requests, answers and error texts.

Three differences are intended. Translations are not changed afterwards, whereas LibreTranslate adapts their last
punctuation mark and their case to the source, and replaces HTML entities even in plain text. U+2028 and form feed do
not end lines. Limits apply by default.
"""

from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, Literal, NotRequired
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, ValidationInfo, WithJsonSchema
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from typing_extensions import TypedDict

from glassformer.errors import shortened
from glassformer.serving.detection import READ_CHARACTERS, DetectedLanguage
from glassformer.serving.endpoints import (
    ASKED,
    FORM,
    JSON,
    MULTIPART,
    QUERY,
    Api,
    Endpoint,
    Model,
    OfService,
    checked,
    header_key,
    text_or_texts_schema,
)
from glassformer.serving.models import Direction, code_of
from glassformer.serving.reading import Markup, document_sentences, document_text, rebuilt_document
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import fields
from glassformer.serving.service import Service, address
from glassformer.text.languages import language_name
from glassformer.translating.documents.document import SUFFIXES, DocumentOptions, is_document

__all__ = [
    "LIBRETRANSLATE",
    "AskedTexts",
    "DetectQuery",
    "FileQuery",
    "Health",
    "Language",
    "LibreTranslateError",
    "Query",
    "Source",
    "Target",
    "Translated",
    "TranslatedFile",
    "as_list",
    "chosen_model",
    "libretranslate_endpoints",
]

NEED_KEY = "Please contact the server operator to get an API key"
FRONTEND_TIMEOUT = 500
"""Milliseconds that LibreTranslate's own page waits after the last key press."""
DOWNLOADED = "application/octet-stream"
PART = 65_536
"""Number of bytes in which a file is sent at a time."""


def _missing(name: str | None) -> RequestError:
    return RequestError(400, f"Invalid request: missing {name} parameter")


def _required(value: object, field: ValidationInfo) -> str:
    if not value:
        raise _missing(field.field_name)
    if not isinstance(value, str):
        raise RequestError(400, f"Invalid request: {field.field_name} parameter is not a text")
    return value


def _texts(value: object, field: ValidationInfo) -> str | list[str]:
    if not value:
        raise _missing(field.field_name)
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    raise RequestError(400, f"Invalid request: {field.field_name} parameter is neither a text nor a list of texts")


def _number(value: object) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        return max(0, int(value))
    except (TypeError, ValueError) as error:
        raise RequestError(400, "Invalid request: alternatives parameter is not a number") from error


def _file(value: object, field: ValidationInfo) -> UploadFile:
    if not isinstance(value, UploadFile):
        raise _missing(field.field_name)
    return value


# Our functions check each field, so that errors have LibreTranslate's exact words; pydantic only documents the fields.
AskedTexts = Annotated[
    str | list[str],
    SkipValidation,
    BeforeValidator(_texts),
    OfService(lambda service: text_or_texts_schema(service, least=1)),
]
Source = Annotated[
    str,
    SkipValidation,
    BeforeValidator(_required),
    Field(description='Code of the source language, or "auto"'),
    OfService(lambda service: {"enum": ["auto", *service.models.sources]}),
]
Target = Annotated[
    str, SkipValidation, BeforeValidator(_required), OfService(lambda service: {"enum": service.models.targets})
]
Key = Annotated[str | None, SkipValidation]


class Query(BaseModel):
    """The fields of POST /translate, in the order in which they are checked."""

    model_config = ConfigDict(defer_build=True)

    q: AskedTexts
    source: Source
    target: Target
    alternatives: Annotated[
        int,
        SkipValidation,
        BeforeValidator(_number),
        Field(description="Number of other translations"),
        OfService(lambda service: {"maximum": service.limits.alternatives}),
    ] = 0
    format: Annotated[Literal["text", "html", ""] | None, SkipValidation] = "text"
    api_key: Key = None


class DetectQuery(BaseModel):
    """The fields of POST /detect."""

    model_config = ConfigDict(defer_build=True)

    q: AskedTexts
    api_key: Key = None


class FileQuery(BaseModel):
    """The fields of POST /translate_file, in the order in which they are checked."""

    model_config = ConfigDict(defer_build=True)

    file: Annotated[Any, BeforeValidator(_file), WithJsonSchema({"type": "string", "format": "binary"})]
    source: Source
    target: Target
    lines: Annotated[
        Literal["true", "false"],
        SkipValidation,
        Field(description="Whether each line of a .txt file is one sentence"),
    ] = "false"
    api_key: Key = None


class Translated(TypedDict):
    """The answer to POST /translate."""

    translatedText: str | list[str]
    detectedLanguage: NotRequired[DetectedLanguage | list[DetectedLanguage]]
    alternatives: NotRequired[list[str] | list[list[str]]]


class Language(TypedDict):
    """A language, and the languages into which it can be translated."""

    code: str
    name: str
    targets: list[str]


class TranslatedFile(TypedDict):
    """The address of a translated document."""

    translatedFileUrl: str


class Health(TypedDict):
    """The answer to GET /health."""

    status: str


class LibreTranslateError(TypedDict):
    """Why a request is refused."""

    error: str


def libretranslate_endpoints() -> list[Endpoint]:
    """Return the API's endpoints."""
    free, asked = partial(Endpoint, LIBRETRANSLATE), partial(Endpoint, LIBRETRANSLATE, needs_key=True, errors=ASKED)
    download = "/download_file/{name}"
    return [
        asked("POST", "/translate", _translate, request=Query, takes=(JSON, FORM), answer=Translated),
        asked("GET", "/translate", _translate, request=Query, takes=(QUERY,), answer=Translated),
        free("GET", "/languages", _languages, answer=list[Language]),
        asked("POST", "/detect", _detect, request=DetectQuery, takes=(JSON, FORM), answer=list[DetectedLanguage]),
        free("GET", "/frontend/settings", _settings, answer=dict[str, Any]),
        free("GET", "/health", _health, answer=Health),
        free("POST", "/suggest", _suggest, statuses=(), errors=(403,)),
        asked("POST", "/translate_file", _translate_file, request=FileQuery, takes=(MULTIPART,), answer=TranslatedFile),
        free("GET", download, _download_file, gives=DOWNLOADED, errors=(404,)),
    ]


def _error(refusal: RequestError) -> Response:
    """Return an error in LibreTranslate's format."""
    if refusal.status == 401:
        return JSONResponse({"error": NEED_KEY}, 400)
    text = f"Slowdown: {refusal.text}" if refusal.status == 429 else refusal.text
    return JSONResponse({"error": text}, refusal.status)


def _key(request: Request) -> str:
    return request.query_params.get("api_key", "") or header_key(request, "Bearer")


LIBRETRANSLATE = Api(
    name="LibreTranslate's API", error=LibreTranslateError, write_error=_error, key=_key, key_field="api_key"
)


async def _translate(service: Service, request: Request) -> Response:
    """Translate one text or a list of texts."""
    asked = await _asked(Query, service, request)
    alternatives = asked.alternatives
    if alternatives > (most := service.limits.alternatives):
        raise RequestError(400, f"Invalid request: alternatives parameter must be <= {most}")
    texts, is_list = as_list(asked.q, service)
    service.admit(request, texts)
    model, detected = await chosen_model(service, asked.source, asked.target, texts, asked.format)
    markup = Markup() if asked.format == "html" else None
    passages = await service.translate(request, model, texts, alternatives=alternatives, markup=markup)
    answer: Translated = {"translatedText": _one_or_all([one.text for one in passages], is_list)}
    if asked.source.lower() == "auto":
        answer["detectedLanguage"] = _one_or_all([detected for _ in texts], is_list)
    if alternatives:
        answer["alternatives"] = _one_or_all([list(one.alternatives) for one in passages], is_list)
    return JSONResponse(answer)


async def _asked(model: type[Model], service: Service, request: Request) -> Model:
    """Return the fields of a request after checking its key; in forms, all line ends of q become LF."""
    given, is_json = await fields(service, request, model.model_fields, repeated="q", key=LIBRETRANSLATE.key_field)
    if not is_json:
        given |= {name: _with_lf(value) for name, value in given.items() if name == "q"}
    return checked(model, given)


def _with_lf(texts: object) -> object:
    if isinstance(texts, list):
        return [_with_lf(one) for one in texts]
    return texts.replace("\r\n", "\n").replace("\r", "\n") if isinstance(texts, str) else texts


def as_list(texts: str | list[str], service: Service) -> tuple[list[str], bool]:
    """Return the texts, and whether they were given as a list.

    Raises:
        RequestError: the texts are too long, or too many; the message gives the number and the limit.
    """
    found, limits = texts if isinstance(texts, list) else [texts], service.limits
    sizes = ((len(found), limits.texts), *((len(text), limits.characters) for text in found))
    for size, limit in sizes:
        if size > limit:
            raise RequestError(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
    return found, isinstance(texts, list)


async def chosen_model(
    service: Service, source: str, target: str, texts: Iterable[str], form: object = None
) -> tuple[Direction, DetectedLanguage]:
    """Return the model of a direction, and the source language, which is detected if `source` is "auto".

    The error for an unknown language has LibreTranslate's exact words, because clients compare them.
    """
    models = service.models
    to = models.code(target)
    detected: DetectedLanguage = {"confidence": 0.0, "language": ""}
    if source.lower() == "auto":
        fitting = [one.source for one in models.all if one.target == to] or models.sources
        detected = (await service.detect(texts, fitting))[0]
    of = detected["language"] or models.code(source)
    if of is None:
        raise RequestError(400, f"{shortened(code_of(source))} is not supported")
    if to is None:
        raise RequestError(400, f"{shortened(code_of(target))} is not supported")
    if form not in (None, "", "text", "html"):
        raise RequestError(400, f"{shortened(str(form))} format is not supported")
    model = models.find(of, to)
    if model is None:
        names = f"{language_name(to)} ({to}) is not available as a target language from {language_name(of)} ({of})"
        raise RequestError(400, names)
    return model, detected


def _one_or_all(found: list[Any], is_list: bool) -> Any:
    return found if is_list else found[0]


async def _languages(service: Service, _: Request) -> Response:
    """The languages, each with the languages into which it can be translated."""
    found = service.models.languages.items()
    answer: list[Language] = [
        {"code": code, "name": language_name(code), "targets": targets} for code, targets in found
    ]
    return JSONResponse(answer)


async def _detect(service: Service, request: Request) -> Response:
    """The language of a text.

    Without a detector (extra detect), the answer is the first source language, with confidence 0.
    """
    asked = await _asked(DetectQuery, service, request)
    texts, _ = as_list(asked.q, service)
    service.admit(request, texts)
    among = list(dict.fromkeys([*service.models.sources, *service.models.languages]))
    return JSONResponse(await service.detect(texts, among))


async def _settings(service: Service, _: Request) -> Response:
    """The limits, and the source and target language that are selected at first."""
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
    """Whether the service runs."""
    return JSONResponse({"status": "ok"})


async def _suggest(_: Service, __: Request) -> Response:
    """Suggest a better translation: always refused."""
    raise RequestError(403, "Suggestions are disabled on this server.")


async def _translate_file(service: Service, request: Request) -> Response:
    """Translate a document; the answer is the address of its translation.

    The translation is kept for 20 minutes, or until a minute after it has been fetched.
    """
    asked = await _asked(FileQuery, service, request)
    upload: UploadFile = asked.file
    if not upload.filename:
        raise RequestError(400, "Invalid request: empty file")
    if not is_document(upload.filename):
        raise RequestError(400, "Invalid request: file format not supported")
    name = _short_name(upload.filename)
    owner = request.state.client or address(request)
    service.files.check_room(owner)
    document = (name, await upload.read(), DocumentOptions(lines=_lines(asked.lines, name)))
    ask = service.documents.ask
    is_auto = asked.source.lower() == "auto"
    sample = await ask(document_text, *document, READ_CHARACTERS) if is_auto else ""
    model, _ = await chosen_model(service, asked.source, asked.target, [sample])
    wanted, has_tags = await ask(document_sentences, *document, model.source)
    service.admit(request, wanted)
    found = await service.translate_sentences(request, model, wanted, links=has_tags)
    translated = await ask(rebuilt_document, *document, model.source, found)
    kept = service.files.keep(owner, _translated_name(name, model.target), translated)
    return JSONResponse({"translatedFileUrl": f"{request.base_url}download_file/{kept}"})


def _short_name(path: str) -> str:
    """Return the name of a file for messages: shortened, but with its suffix."""
    return shortened(PurePath(path).stem) + PurePath(path).suffix


def _translated_name(name: str, language: str) -> str:
    """Return the name under which the translation of a file is saved, such as page.fr.html for page.html."""
    path = PurePath(name)
    return f"{path.stem}.{language}{path.suffix}"


def _lines(given: object, name: str) -> bool:
    """Return whether each line of a text file is one sentence; LibreTranslate does not have this option."""
    if given not in ("true", "false"):
        raise RequestError(400, "Invalid request: lines parameter is not true or false")
    if given == "true" and PurePath(name).suffix.lower() != ".txt":
        raise RequestError(400, "Invalid request: lines parameter is for .txt files")
    return given == "true"


async def _download_file(service: Service, request: Request) -> Response:
    """A translated document, whose name contains the language, such as page.fr.html for page.html."""
    key = request.path_params["name"]
    found = service.files.find(key)
    if found is None:
        raise RequestError(404, "Invalid filename")
    name, data = found
    # RFC 6266: names with special characters use the extended form.
    written = quote(name, errors="replace")
    field = f'filename="{name}"' if written == name else f"filename*=UTF-8''{written}"
    headers = {"Content-Disposition": f"attachment; {field}", "X-Content-Type-Options": "nosniff"}
    if request.method == "HEAD":
        return Response(data, media_type=DOWNLOADED, headers=headers)
    headers["Content-Length"] = str(len(data))
    return StreamingResponse(_sent(service, key, data), media_type=DOWNLOADED, headers=headers)


async def _sent(service: Service, key: str, data: bytes) -> AsyncIterator[bytes]:
    """Yield a file in parts; once the client has taken all parts, the file is kept only for a short time."""
    for begin in range(0, len(data), PART):
        yield data[begin : begin + PART]
    service.files.fetched(key)
