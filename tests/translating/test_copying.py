"""Texts in which the model has nothing to translate are copied, byte for byte."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.habits import Habits
from glassformer.text.terms import Terms
from glassformer.translating.copying import letterless
from glassformer.translating.plain import plain_rewrites
from glassformer.translating.request import Request
from glassformer.translator import Translator
from models import random_translator


def asked(text, glossary=None, protect=True):
    terms = Terms(protect=protect, glossary=Glossary.of(glossary) if glossary else None)
    return Request([text], [""], [0], Search(settings=DecodingConfig()), terms)


def copy_of(text, **options):
    found = letterless(text, asked(text, **options))
    return found and found.restored([], asked(text, **options)).text


@pytest.mark.parametrize(
    "text", ["5", "10 %", "+49 30 1234-567", "1.", "12:30", " 7\u00a0€ ", "½", "🙂", "{x} 5", "https://a.org/b 12", "…"]
)
def test_a_text_without_a_letter_outside_its_spans_is_copied(text):
    assert copy_of(text) == text


@pytest.mark.parametrize(
    "text", ["5 cats", "五", "", " \n", "\ud800 5", "{n, plural, one {# file} other {# files}} 5", "VII"]
)
def test_other_texts_are_not(text):
    assert copy_of(text) is None


def test_without_protection_nothing_is_copied():
    assert copy_of("{x} 5", protect=False) is copy_of("10 %", protect=False) is None


def test_a_glossary_has_the_last_word():
    assert copy_of("10 % and", glossary={"10 %": "10 Prozent"}) is None
    assert copy_of("(10 %)", glossary={"10 %": "10 Prozent"}) == "(10 Prozent)"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return random_translator(tmp_path_factory.mktemp("run"), source="the cat sees a big black dog and sleeps . 5")


@given(st.text("0123456789 .,:;%€+-/()🙂½", min_size=1, max_size=20).filter(str.strip))
def test_copies_say_what_they_are(translator, text):
    [one, other] = translator.translate([text, "the cat"], links=True)
    assert (one.text, one.status, one.reasons, one.kept) == (text, "ok", (), "placed")
    assert math.isnan(one.log_prob)
    assert other == translator.translate(["the cat"], links=True)[0]
    assert all(text[slice(*link.source)] == one.text[slice(*link.target)] for link in one.links)


def test_a_text_that_the_model_cannot_read_is_copied_and_suspicious(translator):
    texts = ["日本 で", "ελα δω να σου", "the ελα δω", "the cat", "the cat {x.y: a_b} %1$s %2$s %3$s %4$s"]
    found = translator.translate(texts)
    assert [one.text == text for one, text in zip(found, texts, strict=True)] == [True, True, False, False, False]
    assert [(one.status, one.reasons) for one in found[:2]] == [("suspicious", ("unknown",))] * 2
    assert translator.translate(texts[:1], protect=False)[0].text != texts[0]
    assert translator.translate(texts[:1], prefix="le")[0].text.startswith("le")


@pytest.mark.parametrize(
    ("habits", "copies"),
    [
        (None, True),
        (Habits(letterless=0.01), True),
        (Habits(letterless=0.02), False),
        (Habits(letterless=0.001, letterless_translated=True), False),
    ],
)
def test_a_run_whose_training_translated_such_texts_translates_them(translator, habits, copies):
    assert (letterless in plain_rewrites(replace(translator.bundle, habits=habits), whole=False)) is copies


def test_a_vocabulary_without_letters_reads_numbers(tmp_path):
    translator = random_translator(tmp_path, source="1 2 3 4 5")
    assert letterless not in plain_rewrites(translator.bundle, whole=False)
    assert translator.translate(["1 2"])[0].kept == ""


def test_habits_are_stored_with_a_run(translator, tmp_path):
    habits = Habits(letterless=0.25, letterless_translated=True, several_sentences=0.5)
    replace(translator.bundle, folder=tmp_path / "copy", habits=habits).save(translator.model)
    again = Translator.load(tmp_path / "copy")
    assert again.bundle.habits == habits
    assert again.translate(["5"])[0].kept == ""
