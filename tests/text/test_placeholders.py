"""Placeholder tokens that stand for protected spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.characters import CharacterTokenizer
from glassformer.text.links import Link, word_spans
from glassformer.text.marian import MarianTokenizer
from glassformer.text.placeholders import Masked, has_placeholders, masked, spans_of
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.vocabulary import PLACEHOLDERS
from glassformer.text.words import WordTokenizer

LINES = ["the cat sees (a) big dog, and l'homme sees it.", "0123456789 @:/.?={}<>x"]
WORDS = WordTokenizer.train(LINES, 100, PLACEHOLDERS)
SUBWORDS = SentencePieceTokenizer.train("bpe", LINES, 90, symbols=PLACEHOLDERS)
TOKENIZERS = [WORDS, SUBWORDS]

words = st.sampled_from(["the", "cat", "sees", "1000", "{x}", "https://a.org/b?c=1", "12:30", "(200)", "⟦0⟧", "⟦7⟧,"])
texts = st.lists(words, min_size=1, max_size=14).map(" ".join)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(texts)
def test_a_masked_text_is_restored_to_the_original(tokenizer, text):
    one = masked(text, tokenizer)
    assert one.restored(one.text) == (text, ())
    assert one.in_target(text) == one.text


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(texts)
def test_each_placeholder_is_one_token_of_the_masked_text(tokenizer, text):
    one = masked(text, tokenizer)
    tokens = tokenizer.tokens(tokenizer.encode(one.text))
    assert len(one.terms) <= min(len(spans_of(text)), 10)
    assert [tokens.count(mark) for mark in PLACEHOLDERS[: len(one.terms)]] == [1] * len(one.terms)
    if len(spans_of(text)) <= 10 and {"the", "cat", "sees"} & {*text.split()}:
        assert len(one.terms) == len(spans_of(text))


@given(texts, st.randoms(use_true_random=False))
def test_links_lead_to_the_same_words_of_the_whole_texts(text, chance):
    """The target has the source's words in a different order, and each target word must be linked to the same word."""
    one = masked(text, WORDS)
    spans = word_spans(one.text)
    order = chance.sample(range(len(spans)), len(spans))
    target, links = "", []
    for place in order:
        target += " " * bool(target)
        word = one.text[slice(*spans[place])]
        links.append(Link(spans[place], (len(target), len(target) + len(word))))
        target += word
    restored, found = one.restored(target, links)
    assert len(found) == len(word_spans(restored))
    assert all(text[slice(*source)] == restored[slice(*other)] for source, other in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat sees 1000, {x}.", "the cat sees ⟦0⟧, ⟦1⟧."),
        ("{x}{y} sees it", "⟦0⟧ sees it"),
        ("1000 {x} 1000 it", "⟦0⟧ ⟦1⟧ ⟦2⟧ it"),
        ("the ⟦3⟧ 100", "the ⟦0⟧ ⟦1⟧"),
        ("{x} 1000", "{x} 1000"),
        ("the cat", "the cat"),
        ("", ""),
        (" and ".join(map(str, range(100, 112))), " and ".join([*PLACEHOLDERS, "110", "111"])),
    ],
)
def test_spans_are_numbered_in_the_order_of_the_text(text, expected):
    assert masked(text, SUBWORDS).text == expected


def test_a_token_of_words_that_would_not_stand_alone_is_not_used():
    assert masked("the x=100 cat sees (200)", WORDS).text == "the x=100 cat sees (⟦0⟧)"
    assert masked("the x=100 cat sees (200)", SUBWORDS).text == "the x=⟦0⟧ cat sees (⟦1⟧)"


def test_links_of_a_span_with_spaces_lead_to_each_of_its_words():
    one = masked("it sees 1 000 000 dogs", SUBWORDS)
    assert one.text == "it sees ⟦0⟧ dogs"
    text, links = one.restored("⟦0⟧ chiens", [Link((8, 11), (0, 3)), Link((12, 16), (4, 10))])
    assert text == "1 000 000 chiens"
    assert [(one.original[slice(*source)], text[slice(*target)]) for source, target in links] == [
        ("1", "1"),
        ("000", "000"),
        ("000", "000"),
        ("dogs", "chiens"),
    ]
    assert [source for source, _ in links] == word_spans(one.original)[2:]


def test_placeholders_of_no_span_are_left_out_with_their_links():
    one = masked("the cat sees 1000", SUBWORDS)
    text, links = one.restored("chat ⟦4⟧ ⟦0⟧⟦1⟧", [Link((4, 7), (5, 8)), Link((13, 16), (9, 15))])
    assert text == "chat 1000"
    assert [(one.original[slice(*source)], text[slice(*target)]) for source, target in links] == [("1000", "1000")]
    assert one.invents(["chat", "⟦4⟧"])
    assert not one.invents(["⟦0⟧", "1000"])


def test_a_target_gets_the_placeholders_of_its_source_each_once():
    one = masked("it sees 1000 and {x} and 1000", SUBWORDS)
    assert one.in_target("{x} 1000 {y} 1000 1000") == "⟦1⟧ ⟦0⟧ {y} ⟦2⟧ 1000"
    assert Masked("it", "it").in_target("1000") == "1000"


def test_only_vocabularies_with_all_tokens_have_placeholders():
    assert all(map(has_placeholders, TOKENIZERS))
    assert has_placeholders(MarianTokenizer(SUBWORDS.model, SUBWORDS.tokens(range(len(SUBWORDS))))), "an imported run"
    assert not has_placeholders(WordTokenizer.train(LINES, 100))
    assert not has_placeholders(WordTokenizer.train(LINES, 100, PLACEHOLDERS[:9]))
    assert not has_placeholders(SentencePieceTokenizer.train("bpe", LINES, 90))
    assert not has_placeholders(CharacterTokenizer.train([*LINES, *PLACEHOLDERS], 100))
