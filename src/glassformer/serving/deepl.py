"""The part of DeepL's API (version 2) that DeepL's clients need to translate texts.

Options that models do not support are ignored if DeepL does not guarantee an effect either ("prefer_more"). Options are
refused if the answer would silently be wrong (a glossary, a required formality).
"""

from functools import partial
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, ConfigDict, SkipValidation, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from glassformer.errors import shortened
from glassformer.serving.endpoints import (
    ASKED,
    FORM,
    QUERY,
    Api,
    Endpoint,
    Model,
    OfService,
    checked,
    header_key,
    text_or_texts_schema,
)
from glassformer.serving.models import Direction
from glassformer.serving.reading import Markup
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import fields
from glassformer.serving.service import Service
from glassformer.text.languages import language_name, primary

__all__ = [
    "DEEPL",
    "DeepLError",
    "DeepLLanguage",
    "DeepLQuery",
    "DeepLTranslation",
    "DeepLTranslations",
    "GlossaryLanguages",
    "KeyQuery",
    "LanguagesQuery",
    "Usage",
    "deepl_endpoints",
    "target_codes",
]

SCHEME = "DeepL-Auth-Key"
UNLIMITED = 10**12
"""The limit that DeepL reports if there is no limit."""
REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR")}
"""Languages that DeepL's clients accept as targets only with a region."""
FORMALITIES = ("default", "prefer_more", "prefer_less")


def _texts(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
        raise RequestError(400, "text: expected one text or more")
    return texts


class KeyQuery(BaseModel):
    """The field for the key, which every request may have."""

    model_config = ConfigDict(defer_build=True)

    auth_key: SkipJsonSchema[Any] = None


class DeepLQuery(KeyQuery):
    """The fields of POST /v2/translate. Fields that the service's own description omits accept few values."""

    text: Annotated[
        list[str], SkipValidation, BeforeValidator(_texts), WithJsonSchema({}), OfService(text_or_texts_schema)
    ]
    target_lang: Annotated[
        str,
        SkipValidation,
        OfService(lambda service: {"enum": [code for one in service.models.targets for code in target_codes(one)]}),
    ]
    source_lang: Annotated[
        str | None,
        SkipValidation,
        OfService(lambda service: {"enum": [None, *map(str.upper, service.models.sources)]}),
    ] = None
    split_sentences: SkipJsonSchema[Any] = "1"
    formality: SkipJsonSchema[Any] = None
    glossary_id: SkipJsonSchema[Any] = None
    tag_handling: Annotated[Literal["html", "xml"] | None, SkipValidation] = None
    outline_detection: Annotated[bool | None, SkipValidation] = None
    ignore_tags: Annotated[list[str] | None, SkipValidation] = None
    splitting_tags: Annotated[list[str] | None, SkipValidation] = None
    non_splitting_tags: Annotated[list[str] | None, SkipValidation] = None


class LanguagesQuery(KeyQuery):
    """The fields of a request to /v2/languages."""

    type: Annotated[Literal["source", "target"], SkipValidation] = "source"


class DeepLTranslation(TypedDict):
    """A translated text."""

    detected_source_language: str
    text: str
    billed_characters: int


class DeepLTranslations(TypedDict):
    """The answer to POST /v2/translate."""

    translations: list[DeepLTranslation]


class DeepLLanguage(TypedDict):
    """A language that can be a source, or a language that can be a target."""

    language: str
    name: str
    supports_formality: NotRequired[bool]


class Usage(TypedDict):
    """The number of characters translated so far."""

    character_count: int
    character_limit: int


class GlossaryLanguages(TypedDict):
    """The pairs of languages for which there may be glossaries: none."""

    supported_languages: list[dict[str, str]]


class DeepLError(TypedDict):
    """Why a request is refused."""

    message: str


def deepl_endpoints() -> list[Endpoint]:
    """Return the API's endpoints."""
    asked = partial(Endpoint, DEEPL, needs_key=True, errors=(400, 403, 408, 413))
    languages = partial(asked, request=LanguagesQuery, answer=list[DeepLLanguage])
    return [
        asked("POST", "/v2/translate", _translate, request=DeepLQuery, answer=DeepLTranslations, errors=(*ASKED, 404)),
        languages("GET", "/v2/languages", _languages, takes=(QUERY,)),
        languages("POST", "/v2/languages", _languages, takes=(FORM,)),  # deepl-php sends a POST
        asked("GET", "/v2/usage", _usage, answer=Usage),
        # Weblate sends this request before it translates.
        asked("GET", "/v2/glossary-language-pairs", _glossary_languages, answer=GlossaryLanguages),
    ]


def _error(refusal: RequestError) -> Response:
    """Return an error in DeepL's format."""
    return JSONResponse({"message": refusal.text}, 403 if refusal.status == 401 else refusal.status)


def _key(request: Request) -> str:
    return header_key(request, SCHEME) or header_key(request, "Bearer") or request.query_params.get("auth_key", "")


DEEPL = Api(name="DeepL's API", error=DeepLError, write_error=_error, key=_key, key_field="auth_key")


async def _translate(service: Service, request: Request) -> Response:
    """Translate texts."""
    asked = await _asked(DeepLQuery, service, request)
    texts = asked.text
    _check_size(texts, service)
    fitting = _fitting(service, asked.source_lang, asked.target_lang)
    _check_wishes(asked)
    markup, split = _markup(asked), _split(asked)
    service.admit(request, texts)
    model = await _model(service, fitting, texts)
    passages = await service.translate(request, model, texts, split=split, markup=markup)
    source = primary(model.source).upper()
    answer: DeepLTranslations = {
        "translations": [
            {"detected_source_language": source, "text": one.text, "billed_characters": len(text)}
            for text, one in zip(texts, passages, strict=True)
        ]
    }
    return JSONResponse(answer)


async def _asked(model: type[Model], service: Service, request: Request) -> Model:
    """Return the fields of a request after checking its key; a GET request may also have a form."""
    given, _ = await fields(service, request, model.model_fields, repeated="text", key=DEEPL.key_field)
    return checked(model, given)


def _check_size(texts: list[str], service: Service) -> None:
    limits = service.limits
    if len(texts) > limits.texts:
        raise RequestError(413, f"text: expected at most {limits.texts} texts, got {len(texts)}")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise RequestError(413, f"text: expected at most {limits.characters} characters, got {longest}")


def _fitting(service: Service, source_lang: object, target_lang: object) -> list[Direction]:
    """Return the models for the languages of a request; several if the request does not name the source language."""
    source, target = ("" if given is None else given for given in (source_lang, target_lang))
    if not isinstance(source, str) or not isinstance(target, str):
        raise RequestError(400, "source_lang, target_lang: expected the code of a language")
    models = service.models
    to, own = models.code(target, models.targets), models.code(target)
    if to is None and own and source and models.code(source, [own]):  # a language that no model translates into
        return [models.within(own)]
    if to is None:
        raise RequestError(400, f"Value for 'target_lang' not supported: {shortened(target) or 'none'}")
    fitting: list[Direction] = [one for one in models.all if one.target == to]
    if not source:
        return fitting
    of = models.code(source, [*(one.source for one in fitting), to])
    if of is None:
        raise RequestError(400, f"Value for 'source_lang' not supported: {shortened(source)}")
    return [one for one in (*fitting, models.within(to)) if one.source == of]


async def _model(service: Service, fitting: list[Direction], texts: list[str]) -> Direction:
    """Return the model for the language of the texts, which is detected if several models fit."""
    by_source = {one.source: one for one in reversed(fitting)}
    if len(by_source) == 1:
        return fitting[0]
    detected = await service.detect(texts, [one.source for one in fitting])
    return by_source[detected[0]["language"]]


def _check_wishes(asked: DeepLQuery) -> None:
    """Refuse options that would silently have no effect."""
    if asked.glossary_id:
        raise RequestError(404, "glossary_id: this server has no glossaries")
    if (formality := asked.formality or "default") not in FORMALITIES:
        raise RequestError(400, f"formality: expected one of {', '.join(FORMALITIES)}, got {shortened(str(formality))}")


def _split(asked: DeepLQuery) -> bool:
    """Return whether to split texts into sentences; a line end separates sentences only in texts without tags."""
    wish = str(asked.split_sentences).lower()
    given = {"true": "1", "false": "0", "none": "1"}.get(wish, wish)
    if given not in ("0", "1", "nonewlines"):
        raise RequestError(400, f"split_sentences: expected 0, 1 or nonewlines, got {shortened(given)}")
    if given == "nonewlines" and not asked.tag_handling and any("\n" in text for text in asked.text):
        raise RequestError(400, "split_sentences: nonewlines needs tag_handling; else each line is a separate text")
    return given != "0"


def _markup(asked: DeepLQuery) -> Markup | None:
    """Return how to read texts with tags; None for plain texts."""
    kind = "" if asked.tag_handling is None else asked.tag_handling
    if kind not in ("", "html", "xml"):
        raise RequestError(400, f"tag_handling: expected xml or html, got {shortened(str(kind))}")
    names = {
        name: _names(name, getattr(asked, name)) for name in ("ignore_tags", "splitting_tags", "non_splitting_tags")
    }
    for name, given in names.items():
        if given and not kind:
            raise RequestError(400, f"{name}: expected tag_handling=xml or tag_handling=html with this field")
    outline = str(asked.outline_detection).lower()
    if outline not in ("none", "true", "1", *(("false", "0") if kind == "xml" else ())):
        raise RequestError(400, "outline_detection: expected true, or false with tag_handling=xml")
    ignored, splitting, joining = names.values()
    if not kind:
        return None
    has_outline = outline not in ("false", "0")
    return Markup(is_xml=kind == "xml", outline=has_outline, ignored=ignored, splitting=splitting, joining=joining)


def _names(field: str, given: object) -> tuple[str, ...]:
    """Return tag names, given as a list or as a text with commas."""
    names = (given or "").split(",") if given is None or isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise RequestError(400, f"{field}: expected names of tags")
    return tuple(one.strip() for one in names if one.strip())


async def _languages(service: Service, request: Request) -> Response:
    """The source languages, or the target languages."""
    asked = await _asked(LanguagesQuery, service, request)
    if asked.type not in ("source", "target"):
        raise RequestError(400, "type: expected source or target")
    if asked.type == "source":
        codes = dict.fromkeys(primary(code).upper() for code in service.models.sources)
        return JSONResponse([{"language": code, "name": language_name(code.lower())} for code in codes])
    targets = [(code, one.target) for one in service.models.all for code in target_codes(one.target)]
    return JSONResponse(
        [
            {"language": code, "name": language_name(tag), "supports_formality": False}
            for code, tag in dict(targets).items()
        ]
    )


def target_codes(tag: str) -> tuple[str, ...]:
    """Return DeepL's codes of a target language; the codes of English and Portuguese have a region."""
    regions = REGIONS.get(primary(tag), ())
    if not regions:
        return (tag.upper(),)
    return tuple(region for region in regions if tag.upper() in (region, primary(tag).upper())) or regions


async def _usage(service: Service, request: Request) -> Response:
    """The number of characters translated so far."""
    await _asked(KeyQuery, service, request)
    used = service.characters.get(request.state.client, 0)
    answer: Usage = {"character_count": used, "character_limit": UNLIMITED}
    return JSONResponse(answer)


async def _glossary_languages(service: Service, request: Request) -> Response:
    """The pairs of languages for which there may be glossaries: none."""
    await _asked(KeyQuery, service, request)
    answer: GlossaryLanguages = {"supported_languages": []}
    return JSONResponse(answer)
