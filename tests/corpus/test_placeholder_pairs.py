"""Placeholder tokens in training pairs."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.encoding import PairEncoder
from glassformer.corpus.kept_pairs import KeptBlock
from glassformer.corpus.placeholder_pairs import PlaceholderPairs, frequent_translations
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.vocabulary import PLACEHOLDERS
from glassformer.text.words import WordTokenizer

TRANSLATIONS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "man": "homme"}
LINES = ["the cat sees a dog, man.", "le chat voit l'homme un chien.", "0123456789 {x}"]
TOKENIZER = WordTokenizer.train(LINES, 100, PLACEHOLDERS)
SUBWORDS = SentencePieceTokenizer.train("unigram", LINES, 60, symbols=PLACEHOLDERS)
_TOKEN = re.compile("|".join(PLACEHOLDERS))

sentences = st.lists(st.sampled_from([*TRANSLATIONS, "1000", "{x}", "it"]), min_size=1, max_size=12)


def made(share, tokenizer=TOKENIZER):
    return PlaceholderPairs(tokenizer, tokenizer, share, TRANSLATIONS)


def translated(words):
    return " ".join(TRANSLATIONS.get(word, word) for word in words)


@pytest.mark.parametrize("tokenizer", [TOKENIZER, SUBWORDS])
@given(sentences)
def test_both_sides_get_the_same_tokens_in_place_of_words_or_after_them(tokenizer, words):
    source, target = " ".join(words), translated(words)
    pair = made(1, tokenizer)(source, target)
    tokens = [_TOKEN.findall(text) for text in pair]
    assert Counter(tokens[0]) == Counter(tokens[1])
    assert max(Counter(tokens[0]).values(), default=1) == 1
    assert tokens[0] == tokens[1], "the words of these pairs are in the same order"
    if tokens[0]:
        assert not re.search(r"\d{3}|\{x\}", source) or len(tokens[0]) == 10 or not re.search(r"\d{3}|\{x\}", pair[0])
    assert made(1, tokenizer)(source, target) == pair


@given(sentences)
def test_without_a_share_only_spans_become_tokens(words):
    source, target = made(0)(" ".join(words), translated(words))
    spans = min(10, sum(word in ("1000", "{x}") for word in words))
    assert [len(_TOKEN.findall(text)) for text in (source, target)] == [spans, spans]
    assert [word for word in source.split() if word.isalpha()] == [word for word in words if word.isalpha()]


def test_spans_of_one_side_stay():
    assert made(0)("it 1000 {x}", "it 1,000")[1] == "it 1,000"
    source, target = made(0)("it 1000 {x}", "it {x}")
    assert _TOKEN.sub("?", source) == "it 1000 ?"
    assert _TOKEN.sub("?", target) == "it ?"


def test_a_pair_stays_if_a_tokenizer_would_not_separate_a_token():
    assert made(0)("it x=1000", "it 1000") == ("it x=1000", "it 1000")
    assert _TOKEN.sub("?", made(0, SUBWORDS)("it x=1000", "it 1000")[0]) == "it x=?"


def test_about_the_share_of_the_pairs_gets_tokens():
    """Each of 2000 pairs gets tokens with a probability of 0.2; 6 standard deviations of the share are 0.054."""
    pairs = [(f"the {place} dog", f"le {place} chien") for place in range(10, 100)]
    pairs = [(f"{one} {place}", f"{other} {place}") for one, other in pairs for place in range(23)][:2000]
    taught = sum(bool(_TOKEN.search(made(0.2)(*pair)[0])) for pair in pairs)
    assert abs(taught / len(pairs) - 0.2) < 0.054


def test_all_tokens_and_both_ways_occur():
    pairs = [(f"the cat sees {place}", f"le chat voit {place}") for place in range(10, 100)]
    found = [made(0.9)(*pair)[0] for pair in pairs]
    assert {token for text in found for token in _TOKEN.findall(text)} == {*PLACEHOLDERS}
    assert any(len(_TOKEN.sub("", text).split()) == 4 and _TOKEN.search(text) for text in found), "after a word"
    assert any(len(text.split()) == 4 and _TOKEN.search(text) for text in found), "in place of a word"


def test_a_word_next_to_an_apostrophe_or_a_hyphen_stays_whole():
    teach = PlaceholderPairs(TOKENIZER, TOKENIZER, 0.9, {"man": "homme", "t": "t", "l": "l", "well": "bien"})
    for place in range(50):
        _, target = teach(f"man didn't well-known {place}", f"l'homme t' bien-aimé {place}")
        assert re.fullmatch(rf"l'(homme|⟦\d⟧)( ⟦\d⟧)? t' bien-aimé {place}", target)


def test_translations_are_those_of_most_occurrences():
    words = list(TRANSLATIONS)
    pairs = [
        (" ".join(some), translated(some))
        for place in range(60)
        for some in [[words[place % 6], words[(place * 5 + 1) % 6], words[(place // 6) % 6]]]
    ]
    found = frequent_translations(pairs)
    assert found
    assert found.items() <= TRANSLATIONS.items()


def test_encoded_pairs_have_the_tokens():
    encoder = PairEncoder(TOKENIZER, TOKENIZER, 50, made(0))
    encoded, _ = encoder(KeptBlock.of([("the cat sees 1000", "le chat voit 1000"), ("a dog", "un chien")]))
    ids = {TOKENIZER.vocabulary.id(token) for token in PLACEHOLDERS}
    assert [len(ids & {*side.tolist()}) for side in (encoded.source, encoded.target)] == [1, 1]
