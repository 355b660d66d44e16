"""Requests of widely used programs, byte by byte as in their sources or documentation, and the answers that they read.

Each program sends its requests in its own order, and the test reads the answers like the program. The texts to
translate were chosen for this test.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest

from serving.conftest import Served

pytestmark = pytest.mark.slow

CAT, DOG = "the cat sleeps", "a big black dog sees the cat"
TOOT = (
    '<p><span class="h-card" translate="no"><a href="https://example.org/@ann" class="u-url mention">'
    '@<span>ann</span></a></span> the cat sees <a href="https://example.org/tags/dog" rel="tag">#<span>dog</span></a>'
    '<br />a dog sleeps <span translate="no">:blobcat:</span></p>'
)
POST = (
    '<p>The <strong>cat</strong> &amp; a dog.</p>\n<aside class="quote"><blockquote>\n<p>a dog</p></blockquote></aside>'
)
WEBLATE = 'the cat sees <x id="13"></x> &amp; a dog'
OMEGAT = "<g0>the cat</g0> sleeps <x1/>"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
DEEPL_KEY = {"authorization": "DeepL-Auth-Key 279a2e9d-83b3-c416-7e2d-f721593e42a0"}


def tags(text: str) -> list[str]:
    """Return the tags of a text, in their order."""
    return re.findall(r"<[^>]*>", text)


def is_escaped(text: str) -> bool:
    """Return whether each ampersand begins an entity."""
    return not re.search(r"&(?!#?\w+;)", text)


def compact(fields: dict[str, object]) -> str:
    """Return JSON as browsers and Ruby write it."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def parts(fields: dict[str, str]) -> str:
    """Return a form in parts, as curl sends it."""
    return "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    ) + ("--x--\r\n")


@dataclass(frozen=True)
class Call:
    """A request, a function that reads the client's part of the answer's JSON, and the expected value of this part.

    The expected value `gives` may be a function of the service's translation of a plain text.
    """

    method: str
    path: str
    reads: Callable[[Any], object]
    gives: object
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


def get(path: str, reads: Callable[[Any], object], gives: object, **headers: str) -> Call:
    """Return a request without a body."""
    return Call("GET", path, reads, gives, headers=headers)


def post(path: str, kind: str, body: str, reads: Callable[[Any], object], gives: object, **headers: str) -> Call:
    """Return a request with a body."""
    return Call("POST", path, reads, gives, body, {"content_type": kind, **headers})


def first(answer: Any) -> Any:
    """Return the text of DeepL's first translation."""
    return answer["translations"][0]["text"]


AXIOS = {"accept": "application/json, text/plain, */*", "user_agent": "axios/1.7.7"}
LANGUAGES = {"en": ["en", "es"], "es": ["es"]}
SOURCES, TARGETS = [("EN", "English", None)], [("ES", "Spanish", False)]


def language_targets(answer: Any) -> dict[str, list[str]]:
    """Return the targets of each language of LibreTranslate."""
    return {one["code"]: one["targets"] for one in answer}


def language_names(answer: Any) -> dict[str, str]:
    """Return the names of LibreTranslate's languages by their codes."""
    return {one["code"]: one["name"] for one in answer}


def deepl_languages(answer: Any) -> object:
    """Return DeepL's languages."""
    return [(one["language"], one["name"], one.get("supports_formality")) for one in answer]


CLIENTS: dict[str, list[Call]] = {
    # app/lib/translation_service/libre_translate.rb, app/services/translate_status_service.rb
    "Mastodon by LibreTranslate": [
        get("/languages", language_targets, LANGUAGES, content_type=JSON),
        post(
            "/translate",
            JSON,
            compact({"q": [TOOT, CAT, ""], "source": "en", "target": "es", "format": "html", "api_key": None}),
            lambda got: ([tags(one) for one in got["translatedText"]], got.get("detectedLanguage")),
            ([tags(TOOT), [], []], None),
        ),
        post(
            "/translate",
            JSON,
            compact({"q": [TOOT], "source": "auto", "target": "es", "format": "html", "api_key": "any"}),
            lambda got: (
                re.findall(r">(@|ann|:blobcat:)<", got["translatedText"][0]),
                got["detectedLanguage"][0]["language"],
            ),
            (["@", "ann", ":blobcat:"], "en"),
        ),
    ],
    # app/lib/translation_service/deepl.rb; URI.encode_www_form writes nil without "="
    "Mastodon by DeepL": [
        get("/v2/languages?type=source", lambda got: [one["language"] for one in got], ["EN"], **DEEPL_KEY),
        get("/v2/languages?type=target", lambda got: [one["language"] for one in got], ["ES"], **DEEPL_KEY),
        post(
            "/v2/translate",
            FORM,
            f"text={quote_plus(TOOT)}&text={quote_plus(CAT)}&source_lang&target_lang=es&tag_handling=html",
            lambda got: [(tags(one["text"]), one["detected_source_language"]) for one in got["translations"]],
            [(tags(TOOT), "EN"), ([], "EN")],
            **DEEPL_KEY,
        ),
    ],
    # app/services/discourse_translator/provider/libre_translate.rb
    "Discourse": [
        post(
            "/detect",
            FORM,
            urlencode({"q": "The weather is nice today.\nIs it?", "api_key": ""}),
            lambda got: got[0]["language"],
            "en",
        ),
        get("/languages", lambda got: [one["code"] for one in got], ["en", "es"], user_agent="excon/0.112.0"),
        post(
            "/translate",
            FORM,
            urlencode({"q": POST, "source": "en", "target": "es", "format": "html", "api_key": ""}),
            lambda got: (tags(got["translatedText"]), is_escaped(got["translatedText"])),
            (tags(POST), True),
        ),
    ],
    # lib/LibretranslateProvider.php of integration_libretranslate, which uses the package jefs42/libretranslate
    "Nextcloud by LibreTranslate": [
        get("/frontend/settings", lambda got: isinstance(got, dict), True, content_type=FORM, content_length="0"),
        get("/languages", language_names, {"en": "English", "es": "Spanish"}, content_type=FORM, content_length="0"),
        post(
            f"/detect?q={quote_plus('The weather is nice today.')}&api_key=",
            FORM,
            "",
            lambda got: got[0]["language"],
            "en",
        ),
        post(
            "/translate",
            "multipart/form-data; boundary=x",
            parts({"q": "the cat <b>&</b>\r\na dog", "format": "html", "source": "en", "target": "es", "api_key": ""}),
            lambda got: tags(got["translatedText"]),
            ["<b>", "</b>"],
        ),
    ],
    # lib/Service/DeeplService.php of integration_deepl, which uses deepl-php; curl sends its languages by POST
    "Nextcloud by DeepL": [
        post("/v2/languages", FORM, "type=source", deepl_languages, SOURCES, **DEEPL_KEY),
        post("/v2/languages", FORM, "type=target", deepl_languages, TARGETS, **DEEPL_KEY),
        post(
            "/v2/translate",
            FORM,
            f"target_lang=es&source_lang=en&formality=prefer_more&show_billed_characters=1&text={quote_plus(CAT)}",
            lambda got: [(one["text"], one["billed_characters"]) for one in got["translations"]],
            lambda own: [(own(CAT), len(CAT))],
            **DEEPL_KEY,
        ),
        Call(
            "POST",
            "/v2/translate",
            lambda got: "target_lang" in got["message"],
            True,
            f"target_lang=en-US&show_billed_characters=1&text={quote_plus(CAT)}",
            {"content_type": FORM, **DEEPL_KEY},
            400,
        ),
    ],
    # weblate/machinery/libretranslate.py
    "Weblate by LibreTranslate": [
        get("/languages", lambda got: [one["code"] for one in got], ["en", "es"]),
        post(
            "/translate",
            JSON,
            json.dumps({"api_key": "", "q": [CAT, DOG] * 12, "source": "en", "target": "es"}),
            lambda got: got["translatedText"],
            lambda own: [own(CAT), own(DOG)] * 12,
        ),
    ],
    # weblate/machinery/deepl.py and base.py: the glossaries are asked for before each first translation
    "Weblate by DeepL": [
        get("/v2/languages?type=source", lambda got: {one["language"] for one in got}, {"EN"}, **DEEPL_KEY),
        get("/v2/languages?type=target", deepl_languages, TARGETS, **DEEPL_KEY),
        get("/v2/glossary-language-pairs", lambda got: got["supported_languages"], [], **DEEPL_KEY),
        post(
            "/v2/translate",
            JSON,
            json.dumps(
                {
                    "text": [WEBLATE, CAT],
                    "source_lang": "EN",
                    "target_lang": "ES",
                    "formality": "default",
                    "tag_handling": "xml",
                    "ignore_tags": ["x"],
                    "context": "Names of buttons",
                    "model_type": "prefer_quality_optimized",
                }
            ),
            lambda got: ([tags(one["text"]) for one in got["translations"]], is_escaped(first(got))),
            ([['<x id="13">', "</x>"], []], True),
            **DEEPL_KEY,
        ),
    ],
    # src/modules/services/libretranslate.ts of zotero-pdf-translate
    "Zotero by LibreTranslate": [
        post(
            "/translate",
            JSON,
            compact({"q": f"{CAT}\n{DOG}", "source": "en", "target": "es", "format": "text"}),
            lambda got: (got["translatedText"], got.get("error")),
            lambda own: (f"{own(CAT)}\n{own(DOG)}", None),
        )
    ],
    # src/modules/services/deepl.ts of zotero-pdf-translate; an undefined glossary_id is left out
    "Zotero by DeepL": [
        post(
            "/v2/translate",
            JSON,
            compact({"text": [CAT], "source_lang": "EN", "target_lang": "ES"}),
            first,
            lambda own: own(CAT),
            **DEEPL_KEY,
        )
    ],
    # src/libse/AutoTranslate/LibreTranslate.cs and SubtitleFormats/Json.cs: line ends are <br />
    "Subtitle Edit by LibreTranslate": [
        post(
            "/translate",
            JSON,
            '{"q": "The cat sleeps.<br />- A \\"dog\\" <i>sees</i> it.", "source": "en", "target": "es"}',
            lambda got: tags(got["translatedText"]),
            ["<br />", "<i>", "</i>"],
            accept=JSON,
        )
    ],
    # src/libse/AutoTranslate/DeepLTranslate.cs
    "Subtitle Edit by DeepL": [
        post(
            "/v2/translate",
            FORM,
            urlencode({"text": f"{CAT}\r\n{DOG}", "target_lang": "es", "source_lang": "en", "formality": "default"}),
            lambda got: [one["text"] for one in got["translations"]],
            lambda own: [f"{own(CAT)}\r\n{own(DOG)}"],
            **DEEPL_KEY,
        )
    ],
    # immersivetranslate.com/en/docs/services/custom: the key is in the address, and there are two kinds of placeholders
    "Immersive Translate": [
        post(
            "/immersive?api_key=any",
            JSON,
            compact(
                {"source_lang": "auto", "target_lang": "es", "text_list": [f"{{0}} {CAT} {{1}}", f"<b0></b0> {DOG}"]}
            ),
            lambda got: [
                (re.findall(r"{\d}|<[^>]*>", one["text"]), one["detected_source_lang"]) for one in got["translations"]
            ],
            [(["{0}", "{1}"], "en"), (["<b0>", "</b0>"], "en")],
        )
    ],
    # providers/libretranslate/src/lib of strapi-plugin-translate; Markdown comes as HTML
    "Strapi by LibreTranslate": [
        get("/languages", lambda got: "es" in language_targets(got)["en"], True, **AXIOS),
        post(
            "/translate",
            JSON,
            compact({"q": ["<h1>The cat</h1>\n", CAT], "source": "en", "target": "es", "format": "html"}),
            lambda got: ([tags(one) for one in got["translatedText"]], "error" in got),
            ([["<h1>", "</h1>"], []], False),
            **AXIOS,
        ),
    ],
    # providers/deepl/src/lib of strapi-plugin-translate, which uses deepl-node
    "Strapi by DeepL": [
        post(
            "/v2/translate",
            FORM,
            f"source_lang=en&target_lang=es&show_billed_characters=1&text={quote_plus('<p>The cat</p>')}"
            f"&text={quote_plus(CAT)}&tag_handling=html",
            lambda got: [tags(one["text"]) for one in got["translations"]],
            [["<p>", "</p>"], []],
            **DEEPL_KEY,
        ),
        get("/v2/usage", lambda got: got["character_count"] < got["character_limit"], True, **DEEPL_KEY),
    ],
    # dialect/providers/modules/libretrans.py and soup.py
    "GNOME Dialect": [
        get("/spec", lambda got: got["info"]["title"], "LibreTranslate", user_agent="Dialect App"),
        get(
            "/languages",
            lambda got: [(one["code"], one["name"]) for one in got],
            [("en", "English"), ("es", "Spanish")],
        ),
        get(
            "/frontend/settings",
            lambda got: [got.get(name) for name in ("suggestions", "apiKeys", "keyRequired", "charLimit")],
            [False, False, False, 5000],
        ),
        post("/detect", FORM, "q=hello&api_key=any", lambda got: "confidence" in got[0], True),
        post(
            "/translate",
            JSON,
            json.dumps({"q": f"{CAT} café", "source": "auto", "target": "es"}),
            lambda got: (bool(got["translatedText"]), got.get("detectedLanguage", {}).get("language")),
            (True, "en"),
        ),
        Call(
            "POST",
            "/translate",
            lambda got: "is not supported" in got["error"],
            True,
            json.dumps({"q": CAT, "source": "auto", "target": "tlh"}),
            {"content_type": JSON},
            400,
        ),
        Call(
            "POST",
            "/translate",
            lambda got: "exceeds text limit" in got["error"],
            True,
            json.dumps({"q": "a" * 5001, "source": "en", "target": "es"}),
            {"content_type": JSON},
            400,
        ),
    ],
    # LibreTranslate.java of omegat-libre-translate: all parameters are in the address
    "OmegaT": [
        get(
            f"/translate?q={quote_plus(OMEGAT)}&source=en&target=es",
            lambda got: tags(got["translatedText"]),
            ["<g0>", "</g0>", "<x1/>"],
        ),
        get(f"/translate?q={quote(CAT)}&source=en&target=es", lambda got: got["translatedText"], lambda own: own(CAT)),
    ],
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_what_it_asks_for(served: Served, client: str) -> None:
    def own(text: str) -> str:
        found: str = served.json("/v1/translate", {"texts": [text]}).json["translations"][0]["text"]
        return found

    for call in CLIENTS[client]:
        answer = served.ask(call.path, call.method, call.body.encode(), **call.headers)
        assert answer.status == call.status, (call.path, answer.body)
        assert answer.headers["Content-Type"].startswith(JSON)
        assert call.reads(answer.json) == (call.gives(own) if callable(call.gives) else call.gives), call.path


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"text_list": []}, "Invalid request: missing text_list parameter"),
        ({"text_list": [1]}, "Invalid request: text_list parameter is neither a text nor a list of texts"),
        ({"source_lang": None}, "Invalid request: missing source_lang parameter"),
        ({"target_lang": "tlh-Qaak"}, "tlh-Qaak is not supported"),
        ({"text_list": ["a"] * 51}, "Invalid request: request (51) exceeds text limit (50)"),
    ],
)
def test_errors_of_immersive_translates_api(served: Served, changed: dict[str, object], error: str) -> None:
    answer = served.json("/immersive", {"text_list": [CAT], "source_lang": "auto", "target_lang": "es", **changed})
    assert (answer.status, answer.json) == (400, {"error": error})
