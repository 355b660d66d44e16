"""Ambiguous words and the contexts that decide them."""

import pytest

from glassformer.corpus.tasks.draw import Draw
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS, members, sense
from glassformer.corpus.tasks.world.french import french_plural
from glassformer.corpus.tasks.world.grammar import sentence
from glassformer.corpus.tasks.world.nouns import NOUNS

FRENCH = {
    "match": ("allumette", "match"), "bat": ("chauve-souris", "batte"), "nail": ("clou", "ongle"),
    "ball": ("balle", "bal"), "date": ("datte", "date"), "plant": ("plante", "usine"), "nut": ("noix", "écrou"),
    "glasses": ("lunettes", "verres"), "key": ("clé", "touche"), "trunk": ("trompe", "coffre", "tronc"),
    "pen": ("enclos", "stylo"), "bank": ("rive", "banque"), "light": ("lumière", "légère|léger"),
    "well": ("puits", "bien"),
}  # fmt: skip


def test_there_are_enough_ambiguous_words():
    assert set(AMBIGUOUS) == set(FRENCH)
    assert len(AMBIGUOUS) >= 8


@pytest.mark.parametrize("name", FRENCH)
def test_each_member_has_its_own_meaning(name):
    draw = Draw(f"members {name}")
    for _ in range(25):
        sentences = [sentence(member) for member in members(draw, name)]
        for example, french in zip(sentences, FRENCH[name], strict=True):
            assert name in example.source.replace(".", "").split(), example
            words = example.target.replace("'", " ").replace(".", "").split()
            assert any(form in words for one in french.split("|") for form in (one, french_plural(one))), example
        assert len({example.source for example in sentences}) == len(FRENCH[name])


@pytest.mark.parametrize("name", sorted(set(FRENCH) - {"pen", "light", "well", "bank"}))
def test_members_share_the_ambiguous_word_and_differ_in_a_few_words_only(name):
    draw = Draw(f"shared {name}")
    for _ in range(25):
        first, second, *_ = (set(member.english) for member in members(draw, name))
        assert len(first - second) <= 3
        assert len(second - first) <= 3


def test_ambiguous_words_have_no_other_meaning_in_the_lexicon():
    known = {noun.english for noun in NOUNS}
    assert not known & set(FRENCH)


def test_every_word_is_drawn_in_training():
    draw = Draw("all of them")
    words = [set(sense(draw).english) for _ in range(800)]
    for name in AMBIGUOUS:
        assert sum(bool({name, french_plural(name)} & drawn) for drawn in words) > 20, name
