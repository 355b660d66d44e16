"""Clauses and sentences with French written by hand, and forms that never occur."""

import re

import pytest

from glassformer.corpus.tasks.draw import Draw
from glassformer.corpus.tasks.world import clauses, grammar
from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.clauses import HE, ME, SHE, US, copula, described, gift, speaker
from glassformer.corpus.tasks.world.coreference import reason
from glassformer.corpus.tasks.world.fragments import join
from glassformer.corpus.tasks.world.grammar import RULES, coherent, sentence
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.phrases import THE, build


def said(who, adjective, negated=False):
    example = sentence(join(who.fragment, copula(who.features, negated), described(who, *adjectives(adjective))))
    return example.source, example.target


def the(name, plural=False):
    return build(*nouns(name), THE, (), plural)


@pytest.mark.parametrize(
    ("who", "adjective", "negated", "source", "target"),
    [
        (SHE, "tired", False, "She was tired.", "Elle était fatiguée."),
        (HE, "happy", True, "He wasn't happy.", "Il n'était pas heureux."),
        (the("mouse", True), "brown", False, "The mice were brown.", "Les souris étaient marron."),
        (the("island"), "beautiful", False, "The island was beautiful.", "L'île était belle."),
        (the("animal", True), "old", True, "The animals weren't old.", "Les animaux n'étaient pas vieux."),
    ],
)
def test_adjectives_agree_at_a_distance(who, adjective, negated, source, target):
    assert said(who, adjective, negated) == (source, target)


@pytest.mark.parametrize(
    ("who", "adjective", "clause"),
    [
        (the("girl"), "rich", ("because she was very rich", "parce qu'elle était très riche")),
        (the("man"), "rich", ("because he was very rich", "parce qu'il était très riche")),
        (the("car"), "old", ("because it was very old", "parce qu'elle était très vieille")),
    ],
)
def test_pronouns_agree_with_their_antecedents(who, adjective, clause):
    example = sentence(reason(*adjectives(adjective), who, ("very", "très")))
    assert (example.source.lower()[:-1], example.target.lower()[:-1]) == clause


def drawn(rule, count, name):
    draw = Draw(name)
    for _ in range(count):
        draw.forget()
        fragment = rule(draw)
        if coherent(draw):
            yield sentence(fragment)


def test_a_speakers_gender_is_never_visible():
    for example in drawn(speaker, 300, "speaker"):
        assert not re.search(r"\b(je suis|nous sommes|j'étais|nous étions)\b", example.target, re.IGNORECASE)
        assert re.search(r"\b(J'ai|Je n'ai|Je voulais|Nous|j'ai|je n'ai|je voulais|nous)\b", example.target)


def test_receivers_follow_the_thing_in_french():
    moved = 0
    for example in drawn(lambda draw: join(SHE.fragment, gift(draw, SHE)), 100, "gift"):
        assert re.search(r" (à|au|aux) ", example.target)
        moved += " to " not in example.source
    assert 20 < moved < 80


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        (grammar.relative, r"(that|who) ", r" qui "),
        (grammar.relative_object, r" that ", r" (que |qu')"),
        (grammar.passive, r"(was|were|n't) \w+ by ", r" (été) \w+ par "),
        (grammar.presence, r"^There (was|were)", r"^Il (n'y avait pas d|y avait )"),
        (grammar.comparison, r" (than|as) ", r" (plus|moins|aussi) \w+ (que|qu')"),
        (grammar.meanwhile, r" (when|while) ", r" (quand|pendant qu)"),
        (grammar.because, r" because (it|he|she) ", r" parce qu'(il|elle) "),
        (clauses.errand, r" across .* to get to ", r" traversé .* pour aller (à|au) "),
    ],
)
def test_each_rule_makes_its_kind_of_sentence(rule, source, target):
    def make(draw):
        return rule(draw) if rule is not clauses.errand else join(SHE.fragment, rule(draw, SHE))

    for example in drawn(make, 60, rule.__name__):
        assert re.search(source, example.source), example
        assert re.search(target, example.target), example


def test_sentences_neither_repeat_nor_contradict_themselves():
    draw = Draw("coherence")
    for noted, expected in (
        ([("old", "cat"), ("black", "cat")], True),
        ([("old", "cat"), ("young", "dog")], True),
        ([("old", "cat"), ("young", "cat")], False),
        ([("old", "cat"), ("old", "cat")], False),
    ):
        draw.forget()
        for words in noted:
            draw.note(*words)
        assert coherent(draw) is expected
    draw.forget()
    draw.nouns = [*nouns("cat dog"), *nouns("cat")]
    assert not coherent(draw)


def test_first_persons_are_drawn():
    subjects = {example.source.split()[0] for example in drawn(speaker, 60, "who")}
    assert {ME.name, "We"} <= subjects
    assert US.features.person == 1
    assert len(RULES) > 15
