"""The sentences of the small English–French world: `RULES` lists the kinds of sentences and the share of each kind.

Every rule is a function that draws an English sentence and its French translation. The function's docstring gives an
example. To add a rule, write a function that combines parts from `clauses.py` and `phrases.py`, and put it into
`RULES`.

>>> sentence(linked("the animal slept", "le animal dormait")).target
"L'animal dormait."
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.example import Example
from glassformer.corpus.tasks.world.adjectives import ADJECTIVES, COLOURS, OPPOSITES, adjectives
from glassformer.corpus.tasks.world.ambiguous import sense
from glassformer.corpus.tasks.world.clauses import (
    ACTIONS_OF,
    ANIMALS,
    BEASTS,
    OBJECTS,
    PEOPLE,
    PERSONS,
    PETS,
    Predicate,
    action,
    activity,
    adjectival,
    copula,
    described,
    event,
    movement,
    passage,
    person,
    presents,
    speaker,
    state,
    stop,
    subject,
)
from glassformer.corpus.tasks.world.coreference import coreference, reason
from glassformer.corpus.tasks.world.english import english_text
from glassformer.corpus.tasks.world.fragments import Fragment, idiom, join, linked
from glassformer.corpus.tasks.world.french import agree, french_text, settle
from glassformer.corpus.tasks.world.nouns import NOUNS, nouns
from glassformer.corpus.tasks.world.phrases import (
    ADJECTIVES_OF,
    FOUR,
    MANY,
    NOT_A,
    SEVERAL,
    SOME,
    THREE,
    TWO,
    A,
    Manner,
    Phrase,
    build,
    describe,
    location,
    noun_phrase,
    owned,
    verb_group,
)
from glassformer.corpus.tasks.world.verbs import verbs
from glassformer.corpus.tasks.world.words import Adjective, Noun

__all__ = [
    "AND",
    "BUT",
    "RULES",
    "Rule",
    "because",
    "chain",
    "coherent",
    "comparison",
    "description",
    "in_a_row",
    "meanwhile",
    "passive",
    "presence",
    "relative",
    "relative_object",
    "seen",
    "sentence",
    "together",
]

_AGREEING = verbs("eat, cut, wash, paint, break, repair, open, close, read, write, find, buy, sell, choose")
"""Verbs for the passive and for relative clauses, in which the French participle agrees with the object."""

# One clause.

_DESCRIBED = Table(
    (PERSONS, 2),
    (ANIMALS, 4),
    (nouns("object thing clothes"), 5),
    (nouns("furniture"), 2),
    (nouns("food mass drink"), 2.5),
    (nouns("place building waters"), 3.5),
)


def description(draw: Draw) -> Fragment:
    """Return a sentence such as "the chair was old and brown"."""
    options = draw.pick(_DESCRIBED)
    if options[0].kind == "object" and draw.chance(0.25):
        who = owned(draw, PERSONS, options, adjective=0)
    else:
        who = noun_phrase(draw, options, adjective=0, plural=0.4, indefinite="no")
    negated = who.definite and draw.chance(0.15)
    return join(who.fragment, adjectival(draw, who, "negated" if negated else "plain"))


def comparison(draw: Draw) -> Fragment:
    """Return a sentence such as "the dog was older than the cat" ("le chien était plus vieux que le chat")."""
    rows = draw.pick(_COMPARABLE)
    adjective, similar = draw.choose(rows)
    first = noun_phrase(draw, similar, adjective=0, indefinite="no")
    second = noun_phrase(draw, similar, adjective=0, indefinite="no")
    draw.note(adjective.english, first.name)
    compare = draw.pick(_COMPARISONS) if adjective.comparative else draw.choose((_less, _as))
    return join(first.fragment, copula(first.features), *compare(first, adjective), second.fragment)


def _more(who: Phrase, adjective: Adjective) -> tuple[Fragment, ...]:
    quality = described(who, adjective)
    if adjective.comparative == "more":
        return linked("more", "plus"), quality, _THAN
    return idiom(adjective.comparative, f"plus {quality.french[0]}"), _THAN


def _less(who: Phrase, adjective: Adjective) -> tuple[Fragment, ...]:
    return linked("less", "moins"), described(who, adjective), _THAN


def _as(who: Phrase, adjective: Adjective) -> tuple[Fragment, ...]:
    return linked("as", "aussi"), described(who, adjective), linked("as", "que")


_THAN = linked("than", "que")
_COMPARISONS = Table((_more, 8), (_less, 1), (_as, 1))


def _comparable(adjective: Adjective) -> list[tuple[Adjective, tuple[Noun, ...]]]:
    """Return pairs of an adjective and the nouns of one kind that this adjective can compare."""
    kinds = dict.fromkeys(noun.kind for noun in NOUNS)
    similar = [tuple(noun for noun in nouns(kind) if adjective in ADJECTIVES_OF[noun]) for kind in kinds]
    return [(adjective, some) for some in similar if len(some) > 1]


_COMPARABLE = Table(
    ([row for adjective in ADJECTIVES if adjective.comparative for row in _comparable(adjective)], 7),
    ([row for adjective in ADJECTIVES if adjective.gradable for row in _comparable(adjective)], 3),
)


def presence(draw: Draw) -> Fragment:
    """Return a sentence such as "there was a black cat on the rug" ("il y avait un chat noir sur le tapis")."""
    what, where = draw.pick(_THINGS_AND_PLACES)
    noun = draw.choose(what)
    draw.nouns.append(noun)
    negated, many = draw.chance(0.15), draw.chance(0.35)
    determiner = (NOT_A if negated else A) if not many else draw.pick(_SOME_TABLE)
    thing = build(noun, determiner, describe(draw, noun, 0.4), many)
    was = "were" if many else "was"
    if negated and not many:
        be = linked(f"there {was} n't", "il ne y avait pas", (0, 2, 0, 1, 2))
    else:
        be = linked(f"there {was}", "il y avait", (0, 0, 1))
    return join(be, thing.fragment, location(draw, where)[0])


_SOME_TABLE = Table((SOME, 3), (TWO, 2), (THREE, 1), (FOUR, 1), (MANY, 2), (SEVERAL, 2))
_SMALL = nouns("book umbrella lamp cup plate bottle flower bag suitcase guitar candle letter newspaper knife clothes")
_SHELVES = nouns("chair table bed bench desk shelf box basket kitchen house")
_THINGS_AND_PLACES = Table(
    ((PETS, nouns("furniture tree garden street road park house kitchen forest bridge beach river lake")), 4),
    ((BEASTS, nouns("field forest hill mountain valley road river lake island village desert tree")), 3),
    ((PERSONS, nouns("place building")), 2),
    ((_SMALL, _SHELVES), 4),
    ((nouns("food"), nouns("table box basket shelf kitchen")), 2),
)


def passive(draw: Draw) -> Fragment:
    """Return a sentence such as "the apple was eaten by the mouse" ("la pomme a été mangée par la souris")."""
    verb = draw.choose(_AGREEING)
    thing = noun_phrase(draw, OBJECTS[verb], adjective=0.2, plural=0.35, indefinite="no")
    agents = [agent for agent in PEOPLE + ANIMALS if verb in ACTIONS_OF[agent]]
    was, have = ("were", "ont") if thing.features.plural else ("was", "a")
    if draw.chance(0.15):
        be = linked(f"{was} n't", f"ne {have} pas été", (1, 0, 1, 0))
    else:
        be = linked(was, f"{have} été", (0, 0))
    what = linked(verb.done or verb.past, agree(verb.participle, thing.features))
    agent = noun_phrase(draw, agents, adjective=0.2, indefinite="no")
    return join(thing.fragment, be, what, linked("by", "par"), agent.fragment)


# Relative clauses.


def relative(draw: Draw) -> Fragment:
    """Return a sentence such as "the black cat that slept on the rug was tired"."""
    who = noun_phrase(draw, draw.choose((PERSONS, ANIMALS)), indefinite="no")
    first, second = draw.pick(_RELATED), draw.pick(_CONCLUDED)
    return join(who.fragment, _who(who.noun), first(draw, who, "plain"), second(draw, who, "plain"))


def _who(noun: Noun) -> Fragment:
    return linked("who" if noun in PEOPLE else "that", "qui")


_RELATED: Table[Predicate] = Table((activity, 5), (action, 3), (movement, 1), (passage, 1))
_CONCLUDED: Table[Predicate] = Table((adjectival, 6), (activity, 2), (action, 3), (movement, 1), (passage, 1))


def relative_object(draw: Draw) -> Fragment:
    """Return a sentence such as "the car that the woman bought was red" ("la voiture que la femme a achetée …")."""
    verb = draw.choose(_AGREEING)
    thing = noun_phrase(draw, OBJECTS[verb], adjective=0.15, plural=0.35, indefinite="no")
    who = person(draw)
    did = verb_group(verb, who.features, draw.pick(_DID), thing.features)
    return join(thing.fragment, linked("that", "que"), who.fragment, did, adjectival(draw, thing))


_DID: Table[Manner] = Table(("plain", 85), ("negated", 15))


def seen(draw: Draw) -> Fragment:
    """Return a sentence such as "the girl saw the cat that was sleeping on the rug"."""
    who = subject(draw)
    verb = draw.choose([verb for verb in ACTIONS_OF[who.noun] if verb.base in _PERCEIVED])
    other = noun_phrase(draw, draw.choose((PERSONS, ANIMALS)), adjective=0.15, plural=0.15, indefinite="no")
    did = verb_group(verb, who.features, draw.pick(_DID) if who.definite else "plain")
    return join(who.fragment, did, other.fragment, _who(other.noun), activity(draw, other))


_PERCEIVED = ("see", "hear", "watch", "follow", "help")

# Two clauses.


def together(draw: Draw) -> Fragment:
    """Return a sentence such as "the black cat sat on the couch and the brown dog slept on the rug"."""
    make = draw.choose((state, event))
    return join(make(draw), draw.choose((AND, AND, BUT)), make(draw))


def in_a_row(draw: Draw) -> Fragment:
    """Return a sentence such as "the girl opened the door and entered the house"."""
    who = subject(draw)
    first, second = draw.pick(_STEPS), draw.pick(_STEPS)
    return join(who.fragment, first(draw, who, "plain"), AND, second(draw, who, "plain"))


def meanwhile(draw: Draw) -> Fragment:
    """Return a sentence such as "the cat was sleeping when the dog entered the kitchen" (or "while …")."""
    first, second = subject(draw), subject(draw)
    if draw.chance(0.5):
        link, then = linked("when", "quand"), draw.pick(_STEPS)
    else:
        link, then = idiom("while", "pendant que"), activity
    return join(first.fragment, activity(draw, first, "plain"), link, second.fragment, then(draw, second, "plain"))


_STEPS: Table[Predicate] = Table((movement, 3), (passage, 2), (action, 4), (stop, 1))
AND, BUT = linked("and", "et"), linked("but", "mais")


def because(draw: Draw) -> Fragment:
    """Return a sentence such as "the girl didn't buy the car because it was too old"."""
    who = noun_phrase(draw, PEOPLE, plural=0, indefinite="no")
    verb, manner = draw.choose(_REASONABLE), draw.pick(_DID)
    thing = noun_phrase(draw, OBJECTS[verb], adjective=0, plural=0, indefinite="no")
    referent, qualities = (who, _MOODS) if draw.chance(0.4) else (thing, _QUALITIES[thing.noun])
    quality = draw.choose(qualities)
    draw.note(quality.english, referent.name)
    how = None if not quality.gradable else ("too", "trop") if manner == "negated" else ("very", "très")
    return join(who.fragment, verb_group(verb, who.features, manner), thing.fragment, reason(quality, referent, how))


_REASONABLE = verbs("buy, sell, choose, repair, wash, paint, eat, taste, feed, help, draw")
_MOODS = adjectives("tired hungry thirsty sick lazy nervous happy sad angry jealous kind clever rich")
_PLAIN = (*COLOURS, *adjectives("round good bad young"))
_QUALITIES = {noun: tuple(a for a in ADJECTIVES_OF[noun] if a not in _PLAIN) for noun in NOUNS}


def chain(draw: Draw) -> Fragment:
    """Return several sentences joined to one: "… because it was too tired and the girl who … was happy"."""
    first, second = draw.choose(_LINKS), draw.choose(_LINKS)
    if draw.chance(0.5):
        return join(first(draw), AND, second(draw))
    return join(first(draw), draw.choose((AND, BUT)), second(draw), AND, draw.choose(_LINKS)(draw))


_LINKS = (relative, seen, meanwhile, state, event, coreference, because)


class Rule(NamedTuple):
    """A kind of sentence and its share of the corpus."""

    name: str
    share: float
    draw: Callable[[Draw], Fragment]


RULES = (
    Rule("state", 11, state),
    Rule("event", 15, event),
    Rule("speaker", 4, speaker),
    Rule("gift", 3, presents),
    Rule("description", 9, description),
    Rule("comparison", 2.5, comparison),
    Rule("presence", 3, presence),
    Rule("passive", 4, passive),
    Rule("relative", 4, relative),
    Rule("relative object", 4, relative_object),
    Rule("seen", 2.5, seen),
    Rule("together", 5, together),
    Rule("in a row", 2.5, in_a_row),
    Rule("meanwhile", 3, meanwhile),
    Rule("because", 3, because),
    Rule("coreference", 18, coreference),
    Rule("sense", 17, sense),
    Rule("chain", 8, chain),
)
"""Every kind of sentence, with its relative frequency."""


# Whole sentences.

_STOP = linked(".", ".")


def sentence(fragment: Fragment, kind: str = "", pair: int | None = None) -> Example:
    """Return a fragment as an example: with elisions and contractions, a capital letter and a full stop."""
    english, french, origins = join(fragment, _STOP)
    settled, sources = settle(french, origins)
    source, target = english_text(english), french_text(settled)
    return Example(
        source=source[0].upper() + source[1:],
        target=target[0].upper() + target[1:],
        kind=kind,
        pair=pair,
        origins=sources,
    )


def coherent(draw: Draw) -> bool:
    """Return whether the sentence just drawn is coherent.

    A coherent sentence repeats no noun and no combination of words, and describes no noun with opposite adjectives.
    """
    if len(set(draw.nouns)) < len(draw.nouns) or len(set(draw.combinations)) < len(draw.combinations):
        return False
    said = [words for words in draw.combinations if len(words) == 2]
    return not any(
        noun == other and frozenset((quality, opposite)) in OPPOSITES
        for (quality, noun), (opposite, other) in combinations(said, 2)
    )
