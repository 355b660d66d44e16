"""The API that Immersive Translate, a browser extension, documents for its "custom API".

The documentation mentions neither errors nor keys. Here, errors have LibreTranslate's format, and the key may be in the
address, because the extension asks its users only for an address.
"""

from dataclasses import replace

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from glassformer.serving.endpoints import ASKED, Endpoint, checked
from glassformer.serving.libretranslate import (
    LIBRETRANSLATE,
    AskedTexts,
    Source,
    Target,
    as_list,
    chosen_model,
)
from glassformer.serving.requests import json_object
from glassformer.serving.service import Service

__all__ = ["ImmersiveQuery", "ImmersiveTranslation", "ImmersiveTranslations", "immersive_endpoints"]

IMMERSIVE = replace(LIBRETRANSLATE, name="Immersive Translate's API", key_field="")


class ImmersiveQuery(BaseModel):
    """The body of POST /immersive."""

    model_config = ConfigDict(defer_build=True)

    text_list: AskedTexts
    source_lang: Source
    target_lang: Target


class ImmersiveTranslation(TypedDict):
    """A translated text."""

    detected_source_lang: str
    text: str


class ImmersiveTranslations(TypedDict):
    """The answer to POST /immersive."""

    translations: list[ImmersiveTranslation]


def immersive_endpoints() -> list[Endpoint]:
    """Return the API's endpoint."""
    return [
        Endpoint(
            IMMERSIVE,
            "POST",
            "/immersive",
            _translate,
            needs_key=True,
            request=ImmersiveQuery,
            answer=ImmersiveTranslations,
            errors=ASKED,
        )
    ]


async def _translate(service: Service, request: Request) -> Response:
    """Translate a list of texts."""
    asked = checked(ImmersiveQuery, await json_object(service, request))
    texts, _ = as_list(asked.text_list, service)
    service.admit(request, texts)
    model, _ = await chosen_model(service, asked.source_lang, asked.target_lang, texts)
    passages = await service.translate(request, model, texts)
    answer: ImmersiveTranslations = {
        "translations": [{"detected_source_lang": model.source, "text": one.text} for one in passages]
    }
    return JSONResponse(answer)
