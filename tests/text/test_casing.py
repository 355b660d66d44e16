"""The cases of letters by the rules of each language."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.casing import capitalised, folded, lower_case
from profiles import scaled

LETTERS = st.text("aßẞſσςΣΆάΐϊıiİI\u0307\u0301\u0308\u0345ŉﬁǅéΑ µ中\u0e35\U0001f469", max_size=12)


@scaled(100)
@given(LETTERS)
def test_the_places_of_a_folded_text_are_those_of_the_text(text):
    key, places = folded(text)
    assert len(places) == len(key) + 1
    assert list(places) == sorted(places)
    assert places[-1] == len(text)
    begins = sorted({*places})
    parts = [text[begin:end] for begin, end in pairwise(begins)]
    assert "".join(parts) == text[begins[0] :]
    assert "".join(folded(part).text for part in parts) == key


@scaled(100)
@given(st.text("abcßäéσςάΐϊıişğΣΆé\u0301", max_size=12))
def test_capitals_and_small_letters_are_folded_to_equal_texts(text):
    turkish = text.replace("i", "İ").upper()
    assert folded(text).text == folded(text.upper()).text == folded(text.lower()).text == folded(turkish).text


@pytest.mark.parametrize(
    ("word", "language", "same", "others"),
    [
        ("straße", "de", ("STRASSE", "Strasse", "STRAẞE", "Straße"), ("STRASE",)),
        ("ışık", "tr", ("IŞIK", "Işık"), ("İŞİK", "işik")),
        ("ilik", "az-Latn", ("İLİK", "İlik", "i\u0307lik"), ("ILIK", "ılık")),
        ("ilik", "en", ("ILIK", "Ilik", "İLİK"), ("ılık",)),
        ("νόμος", "el", ("Νόμος", "νόμοσ", "νο\u0301μος"), ("νομός",)),
        ("café", "fr", ("CAFÉ", "cafe\u0301"), ("cafe", "CAFE")),
    ],
)
def test_a_word_in_lower_case_is_the_same_in_every_spelling(word, language, same, others):
    own = lower_case(word, language).accented
    assert {lower_case(one, language).accented for one in same} == {own}
    assert own not in {lower_case(one, language).accented for one in others}


def test_greek_capitals_have_no_accents():
    assert {lower_case(one, "el").bare for one in ("Μάιος", "ΜΑΪΟΣ", "ΜΑΙΟΣ", "Μαΐος", "ᾦος")} == {"μαιοσ", "ωιοσ"}
    assert lower_case("É", "el").bare == "é"


@pytest.mark.parametrize(
    ("word", "language", "capital"),
    [
        ("istanbul", "tr", "İstanbul"),
        ("istanbul", "", "Istanbul"),
        ("ılık", "az", "Ilık"),
        ("ßa", "de", "Ssa"),
        ("", "tr", ""),
    ],
)
def test_the_capital_of_a_first_letter(word, language, capital):
    assert capitalised(word, language) == capital
