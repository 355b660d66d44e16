"""Protected spans, and the terms that an output lacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.glossary import Glossary
from glassformer.text.terms import Terms, missing_terms, written_forms
from glassformer.text.word_edges import edge_kind, is_apart
from profiles import scaled


def spans(text):
    return [text[term.begin : term.end] for term in Terms().of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.org/x_(y)?q=1, or http://b.org.", ["https://a.org/x_(y)?q=1", "http://b.org"]),
        ("(ftp://a.org/b) www.a.org/b. <https://a.org>", ["ftp://a.org/b", "www.a.org/b", "https://a.org"]),
        ("Write to a.b+c@example.co.uk.", ["a.b+c@example.co.uk"]),
        ("{x} {{ x.y }} {0:>3} {} {two words}", ["{x}", "{{ x.y }}", "{0:>3}", "{}"]),
        ("%s of %(n)d, %1$s, %5.2f, 100%%, 5% of it", ["%s", "%(n)d", "%1$s", "%5.2f", "100", "%%"]),
        ("$x$ costs $5.5", ["$x$"]),
        ('A <x id="1"/>word<x id="2"></x>, 1 < 2 > 0', ['<x id="1"/>', '<x id="2">', "</x>"]),
        ("12, 123, 1,234.56, 1 000 000, 1\u202f000, 12:30, 24/12/2024.", None),
        ("ABC123 in the 1990s, 2024年", ["123", "1990", "2024"]),
        ("nothing here, 12 or 3", []),
        ("", []),
    ],
)
def test_protected_spans(text, expected):
    if expected is None:
        expected = ["123", "1,234.56", "1 000 000", "1\u202f000", "12:30", "24/12/2024"]
    assert spans(text) == expected


PARTS = [
    *("%08.3f", "a@b.de", "%d", "%s", "%20", "%2F", "{}", "{name}", "12", "1000", "$1", "$", "https://a.org/"),
    *("A_b", "`c`", "<b>", "</b>", "⟦1⟧", "&x;", "%1$s", "{0,choice,", ":ok:"),
]


@given(
    st.text("ab 1.,{}%<>/:@sx", max_size=30) | st.lists(st.sampled_from([*PARTS, *" .:/é黑"]), max_size=9).map("".join)
)
def test_spans_are_in_order_and_a_text_keeps_its_own(text):
    terms = Terms().of(text)
    ends = [0, *(place for term in terms for place in (term.begin, term.end)), len(text)]
    assert ends == sorted(ends)
    assert not missing_terms(terms, text)


def test_a_span_must_stand_as_often_as_in_the_source():
    terms = Terms().of("100 and 100.5 and 100")
    assert not missing_terms(terms, "100.5 et 100 et 100")
    for output in ("100 et 100.5", "100, 100, 100, 100.5", "1100 et 100 et 100.5", "100 et 100 et 100,5"):
        assert missing_terms(terms, output), output


def test_a_longer_span_that_joins_with_a_digit_is_a_shorter_one():
    terms = Terms().of("100 and 100.5")
    assert [term.forms for term in missing_terms(terms, "100.51 et 100.5")] == []
    assert [term.forms for term in missing_terms(terms, "100.51")] == [("100.5",)]
    assert not missing_terms(Terms().of("%%@%@"), "%%@%@")


def test_a_term_of_a_glossary_may_stand_more_often_and_in_any_form():
    terms = Terms(glossary=Glossary.of({"cat": "chat|matou", "kitten": "chat"})).of("A cat, a kitten and a cat")
    assert not missing_terms(terms, "Un chat, un chat, un matou et un chat")
    assert not missing_terms(terms, "Matou, chat, matou")
    assert [term.begin for term in missing_terms(terms, "Un chat et un chat et des chats")] == [2, 22]
    assert [term.begin for term in missing_terms(terms, "Un matou et un matou")] == [9]


def test_a_longer_form_may_stand_for_a_shorter_one():
    terms = Terms(glossary=Glossary.of({"cat": "chat", "big cat": "gros chat"})).of("a big cat and a cat")
    assert not missing_terms(terms, "un gros chat et un gros chat noir")
    assert not missing_terms(terms, "un chat et un gros chat")
    assert [term.begin for term in missing_terms(terms, "un gros chat")] == [16]
    assert [term.begin for term in missing_terms(terms, "un chat et un chat")] == [2]


def test_a_form_that_only_one_term_can_use_is_left_to_it():
    terms = Terms(glossary=Glossary.of({"cat": "chat|matou", "tom": "chat|minet"})).of("a cat and a tom")
    assert not missing_terms(terms, "un chat et un matou")
    assert not missing_terms(terms, "un minet et un chat")
    assert missing_terms(terms, "un chat et un autre")


def test_at_each_place_the_longest_form_is_written():
    terms = Terms(glossary=Glossary.of({"cat": "chat", "big cat": "gros chat"})).of("a big cat and a cat")
    assert [one.form for one in written_forms(terms, "gros chat, chats, chat")] == ["gros chat", "chat"]


@pytest.mark.parametrize(
    ("text", "expected"), [("{x}, (100)!", False), ("cat {x}", False), ("a cat", True), ("10{x}00", True), ("", False)]
)
def test_texts_of_nothing_but_terms_leave_no_words(text, expected):
    assert Terms(glossary=Glossary.of({"cat": "chat"})).leave_words(text) == expected


def test_spans_go_before_terms_of_a_glossary():
    terms = Terms(glossary=Glossary.of({"org": "organisation", "a": "un"})).of("a {a} https://a.org")
    assert [(term.begin, term.kind) for term in terms] == [(0, "translated"), (2, "span"), (6, "span")]


@pytest.mark.parametrize(("term", "text"), [("घर", "घरों में"), ("cafe", "cafe\u0301")])
def test_a_mark_belongs_to_its_letter(term, text):
    assert not Terms(glossary=Glossary.of({term: "x"})).of(text)
    assert Terms(glossary=Glossary.of({term: "x"})).of(f"{term} ❤️{term}")


@given(st.text("a1_é中ก -", max_size=6))
def test_a_part_is_apart_where_no_letters_and_no_digits_meet(text):
    for place in range(len(text) + 1):
        pair = text[max(place - 1, 0) : place + 1] if 0 < place < len(text) else ""
        joins = len(pair) == 2 and (pair.isdigit() or all(character in "a_é" for character in pair))
        assert is_apart(text, place, place) != joins
        assert all(edge_kind(character) in (0, 1, 2) for character in pair)


ODD = (
    *("%2F", "%3A", "%d", "%s", "%", "a", "s", "x", "ö", "é_b", "_", "=", "&", "100", "1", ".", " ", "{a}", "{", "}"),
    *("$1", "`", "@", ":", "/", "#", "'", "\\", "www.", "http://", "<b>", "</b>", "猫", "\u0301", "\u00a0", "\n"),
)


@given(st.lists(st.sampled_from(ODD), max_size=14).map("".join) | st.text(max_size=40))
@scaled(300)
def test_no_text_lacks_its_own_terms(text):
    assert missing_terms(Terms().of(text), text) == []
    assert missing_terms(Terms().of(text.upper()), text.upper()) == []
