"""Frames for ambiguous words: contexts that decide the meaning of a word.

Every frame draws one sentence for each meaning; the sentences differ only in the context. `ambiguous.py` lists the
words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.clauses import (
    CROSSED,
    CROSSINGS_OF,
    GOING_TO,
    HE,
    ME,
    PEOPLE,
    SHE,
    US,
    copula,
    cross,
    degree,
    described,
    person,
)
from glassformer.corpus.tasks.world.fragments import Fragment, arrange, idiom, join, linked
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.phrases import (
    HER,
    HIS,
    MY,
    NEAR,
    OTHER,
    OUR,
    THE,
    THIS,
    Manner,
    Phrase,
    build,
    genitive,
    infinitive,
    noun_phrase,
    preposition,
    unable,
    verb_group,
)
from glassformer.corpus.tasks.world.verbs import INTENTIONS, verbs
from glassformer.corpus.tasks.world.words import Adjective, Noun, Verb

__all__ = ["JOINING", "Meaning", "Word", "beside", "done", "getting_there", "light", "said", "there", "well"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One meaning of a word: its French noun, and its typical contexts."""

    noun: Noun
    done: tuple[Verb, ...] = ()
    """Verbs with the noun as their object."""
    said: tuple[Adjective, ...] = ()
    """Adjectives that describe the noun."""
    owners: tuple[Noun, ...] = ()
    """Nouns for things that the noun is a part of."""
    there: tuple[Verb, ...] = ()
    """If the noun is a place: verbs for actions there; `visitors` are the subjects of these verbs."""
    visitors: tuple[Noun, ...] = PEOPLE
    beside: tuple[Noun, ...] = ()
    """Nouns for things that are found near the noun."""


Frame = Callable[[Draw, "Word"], tuple[Fragment, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An ambiguous word: its meanings, its frames, and adjectives that fit every meaning."""

    meanings: tuple[Meaning, ...]
    frames: tuple[Frame, ...]
    """Frames that draw one sentence for each meaning."""
    alone: tuple[Frame, ...] = ()
    """Frames that draw a sentence for one meaning only."""
    looks: tuple[Adjective, ...] = ()
    share: float = 1
    """Relative frequency of the word; higher if its contexts are harder to learn."""
    plural: bool = False
    compound: bool = False
    """Whether owner and word form a compound ("the house key"; otherwise, "the tree's trunk")."""


# The subject, the manner, and the word itself.

_FORMS: Table[Manner | Literal["wish", "unable"]] = Table(
    ("plain", 50), ("negated", 18), ("never", 5), ("wish", 14), ("unable", 13)
)
_INTENDING = tuple(verb for verb in INTENTIONS if verb.base != "forget")
_DETERMINERS = Table((THE, 60), (THIS, 10), (OTHER, 5), (MY, 8), (OUR, 6), (HIS, 5), (HER, 5))
_DETERMINERS_PLURAL = Table((THE, 60), (OTHER, 5), (MY, 12), (OUR, 8), (HIS, 8), (HER, 8))


def _whoever(draw: Draw, speaking: bool = True) -> Phrase:
    if draw.chance(0.2):
        return draw.choose((ME, US, HE, SHE) if speaking else (HE, SHE))
    return noun_phrase(draw, PEOPLE, indefinite="no")


def _how(draw: Draw, who: Phrase) -> Callable[[Verb], Fragment]:
    """Draw a manner ("didn't …", "tried to …", "couldn't …"); return a function that puts any verb in this manner."""
    form, intended = draw.pick(_FORMS), draw.choose(_INTENDING)

    def group(verb: Verb) -> Fragment:
        if form == "wish":
            marker = intended.preposition.partition(" ")[2]
            return join(verb_group(intended, who.features), infinitive(verb, marker))
        if form == "unable":
            return unable(verb, who.features)
        return verb_group(verb, who.features, form)

    return group


def _meant(draw: Draw, word: Word) -> list[Phrase]:
    """Return the word in each of its meanings, with the same determiner and the same adjective."""
    if word.meanings[0].owners:
        return [_part(draw, word, meaning) for meaning in word.meanings]
    determiner = draw.pick(_DETERMINERS_PLURAL if word.plural else _DETERMINERS)
    look = (draw.choose(word.looks),) if word.looks and draw.chance(0.25) else ()
    return [build(meaning.noun, determiner, look, word.plural) for meaning in word.meanings]


def _part(draw: Draw, word: Word, meaning: Meaning) -> Phrase:
    """Return an owner and the word, such as "the house key" or "the tree's trunk" ("le tronc de l'arbre")."""
    owner = draw.choose(meaning.owners)
    thing = build(meaning.noun, THE)
    if not word.compound:
        return thing._replace(fragment=genitive(build(owner, THE).fragment, thing.fragment))
    of = idiom(owner.english, " ".join(("de", *build(owner, THE).fragment.french)))
    the, key = (Fragment(thing.fragment.english[i : i + 1], thing.fragment.french[i : i + 1], (1,)) for i in (0, 1))
    return thing._replace(fragment=arrange(the, of, key, order=(0, 2, 1)))


T = TypeVar("T")


def _each(draw: Draw, options: Sequence[tuple[T, ...]]) -> list[T]:
    """Return one option for each meaning. Meanings with the same options get the same option."""
    chosen = {same: draw.choose(same) for same in dict.fromkeys(options)}
    return [chosen[same] for same in options]


# Sentence frames. The sentences for the meanings of a word differ in the verb, adjective, owner, place or manner.


def done(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "the girl struck the match", "the girl won the match"."""
    verbs_of = [meaning.done for meaning in word.meanings]
    who = _whoever(draw, all(verb.participle and verb.auxiliary == "avoir" for verbs in verbs_of for verb in verbs))
    group, things = _how(draw, who), _meant(draw, word)
    return tuple(
        join(who.fragment, group(verb), preposition(verb.preposition), thing.fragment)
        for verb, thing in zip(_each(draw, verbs_of), things, strict=True)
    )


def said(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "the bat was hungry", "the bat was broken"."""
    things, negated = _meant(draw, word), draw.chance(0.2)
    qualities = _each(draw, [meaning.said for meaning in word.meanings])
    how = degree(draw, qualities[0]) if all(quality.gradable for quality in qualities) else ()
    return tuple(
        join(thing.fragment, copula(thing.features, negated), *how, described(thing, quality))
        for quality, thing in zip(qualities, things, strict=True)
    )


def there(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "the princess danced at the ball", one for each meaning that is a place."""
    return tuple(_at_place(draw, meaning) for meaning in word.meanings if meaning.there)


def _at_place(draw: Draw, meaning: Meaning) -> Fragment:
    who = noun_phrase(draw, meaning.visitors)
    manner: Manner = draw.choose(("plain", "progressive", "negated"))
    group = verb_group(draw.choose(meaning.there), who.features, manner)
    return join(who.fragment, group, preposition(meaning.noun.at), build(meaning.noun, THE).fragment)


def beside(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "the man saw the goat near the pen", "the man saw the letter near the pen"."""
    who = _whoever(draw)
    group, near = _how(draw, who)(draw.choose(_NOTICED)), draw.choose(NEAR)
    return tuple(
        join(who.fragment, group, build(draw.choose(meaning.beside), THE).fragment, near, thing.fragment)
        for meaning, thing in zip(word.meanings, _meant(draw, word), strict=True)
    )


def getting_there(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "she swam across the lake (or: drove across the road) to get to the bank"."""
    who, manner = _whoever(draw), draw.pick(_TRAVELLED)
    the = OTHER if draw.chance(0.5) else THE
    shore, office = (build(meaning.noun, the).fragment for meaning in word.meanings)
    return (
        join(who.fragment, _crossing(draw, who, manner, _WATERS), JOINING, shore),
        join(who.fragment, _crossing(draw, who, manner, _STREETS), GOING_TO, office),
    )


def _crossing(draw: Draw, who: Phrase, manner: Manner, places: tuple[Noun, ...]) -> Fragment:
    ways = [way for way in CROSSINGS_OF[who.noun] if set(CROSSED[way]) >= set(places)]
    way, place = draw.choose(ways), draw.choose(places)
    draw.note(who.name, way.verb.base, place.english)
    return cross(way, who, manner, build(place, THE))


def light(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "he saw the light near the box", "he saw the light box"."""
    who = _whoever(draw)
    group, thing = _how(draw, who)(draw.choose(_NOTICED)), draw.choose(_LIGHT_THINGS)
    draw.note(_LIGHT.english, thing.english)
    shining = join(build(word.meanings[0].noun, THE).fragment, draw.choose(NEAR), build(thing, THE).fragment)
    return join(who.fragment, group, shining), join(who.fragment, group, build(thing, THE, (_LIGHT,)).fragment)


def well(draw: Draw, word: Word) -> tuple[Fragment, ...]:
    """Return sentences such as "the girl sang near the well", "the girl sang well"."""
    who, verb = person(draw), draw.choose(_PERFORMED)
    manner: Manner = draw.choose(("plain", "plain", "progressive", "negated"))
    near, hole = draw.choose(NEAR), build(word.meanings[0].noun, THE).fragment
    did = join(who.fragment, verb_group(verb, who.features, manner))
    return join(did, near, hole), join(did, linked("well", "bien"))


_TRAVELLED: Table[Manner] = Table(("plain", 80), ("negated", 12), ("often", 8))
_WATERS, _STREETS = nouns("waters"), nouns("street road square park")
JOINING = Fragment(("to", "get", "to"), ("pour", "rejoindre"), (0b001, 0b110))
_NOTICED = verbs("see, find")
_PERFORMED = verbs("sing, work, dance, sleep, play")
(_LIGHT,) = adjectives("light")
_LIGHT_THINGS = nouns(_LIGHT.fits)
