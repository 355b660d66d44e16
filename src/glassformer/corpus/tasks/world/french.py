"""Regular French forms: plurals, feminines, agreement, the two past tenses, elision and contraction.

>>> settle(("parce", "que", "il", "est", "à", "le", "bord", "de", "la", "eau"))[0]
('parce', "qu'", 'il', 'est', 'au', 'bord', 'de', "l'", 'eau')
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from glassformer.corpus.tasks.world.nouns import ASPIRATED
from glassformer.corpus.tasks.world.words import Adjective, Gender, Verb

__all__ = [
    "Features",
    "adjective_form",
    "agree",
    "finite",
    "french_plural",
    "french_text",
    "participle",
    "settle",
    "starts_with_vowel",
]


class Features(NamedTuple):
    """The features for agreement with a noun or a pronoun: gender, number and person (1 or 3)."""

    gender: Gender
    plural: bool = False
    person: int = 3


_ENDINGS = {(1, False): "ais", (1, True): "ions", (3, False): "ait", (3, True): "aient"}
_PRESENT = {
    "avoir": {(1, False): "ai", (1, True): "avons", (3, False): "a", (3, True): "ont"},
    "être": {(3, False): "est", (3, True): "sont"},
}
_ELIDED = {"le": "l'", "la": "l'", "de": "d'", "que": "qu'", "ne": "n'", "je": "j'", "se": "s'", "jusque": "jusqu'"}
_CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}


def french_plural(noun: str) -> str:
    """Return the regular plural of a French noun or masculine adjective."""
    if noun.endswith(("s", "x", "z")):
        return noun
    if noun.endswith(("eau", "eu")) and noun != "bleu":
        return f"{noun}x"
    if noun.endswith("al"):
        return f"{noun[:-2]}aux"
    return f"{noun}s"


def agree(masculine: str, features: Features, feminine: str = "") -> str:
    """Return the form of an adjective or a participle for the gender and the number of its noun."""
    form = masculine
    if features.gender == "f":
        form = feminine or (masculine if masculine.endswith("e") else f"{masculine}e")
    return french_plural(form) if features.plural else form


def adjective_form(adjective: Adjective, features: Features, following: str = "") -> str:
    """Return the form of an adjective; `following` is the next word if the adjective precedes its noun."""
    if adjective.invariable:
        return adjective.french
    if adjective.before_vowel and following and features == Features("m") and starts_with_vowel(following):
        return adjective.before_vowel
    return agree(adjective.french, features, adjective.feminine)


def participle(verb: Verb, features: Features) -> str:
    """Return the past participle or the posture ("assis") of a verb, in agreement with a noun."""
    form = verb.participle or verb.posture
    return form if form == "debout" else agree(form, features)


def finite(verb: Verb, features: Features) -> str:
    """Return the conjugated word of a past tense: "a" or "est" (passé composé), "dormait" or "était" (imparfait)."""
    key = (features.person, features.plural)
    if verb.participle:
        return _PRESENT[verb.auxiliary][key]
    return (verb.imparfait or "ét") + _ENDINGS[key]


@cache
def starts_with_vowel(word: str) -> bool:
    """Return whether articles elide before a word: before a vowel or a mute h, not before an aspirated h (hérisson)."""
    return (word[0] in "aàeéèêiîoôuûâœh" and not word.startswith(ASPIRATED)) or word == "y"


def settle(words: Sequence[str], origins: Sequence[int] | None = None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words after elision ("l'animal") and contraction ("au"), and the origins of each word.

    A contracted word has the origins of both words from which it was contracted.
    """
    settled: list[str] = []
    sources: list[int] = []
    for word, source, following in zip(words, origins or (0,) * len(words), (*words[1:], "."), strict=True):
        if word in _ELIDED and starts_with_vowel(following):
            word = _ELIDED[word]
        elif settled and (settled[-1], word) in _CONTRACTED:
            word = _CONTRACTED[settled.pop(), word]
            source |= sources.pop()
        settled.append(word)
        sources.append(source)
    return tuple(settled), tuple(sources)


def french_text(words: Iterable[str]) -> str:
    """Return words after elision and contraction as French text: an elided word is joined to the next word."""
    return " ".join(words).replace("' ", "'").replace(" ,", ",").replace(" .", ".")
