"""The part of DeepL's API (version 2) that its clients need to translate texts.

What a model cannot do is ignored where DeepL promises no effect either ("prefer_more"), and refused where the answer
would be wrong without a word (a glossary, a required formality).
"""

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from glassformer.serving.models import ServedModel
from glassformer.serving.refusals import RequestError
from glassformer.serving.requests import json_object
from glassformer.serving.service import Service, endpoint
from glassformer.text.languages import language_name, primary

__all__ = ["deepl_error", "deepl_routes", "target_codes"]

SCHEME = "DeepL-Auth-Key "
UNLIMITED = 10**12
"""The limit that DeepL reports where there is none."""
REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR")}
"""Languages that DeepL's clients accept as targets only with a region."""
FORMALITIES = ("default", "prefer_more", "prefer_less")


def deepl_routes() -> list[Route]:
    """Return the API's routes."""
    table = (
        ("/v2/translate", "POST", _translate),
        ("/v2/languages", "GET", _languages),
        ("/v2/usage", "GET", _usage),
    )
    return [endpoint(path, method, handler, deepl_error) for path, method, handler in table]


def deepl_error(refusal: RequestError) -> Response:
    """Return an error as DeepL writes it."""
    return JSONResponse({"message": refusal.text}, 403 if refusal.status == 401 else refusal.status)


async def _translate(service: Service, request: Request) -> Response:
    asked = await _fields(request)
    texts = _texts(asked.get("text"))
    _check_size(texts, service)
    model = _model(service, asked)
    _check_wishes(asked)
    service.admit(request, _key(request, asked), texts)
    split = str(asked.get("split_sentences", "1")) != "0"
    passages = await service.translate(request, model, texts, split=split)
    source = primary(model.source).upper()
    return JSONResponse(
        {
            "translations": [
                {"detected_source_language": source, "text": one.text, "billed_characters": len(text)}
                for text, one in zip(texts, passages, strict=True)
            ]
        }
    )


async def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request: JSON, or a form, also of a GET, in which a field may be repeated."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return json_object(await request.body())
    form = await request.form() if kind else FormData()
    query = request.query_params
    texts = [*form.getlist("text"), *query.getlist("text")]
    return {**form, **query, "text": texts}


def _texts(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
        raise RequestError(400, "text: expected one text or more")
    return texts


def _check_size(texts: list[str], service: Service) -> None:
    limits = service.limits
    if len(texts) > limits.texts:
        raise RequestError(413, f"text: expected at most {limits.texts} texts, got {len(texts)}")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise RequestError(413, f"text: expected at most {limits.characters} characters, got {longest}")


def _model(service: Service, asked: Mapping[str, Any]) -> ServedModel:
    source, target = ("" if (given := asked.get(name)) is None else given for name in ("source_lang", "target_lang"))
    if not isinstance(source, str) or not isinstance(target, str):
        raise RequestError(400, "source_lang, target_lang: expected the code of a language")
    models = service.models
    to = models.loose_code(target, (one.target for one in models.all))
    if to is None:
        raise RequestError(400, f"Value for 'target_lang' not supported: {target or 'none'}")
    sources = [one.source for one in models.all if one.target == to]
    of = models.loose_code(source, sources) if source else sources[0]
    if of is None:
        raise RequestError(400, f"Value for 'source_lang' not supported: {source}")
    found = models.find(of, to)
    assert found
    return found


def _check_wishes(asked: Mapping[str, Any]) -> None:
    """Refuse what would silently be left undone."""
    if asked.get("glossary_id"):
        raise RequestError(404, "glossary_id: this server has no glossaries")
    if (formality := asked.get("formality") or "default") not in FORMALITIES:
        raise RequestError(400, f"formality: expected one of {', '.join(FORMALITIES)}, got {str(formality)[:100]}")
    if asked.get("tag_handling"):
        raise RequestError(400, "tag_handling: this server translates plain text only")


def _key(request: Request, asked: Mapping[str, Any]) -> str:
    header = request.headers.get("authorization", "")
    key = header.removeprefix(SCHEME) if header.startswith(SCHEME) else asked.get("auth_key")
    return key if isinstance(key, str) else ""


async def _languages(service: Service, request: Request) -> Response:
    asked = await _fields(request)
    service.client(_key(request, asked))
    kind = asked.get("type", "source")
    if kind not in ("source", "target"):
        raise RequestError(400, "type: expected source or target")
    if kind == "source":
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
    """Return DeepL's codes of a target language; English and Portuguese have a region."""
    regions = REGIONS.get(primary(tag), ())
    if not regions:
        return (tag.upper(),)
    return tuple(region for region in regions if tag.upper() in (region, primary(tag).upper())) or regions


async def _usage(service: Service, request: Request) -> Response:
    name = service.client(_key(request, await _fields(request)))
    return JSONResponse({"character_count": service.characters.get(name, 0), "character_limit": UNLIMITED})
