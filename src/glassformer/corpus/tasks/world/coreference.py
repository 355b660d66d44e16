"""Sentences whose adjective decides which noun "it" refers to. The gender of this noun decides the French pronoun.

>>> from glassformer.corpus.tasks.world.phrases import THE, build
>>> animal, street = (build(noun, THE) for noun in nouns("animal street"))
>>> reason(*adjectives("tired"), animal, ("too", "trop")).french
('parce', 'que', 'il', 'était', 'trop', 'fatigué')
>>> reason(*adjectives("wide"), street, ("too", "trop")).french
('parce', 'que', 'elle', 'était', 'trop', 'large')
"""

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.world.adjectives import DEGREES, GROUNDS, adjectives
from glassformer.corpus.tasks.world.clauses import ANIMALS, OBJECTS, PEOPLE
from glassformer.corpus.tasks.world.fragments import Fragment, join, linked
from glassformer.corpus.tasks.world.french import Features, adjective_form
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.phrases import (
    ADJECTIVES_OF,
    Phrase,
    infinitive,
    look,
    noun_phrase,
    unable,
    verb_group,
)
from glassformer.corpus.tasks.world.verbs import INTENTIONS, MOVEMENTS, PASSAGES
from glassformer.corpus.tasks.world.words import Adjective, Noun, Verb

__all__ = ["PAIRS", "coreference", "minimal_pair", "reason"]

_STATES = adjectives("tired hungry thirsty scared sick lazy nervous shy injured careful young")
"""Adjectives that describe animals but never places, so that "it" must be the animal. `GROUNDS` describe only places.
"""

_REASONS = {"reach": adjectives("remote rocky"), "climb": adjectives("steep high slippery rocky")}
_ENTER = tuple(verb for verb in MOVEMENTS if verb.base == "enter")
_WANT, _REFUSE = (verb for verb in INTENTIONS if verb.base in ("want", "refuse"))


def _natures(verb: Verb, place: Noun) -> tuple[Adjective, ...]:
    """Return the qualities of a place that are a reason for or against an action."""
    allowed = _REASONS.get(verb.base) or [a for a in GROUNDS if a.english != "remote"]
    return tuple(a for a in ADJECTIVES_OF[place] if a in GROUNDS and a in allowed)


_WAYS_TO = {
    place: ways
    for place in nouns("place building waters")
    if (
        ways := tuple(
            (verb, natures)
            for verb in _ENTER + PASSAGES
            if place in OBJECTS[verb] and verb.base != "visit" and (natures := _natures(verb, place))
        )
    )
}
PAIRS = tuple((animal, place) for animal in ANIMALS for place in _WAYS_TO)
"""Every pair of an animal and a place, if the place has a quality that can be the reason."""

_FRAMES = Table(("negated", 5), ("unable", 2), ("refused", 1.5), ("unwilling", 1.5))
_DEGREE_TABLE = Table(*zip(DEGREES.items(), (2, 12, 2, 1), strict=True))


def coreference(draw: Draw) -> Fragment:
    """Return a sentence such as "The animal didn't cross the street because it was too tired"."""
    animal, place = draw.choose(PAIRS)
    who, where, main, natures = _main_clause(draw, animal, place)
    referent, adjective = (who, draw.choose(_STATES)) if draw.chance(0.5) else (where, draw.choose(natures))
    draw.note(adjective.english, referent.name)
    degree = draw.pick(_DEGREE_TABLE) if adjective.gradable else None
    return join(main, reason(adjective, referent, degree))


def minimal_pair(draw: Draw, animal: Noun, place: Noun) -> tuple[Fragment, Fragment]:
    """Return two sentences that differ only in the last adjective, which describes the animal or the place."""
    who, where, main, natures = _main_clause(draw, animal, place)
    state, nature = draw.choose(_STATES), draw.choose(natures)
    draw.note(state.english, who.name)
    draw.note(nature.english, where.name)
    degree = draw.pick(_DEGREE_TABLE) if state.gradable and nature.gradable else None
    return join(main, reason(state, who, degree)), join(main, reason(nature, where, degree))


def _main_clause(draw: Draw, animal: Noun, place: Noun) -> tuple[Phrase, Phrase, Fragment, tuple[Adjective, ...]]:
    """Return the animal, the place, a clause ("the animal didn't cross the street"), and its possible reasons."""
    who = noun_phrase(draw, (animal,), adjective=0.25, plural=0, indefinite="no", describing=look)
    where = noun_phrase(draw, (place,), adjective=0.1, indefinite="no", describing=look)
    verb, natures = draw.choose(_WAYS_TO[place])
    draw.note(who.name, verb.base, where.name)
    return who, where, join(who.fragment, _attitude(draw, who.features, verb), where.fragment), natures


def _attitude(draw: Draw, features: Features, verb: Verb) -> Fragment:
    """Return a verb group such as "didn't cross", "couldn't cross", "refused to cross", "avoided" or "left"."""
    if verb.base == "avoid" or (verb.base == "leave" and draw.chance(0.5)):
        return verb_group(verb, features)
    match draw.pick(_FRAMES):
        case "negated":
            return verb_group(verb, features, "negated")
        case "unable":
            return unable(verb, features)
        case "refused":
            return join(verb_group(_REFUSE, features), infinitive(verb, "de"))
        case _:
            return join(verb_group(_WANT, features, "negated"), infinitive(verb))


def reason(adjective: Adjective, who: Phrase, degree: tuple[str, str] | None) -> Fragment:
    """Return a reason, such as "because it was too tired"; "it" stands for the noun `who`."""
    feminine = who.features.gender == "f"
    it = "it" if who.noun not in PEOPLE else "she" if feminine else "he"
    because = linked(f"because {it} was", f"parce que {'elle' if feminine else 'il'} était", (0, 0, 1, 2))
    quality = linked(adjective.english, adjective_form(adjective, who.features))
    return join(because, *((linked(*degree),) if degree else ()), quality)
