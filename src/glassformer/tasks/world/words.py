"""What is known about a word of the built-in corpus: a noun, an adjective, a verb, each with its French translation.

Only what is irregular is written down; `english.py` and `french.py` make the regular forms. Words are compared by
identity: two words may look the same and mean different things.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["ALIVE", "Adjective", "Crossing", "Gender", "Noun", "Verb"]

Gender = Literal["m", "f"]

ALIVE = "person kin pet beast"
"""The kinds of nouns of people and animals."""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """One noun: English, French, gender, and what kind of thing it is."""

    english: str
    french: str
    gender: Gender
    kind: str
    at: str = ""
    """How one is there: the English and the French preposition, "on sur"."""
    plural: str = ""
    """The English plural where it is irregular."""
    french_plural: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """One adjective: English, French masculine and feminine, where it stands, and what it can be said of."""

    english: str
    french: str
    feminine: str = ""
    """The French feminine where it is irregular."""
    fits: str = ""
    """The kinds of nouns, or single nouns, that it goes with."""
    before_vowel: str = ""
    """The French masculine before a vowel: "bel", "vieil", "nouvel"."""
    precedes: bool = False
    """Whether it stands before the noun in French."""
    invariable: bool = False
    gradable: bool = True
    """Whether something can be *very* so."""
    comparative: str = ""
    """The English comparative: "older", or "more"; without one, it is compared by "less" and "as" only."""


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """One verb. The French past tense belongs to it: an event takes the passé composé, a state the imparfait.

    An event has a `participle`. A state has an `imparfait` stem ("dorm" + "ait"), or a `posture`, which is said with
    "être" ("était assis").
    """

    base: str
    past: str
    infinitive: str
    participle: str = ""
    imparfait: str = ""
    posture: str = ""
    ing: str = ""
    """The English -ing form; what has one is negated by "wasn't sleeping" and not by "didn't sleep"."""
    done: str = ""
    """The English past participle where it differs from the past tense: "eaten"."""
    auxiliary: Literal["avoir", "être"] = "avoir"
    reflexive: bool = False
    preposition: str = ""
    """The English and the French preposition of what follows, "to à"; "- dans" where English has none."""
    subjects: str = "person kin"
    """The kinds of nouns, or single nouns, that do it."""
    objects: str = ""
    """What it is done to; for a state, where it happens."""


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A way to get across: English says it with the verb ("swam across"), French at the end ("à la nage")."""

    verb: Verb
    way: str
    places: str
