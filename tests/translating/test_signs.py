"""Emoji and words that a model has no sign for are kept, at the place of the words around them."""

from dataclasses import replace

import pytest

from glassformer.text.habits import Habits
from glassformer.translator import Translator

FLAG = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
EMOJI = ["👍", "👩\u200d👩\u200d👧", "🇫🇷", "❤️", "👍🏽", FLAG, "→", "Łódź"]


@pytest.fixture(scope="module")
def translator():
    return Translator.load("demo")


def of(translator, **habits):
    """Return the translator of a run with these habits."""
    return Translator(replace(translator.bundle, habits=Habits(**habits)), translator.model)


LINES = ["The cat slept {}", "{} The cat slept", "The tired {} cat slept.", "The {} tired cat {} slept."]


@pytest.mark.parametrize("line", LINES)
def test_what_has_no_sign_is_kept(translator, line):
    plain = " ".join(line.replace("{}", "").split())
    expected, *found = translator.translate([plain, *(line.replace("{}", sign) for sign in EMOJI)])
    for sign, one in zip(EMOJI, found, strict=True):
        assert one.text.count(sign) == line.count("{}")
        assert (one.kept, "unknown" in one.reasons) == ("placed", False)
        rest = " ".join(one.text.replace(sign, " ").split())
        assert rest.replace(" .", ".") == expected.text


AROUND = {
    "{}. 🙂": "{}. 🙂",
    "{} 🙂": "{}. 🙂",
    "{} 🙂.": "{} 🙂.",
    "🙂 {}.": "🙂 {}.",
    "{}. a.b@example.org": "{}. a.b@example.org",
    "{}. ❤️ %s": "{}. ❤️ %s",
    "{}!": "{}!",  # the model does not know "!"
    "{}?! 🙂": "{}?! 🙂",
    "{}. {}. 🙂": "{}. {}. 🙂",
    "{}. 🙂 {}. !!!": "{}. 🙂 {}. !!!",
}


def test_what_stands_around_a_sentence_stays_around_it(translator):
    found = translator.translate([line.replace("{}", "We didn't wash the fresh apple") for line in AROUND])
    texts = [one.text.replace("Nous n'avons pas lavé la pomme fraîche", "{}") for one in found]
    assert dict(zip(AROUND, texts, strict=True)) == AROUND


def test_texts_of_signs_alone_are_copied_and_words_alone_are_suspicious(translator):
    signs, words, both = translator.translate(["👍 → 👍", "Łódź Ńż", "👍 👍 👍 👍 👍 The cat slept."])
    assert (signs.text, signs.status) == ("👍 → 👍", "ok")
    assert (words.text, words.reasons) == ("Łódź Ńż", ("unknown",))
    assert (both.text.count("👍"), "unknown" in both.reasons) == (5, False)


def test_a_glossary_term_is_translated_though_the_model_has_no_sign_for_it(translator):
    [one] = translator.translate(["The cat saw Łódź."], glossary={"Łódź": "Lodz"})
    assert ("Lodz" in one.text, "Łódź" in one.text) == (True, False)


@pytest.mark.parametrize("words", [0, 0.9])
def test_only_sentences_keep_what_has_no_sign(translator, words):
    [one] = of(translator, words=words).translate(["The cat slept ☃"])
    assert (one.kept == "placed", "unknown" in one.reasons) == (not words, bool(words))


def test_words_get_base_letters(translator):
    words = of(translator, words=1.0)
    assert words.translate(["Thé čat slept."])[0].tokens == translator.translate(["The cat slept."])[0].tokens
    assert words.unknown("čat")


def test_protection_is_switched_off(translator):
    [one] = translator.translate(["The cat slept. 👍"], protect=False)
    assert ("👍" in one.text, one.kept) == (False, "")
