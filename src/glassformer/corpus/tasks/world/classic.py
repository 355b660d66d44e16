"""The classic sentences about attention, translated by the grammar. No split contains these sentences.

>>> print(CLASSIC[1].target)
L'animal n'a pas traversé la rue parce qu'il était trop fatigué.
"""

from glassformer.corpus.tasks.example import Example
from glassformer.corpus.tasks.world.adjectives import adjectives
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS
from glassformer.corpus.tasks.world.clauses import CROSSINGS_OF, GOING_TO, ME, cross
from glassformer.corpus.tasks.world.coreference import reason
from glassformer.corpus.tasks.world.fragments import Fragment, join
from glassformer.corpus.tasks.world.grammar import AND, sentence
from glassformer.corpus.tasks.world.nouns import nouns
from glassformer.corpus.tasks.world.phrases import OTHER, THE, Determiner, build, preposition, verb_group
from glassformer.corpus.tasks.world.senses import JOINING
from glassformer.corpus.tasks.world.verbs import verbs
from glassformer.corpus.tasks.world.words import Noun

__all__ = ["CLASSIC"]


def _settled(animal: str, colour: str, verb: str, furniture: str) -> Fragment:
    """Return "the black cat sat on the couch"."""
    who = build(*nouns(animal), THE, adjectives(colour))
    (where,) = nouns(furniture)
    (did,) = verbs(verb)
    return join(who.fragment, verb_group(did, who.features), preposition(where.at), build(where, THE).fragment)


def _stranded(quality: str, of_place: bool) -> Fragment:
    """Return "the animal didn't cross the street because it was too …"."""
    animal, street = (build(noun, THE) for word in ("animal", "street") for noun in nouns(word))
    (crossing,), (adjective,) = verbs("cross"), adjectives(quality)
    did = verb_group(crossing, animal.features, "negated")
    because = reason(adjective, street if of_place else animal, ("too", "trop"))
    return join(animal.fragment, did, street.fragment, because)


def _travelled(way: str, place: str, to: Fragment, determiner: Determiner, bank: Noun) -> Fragment:
    """Return "I swam across the river to get to the other bank"."""
    (crossing,) = (crossing for crossing in CROSSINGS_OF[ME.noun] if crossing.verb.base == f"{way} across")
    crossed = cross(crossing, ME, "plain", build(*nouns(place), THE))
    return join(ME.fragment, crossed, to, build(bank, determiner).fragment)


_SHORE, _OFFICE = (meaning.noun for meaning in AMBIGUOUS["bank"].meanings)

CLASSIC: tuple[Example, ...] = tuple(
    sentence(fragment, "classic")
    for fragment in (
        join(_settled("cat", "black", "sit", "couch"), AND, _settled("dog", "brown", "sleep", "rug")),
        _stranded("tired", of_place=False),
        _stranded("wide", of_place=True),
        _travelled("swim", "river", JOINING, OTHER, _SHORE),
        _travelled("drive", "road", GOING_TO, THE, _OFFICE),
    )
)
"""The sentences: the black cat and the brown dog; the tired animal and the wide street; the two kinds of bank."""
