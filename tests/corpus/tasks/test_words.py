"""The lexicon: nouns, adjectives and verbs."""

from collections import Counter, defaultdict

import pytest

from glassformer.corpus.tasks.world.adjectives import ADJECTIVES, GROUNDS, STATES, adjectives
from glassformer.corpus.tasks.world.nouns import ASPIRATED, NOUNS, nouns
from glassformer.corpus.tasks.world.verbs import (
    ACTIONS,
    ACTIVITIES,
    CROSSINGS,
    FEELINGS,
    GIFTS,
    INTENTIONS,
    MOVEMENTS,
    PASSAGES,
    SPECIAL,
    STOPS,
    verbs,
)

VERBS = ACTIVITIES + FEELINGS + MOVEMENTS + STOPS + PASSAGES + ACTIONS + GIFTS + INTENTIONS + SPECIAL


def test_there_are_several_hundred_lemmas():
    assert len(NOUNS) + len(ADJECTIVES) + len({verb.base for verb in VERBS}) > 280


def test_english_nouns_and_adjectives_have_one_translation():
    for words in (NOUNS, ADJECTIVES):
        assert [name for name, count in Counter(word.english for word in words).items() if count > 1] == []


def test_places_and_animals_of_both_genders_are_about_equally_many():
    for kinds in ("pet beast", "place building waters"):
        genders = Counter(noun.gender for noun in nouns(kinds))
        assert min(genders.values()) >= 10


def test_verbs_that_look_alike_in_english_differ_in_what_follows_or_not_in_french():
    forms = defaultdict(set)
    for verb in VERBS:
        forms[verb.past].add((verb.infinitive, verb.participle, verb.imparfait))
    several = {past for past, french in forms.items() if len(french) > 1}
    # both tenses occur: "in the park" needs the imparfait, "to the park" the passé composé
    assert several == {"walked", "ran"}


def test_every_verb_has_one_past_tense():
    for verb in VERBS:
        assert sum(map(bool, (verb.participle, verb.imparfait, verb.posture))) == 1, verb.base


def test_adjectives_of_animals_and_of_places_are_disjoint():
    animals, places = set(nouns("pet beast")), set(nouns("place building waters"))
    assert all(not places & set(nouns(adjective.fits)) for adjective in STATES)
    assert all(not animals & set(nouns(adjective.fits)) for adjective in GROUNDS)


def test_every_name_in_the_lexicon_is_known():
    for adjective in ADJECTIVES:
        assert nouns(adjective.fits)
    for verb in VERBS:
        nouns(verb.subjects), nouns(verb.objects)
    for crossing in CROSSINGS:
        nouns(crossing.places)


def test_unknown_names_are_an_error():
    with pytest.raises(AssertionError, match="parrot"):
        nouns("cat parrot")


def test_words_are_found_by_name_in_the_order_given():
    assert [a.french for a in adjectives("white black")] == ["blanc", "noir"]
    assert [v.infinitive for v in verbs("pull out, walk")] == ["arracher", "marcher"]
    assert all(any(word.startswith(h) for word in ("hérisson", "haie", "haute")) for h in ASPIRATED)
