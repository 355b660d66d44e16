"""Simple clauses: who did what. Every function draws one part of a sentence; its docstring gives an example.

A function for a predicate takes the subject, with which the verb agrees, and the manner (`phrases.Manner`), such as
"negated".

>>> from glassformer.corpus.tasks.world.adjectives import STATES
>>> join(SHE.fragment, copula(SHE.features, negated=True), described(SHE, STATES[0])).french
('elle', 'ne', 'était', 'pas', 'fatiguée')
"""

from collections.abc import Callable, Sequence

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.world.adjectives import COLOURS, DEGREES
from glassformer.corpus.tasks.world.fragments import EMPTY, Fragment, arrange, idiom, join, linked
from glassformer.corpus.tasks.world.french import Features, adjective_form
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.phrases import (
    Indefinite,
    Manner,
    Phrase,
    both,
    fitting,
    infinitive,
    location,
    noun_phrase,
    owned,
    preposition,
    unable,
    verb_group,
)
from glassformer.corpus.tasks.world.verbs import (
    ACTIONS,
    ACTIVITIES,
    CROSSINGS,
    FEELINGS,
    GIFTS,
    INTENTIONS,
    MOVEMENTS,
    PASSAGES,
    STOPS,
    TIMES,
    WAYS,
    verbs,
)
from glassformer.corpus.tasks.world.words import Adjective, Crossing, Noun, Verb

__all__ = [
    "ACTIONS_OF",
    "ACTIVITIES_OF",
    "ANIMALS",
    "BEASTS",
    "CROSSED",
    "CROSSINGS_OF",
    "EVENTS",
    "GOING_TO",
    "HE",
    "ME",
    "OBJECTS",
    "PEOPLE",
    "PERSONS",
    "PETS",
    "SHE",
    "STATES_OF_THINGS",
    "US",
    "Predicate",
    "able",
    "across",
    "action",
    "activity",
    "adjectival",
    "copula",
    "cross",
    "degree",
    "described",
    "errand",
    "event",
    "feeling",
    "gift",
    "inability",
    "moment",
    "movement",
    "pair",
    "passage",
    "person",
    "presents",
    "speaker",
    "state",
    "stop",
    "subject",
    "tell",
    "wish",
]

Predicate = Callable[[Draw, Phrase, Manner], Fragment]

PERSONS, PEOPLE, PETS, BEASTS = nouns("person"), nouns("person kin"), nouns("pet"), nouns("beast")
ANIMALS = PETS + BEASTS

_HOMES = {
    "person": nouns("couch chair bed bench armchair rug tree place building waters"),
    "kin": nouns("couch chair bed bench armchair rug tree place building waters"),
    "pet": nouns("furniture tree place waters house kitchen castle church"),
    "beast": nouns("tree place waters castle tower"),
}


def able(verbs: Sequence[Verb]) -> dict[Noun, tuple[Verb, ...]]:
    """Return, for each noun for a person or an animal, the verbs that can have this noun as their subject."""
    return {noun: tuple(verb for verb in verbs if noun in nouns(verb.subjects)) for noun in PEOPLE + ANIMALS}


OBJECTS = {verb: nouns(verb.objects) for verb in ACTIVITIES + FEELINGS + MOVEMENTS + STOPS + PASSAGES + ACTIONS + GIFTS}
_HABITATS = {
    (verb, kind): tuple(noun for noun in home if noun in OBJECTS[verb])
    for verb in ACTIVITIES + STOPS
    for kind, home in _HOMES.items()
}
ACTIVITIES_OF, _FEELINGS_OF, _STOPS_OF = map(able, (ACTIVITIES, FEELINGS, STOPS))
_MOVEMENTS_OF, _PASSAGES_OF = map(able, (MOVEMENTS, PASSAGES))
ACTIONS_OF = able(ACTIONS)
_DELIBERATE = Table(
    (able([verb for verb in ACTIONS if verb.base not in ("lose", "forget", "break", "hear")]), 6),
    (able([verb for verb in MOVEMENTS if verb.base not in ("fall", "arrive")]), 3),
    (_PASSAGES_OF, 3),
)
CROSSINGS_OF = {
    noun: tuple(crossing for crossing in CROSSINGS if noun in nouns(crossing.verb.subjects))
    for noun in PEOPLE + ANIMALS
}
CROSSED = {crossing: nouns(crossing.places) for crossing in CROSSINGS}
_PLACES_TO_GO = OBJECTS[verbs("go")[0]]
GOING_TO = linked("to get to", "pour aller à")

# Subjects.

_GIRL, _BOY = nouns("girl boy")
HE = Phrase(linked("he", "il"), Features("m"), _BOY, "he")
SHE = Phrase(linked("she", "elle"), Features("f"), _GIRL, "she")
ME = Phrase(linked("I", "je"), Features("m", False, 1), _BOY, "I")
US = Phrase(linked("we", "nous"), Features("m", True, 1), _BOY, "we")
_KINDS = Table((PERSONS, 36), (nouns("kin"), 9), (PETS, 32), (BEASTS, 23))


def subject(draw: Draw) -> Phrase:
    """Return a subject, such as "the cat", "the girl's dog", "the cow and the goat" or "she"."""
    options = draw.pick(_KINDS)
    return draw.pick(_SUBJECTS)(draw, options)


def person(draw: Draw) -> Phrase:
    """Return words for a person, such as "my brother", "the old queen" or "he"."""
    return draw.choose((HE, SHE)) if draw.chance(0.1) else noun_phrase(draw, PEOPLE)


def pair(draw: Draw, options: Sequence[Noun]) -> Phrase:
    """Return a subject of two nouns, such as "the cat and the mouse"."""
    first = noun_phrase(draw, options, adjective=0.1, plural=0.1, indefinite="no")
    return both(first, noun_phrase(draw, options, adjective=0.1, plural=0.1, indefinite="no"))


def _special(draw: Draw, options: Sequence[Noun]) -> Phrase:
    return owned(draw, PERSONS, PETS) if options in (PETS, BEASTS) else draw.choose((HE, SHE))


_SUBJECTS: Table[Callable[[Draw, Sequence[Noun]], Phrase]] = Table((noun_phrase, 80), (pair, 8), (_special, 12))

# Predicates of states, in the imparfait.


def activity(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "was sleeping on the rug" ("dormait sur le tapis")."""
    verb = draw.choose(ACTIVITIES_OF[who.noun])
    if manner == "plain" and draw.chance(0.35):
        manner = "progressive"
    where, place = location(draw, _HABITATS[verb, who.noun.kind], verb.preposition)
    draw.note(who.name, verb.base, place.english)
    quietly = (linked("quietly", "tranquillement"),) if draw.chance(0.06) else ()
    return join(verb_group(verb, who.features, manner), *quietly, where)


def feeling(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "loved the princess" ("aimait la princesse")."""
    verb = draw.choose(_FEELINGS_OF[who.noun])
    manner = "plain" if manner == "often" else manner
    return join(verb_group(verb, who.features, manner), noun_phrase(draw, OBJECTS[verb], indefinite="no").fragment)


def copula(features: Features, negated: bool = False, present: bool = False) -> Fragment:
    """Return a form of "to be" in both languages, such as "wasn't" ("n'était pas")."""
    english = ("is", "are") if present else ("was", "were")
    french = ("est", "sont") if present else ("était", "étaient")
    be = linked(english[features.plural], french[features.plural])
    return linked(f"{be.english[0]} n't", f"ne {be.french[0]} pas", (1, 0, 1)) if negated else be


def adjectival(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "was very tired" ("était très fatigué")."""
    be = copula(who.features, manner in ("negated", "never"), draw.chance(0.2))
    first, second = fitting(draw, who.noun), fitting(draw, who.noun)
    draw.note(first.english, who.name)
    if first is second or first in COLOURS or not draw.chance(0.15):
        return join(be, *degree(draw, first), described(who, first))
    draw.note(second.english, who.name)
    return join(be, described(who, first), linked("and", "et"), described(who, second))


def described(who: Phrase, adjective: Adjective) -> Fragment:
    """Return an adjective that agrees with the subject."""
    return linked(adjective.english, adjective_form(adjective, who.features))


def degree(draw: Draw, adjective: Adjective, chance: float = 0.5) -> tuple[Fragment, ...]:
    """Return a word that grades the adjective, such as "very" ("très"), or nothing."""
    return (linked(*draw.pick(_DEGREE_TABLE)),) if adjective.gradable and draw.chance(chance) else ()


_DEGREE_TABLE = Table(*zip(DEGREES.items(), (5, 1, 2, 2), strict=True))
_WAY_PAIRS = tuple(WAYS.items())

# Predicates of events, in the passé composé.


def movement(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "went to the market" ("est allé au marché")."""
    verb = draw.choose(_MOVEMENTS_OF[who.noun])
    return join(verb_group(verb, who.features, manner), preposition(verb.preposition), _target(draw, who, verb))


def stop(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "fell asleep on the couch" ("s'est endormi sur le canapé")."""
    verb = draw.choose(_STOPS_OF[who.noun])
    where, place = location(draw, _HABITATS[verb, who.noun.kind])
    draw.note(who.name, verb.base, place.english)
    return join(verb_group(verb, who.features, manner), where)


def passage(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "didn't explore the cave" ("n'a pas exploré la grotte")."""
    verb = draw.choose(_PASSAGES_OF[who.noun])
    return join(verb_group(verb, who.features, manner), _target(draw, who, verb))


def _target(draw: Draw, who: Phrase, verb: Verb) -> Fragment:
    place = draw.choose(OBJECTS[verb])
    draw.note(who.name, verb.base, place.english)
    return noun_phrase(draw, (place,), adjective=0.2, indefinite="no").fragment


def across(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate such as "swam across the river" ("a traversé la rivière à la nage")."""
    way = draw.choose(CROSSINGS_OF[who.noun])
    place = draw.choose(CROSSED[way])
    draw.note(who.name, way.verb.base, place.english)
    return cross(way, who, manner, noun_phrase(draw, (place,), adjective=0.2, indefinite="no"))


def cross(way: Crossing, who: Phrase, manner: Manner, place: Phrase) -> Fragment:
    """Return a predicate for crossing a place. The last French words ("à la nage") stand for the verb "swam"."""
    group = verb_group(way.verb, who.features, manner)
    moved = 1 << len(group.english) - 2
    words = tuple(way.way.split())
    english, french, origins = join(group, place.fragment)
    return Fragment(english, french + words, origins + (moved,) * len(words))


def errand(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate such as "drove across the road to get to the station" ("… pour aller à la gare")."""
    goal = noun_phrase(draw, _PLACES_TO_GO, adjective=0.2, indefinite="no")
    return join(across(draw, who, manner), GOING_TO, goal.fragment)


def action(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "didn't buy a car" ("n'a pas acheté de voiture")."""
    verb = draw.choose(ACTIONS_OF[who.noun])
    indefinite: Indefinite = "negated" if manner in ("negated", "never") else "yes"
    return join(
        verb_group(verb, who.features, manner), noun_phrase(draw, OBJECTS[verb], indefinite=indefinite).fragment
    )


def gift(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate such as "gave the queen the book" or "gave the book to the queen"."""
    verb = draw.choose(GIFTS)
    group = verb_group(verb, who.features, manner)
    thing = noun_phrase(draw, OBJECTS[verb], adjective=0.2, indefinite="no").fragment
    receiver = noun_phrase(draw, PEOPLE, adjective=0.15, plural=0.1, indefinite="no").fragment
    if draw.chance(0.5):
        return join(group, thing, linked("to", "à"), receiver)
    receiver = Fragment(receiver.english, ("à", *receiver.french), (receiver.origins[0], *receiver.origins))
    return arrange(group, receiver, thing, order=(0, 2, 1))


def wish(draw: Draw, who: Phrase, manner: Manner = "plain") -> Fragment:
    """Return a predicate in both languages, such as "tried to open the door" ("a essayé d'ouvrir la porte")."""
    intended = draw.choose(INTENTIONS)
    verb, target = _doing(draw, who)
    marker = intended.preposition.partition(" ")[2]
    return join(verb_group(intended, who.features, manner), infinitive(verb, marker), target)


def inability(draw: Draw, who: Phrase, _: Manner = "plain") -> Fragment:
    """Return a predicate such as "couldn't cross the river" ("n'a pas pu traverser la rivière")."""
    verb, target = _doing(draw, who)
    return join(unable(verb, who.features), target)


def _doing(draw: Draw, who: Phrase) -> tuple[Verb, Fragment]:
    verb = draw.choose(draw.pick(_DELIBERATE)[who.noun])
    target = noun_phrase(draw, OBJECTS[verb], adjective=0.2, indefinite="no")
    return verb, join(preposition(verb.preposition), target.fragment)


# Clauses: a subject, a predicate, and sometimes a time.

STATES_OF_THINGS: Table[Predicate] = Table((activity, 7), (feeling, 2))
EVENTS: Table[Predicate] = Table(
    (movement, 6), (passage, 5), (stop, 3), (across, 3), (errand, 3), (action, 14), (wish, 6), (inability, 4)
)
_SPOKEN: Table[Predicate] = Table((across, 3), (errand, 4), (action, 6), (gift, 2), (wish, 3), (inability, 1))
_MANNERS: Table[Manner] = Table(("plain", 66), ("negated", 20), ("never", 7), ("often", 7))
_TIME_PHRASES = tuple(idiom(english, french) for english, french in TIMES.items())
_COMMA = linked(",", ",")


def tell(draw: Draw, who: Phrase, predicate: Predicate) -> Fragment:
    """Return the subject with a predicate in any manner, sometimes with "slowly" or with a time before or after."""
    manner = draw.pick(_MANNERS) if who.definite else "plain"
    lasting = manner in ("never", "often") or predicate is feeling
    before, after = moment(draw, 0 if lasting else 0.16)
    told = predicate(draw, who, manner)
    way = linked(*draw.choose(_WAY_PAIRS)) if predicate in (passage, across) and draw.chance(0.25) else EMPTY
    return join(before, who.fragment, told, way, after)


def moment(draw: Draw, chance: float) -> tuple[Fragment, Fragment]:
    """Return words for a time before ("yesterday,") and after ("yesterday") a clause; at least one of them is empty."""
    if not draw.chance(chance):
        return EMPTY, EMPTY
    time = draw.choose(_TIME_PHRASES)
    return (join(time, _COMMA), EMPTY) if draw.chance(0.5) else (EMPTY, time)


def state(draw: Draw) -> Fragment:
    """Return a clause such as "The black cat sat on the couch"."""
    return tell(draw, subject(draw), draw.pick(STATES_OF_THINGS))


def event(draw: Draw) -> Fragment:
    """Return a clause such as "The girl bought a red dress"."""
    who, predicate = subject(draw), draw.pick(EVENTS)
    return tell(draw, who, predicate if who.definite or predicate is not inability else action)


def presents(draw: Draw) -> Fragment:
    """Return a clause such as "The king gave the book to the queen"."""
    return tell(draw, person(draw), gift)


def speaker(draw: Draw) -> Fragment:
    """Return a clause such as "I swam across the river". With "avoir", no French word shows the speaker's gender."""
    return tell(draw, draw.choose((ME, US)), draw.pick(_SPOKEN))
