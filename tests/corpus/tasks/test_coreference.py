from collections import Counter

import pytest

from glassformer.corpus.tasks.draw import Draw
from glassformer.corpus.tasks.world.classic import CLASSIC
from glassformer.corpus.tasks.world.coreference import PAIRS, coreference, minimal_pair
from glassformer.corpus.tasks.world.grammar import sentence
from glassformer.corpus.tasks.world.nouns import nouns


@pytest.mark.parametrize("name", ["mouse river", "dog lake", "cow bridge", "horse island", "goose wall"])
def test_minimal_pairs_differ_in_the_adjective_that_selects_the_noun(name):
    animal, place = sorted(nouns(name), key=lambda noun: name.split().index(noun.english))
    draw = Draw(f"pairs {name}")
    for _ in range(20):
        tired, wide = (sentence(member) for member in minimal_pair(draw, animal, place))
        assert tired.source.split()[:-1] == wide.source.split()[:-1]
        assert tired.source.split()[-1] != wide.source.split()[-1]
        pronoun = {"m": "qu'il était", "f": "qu'elle était"}
        assert pronoun[animal.gender] in tired.target
        assert pronoun[place.gender] in wide.target
        assert tired.target.split(" parce ")[0] == wide.target.split(" parce ")[0]


def test_animals_and_places_have_all_combinations_of_genders():
    genders = Counter((animal.gender, place.gender) for animal, place in PAIRS)
    assert len(PAIRS) > 600
    assert min(genders[pair] for pair in ("mm", "mf", "fm", "ff") for pair in [tuple(pair)]) > 100


def test_it_refers_to_the_animal_as_often_as_to_the_place():
    draw = Draw("halves")
    english = [coreference(draw).english for _ in range(400)]
    states = {"tired", "hungry", "thirsty", "scared", "sick", "lazy", "nervous", "shy", "injured", "careful", "young"}
    assert all(words[words.index("because") + 1 :][:2] == ("it", "was") for words in english)
    assert 150 < sum(words[-1] in states for words in english) < 250


def test_the_classic_sentences_are_translated():
    assert [(example.source, example.target) for example in CLASSIC] == [
        (
            "The black cat sat on the couch and the brown dog slept on the rug.",
            "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis.",
        ),
        (
            "The animal didn't cross the street because it was too tired.",
            "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
        ),
        (
            "The animal didn't cross the street because it was too wide.",
            "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
        ),
        (
            "I swam across the river to get to the other bank.",
            "J'ai traversé la rivière à la nage pour rejoindre l'autre rive.",
        ),
        (
            "I drove across the road to get to the bank.",
            "J'ai traversé la route en voiture pour aller à la banque.",
        ),
    ]


def test_it_is_aligned_with_the_pronoun():
    tired = CLASSIC[1]
    # The animal did n't cross the street because it was too tired . → L' animal n' a pas traversé la rue parce qu' il …
    assert (8, 10) in tired.alignment
    assert {(3, 2), (2, 3), (3, 4), (4, 5)} <= set(tired.alignment)
