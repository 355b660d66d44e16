"""The service's own API, which returns all fields of a translation."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from inspect import signature

import pytest

from glassformer.recipes.configuration import DecodingConfig
from glassformer.serving.own import OF_SERVICE, TranslatedText, TranslateRequest
from glassformer.translator import Translator

pytestmark = pytest.mark.slow
TEXTS = ["the cat sleeps", "a big black dog sees"]


def test_the_answer_is_the_translators(served, run_folder):
    translator = Translator.load(run_folder)
    answer = served.json("/v1/translate", {"texts": TEXTS, "n_best": 3, "beam_size": 4}).json
    assert answer["model"] == "en-es"
    for got, one in zip(answer["translations"], translator.translate(TEXTS, n_best=3, beam_size=4), strict=True):
        [sentence] = got["sentences"]
        assert got["text"] == sentence["text"] == one.text
        assert sentence["tokens"] == list(one.tokens)
        # float32 sums in a batch of a different size differ in their last digits.
        assert sentence["token_log_probs"] == pytest.approx(one.token_log_probs, abs=1e-5)
        assert sentence["log_prob"] == pytest.approx(one.log_prob, abs=1e-5)
        assert sentence["status"] == one.status


def test_a_field_of_a_request_is_an_argument_of_translate():
    arguments = {*signature(Translator.translate).parameters, *(field.name for field in fields(DecodingConfig))}
    assert TranslateRequest.model_fields.keys() - OF_SERVICE <= arguments


def test_a_text_is_described_by_all_its_fields(served):
    [one] = served.json("/v1/translate", {"texts": ["the cat"]}).json["translations"]
    assert one.keys() == TranslatedText.model_fields.keys()


LOSES = ("--set", "decoding.protect=false")
"""The model loses the 7, which it has no sign for, so the sentence is suspicious."""


def test_a_default_that_is_given_overrides_the_setting_of_the_service(start, run_folder):
    settings = ("--set", "decoding.retry=true", "--set", "decoding.length_penalty=2.0", "--log", "nothing", *LOSES)
    with start(str(run_folder), "--languages", "en:es", *settings) as one:
        text = {"texts": ["the cat sees 7 dogs ."]}
        asked = (text, {**text, "retry": False}, {**text, "beam_size": None})
        own, once, same = (
            one.json("/v1/translate", fields).json["translations"][0]["sentences"][0] for fields in asked
        )
    assert own["retry"] != ""
    assert once["retry"] == ""
    assert same == own


def test_a_prefix_begins_each_output(served):
    [one] = served.json("/v1/translate", {"texts": ["the cat"], "prefix": "le chien"}).json["translations"]
    assert one["text"].startswith("le chien")


def test_a_prefix_that_cannot_be_written_is_refused_and_harms_no_other_client(served):
    asked = [{"texts": ["the cat"], **more} for more in ({"prefix": "Zorglub"}, {"prefix": "le"}, {})] * 8
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda one: served.json("/v1/translate", one), asked))
    assert [answer.status for answer in answers] == [400, 200, 200] * 8
    assert "lacks 'Zorglub'" in answers[0].json["error"]


def test_a_suspicious_sentence_is_searched_again_if_asked(start, run_folder):
    asked = {"texts": ["the cat sees 7 dogs .", "the cat sleeps"]}
    with start(str(run_folder), "--languages", "en:es", "--log", "nothing", *LOSES) as served:
        for retry in (False, True):
            one, other = served.json("/v1/translate", {**asked, "retry": retry}).json["translations"]
            assert (one["sentences"][0]["retry"] != "") == retry
            assert other["sentences"][0]["retry"] == ""


def test_each_sentence_is_translated_by_itself(served):
    texts = ["the cat sleeps.  A dog sees 3.5 cats.\r\n\r\nthe dog!", "the cat sleeps.", "A dog sees 3.5 cats."]
    both, *alone = served.json("/v1/translate", {"texts": texts}).json["translations"]
    assert [one["text"] for one in both["sentences"][:2]] == [one["text"] for one in alone]
    first, second, third = (one["text"] for one in both["sentences"])
    assert both["text"] == f"{first}  {second}\r\n\r\n{third}"
    whole = {"text": texts[:1], "target_lang": "ES", "split_sentences": "0"}
    assert served.json("/v2/translate", whole).json["translations"][0]["text"].count("  ") == 0


def test_an_answer_says_where_each_sentence_is(served):
    text = "  😀 the cat sleeps.  A dog sees 3.5 cats.\r\n\r\n--\nthe dog!\n"
    [one] = served.json("/v1/translate", {"texts": [text]}).json["translations"]
    sources = [text[slice(*sentence["source"])] for sentence in one["sentences"]]
    assert sources == ["😀 the cat sleeps.", "A dog sees 3.5 cats.", "the dog!"]
    assert [one["text"][slice(*sentence["target"])] for sentence in one["sentences"]] == [
        sentence["text"] for sentence in one["sentences"]
    ]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"texts": []}, "texts: list should have at least 1 item"),
        ({"texts": "text"}, "texts: input should be a valid list"),
        ({"text": ["a"]}, "text: extra inputs are not permitted"),
        ({"n_best": 99}, "n_best: expected at most 4, got 99"),
        ({"target": "zz"}, "target: expected one of en, es, got zz"),
        ({"source": "es"}, "no model translates from es; expected one of en-es"),
        ({"target": "en"}, "no model translates into en; expected one of en-es"),
        ({"source": "es", "target": "en"}, "no model translates from es into en; expected one of en-es"),
        ({"beam_size": 0}, "beam_size: input should be greater than or equal to 1"),
    ],
)
def test_errors(served, changed, error):
    answer = served.json("/v1/translate", {"texts": ["a"], **changed})
    assert answer.status == 400
    assert answer.json["error"].startswith(error)


def test_ready_and_metrics(served):
    assert served.get("/ready").json == {"ready": True, "models": {"en-es": True}}
    served.json("/v1/translate", {"texts": [*TEXTS, "a secret cat"]})
    metrics = served.get("/metrics").body.decode()
    assert 'glassformer_requests_total{endpoint="/v1/translate",status="200"}' in metrics
    assert 'glassformer_texts_total{model="en-es",status="ok"}' in metrics
    assert "secret" not in metrics


def test_the_description_names_every_endpoint_and_is_a_page(served):
    described = served.get("/openapi.json").json
    assert described["openapi"] == "3.1.0"
    assert {"/translate", "/v2/translate", "/v1/translate", "/metrics"} <= set(described["paths"])
    named = {**described, "info": {**described["info"], "title": "LibreTranslate"}}
    assert served.get("/spec").json == named  # GNOME's Dialect recognises the service by this title
    assert served.ask("/spec", "POST").status == 405
    for path, operations in described["paths"].items():
        assert served.ask(path, "PUT" if "get" in operations else "GET").status == 405
    sentence = served.json("/v1/translate", {"texts": TEXTS}).json["translations"][0]["sentences"][0]
    assert list(sentence) == list(described["components"]["schemas"]["TranslatedSentence"]["properties"])
    page = served.get("/docs").body.decode()
    assert "POST /v1/translate" in page
    assert "http://" not in page
    assert "https://" not in page


def test_terms_of_a_glossary_and_protected_spans_are_in_the_answer(served):
    fields = {
        "texts": ["the cat sees https://example.org/a?b=1 and 1000"],
        "glossary": {"cat": "matou|chien", "sees": "sees"},
    }
    [one] = served.json("/v1/translate", fields).json["translations"]
    [sentence] = one["sentences"]
    assert sentence["kept"] == "placed"
    for term in ("https://example.org/a?b=1", "1000", "sees"):
        assert one["text"].count(term) == 1
    assert {"matou", "chien", "Matou", "Chien"} & {*one["text"].split()}
    plain = served.json("/v1/translate", {"texts": ["the cat"]}).json["translations"]
    assert plain[0]["sentences"][0]["kept"] == ""


@pytest.mark.parametrize(
    ("glossary", "message"),
    [
        ({"cat": ""}, "glossary: expected a target term with a letter or a digit, got ''"),
        ({"cat": "chat", "Cat": "chien"}, "glossary: expected one translation of 'Cat'"),
        ({str(number): "x" for number in range(1001)}, "glossary: dictionary should have at most 1000 items"),
        ({"c" * 101: "x"}, "glossary.ccc"),
        ({"cat": "x" * 1001}, "glossary.cat: string should have at most 1000 characters"),
        ({"cat": "|".join(map(str, range(17)))}, "glossary: expected at most 16 forms of 'cat', got 17"),
        (["cat"], "glossary: input should be a valid dictionary"),
    ],
)
def test_a_wrong_glossary_is_refused(served, glossary, message):
    answer = served.json("/v1/translate", {"texts": ["the cat"], "glossary": glossary})
    assert answer.status == 400
    assert message in answer.json["error"]
