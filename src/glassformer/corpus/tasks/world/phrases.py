"""The parts of sentences: noun phrases, verb groups, places. Each part is built in English and French together.

>>> cat, = nouns("cat")
>>> small, black = (adjective for adjective in ADJECTIVES if adjective.english in ("small", "black"))
>>> build(cat, MY, (small, black)).fragment.french
('mon', 'petit', 'chat', 'noir')
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.world.adjectives import ADJECTIVES, COLOURS, GROUNDS, STATES
from glassformer.corpus.tasks.world.english import an, english_plural
from glassformer.corpus.tasks.world.fragments import EMPTY, Fragment, arrange, idiom, join, linked
from glassformer.corpus.tasks.world.french import (
    Features,
    adjective_form,
    finite,
    french_plural,
    participle,
    starts_with_vowel,
)
from glassformer.corpus.tasks.world.nouns import NOUNS, nouns
from glassformer.corpus.tasks.world.words import Adjective, Gender, Noun, Verb

__all__ = [
    "ADJECTIVES_OF",
    "ALL",
    "FOUR",
    "HER",
    "HIS",
    "LOOKS_OF",
    "MANY",
    "MY",
    "NEAR",
    "NOT_A",
    "OTHER",
    "OUR",
    "SEVERAL",
    "SOME",
    "THE",
    "THESE",
    "THIS",
    "THREE",
    "TWO",
    "A",
    "Determiner",
    "Indefinite",
    "Manner",
    "Number",
    "Phrase",
    "both",
    "build",
    "describe",
    "edge",
    "fitting",
    "genitive",
    "infinitive",
    "location",
    "look",
    "noun_phrase",
    "owned",
    "preposition",
    "unable",
    "verb_group",
]


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """An article, a demonstrative, a possessive or a quantity, with its French forms."""

    english: str
    masculine: str = ""
    feminine: str = ""
    plural: str = ""
    feminine_plural: str = ""
    masculine_before_vowel: str = ""
    feminine_before_vowel: str = ""
    plural_before_adjective: str = ""
    definite: bool = True
    """Whether a negated clause has the same meaning in both languages: true for "the cat", false for "many cats"."""

    def french(self, features: Features, following: str, before_adjective: bool) -> str:
        """Return the French form for a noun with these features; `following` is the next word."""
        vowel = starts_with_vowel(following)
        if features.plural:
            plural = (features.gender == "f" and self.feminine_plural) or self.plural
            return (before_adjective and self.plural_before_adjective) or plural
        if features.gender == "f":
            return (vowel and self.feminine_before_vowel) or self.feminine
        return (vowel and self.masculine_before_vowel) or self.masculine


THE = Determiner("the", "le", "la", "les")
A = Determiner("a", "un", "une", definite=False)
NOT_A = Determiner("a", "de", "de")
THIS = Determiner("this", "ce", "cette", masculine_before_vowel="cet")
THESE = Determiner("these", plural="ces")
OTHER = Determiner("the other", "le autre", "la autre", "les autres")
MY = Determiner("my", "mon", "ma", "mes", feminine_before_vowel="mon")
OUR = Determiner("our", "notre", "notre", "nos")
HIS = Determiner("his", "son", "sa", "ses", feminine_before_vowel="son")
HER = Determiner("her", "son", "sa", "ses", feminine_before_vowel="son")
SOME = Determiner("some", plural="des", plural_before_adjective="de", definite=False)
ALL = Determiner("all the", plural="tous les", feminine_plural="toutes les", definite=False)
TWO = Determiner("two", plural="deux", definite=False)
THREE = Determiner("three", plural="trois", definite=False)
FOUR = Determiner("four", plural="quatre", definite=False)
MANY = Determiner("many", plural="beaucoup de", definite=False)
SEVERAL = Determiner("several", plural="plusieurs", definite=False)

Indefinite = Literal["yes", "negated", "no"]
"""Whether the determiner can be "a": "yes", "no", or "negated" (the object of a negation, where French has "de")."""

Number = Literal["one", "more"]
_Rows = tuple[tuple[Determiner, float], ...]
_ARTICLES: dict[Indefinite, _Rows] = {"yes": ((A, 14),), "negated": ((NOT_A, 14),), "no": ()}
_POSSESSIVES: _Rows = ((MY, 5), (OUR, 3), (HIS, 2.5), (HER, 2.5))
_DEFINITE: dict[Number, _Rows] = {"one": ((THE, 62), (THIS, 8), (OTHER, 3)), "more": ((THE, 40), (THESE, 12))}
_QUANTITIES: _Rows = ((TWO, 9), (THREE, 7), (FOUR, 7), (SOME, 14), (MANY, 9), (SEVERAL, 8), (ALL, 9))
_OWNABLE = ("pet", "object", "thing", "furniture", "clothes", "food")
_COUNTABLE = ("person", "beast", *_OWNABLE)


@cache
def _determiners(kind: str, number: Number, indefinite: Indefinite) -> Table[Determiner]:
    """Return the determiners for nouns of this kind: relatives have a possessive; water and bread never have "a"."""
    if kind == "kin":
        return Table(*_POSSESSIVES)
    rows = _DEFINITE[number] + (_POSSESSIVES if kind in _OWNABLE else ())
    if number == "more":
        return Table(*rows, *(_QUANTITIES if indefinite == "yes" else ()))
    return Table(*rows, *(() if kind in ("mass", "drink") else _ARTICLES[indefinite]))


class Phrase(NamedTuple):
    """A noun phrase or a pronoun: its words, its features for agreement, and its noun, which decides the verbs."""

    fragment: Fragment
    features: Features
    noun: Noun
    name: str
    definite: bool = True


ADJECTIVES_OF = {noun: tuple(a for a in ADJECTIVES if noun in nouns(a.fits)) for noun in NOUNS}
"""The adjectives that can describe each noun."""

_COLOURS_OF = {noun: tuple(a for a in fit if a in COLOURS) for noun, fit in ADJECTIVES_OF.items()}
_OTHERS_OF = {noun: tuple(a for a in fit if a not in COLOURS) for noun, fit in ADJECTIVES_OF.items()}
LOOKS_OF = {
    noun: tuple(a for a in fitting if a not in STATES + GROUNDS and a.english not in ("young", "small", "big", "long"))
    for noun, fitting in ADJECTIVES_OF.items()
}
"""For each noun, the adjectives that describe its look. Such an adjective is never a reason in a sentence."""

_TWO_BEFORE_AND_AFTER = {
    noun: tuple((a, b) for a in fitting for b in fitting if a.precedes and b in COLOURS + STATES and not b.precedes)
    for noun, fitting in ADJECTIVES_OF.items()
}


@cache
def build(noun: Noun, determiner: Determiner, described: tuple[Adjective, ...] = (), plural: bool = False) -> Phrase:
    """Return a determiner, adjectives and a noun. In French, most adjectives follow the noun, and some precede it."""
    features = Features(noun.gender, plural)
    english = noun.plural or english_plural(noun.english) if plural else noun.english
    french = noun.french_plural or french_plural(noun.french) if plural else noun.french
    before = [adjective for adjective in described if adjective.precedes]
    after = [adjective for adjective in described if not adjective.precedes]
    parts = [linked(english, french)]
    for adjective in reversed(before):
        parts.insert(0, linked(adjective.english, adjective_form(adjective, features, parts[0].french[0])))
    for adjective in after:
        parts.insert(len(before), linked(adjective.english, adjective_form(adjective, features)))
    order = [*range(len(before)), len(parts) - 1, *range(len(before), len(parts) - 1)]
    words = arrange(*parts, order=order)
    article = determiner.english if determiner.english != "a" else an(words.english[0])
    given = determiner.french(features, words.french[0], bool(before))
    first = linked(article, given) if len(article.split()) == len(given.split()) else idiom(article, given)
    return Phrase(join(first, words), features, noun, noun.english, determiner.definite)


def fitting(draw: Draw, noun: Noun) -> Adjective:
    """Return an adjective that can describe the noun; at most one in three is a colour."""
    return draw.choose(_COLOURS_OF[noun] if _COLOURS_OF[noun] and draw.chance(0.33) else _OTHERS_OF[noun])


def describe(draw: Draw, noun: Noun, chance: float) -> tuple[Adjective, ...]:
    """Return no adjective, one adjective, or one before and one after the noun; record the combinations."""
    chosen: tuple[Adjective, ...] = ()
    if draw.chance(chance):
        pairs = _TWO_BEFORE_AND_AFTER[noun]
        chosen = draw.choose(pairs) if pairs and draw.chance(0.2) else (fitting(draw, noun),)
    for adjective in chosen:
        draw.note(adjective.english, noun.english)
    return chosen


def look(draw: Draw, noun: Noun, chance: float) -> tuple[Adjective, ...]:
    """Return no adjective, or one adjective that says how the noun looks, not a state or the quality of a place."""
    if not LOOKS_OF[noun] or not draw.chance(chance):
        return ()
    adjective = draw.choose(LOOKS_OF[noun])
    draw.note(adjective.english, noun.english)
    return (adjective,)


def noun_phrase(
    draw: Draw,
    options: Sequence[Noun],
    *,
    adjective: float = 0.3,
    plural: float = 0.24,
    indefinite: Indefinite = "yes",
    describing: Callable[[Draw, Noun, float], tuple[Adjective, ...]] = describe,
) -> Phrase:
    """Return a noun phrase with one of these nouns."""
    noun = draw.choose(options)
    draw.nouns.append(noun)
    many = noun.kind in _COUNTABLE and draw.chance(plural)
    determiner = draw.pick(_determiners(noun.kind, "more" if many else "one", indefinite))
    return build(noun, determiner, describing(draw, noun, adjective), many)


def owned(draw: Draw, owners: Sequence[Noun], options: Sequence[Noun], adjective: float = 0.25) -> Phrase:
    """Return a phrase in both languages, such as "the girl's black cat" ("le chat noir de la fille")."""
    owner = noun_phrase(draw, owners, adjective=0.15, plural=0, indefinite="no")
    noun = draw.choose(options)
    draw.nouns.append(noun)
    thing = build(noun, THE, describe(draw, noun, adjective))
    return Phrase(genitive(owner.fragment, thing.fragment), thing.features, noun, noun.english)


def genitive(owner: Fragment, thing: Fragment) -> Fragment:
    """Return the phrase "owner's thing". `thing` begins with "the"; in English, "'s" replaces this article."""
    rest = Fragment(("'s", *thing.english[1:]), (*thing.french, "de"), (*thing.origins, 1))
    return arrange(owner, rest, order=(1, 0))


def both(first: Phrase, second: Phrase) -> Phrase:
    """Return two subjects joined by "and": plural, and masculine unless both are feminine."""
    gender: Gender = "f" if first.features.gender == second.features.gender == "f" else "m"
    fragment = join(first.fragment, linked("and", "et"), second.fragment)
    return Phrase(fragment, Features(gender, True), first.noun, first.name, first.definite and second.definite)


Manner = Literal["plain", "progressive", "negated", "never", "often"]
_ADVERBS = {"never": "jamais", "often": "souvent"}


@cache
def verb_group(verb: Verb, features: Features, manner: Manner = "plain", agreeing: Features | None = None) -> Fragment:
    """Return the verb in the past tense, with the negation or adverb of the manner.

    `agreeing` are the features of an object that precedes the verb; the participle agrees with this object ("la voiture
    que la fille a achetée").
    """
    english, main, auxiliary, adverb = _english_past(verb, features, manner)
    conjugated = auxiliary or main
    compound = bool(verb.participle or verb.posture)
    french = [(finite(verb, features), conjugated if compound else main | auxiliary)]
    if verb.reflexive:
        french.insert(0, ("se", main))
    if manner in ("negated", "never"):
        french.insert(0, ("ne", adverb))
    if adverb:
        french.append((_ADVERBS.get(manner, "pas"), adverb))
    if compound:
        agrees = verb.auxiliary == "être" or verb.posture
        form = participle(verb, features if agrees else agreeing or Features("m"))
        french.append((form, main))
    french += [(word, main) for word in _inner_preposition(verb)]
    words, origins = zip(*french, strict=True)
    return Fragment(english, words, origins)


def _english_past(verb: Verb, features: Features, manner: Manner) -> tuple[tuple[str, ...], int, int, int]:
    """Return the English words, and the positions of three parts as bits: verb, auxiliary, adverb or negation."""
    was = "were" if features.plural else "was"
    if manner in _ADVERBS:
        words = (manner, *verb.past.split())
        return words, _bits(1, len(words)), 0, 1
    if manner == "progressive":
        return (was, verb.ing), 2, 1, 0
    if manner == "negated":
        words = (was, "n't", verb.ing) if verb.ing else ("did", "n't", *verb.base.split())
        return words, _bits(2, len(words)), 1, 2
    words = tuple(verb.past.split())
    return words, _bits(0, len(words)), 0, 0


def _bits(start: int, stop: int) -> int:
    return (1 << stop) - (1 << start)


@cache
def infinitive(verb: Verb, marker: str = "") -> Fragment:
    """Return a verb's infinitive, such as "to buy" ("acheter", or "d'acheter" with the French marker "de")."""
    doing = idiom(verb.base, " ".join((verb.infinitive, *_inner_preposition(verb))))
    if marker:
        return join(linked("to", marker), doing)
    return idiom(f"to {verb.base}", " ".join(doing.french))


_CAN = Verb("can", "could", "pouvoir", "pu")


@cache
def unable(verb: Verb, features: Features) -> Fragment:
    """Return a verb group in both languages, such as "couldn't cross" ("n'a pas pu traverser")."""
    modal = linked("could n't", f"ne {finite(_CAN, features)} pas pu", (1, 0, 1, 0))
    return join(modal, idiom(verb.base, " ".join((verb.infinitive, *_inner_preposition(verb)))))


def _inner_preposition(verb: Verb) -> list[str]:
    """Return a French preposition that has no English counterpart, such as "dans" in "entrer dans la maison"."""
    return verb.preposition.split()[1:] if verb.preposition.startswith("- ") else []


@cache
def preposition(words: str) -> Fragment:
    """Return the preposition of a lexicon entry such as "on sur" or "to jusque à"; empty if the entry has none."""
    english, _, french = words.partition(" ")
    return EMPTY if english in ("", "-") else idiom(english, french)


NEAR = (idiom("near", "près de"), idiom("next to", "à côté de"))
_AROUND = (*NEAR, linked("behind", "derrière"), idiom("in front of", "devant"))
_UNDER = linked("under", "sous")


def _places() -> dict[Noun, Table[Fragment]]:
    """Return, for each noun, the prepositions for places: in or on, near, behind or under the noun."""
    solid, covers = nouns("furniture tree building wall hedge"), nouns("table bed bench desk tree bridge")
    tables = {}
    for noun in NOUNS:
        around = _AROUND if noun in solid else NEAR
        rows = [(preposition(noun.at), 6.0)] if noun.at else []
        rows += [(_UNDER, 2.0)] if noun in covers else []
        tables[noun] = Table(*rows, *((near, 3.0 / len(around)) for near in around))
    return tables


_PLACES = _places()
_EDGED = nouns("waters forest road field")


def location(draw: Draw, options: Sequence[Noun], given: str = "") -> tuple[Fragment, Noun]:
    """Return a place, such as "on the red couch", and its noun ("couch"); `given` may be a preposition to use."""
    noun = draw.choose(options)
    if not given and noun in _EDGED and draw.chance(0.3):
        return edge(noun_phrase(draw, (noun,), adjective=0.1, plural=0, indefinite="no"), "at à"), noun
    where = preposition(given) if given else draw.pick(_PLACES[noun])
    inside = where.french == ("à",)
    place = noun_phrase(draw, (noun,), adjective=0.2, plural=0, indefinite="no" if inside else "yes")
    return join(where, place.fragment), noun


def edge(place: Phrase, to: str) -> Fragment:
    """Return a place in both languages, such as "at the river's edge" ("au bord de la rivière")."""
    return join(preposition(to), genitive(place.fragment, linked("the edge", "le bord")))
