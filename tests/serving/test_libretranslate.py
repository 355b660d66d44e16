"""LibreTranslate's API: the forms of requests, the answers, and the exact texts of errors."""

import json

import pytest

from glassformer.translating.translation import text_or
from glassformer.translator import Translator

pytestmark = pytest.mark.slow
HELLO = {"q": "the cat sleeps", "source": "en", "target": "es"}


@pytest.fixture(scope="module")
def translator(run_folder):
    return Translator.load(run_folder)


def expected(translator, text, **settings):
    return translator.translate([text], **settings)[0]


def test_json_form_and_query_give_the_translation(served, translator):
    text = expected(translator, HELLO["q"]).text
    assert text
    for answer in (
        served.json("/translate", HELLO),
        served.form("/translate", **HELLO),
        served.ask("/translate?q=the+cat+sleeps&source=en&target=es"),
    ):
        assert (answer.status, answer.json) == (200, {"translatedText": text})


def test_a_list_gives_a_list_in_order(served, translator):
    texts = ["the cat sleeps", "a dog", "the cat sleeps"]
    answer = served.json("/translate", {**HELLO, "q": texts}).json
    assert answer == {"translatedText": [expected(translator, text).text or text for text in texts]}


def test_alternatives_are_unique_and_differ_from_the_translation(served, translator):
    answer = served.json("/translate", {**HELLO, "alternatives": 3}).json
    best = expected(translator, HELLO["q"], n_best=4, beam_size=4)
    others = dict.fromkeys(one.text for one in best.alternatives)
    assert answer["translatedText"] == best.text
    assert answer["alternatives"] == [one for one in others if one not in ("", best.text)]
    assert answer["alternatives"]
    several = served.json("/translate", {**HELLO, "q": [HELLO["q"]], "alternatives": 3}).json
    assert several["alternatives"] == [answer["alternatives"]]
    assert "alternatives" not in served.json("/translate", {**HELLO, "alternatives": -1}).json


def test_only_auto_gives_the_detected_language(served):
    answer = served.json("/translate", {**HELLO, "source": "auto"}).json
    assert answer["detectedLanguage"]["language"] == "en"
    assert answer["detectedLanguage"]["confidence"] in range(101)
    answer = served.json("/translate", {**HELLO, "q": ["a", "b"], "source": "AUTO"}).json
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "en"]


def test_lines_blank_lines_and_white_space_stay(served, translator):
    text = "  the cat sleeps\r\n\r\n\ta dog \u2028 the cat\n"
    first, second = (expected(translator, one).text for one in ("the cat sleeps", "a dog \u2028 the cat"))
    assert served.json("/translate", {**HELLO, "q": text}).json["translatedText"] == f"  {first}\r\n\r\n\t{second}\n"
    assert served.form("/translate", **{**HELLO, "q": text}).json["translatedText"] == f"  {first}\n\n\t{second}\n"


def test_a_form_that_is_not_escaped_is_read_as_utf_8(served):
    body = "q=Où est le chat ? 50 %&source=en&target=en".encode()  # the encoding of `curl -d`
    answer = served.ask("/translate", body=body, content_type="application/x-www-form-urlencoded")
    assert answer.json == {"translatedText": "Où est le chat ? 50 %"}


FORM = {"content_type": "application/x-www-form-urlencoded"}
REST = "source=en&target=es"


@pytest.mark.parametrize(
    ("query", "body", "headers"),
    [
        ("", f"q=a+dog&{REST}&q=the+cat%0D%0Asleeps", FORM),
        (f"?q=a+dog&{REST}&q=the+cat%0Asleeps", "", {}),
        ("?q=the+cat%0Asleeps", f"q=a+dog&{REST}", FORM),
        (
            "",
            "".join(
                f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                for name, value in (("q", "a dog"), ("source", "en"), ("target", "es"), ("q", "the cat\r\nsleeps"))
            )
            + "--x--\r\n",
            {"content_type": "multipart/form-data; boundary=x"},
        ),
    ],
    ids=["form", "query", "form and query", "parts"],
)
def test_texts_in_repeated_fields_are_all_translated_in_order(served, translator, query, body, headers):
    answer = served.ask(f"/translate{query}", body=body.encode(), **headers)
    texts = [expected(translator, one).text or one for one in ("a dog", "the cat", "sleeps")]
    assert answer.json == {"translatedText": [texts[0], f"{texts[1]}\n{texts[2]}"]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", f"q=a&{REST}&target=en"),
        ("/translate?target=en", f"q=a&{REST}"),
        ("/v2/translate", "text=a&target_lang=ES&target_lang=FR"),
        ("/translate?q=b", '{"q": "a", "source": "en", "target": "es"}'),
    ],
)
def test_a_field_with_two_values_is_refused(served, path, body):
    kind = {"content_type": "application/json"} if body.startswith("{") else FORM
    answer = served.ask(path, body=body.encode(), **kind)
    assert answer.status == 400
    assert "is given more than once" in str(answer.json)


def test_a_field_that_nobody_reads_may_be_repeated(served):
    for path, body in (("/translate", f"q=a&{REST}&x=1&x=2"), ("/v2/translate", "text=a&target_lang=ES&x=1&x=2")):
        assert served.ask(path, body=body.encode(), **FORM).status == 200


def test_a_language_is_translated_into_itself_by_leaving_the_text(served):
    text = "  The cat sleeps. 50 %d!\r\n\u00a0Really?\n"
    for one in served.get("/languages").json:
        code = one["code"]
        assert code in one["targets"]
        fields = {"q": text, "source": code, "target": code}
        assert served.json("/translate", fields).json == {"translatedText": text}
        own = served.json("/v1/translate", {"texts": [text], "source": code, "target": code}).json
        assert own["model"] == f"{code}-{code}"
        assert own["translations"][0]["text"] == text
        deepl = served.json("/v2/translate", {"text": [text], "source_lang": code, "target_lang": code}).json
        assert deepl["translations"][0] == {
            "detected_source_language": code.upper(),
            "text": text,
            "billed_characters": len(text),
        }
        immersive = served.json("/immersive", {"text_list": [text], "source_lang": code, "target_lang": code}).json
        assert immersive == {"translations": [{"detected_source_lang": code, "text": text}]}
    several = served.json("/translate", {"q": [text, "b"], "source": "es", "target": "es-MX", "alternatives": 2}).json
    assert several == {"translatedText": [text, "b"], "alternatives": [[], []]}
    region = served.json("/v2/translate", {"text": [text], "source_lang": "EN", "target_lang": "EN-GB"}).json
    assert region["translations"][0]["text"] == text
    unnamed = served.json("/v2/translate", {"text": [text], "target_lang": "EN-GB"})
    assert (unnamed.status, unnamed.json) == (400, {"message": "Value for 'target_lang' not supported: EN-GB"})


@pytest.mark.parametrize(("source", "target"), [("en-US", "es-ES"), ("en_GB", "ES_mx"), ("EN-us", "es-419")])
def test_regions_are_understood_in_every_dialect(served, translator, source, target):
    text = expected(translator, HELLO["q"]).text
    asked = {**HELLO, "source": source, "target": target}
    assert served.json("/translate", asked).json == {"translatedText": text}
    own = {"texts": [HELLO["q"]], "source": source, "target": target}
    assert served.json("/v1/translate", own).json["translations"][0]["text"] == text
    deepl = {"text": [HELLO["q"]], "source_lang": source, "target_lang": target}
    assert served.json("/v2/translate", deepl).json["translations"][0]["text"] == text
    immersive = {"text_list": [HELLO["q"]], "source_lang": source, "target_lang": target}
    assert served.json("/immersive", immersive).json["translations"][0]["text"] == text


@pytest.mark.parametrize("text", ["😀 🎉", " \n ", "…!"])
def test_a_text_without_letters_comes_back_unchanged(served, text):
    assert served.json("/translate", {**HELLO, "q": text}).json == {"translatedText": text}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": ""}, "Invalid request: missing target parameter"),
        ({"q": "", "source": "", "alternatives": 99}, "Invalid request: missing q parameter"),
        ({"alternatives": "x"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": True}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 10_000}, "Invalid request: alternatives parameter must be <= 3"),
        ({"q": "x" * 5001}, "Invalid request: request (5001) exceeds text limit (5000)"),
        ({"q": ["x"] * 51}, "Invalid request: request (51) exceeds text limit (50)"),
        ({"source": "ZZ", "target": "yy"}, "ZZ is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        ({"format": "md"}, "md format is not supported"),
        (
            {"format": "html", "q": "<b>x" * 101 + "</b>" * 101},
            "line 1: expected at most 100 nested elements; divide the document",
        ),
        ({"source": "es", "target": "en"}, "English (en) is not available as a target language from Spanish (es)"),
        ({"q": ["a", 3]}, "Invalid request: q parameter is neither a text nor a list of texts"),
        ({"q": {"a": "b"}}, "Invalid request: q parameter is neither a text nor a list of texts"),
        ({"q": True}, "Invalid request: q parameter is neither a text nor a list of texts"),
        ({"q": "a \ud800 b"}, "text 1 is not valid Unicode: it holds half a surrogate pair"),
    ],
)
def test_errors(served, changed, error):
    answer = served.json("/translate", {**HELLO, **changed})
    assert (answer.status, answer.json) == (400, {"error": error})


@pytest.mark.parametrize(
    "body", [b"[]", b"{", b'{"q": NaN}', b"\xff\xfe", b"[" * 10_000, b'{"a":' * 10_000, b"9" * 10_000, b'"text"']
)
def test_a_body_that_is_no_json_object(served, body):
    answer = served.ask("/translate", body=body, content_type="application/json")
    assert (answer.status, answer.json) == (400, {"error": "Invalid JSON format"})


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"q": [' + b"1," * 20_000 + b"1]}"])
def test_a_body_of_too_many_values(served, body):
    answer = served.ask("/translate", body=body, content_type="application/json")
    assert (answer.status, answer.json) == (400, {"error": "Invalid request: expected at most 20000 values"})


def test_codes_in_any_case_and_a_key_that_nobody_wants(served):
    assert served.json("/translate", {**HELLO, "source": "EN", "target": "Es", "api_key": "any", "x": 1}).status == 200


def test_languages_detection_settings_and_health(served):
    assert served.get("/languages").json == [
        {"code": "en", "name": "English", "targets": ["en", "es"]},
        {"code": "es", "name": "Spanish", "targets": ["es"]},
    ]
    assert served.form("/detect", q="the weather is nice today").json[0]["language"] == "en"
    assert served.form("/detect", q="12 !").json == [{"confidence": 0.0, "language": "en"}]
    assert served.ask("/detect").json == {"error": "Invalid request: missing q parameter"}
    settings = served.get("/frontend/settings").json
    assert (settings["charLimit"], settings["keyRequired"]) == (5000, False)
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert served.get("/health").json == {"status": "ok"}
    assert served.form("/suggest", q="a", s="b", source="en", target="es").status == 403


def test_wrong_methods_and_paths_have_json_errors(served):
    for method, path, status in (("GET", "/detect", 405), ("POST", "/languages", 405), ("GET", "/nothing", 404)):
        answer = served.ask(path, method)
        assert answer.status == status
        assert "error" in answer.json


def test_any_page_may_ask(served):
    asked = served.ask("/translate", "OPTIONS", origin="https://example.org", access_control_request_method="POST")
    for answer in (asked, served.json("/translate", HELLO), served.get("/nothing")):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, POST"
    assert asked.status < 300


def test_an_escaped_answer_is_the_same_text(served, translator):
    text = 'the cat <script>alert("1")</script> \u202e &amp; dog'
    answer = served.json("/translate", {**HELLO, "q": text})
    assert json.loads(answer.body)["translatedText"] == text_or(expected(translator, text), text)
    assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    ("source", "target"),
    [("en-US", "es"), ("EN", "ES"), ("en_GB", "es-419"), ("en-AU", "es_MX"), ("En-us", "es-ES")],
)
def test_clients_write_languages_in_their_ways(served, translator, source, target):
    text = expected(translator, "the cat sleeps").text
    languages = {"source": source, "target": target}
    assert served.json("/translate", {"q": "the cat sleeps", **languages}).json == {"translatedText": text}
    own = served.json("/v1/translate", {"texts": ["the cat sleeps"], **languages}).json
    deepl = served.json(
        "/v2/translate", {"text": ["the cat sleeps"], "source_lang": source, "target_lang": target}
    ).json
    assert own["translations"][0]["text"] == deepl["translations"][0]["text"] == text
