"""glassformer's own API, under /v1: a translation with everything that the model computes for it, also as a stream.

A request has texts and may name languages. An answer has, for each text, its translation and the alternatives, and for
each of its sentences, tokens, log probabilities and a status.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from typing_extensions import TypedDict

from glassformer.errors import quoted, shortened
from glassformer.evaluation.guards import Confidence
from glassformer.serving.endpoints import ASKED, JSON, Api, Endpoint, OfService, header_key, texts_schema
from glassformer.serving.models import Direction
from glassformer.serving.passages import Passage, check_unicode, translate_passages
from glassformer.serving.process import AskedGlossary
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import json_object
from glassformer.serving.service import Service
from glassformer.text.glossary import FORMS
from glassformer.text.links import Link, Span
from glassformer.translating.translation import Translation

__all__ = [
    "OF_SERVICE",
    "OWN",
    "Event",
    "OwnError",
    "Ready",
    "TranslateRequest",
    "TranslatedSentence",
    "TranslatedText",
    "Translations",
    "own_endpoints",
]

STREAM = "text/event-stream"
MOST_TERMS = 1000
MOST_FORMS = 16
TERM_CHARACTERS = 100
FORMS_CHARACTERS = 1000
SLICE = 64
"""Number of sentences that are converted for an answer without a pause; this takes milliseconds."""

_Term = Annotated[str, StringConstraints(max_length=TERM_CHARACTERS)]
_Forms = Annotated[str, StringConstraints(max_length=FORMS_CHARACTERS)]


class TranslateRequest(BaseModel):
    """The body of POST /v1/translate."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    texts: Annotated[
        list[str], FailFast(), Field(min_length=1, description="The texts to translate."), OfService(texts_schema)
    ]
    source: Annotated[
        str | None,
        Field(description="Language of the texts; by default, the first source language that fits."),
        OfService(lambda service: {"enum": [None, *service.models.sources]}),
    ] = None
    target: Annotated[
        str | None,
        Field(description="Language to translate into; by default, the first target language."),
        OfService(lambda service: {"enum": [None, *service.models.targets]}),
    ] = None
    n_best: Annotated[
        int,
        Field(ge=1, description="Number of outputs per text."),
        OfService(lambda service: {"maximum": service.limits.alternatives + 1}),
    ] = 1
    beam_size: Annotated[
        int | None, Field(ge=1, le=64, description="Number of hypotheses at each step, at least n_best; 1 = greedy.")
    ] = None
    prefix: Annotated[
        str, Field(description="Beginning of each line of the output; lines are then not split into sentences.")
    ] = ""
    retry: Annotated[
        bool, Field(description="Search suspicious outputs again: greedily, by sampling, then in parts.")
    ] = False
    glossary: Annotated[
        dict[_Term, _Forms],
        Field(max_length=MOST_TERMS, description="How some terms must be translated: target terms by source term."),
    ] = {}
    links: Annotated[bool, Field(description="Align the words of each sentence with those of its source.")] = False
    stream: Annotated[bool, Field(description="Send each text as an event as soon as it is translated.")] = False


OF_SERVICE = {"texts", "source", "target", "n_best", "stream"}
"""Fields that the service reads; all other fields are arguments of `Translator.translate`."""

_Number = Annotated[float, WithJsonSchema({"type": ["number", "null"]})]
"""A number; infinity becomes null, because JSON has no infinity."""
_Place = Annotated[tuple[int, int], Field(description="[begin, end) in characters")]


def _flat(links: Sequence[Link]) -> list[tuple[int, int, int, int]]:
    return [(*one.source, *one.target) for one in links]


class TranslatedSentence(BaseModel):
    """A translated sentence of a text: the fields of `Translation`, and where the sentence is in both texts."""

    model_config = ConfigDict(defer_build=True)

    text: str
    source: Annotated[_Place, Field(description="Where the source sentence is in the text: [begin, end) in characters")]
    target: Annotated[_Place, Field(description="Where its translation is in the translated text")]
    status: str
    reasons: tuple[str, ...]
    retry: Annotated[
        str, Field(description='The search that found the text, if the first output was suspicious; "" otherwise')
    ]
    kept: Annotated[str, Field(description="How protected spans and glossary terms were kept: output, placed or lost")]
    confidence: Confidence | None
    log_prob: _Number
    score: _Number
    tokens: tuple[str, ...]
    token_log_probs: tuple[_Number, ...]
    links: Annotated[
        list[tuple[int, int, int, int]],
        BeforeValidator(_flat),
        Field(description="Words and their source words: [source begin, source end, target begin, target end)"),
    ]

    @classmethod
    def of(cls, one: Translation, source: Span, target: Span) -> "TranslatedSentence":
        """Return the answer for a translation with its spans in the source text and in the target text."""
        places = {"source": source, "target": target}
        return cls.model_validate({name: getattr(one, name) for name in cls.model_fields.keys() - places} | places)


class TranslatedText(BaseModel):
    """The translation of a text."""

    model_config = ConfigDict(defer_build=True)

    text: str
    alternatives: tuple[str, ...]
    sentences: list[TranslatedSentence]


async def _described(passage: Passage) -> TranslatedText:
    """Return the answer for a translated passage, pausing from time to time so that other clients are answered."""
    sentences = list[TranslatedSentence]()
    for number, places in enumerate(zip(passage.parts, passage.sources, passage.targets, strict=True)):
        sentences.append(TranslatedSentence.of(*places))
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
    return TranslatedText.model_construct(text=passage.text, alternatives=passage.alternatives, sentences=sentences)


class Translations(TypedDict):
    """The answer to POST /v1/translate."""

    model: str
    translations: list[TranslatedText]


class Event(TypedDict):
    """A server-sent event."""

    event: Literal["translation", "end"]
    data: Annotated[
        str,
        Field(
            description="As JSON. For translation: the index of the text, and the fields of a TranslatedText or error; "
            "for end, an empty object"
        ),
    ]


class Ready(TypedDict):
    """Whether all models are loaded, and whether each model is loaded."""

    ready: bool
    models: dict[str, bool]


class OwnError(TypedDict):
    """Why a request is refused."""

    error: str


def own_endpoints() -> list[Endpoint]:
    """Return the API's endpoints."""
    return [
        Endpoint(
            OWN,
            "POST",
            "/v1/translate",
            _translate,
            needs_key=True,
            request=TranslateRequest,
            answer=Translations,
            stream=Event,
            errors=ASKED,
        ),
        Endpoint(OWN, "GET", "/ready", _ready, answer=Ready, statuses=(200, 503)),
        Endpoint(OWN, "GET", "/metrics", _metrics, gives="text/plain"),
    ]


def _error(refusal: RequestError) -> Response:
    return JSONResponse({"error": refusal.text}, refusal.status)


def _key(request: Request) -> str:
    return header_key(request, "Bearer")


OWN = Api(name="Our own", error=OwnError, write_error=_error, key=_key)


async def _translate(service: Service, request: Request) -> Response:
    """Translate texts, and return everything that the model computes for each sentence.

    With stream, the answer is a stream of server-sent events: translation (a whole text, with its index), and end.
    """
    given = await json_object(service, request)
    # One short message for unknown fields, because pydantic would list all of them.
    if unknown := given.keys() - TranslateRequest.model_fields.keys():
        raise RequestError(400, f"{shortened(min(unknown))}: extra inputs are not permitted")
    try:
        asked = TranslateRequest.model_validate(given)
    except ValidationError as error:
        raise RequestError(400, _sentence(error)) from error
    _check_size(asked, service)
    check_unicode("prefix", asked.prefix)
    model = _model(service, asked)
    service.admit(request, asked.texts)
    options = {"alternatives": asked.n_best - 1, "log_probs": True, "split": not asked.prefix, **_arguments(asked)}
    if asked.stream or STREAM in request.headers.get("accept", ""):
        request.state.entry["model"] = model.name

        async def translated(text: str) -> Passage:
            [passage] = await service.in_time(translate_passages(service.texts, model, [text], **options))
            return passage

        events = _events(asked.texts, translated)
        return StreamingResponse(events, media_type=STREAM, headers={"Cache-Control": "no-store"})
    passages = await service.translate(request, model, asked.texts, **options)
    answer: Translations = {"model": model.name, "translations": [await _described(one) for one in passages]}
    return Response(_json(answer), media_type=JSON)


def _arguments(asked: TranslateRequest) -> dict[str, Any]:
    """Return the fields given in a request that are arguments of `Translator.translate`."""
    given = asked.model_dump(exclude=OF_SERVICE, exclude_unset=True)  # a given default overrides the run's own setting
    arguments = {name: value for name, value in given.items() if value is not None}
    if asked.glossary:
        arguments["glossary"] = AskedGlossary(tuple(asked.glossary.items()))
    return arguments


def _check_size(asked: TranslateRequest, service: Service) -> None:
    limits = service.limits
    if len(asked.texts) > limits.texts:
        raise RequestError(413, f"texts: expected at most {limits.texts}, got {len(asked.texts)}")
    for name, text in (("prefix", asked.prefix), *((f"text {at}", one) for at, one in enumerate(asked.texts, start=1))):
        if len(text) > limits.characters:
            raise RequestError(413, f"{name}: expected at most {limits.characters} characters, got {len(text)}")
    if asked.n_best - 1 > limits.alternatives:
        raise RequestError(400, f"n_best: expected at most {limits.alternatives + 1}, got {asked.n_best}")
    for source, target in asked.glossary.items():
        if (count := target.count(FORMS) + 1) > MOST_FORMS:
            raise RequestError(400, f"glossary: expected at most {MOST_FORMS} forms of {quoted(source)}, got {count}")


def _model(service: Service, asked: TranslateRequest) -> Direction:
    models = service.models
    source, target = (None if given is None else models.code(given) for given in (asked.source, asked.target))
    for name, given, code in (("source", asked.source, source), ("target", asked.target, target)):
        if given is not None and code is None:
            raise RequestError(400, f"{name}: expected one of {', '.join(models.languages)}, got {shortened(given)}")
    if source and source == target:
        return models.within(source)
    fitting = [one for one in models.all if source in (None, one.source) and target in (None, one.target)]
    if not fitting:
        asked_for = " ".join(f"{word} {code}" for word, code in (("from", source), ("into", target)) if code)
        served = ", ".join(one.name for one in models.all)
        raise RequestError(400, f"no model translates {asked_for}; expected one of {served}")
    return fitting[0]


async def _events(texts: Sequence[str], translated: Callable[[str], Awaitable[Passage]]) -> AsyncIterator[bytes]:
    """Yield an event `translation` for each text as soon as the text is translated, then the event `end`."""

    async def numbered(index: int, text: str) -> dict[str, Any]:
        try:
            return {"index": index, **dict(await _described(await translated(text)))}
        except RequestError as refusal:
            return {"index": index, "error": refusal.text}

    tasks = [asyncio.create_task(numbered(*one)) for one in enumerate(texts)]
    try:
        for done in asyncio.as_completed(tasks):
            yield _event("translation", await done)
        yield _event("end", {})
    finally:  # also runs if the client has disconnected
        for task in tasks:
            task.cancel()


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _json(data))


def _json(answer: object) -> bytes:
    return to_json(answer, inf_nan_mode="null")


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    place = shortened(".".join(map(str, first["loc"]))) or "the request"
    return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"


async def _ready(service: Service, _: Request) -> Response:
    """Whether each model is loaded."""
    models = {one.name: one.process.is_ready for one in service.models.all}
    answer: Ready = {"ready": all(models.values()), "models": models}
    return JSONResponse(answer, 200 if answer["ready"] else 503)


async def _metrics(service: Service, _: Request) -> Response:
    """Counters for Prometheus."""
    return Response(generate_latest(service.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
