"""Texts with tags in the APIs of LibreTranslate and DeepL, in the form that clients send, and with a random model."""

import re
from urllib.parse import urlencode

import pytest

from glassformer.serving.deepl import DeepLQuery, _markup, _split
from glassformer.serving.endpoints import checked
from glassformer.serving.log import ServiceLog
from glassformer.serving.models import Direction
from glassformer.serving.passages import translate_passages
from glassformer.serving.readers import Readers
from glassformer.serving.reading import Markup
from glassformer.serving.refusals import RequestError
from glassformer.translating.translation import Translation
from serving.conftest import finished

PAGE = '<p>The <a href="/cat">black cat</a> &amp; a <b>dog</b>.</p><p><img alt="cat" src=x> Tom & Jerry</p>'


def tags(text):
    return sorted(re.findall(r"<[^>]*>", re.sub('alt="[^"]*"', "", text)))


@pytest.mark.slow
@pytest.mark.parametrize("text", [PAGE, "Tom & Jerry", "<p>H<sub>2</sub>O</p>", "<0>a cat</0> <1/>", "<b"])
def test_html_comes_back_with_its_tags(served, text):
    fields = {"q": text, "source": "en", "target": "es", "format": "html"}
    one = served.json("/translate", fields)
    several = served.json("/translate", {**fields, "q": [text, text], "alternatives": 2})
    assert (one.status, several.status) == (200, 200)
    for translated in (one.json["translatedText"], *several.json["translatedText"], *several.json["alternatives"][0]):
        assert tags(translated) == tags(text)


@pytest.mark.slow
def test_deepl_takes_tags_in_a_form_and_in_json(served):
    form = [("text", PAGE), ("text", "a <b>cat</b>"), ("target_lang", "ES"), ("tag_handling", "html")]
    answer = served.ask(
        "/v2/translate", body=urlencode(form).encode(), content_type="application/x-www-form-urlencoded"
    )
    assert [tags(one["text"]) for one in answer.json["translations"]] == [tags(PAGE), ["</b>", "<b>"]]
    weblate = {
        "tag_handling": "xml",
        "ignore_tags": ["x"],
        "text": ['Hello, <x id="7"></x>! a &lt; b'],
        "target_lang": "ES",
    }
    [one] = served.json("/v2/translate", weblate).json["translations"]
    assert tags(one["text"]) == ["</x>", '<x id="7">']


class Process:
    """A model that writes each text in capitals, or writes nothing for some texts."""

    name, room = "en-fr", 100

    def full(self):
        raise AssertionError("there is always room")

    async def translate(self, texts, options):
        return [Translation(text="" if text == "H2O" else text.upper()) for text in texts]


MODEL = Direction(source="en", target="fr", process=Process(), beam_size=4)


def passages(*texts, **options):
    return [one.text for one in finished(translate_passages(Readers(1, ServiceLog()), MODEL, texts, **options))]


def test_an_empty_output_never_replaces_a_text():
    assert passages("H<sub>2</sub>O", "a <b>cat</b>", markup=Markup()) == ["H<sub>2</sub>O", "A <b>CAT</b>"]
    [one] = finished(translate_passages(Readers(1, ServiceLog()), MODEL, ["See it. H2O"]))
    assert one.text == "SEE IT. H2O"
    assert one.parts[1].text == "H2O"


def test_deepls_wishes_say_where_sentences_end():
    text = "<d><t>a <x>b</x></t><p>c</p></d>"
    assert passages(text, markup=Markup(is_xml=True, ignored=("x",))) == ["<d><t>A <x>b</x></t><p>C</p></d>"]
    assert passages("a\n<b>c. Now</b>", markup=Markup(), split=False) == ["A\n<b>C. NOW</b>"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tag_handling": {}}, "tag_handling: expected xml or html, got {}"),
        ({"tag_handling": "md"}, "tag_handling: expected xml or html, got md"),
        ({"ignore_tags": ["x"]}, "ignore_tags: expected tag_handling=xml or tag_handling=html with this field"),
        ({"tag_handling": "xml", "splitting_tags": {}}, "splitting_tags: expected names of tags"),
        ({"tag_handling": "xml", "splitting_tags": [1]}, "splitting_tags: expected names of tags"),
        ({"tag_handling": "html", "outline_detection": False}, "outline_detection: expected true, or false with"),
        ({"tag_handling": "xml", "outline_detection": "2"}, "outline_detection: expected true, or false with"),
        ({"split_sentences": "2"}, "split_sentences: expected 0, 1 or nonewlines, got 2"),
        ({"split_sentences": "nonewlines"}, "split_sentences: nonewlines needs tag_handling"),
        ({"split_sentences": []}, "split_sentences: expected 0, 1 or nonewlines, got []"),
    ],
)
def test_wishes_that_cannot_be_met_are_named(fields, message):
    asked = checked(DeepLQuery, {"text": ["a\nb"], "target_lang": "ES", **fields})
    with pytest.raises(RequestError, match=re.escape(message)):
        _markup(asked), _split(asked)


def test_wishes_of_deepls_clients():
    fields = {"tag_handling": "xml", "ignore_tags": "x,y", "non_splitting_tags": ["b"], "outline_detection": "0"}
    asked = checked(DeepLQuery, {"text": ["a"], "target_lang": "ES", **fields})
    assert _markup(asked) == Markup(is_xml=True, outline=False, ignored=("x", "y"), joining=("b",))
    assert _split(asked)
