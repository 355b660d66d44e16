"""The words of the built-in corpus: nouns, adjectives and verbs, each with its French translation.

Only irregular forms are listed; `english.py` and `french.py` make the regular forms. Words are compared by identity,
because two words may have the same spelling and different meanings.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["ALIVE", "Adjective", "Crossing", "Gender", "Noun", "Verb"]

Gender = Literal["m", "f"]

ALIVE = "person kin pet beast"
"""The kinds of nouns for people and animals."""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun: its English and French forms, its French gender, and its kind."""

    english: str
    french: str
    gender: Gender
    kind: str
    at: str = ""
    """For a place: the English and the French preposition for being there, such as "on sur"."""
    plural: str = ""
    """The English plural if it is irregular."""
    french_plural: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective: its English and French forms, its position in French, and the nouns that it can describe."""

    english: str
    french: str
    feminine: str = ""
    """The French feminine if it is irregular."""
    fits: str = ""
    """The kinds of nouns, or single nouns, that the adjective can describe."""
    before_vowel: str = ""
    """The French masculine before a vowel: "bel", "vieil", "nouvel"."""
    precedes: bool = False
    """Whether the adjective precedes the noun in French."""
    invariable: bool = False
    gradable: bool = True
    """Whether *very* can modify the adjective."""
    comparative: str = ""
    """The English comparative, such as "older", or "more"; "" = comparisons use only "less" and "as"."""


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb, which decides the French past tense: the passé composé for an event, and the imparfait for a state.

    An event has a `participle`. A state has an `imparfait` stem ("dorm" + "ait"), or a `posture`, which follows
    "être" ("était assis").
    """

    base: str
    past: str
    infinitive: str
    participle: str = ""
    imparfait: str = ""
    posture: str = ""
    ing: str = ""
    """The English -ing form. A verb with an -ing form is negated like "wasn't sleeping", not like "didn't sleep"."""
    done: str = ""
    """The English past participle if it differs from the past tense: "eaten"."""
    auxiliary: Literal["avoir", "être"] = "avoir"
    reflexive: bool = False
    preposition: str = ""
    """The English and the French preposition of the complement, such as "to à"; "- dans" = no English preposition."""
    subjects: str = "person kin"
    """The kinds of nouns, or single nouns, that can be the subject."""
    objects: str = ""
    """The kinds of nouns, or single nouns, that can be the object; for a state, the place."""


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A manner of crossing. English expresses the manner by the verb ("swam across"), French by words at the end ("à la
    nage").
    """

    verb: Verb
    way: str
    places: str
