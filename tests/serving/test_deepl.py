"""DeepL's API, in the way that DeepL's own clients use it."""

import pytest

pytestmark = pytest.mark.slow


def test_json_and_a_form_with_repeated_texts(served):
    texts = ["the cat sleeps", "a dog"]
    asked = {"text": texts, "target_lang": "ES", "show_billed_characters": True, "formality": "prefer_more"}
    answer = served.json("/v2/translate", asked, authorization="DeepL-Auth-Key any").json["translations"]
    assert [one["billed_characters"] for one in answer] == [14, 5]
    assert {one["detected_source_language"] for one in answer} == {"EN"}
    own = served.json("/translate", {"q": texts, "source": "en", "target": "es"}).json["translatedText"]
    assert [one["text"] for one in answer] == own
    body = b"text=the+cat+sleeps&text=a+dog&target_lang=es&source_lang=EN"
    assert served.ask("/v2/translate", body=body, content_type="application/x-www-form-urlencoded").json == {
        "translations": answer
    }


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"target_lang": "XX"}, 400, "Value for 'target_lang' not supported: XX"),
        ({"target_lang": None}, 400, "Value for 'target_lang' not supported: none"),
        ({"source_lang": "XX"}, 400, "Value for 'source_lang' not supported: XX"),
        ({"source_lang": 3}, 400, "source_lang, target_lang: expected the code of a language"),
        ({"text": []}, 400, "text: expected one text or more"),
        ({"text": [1]}, 400, "text: expected one text or more"),
        ({"formality": "less"}, 400, "formality: expected one of default, prefer_more, prefer_less, got less"),
        ({"glossary_id": "g"}, 404, "glossary_id: this server has no glossaries"),
        ({"text": ["x" * 5001]}, 413, "text: expected at most 5000 characters, got 5001"),
    ],
)
def test_errors(served, changed, status, message):
    answer = served.json("/v2/translate", {"text": ["a dog"], "target_lang": "ES", **changed})
    assert (answer.status, answer.json) == (status, {"message": message})


def test_regions_of_a_target_are_those_of_its_language(start, run_folder):
    with start(str(run_folder), "--languages", "de:en", "--log", "nothing") as served:
        targets = served.ask("/v2/languages", "GET", b"type=target", content_type="application/x-www-form-urlencoded")
        assert [one["language"] for one in targets.json] == ["EN-GB", "EN-US"]
        assert served.get("/v2/languages?type=source").json == [{"language": "DE", "name": "German"}]
        for code in ("EN-GB", "en-us", "EN"):
            assert served.json("/v2/translate", {"text": ["a dog"], "target_lang": code}).status == 200
        usage = served.get("/v2/usage").json
        assert usage["character_count"] == 3 * len("a dog")
        assert usage["character_limit"] > 10**9


def test_a_language_that_is_not_named_is_detected(start, run_folder):
    pytest.importorskip("lingua")
    run = str(run_folder)
    with start(run, run, "--languages", "en:es", "--languages", "fr:es", "--log", "nothing") as served:
        for text, code in (("The weather is nice today.", "EN"), ("Il fait beau aujourd'hui, mais pas ici.", "FR")):
            asked = {"text": [text], "target_lang": "ES"}
            assert served.json("/v2/translate", asked).json["translations"][0]["detected_source_language"] == code
            given = served.json("/v2/translate", {**asked, "source_lang": "FR"}).json["translations"][0]
            assert given["detected_source_language"] == "FR"


def test_languages_are_given_by_post_too_and_no_glossaries(served):
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert served.ask("/v2/languages", body=b"", **form).json == served.get("/v2/languages").json
    assert served.ask("/v2/languages", body=b"type=both", **form).json == {"message": "type: expected source or target"}
    assert served.get("/v2/glossary-language-pairs").json == {"supported_languages": []}


def test_a_path_that_does_not_exist_has_deepls_error(served):
    answer = served.get("/v2/glossaries")
    assert (answer.status, answer.json) == (404, {"message": "Not Found"})
