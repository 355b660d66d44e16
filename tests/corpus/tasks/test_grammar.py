"""Sentences of all rules: one translation each, correct elision, and aligned words."""

import re
from collections import Counter

import pytest

from glassformer.corpus.tasks.draw import Draw
from glassformer.corpus.tasks.example import Example
from glassformer.corpus.tasks.world.grammar import RULES, coherent, sentence
from glassformer.text.words import join_words, split_words


class FewWords(Draw):
    """A draw that always chooses the same word in the same place, so that sentences are repeated."""

    def __init__(self, world: int) -> None:
        super().__init__(f"few {world}")
        self.world = world

    def chance(self, probability):
        return super().chance(0.5) if probability else False

    def choose(self, options):
        return options[(self.world * 7919 + len(self.nouns)) % len(options)]

    def pick(self, table):
        few = [table.options[(self.world + step) % len(table.options)] for step in range(2)]
        return super().choose(few)


def drawn(draw, rule, count):
    for _ in range(count):
        draw.forget()
        fragment = rule.draw(draw)
        if coherent(draw):
            yield sentence(fragment, rule.name)


@pytest.fixture(scope="module")
def sentences() -> list[Example]:
    draw = Draw("sentences")
    return [example for rule in RULES for example in drawn(draw, rule, 110)]


@pytest.mark.slow
def test_every_english_sentence_has_one_translation():
    """With few words, the same English sentence is reached repeatedly, in every possible way."""
    again = 0
    for world in range(3):
        translations, draw = {}, FewWords(world)
        for rule in RULES:
            for example in drawn(draw, rule, 100):
                again += example.source in translations
                assert translations.setdefault(example.source, example.target) == example.target
    assert again > 700


def test_every_english_sentence_has_one_translation_from_every_rule(sentences):
    translations = {}
    for example in sentences:
        assert translations.setdefault(example.source, example.target) == example.target


def test_sentences_begin_with_a_capital_and_end_with_a_full_stop(sentences):
    for example in sentences:
        for text in (example.source, example.target):
            assert text[0].isupper()
            assert re.fullmatch(r"[^.]+\w\.", text)
            assert "  " not in text


VOWEL = r"[aàâeéèêiîoôuœyh]"
ASPIRATED = r"(?!hérisson|haie|haut)"
WRONG = {
    "an elision is missing": rf"\b(le|la|de|je|ne|se|que|jusque) {ASPIRATED}{VOWEL}",
    "a contraction is missing": r"\b(à|de) (le|les)\b",
    "nothing elides there": rf"\b(l|d|j|n|s|qu)'(?!{VOWEL})",
    "an aspirated h elides": r"'(hérisson|haie|haut)",
    "a masculine form before a vowel": rf"\b(ce|beau|vieux|nouveau) (?!et|était|a|à|en){ASPIRATED}{VOWEL}\w*[^sx\W]\b",
    "a feminine possessive before a vowel": rf"\b([mts]a) {ASPIRATED}{VOWEL}",
    "a plural article with a negation": r"n'a pas \w+ (un|une|des) ",
    "a doubled word": r"\b(\w+) \1\b",
}


@pytest.mark.parametrize("pattern", WRONG.values(), ids=WRONG)
def test_french_never_has_this_mistake(sentences, pattern):
    wrong = [example.target for example in sentences if re.search(pattern, example.target, re.IGNORECASE)]
    assert wrong == []


ENGLISH_WRONG = {
    "an": r"\b[Aa]n [^aeiou]|\b[Aa] [aeiou]",
    "number": r"^(Two|Three|Four|Many|Several|These) ((?!who|that)\w+ ){1,3}(was|is)\b",
    "negation": r"didn't (?!feed)\w+ed\b|did (?!n't)",
    "a doubled word": r"\b(\w+) \1\b",
}


@pytest.mark.parametrize("pattern", ENGLISH_WRONG.values(), ids=ENGLISH_WRONG)
def test_english_never_has_this_mistake(sentences, pattern):
    wrong = [example.source for example in sentences if re.search(pattern, example.source)]
    assert wrong == []


def test_the_word_tokenizer_splits_and_joins_every_sentence(sentences):
    for example in sentences[::5]:
        assert join_words(split_words(example.source)) == example.source
        assert join_words(split_words(example.target)) == example.target


def test_every_word_is_aligned(sentences):
    for example in sentences[::2]:
        source, target = split_words(example.source), split_words(example.target)
        assert {i for i, _ in example.alignment} == set(range(len(source))), example
        assert {j for _, j in example.alignment} == set(range(len(target))), example


def test_a_word_comes_from_its_translation(sentences):
    """Nouns with the same spelling in both languages are aligned with each other."""
    alike = {"prince", "orange", "tunnel", "village", "table", "animal", "canal"}
    for example in sentences[::2]:
        source, target = split_words(example.source), split_words(example.target)
        pairs = {(source[i], target[j]) for i, j in example.alignment}
        assert all((word, word) in pairs for word in alike & set(source) & set(target)), example


def test_rules_have_different_names_and_positive_shares():
    assert max(Counter(rule.name for rule in RULES).values()) == 1
    assert all(rule.share > 0 for rule in RULES)
