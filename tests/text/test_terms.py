"""Protected spans, glossary terms, and texts that are cut at them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.glossary import Glossary, Term
from glassformer.text.terms import Terms, as_fragment, missing_terms, pieces_around, spellings_of
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from glassformer.text.word_edges import edge_kind, is_apart

LINES = ["The cat (a big one) saw 1000 dogs, and 27 birds at 12:30.", "See https://example.org/a?b=1 or {name}; l'été."]


def spans(text):
    return [text[term.begin : term.end] for term in Terms().of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.org/x_(y)?q=1, or http://b.org.", ["https://a.org/x_(y)?q=1", "http://b.org"]),
        ("(ftp://a.org/b) www.a.org/b. <https://a.org>", ["ftp://a.org/b", "www.a.org/b", "https://a.org"]),
        ("Write to a.b+c@example.co.uk.", ["a.b+c@example.co.uk"]),
        ("{x} {{ x.y }} {0:>3} {} {two words}", ["{x}", "{{ x.y }}", "{}"]),
        ("%s of %(n)d, %1$s, %5.2f, 100%%, 5% of it", ["%s", "%(n)d", "%1$s", "%5.2f", "100", "%%"]),
        ("$x$ costs $5", ["$x$"]),
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


@given(st.text("ab 1.,{}%<>/:@sx", max_size=30))
def test_spans_are_in_order_and_a_text_keeps_its_own(text):
    terms = Terms().of(text)
    ends = [0, *(place for term in terms for place in (term.begin, term.end)), len(text)]
    assert ends == sorted(ends)
    assert not missing_terms(terms, text)
    assert "".join(piece.text for piece in pieces_around(text, terms)) == text


@given(st.text("ab 1.,{}%", max_size=20), st.integers(0, 9))
def test_pieces_have_their_places_and_only_sides_with_words_are_translated(text, count):
    pieces = pieces_around(text, Terms().of(text)[:count])
    assert all(text[piece.begin : piece.end] == piece.text for piece in pieces)
    for piece in pieces:
        if piece.is_translated:
            assert any(map(str.isalnum, piece.text))
            assert piece.text == piece.text.strip()


def test_a_side_is_cut_off_its_punctuation_but_not_the_sentence():
    text = "«See (https://a.org), which has 1000 pages.»"
    assert [(piece.text, piece.is_translated) for piece in pieces_around(text, Terms().of(text))] == [
        ("«See", True),
        (" (", False),
        ("https://a.org", False),
        ("), ", False),
        ("which has", True),
        (" ", False),
        ("1000", False),
        (" ", False),
        ("pages.»", True),
    ]


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


def test_spans_go_before_terms_of_a_glossary():
    terms = Terms(glossary=Glossary.of({"org": "organisation", "a": "un"})).of("a {a} https://a.org")
    assert [(term.begin, term.kind) for term in terms] == [(0, "translated"), (2, "span"), (6, "span")]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters"])
def test_spellings_write_their_form(kind):
    config = TokenizerConfig(kind=kind, vocab_size=80)
    tokenizer, _ = train_tokenizers(LINES, LINES, config)
    term = Term(0, 1, ("1000", "cat", "12:30"), "translated")
    found = spellings_of(term, tokenizer)
    assert found
    for spelling in found:
        assert tokenizer.decode(spelling) in term.forms
        assert tokenizer.unk_id not in spelling
    assert spellings_of(Term(0, 1, ("§",), "span"), tokenizer) == ()
    assert spellings_of(Term(0, 1, ("1\u00a0000",), "span"), tokenizer) == ()  # the tokenizer makes it a plain space


def test_subwords_have_spellings_with_and_without_a_space():
    tokenizer, _ = train_tokenizers(LINES, LINES, TokenizerConfig(kind="bpe", vocab_size=80))
    written = {
        "".join(tokenizer.tokens(spelling)) for spelling in spellings_of(Term(0, 1, ("cat",), "translated"), tokenizer)
    }
    assert written == {"▁cat", "cat"}


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [("on the", "sur le.", "sur le"), ("on the.", "sur le.", "sur le."), ("on", "…", "…"), ("在", "上。", "上")],
)
def test_a_fragment_gets_no_full_stop(source, translation, expected):
    assert as_fragment(source, translation) == expected


@given(st.text("a1_é中ก -", max_size=6))
def test_a_part_is_apart_where_no_letters_and_no_digits_meet(text):
    for place in range(len(text) + 1):
        pair = text[max(place - 1, 0) : place + 1] if 0 < place < len(text) else ""
        joins = len(pair) == 2 and (pair.isdigit() or all(character in "a_é" for character in pair))
        assert is_apart(text, place, place) != joins
        assert all(edge_kind(character) in (0, 1, 2) for character in pair)
