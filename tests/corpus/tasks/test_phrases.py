"""Noun phrases, verb groups and places, with French written by hand."""

from itertools import product

import pytest

from glassformer.corpus.tasks.draw import Draw
from glassformer.corpus.tasks.world import phrases
from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.clauses import CROSSINGS_OF, HE, ME, SHE, US, cross
from glassformer.corpus.tasks.world.english import english_text as english
from glassformer.corpus.tasks.world.french import Features, settle
from glassformer.corpus.tasks.world.french import french_text as french
from glassformer.corpus.tasks.world.nouns import NOUNS, nouns
from glassformer.corpus.tasks.world.phrases import ADJECTIVES_OF, Determiner, both, build, genitive, unable, verb_group
from glassformer.corpus.tasks.world.verbs import STOPS, verbs

DETERMINERS = {d.english: d for d in vars(phrases).values() if isinstance(d, Determiner) and d is not phrases.NOT_A}


def np(determiner, described, noun, plural=False):
    (word,) = nouns(noun)
    return build(word, DETERMINERS[determiner], adjectives(described), plural)


def both_languages(fragment):
    return english(fragment.english), french(settle(fragment.french)[0])


@pytest.mark.parametrize(
    ("phrase", "source", "target"),
    [
        (np("the", "black", "cat"), "the black cat", "le chat noir"),
        (np("the", "black", "chair"), "the black chair", "la chaise noire"),
        (np("the", "small black", "cat"), "the small black cat", "le petit chat noir"),
        (np("the", "", "animal"), "the animal", "l'animal"),
        (np("the", "", "hedgehog"), "the hedgehog", "le hérisson"),
        (np("a", "old", "elephant"), "an old elephant", "un vieil éléphant"),
        (np("the", "beautiful", "man"), "the beautiful man", "le bel homme"),
        (np("the", "new", "hotel"), "the new hotel", "le nouvel hôtel"),
        (np("this", "", "bird"), "this bird", "cet oiseau"),
        (np("this", "tired", "goose"), "this tired goose", "cette oie fatiguée"),
        (np("this", "big", "bird"), "this big bird", "ce grand oiseau"),
        (np("these", "brown", "mouse", True), "these brown mice", "ces souris marron"),
        (np("my", "", "spider"), "my spider", "mon araignée"),
        (np("my", "old", "spider"), "my old spider", "ma vieille araignée"),
        (np("his", "kind", "aunt"), "his kind aunt", "sa tante gentille"),
        (np("our", "old", "horse", True), "our old horses", "nos vieux chevaux"),
        (np("some", "black", "cat", True), "some black cats", "des chats noirs"),
        (np("some", "small", "cat", True), "some small cats", "de petits chats"),
        (np("some", "old", "animal", True), "some old animals", "de vieux animaux"),
        (np("many", "", "egg", True), "many eggs", "beaucoup d'œufs"),
        (np("all the", "white", "hen", True), "all the white hens", "toutes les poules blanches"),
        (np("the other", "high", "hedge"), "the other high hedge", "l'autre haute haie"),
        (np("several", "good", "apple", True), "several good apples", "plusieurs bonnes pommes"),
    ],
)  # fmt: skip
def test_noun_phrases_agree(phrase, source, target):
    assert both_languages(phrase.fragment) == (source, target)


def did(who, verb, manner="plain"):
    return both_languages(phrases.join(who.fragment, verb_group(*verbs(verb), who.features, manner)))


MOUSE, MICE, CAT = np("the", "", "mouse"), np("the", "", "mouse", True), np("the", "", "cat")


@pytest.mark.parametrize(
    ("who", "verb", "manner", "source", "target"),
    [
        (CAT, "sit", "plain", "the cat sat", "le chat était assis"),
        (MOUSE, "sit", "progressive", "the mouse was sitting", "la souris était assise"),
        (MICE, "sit", "negated", "the mice weren't sitting", "les souris n'étaient pas assises"),
        (MICE, "stand", "plain", "the mice stood", "les souris étaient debout"),
        (CAT, "hide", "never", "the cat never hid", "le chat ne se cachait jamais"),
        (MICE, "hide", "plain", "the mice hid", "les souris se cachaient"),
        (MOUSE, "cross", "negated", "the mouse didn't cross", "la souris n'a pas traversé"),
        (MICE, "go", "plain", "the mice went", "les souris sont allées"),
        (MOUSE, "come back", "negated", "the mouse didn't come back", "la souris n'est pas revenue"),
        (MOUSE, "enter", "plain", "the mouse entered", "la souris est entrée dans"),
        (HE, "follow", "often", "he often followed", "il a souvent suivi"),
        (SHE, "love", "negated", "she didn't love", "elle n'aimait pas"),
        (ME, "eat", "plain", "I ate", "j'ai mangé"),
        (US, "explore", "never", "we never explored", "nous n'avons jamais exploré"),
    ],
)  # fmt: skip
def test_verbs_agree_and_are_negated(who, verb, manner, source, target):
    assert did(who, verb, manner) == (source, target)


def test_participles_with_avoir_agree_with_an_object_before_them():
    (buy,) = verbs("buy")
    assert verb_group(buy, SHE.features, "plain", Features("f", True)).french == ("a", "achetées")


def test_reflexive_participles_agree():
    (asleep,) = (verb for verb in STOPS if verb.base == "fall asleep")
    fragment = verb_group(asleep, MOUSE.features, "negated")
    assert both_languages(fragment) == ("didn't fall asleep", "ne s'est pas endormie")


def test_two_subjects_are_masculine_unless_both_are_feminine():
    hen, dog = np("the", "", "hen"), np("the", "", "dog")
    assert did(both(MOUSE, dog), "sit") == ("the mouse and the dog sat", "la souris et le chien étaient assis")
    assert did(both(MOUSE, hen), "sit") == ("the mouse and the hen sat", "la souris et la poule étaient assises")


@pytest.mark.parametrize(
    ("owner", "thing", "source", "target"),
    [("girl", "cat", "the girl's cat", "le chat de la fille"), ("boy", "goose", "the boy's goose", "l'oie du garçon"),
     ("man", "hen", "the man's hen", "la poule de l'homme")],
)  # fmt: skip
def test_owners_follow_in_french(owner, thing, source, target):
    fragment = genitive(np("the", "", owner).fragment, np("the", "", thing).fragment)
    assert both_languages(fragment) == (source, target)


def test_an_edge_contracts():
    fragment = phrases.edge(np("the", "", "river"), "to jusque à")
    assert both_languages(fragment) == ("to the river's edge", "jusqu'au bord de la rivière")


def test_inability_surrounds_the_auxiliary():
    (explore,) = verbs("explore")
    assert both_languages(unable(explore, Features("f", True))) == ("couldn't explore", "n'ont pas pu explorer")


def test_the_manner_of_crossing_comes_last_in_french_and_from_the_verb():
    (swim,) = (way for way in CROSSINGS_OF[SHE.noun] if way.verb.base == "swim across")
    fragment = cross(swim, SHE, "negated", np("the", "", "lake"))
    assert both_languages(fragment) == ("didn't swim across the lake", "n'a pas traversé le lac à la nage")
    assert fragment.origins[-3:] == (0b100, 0b100, 0b100)


@pytest.mark.slow
def test_every_english_noun_phrase_has_one_french_translation():
    translations = {}
    numbers = {"one": False, "more": True}
    for noun, (number, plural), kind in product(NOUNS, numbers.items(), ("yes", "no")):
        for determiner in phrases._determiners(noun.kind, number, kind).options:
            for described in ((), *((adjective,) for adjective in ADJECTIVES_OF[noun])):
                fragment = build(noun, determiner, described, plural).fragment
                assert translations.setdefault(fragment.english, fragment.french) == fragment.french
    assert len(translations) > 20_000


@pytest.mark.slow
def test_different_choices_give_millions_of_sentences():
    draw, (sleep,) = Draw("how many"), verbs("sleep")
    pets = {phrases.noun_phrase(draw, nouns("pet")).fragment.english for _ in range(7_000)}
    places = {phrases.location(draw, nouns("furniture place"))[0].english for _ in range(7_000)}
    assert "dormait" in verb_group(sleep, MOUSE.features).french
    assert len(pets) * len(places) > 2_000_000  # counting only "<a pet> slept <somewhere>"
