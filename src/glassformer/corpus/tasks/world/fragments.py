"""Parts of a sentence in both languages, with the English words from which each French word comes.

Every rule of the grammar returns a `Fragment`. Its `origins` has one integer for each French word: bit i is set if the
French word comes from English word i. Putting fragments side by side only shifts the bits.

>>> black_cat = arrange(linked("the", "le"), linked("black", "noir"), linked("cat", "chat"), order=(0, 2, 1))
>>> black_cat.french, black_cat.origins
(('le', 'chat', 'noir'), (1, 4, 2))
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

__all__ = ["EMPTY", "Fragment", "arrange", "idiom", "join", "linked"]


class Fragment(NamedTuple):
    """Words in English, words in French (before elision), and the origin of each French word."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    origins: tuple[int, ...]


EMPTY = Fragment((), (), ())


@cache
def linked(english: str, french: str, origins: tuple[int, ...] | None = None) -> Fragment:
    """Return a fragment of space-separated words in which each French word comes from one English word.

    `origins` gives the index of the English word for each French word: `linked("did n't", "ne a pas", (1, 0, 1))`.
    Without `origins`, the words correspond one to one: `linked("this morning", "ce matin")`.
    """
    source, target = tuple(english.split()), tuple(french.split())
    positions = range(len(source)) if origins is None else origins
    assert len(positions) == len(target), f"{french!r} has {len(target)} words, but {len(positions)} origins"
    return Fragment(source, target, tuple(1 << position for position in positions))


@cache
def idiom(english: str, french: str) -> Fragment:
    """Return a fragment in which every French word comes from all English words, such as "next to" ("à côté de")."""
    source, target = tuple(english.split()), tuple(french.split())
    return Fragment(source, target, ((1 << len(source)) - 1,) * len(target))


def join(*parts: Fragment) -> Fragment:
    """Return one fragment of all parts, in the same order in both languages."""
    english, french, origins = parts[0] if parts else EMPTY
    for part in parts[1:]:
        shift = len(english)
        english += part.english
        french += part.french
        origins += tuple([bits << shift for bits in part.origins])
    return Fragment(english, french, origins)


def arrange(*parts: Fragment, order: Sequence[int]) -> Fragment:
    """Return one fragment of all parts: in the given order in French, and in their own order in English."""
    shifts = [0]
    for part in parts:
        shifts.append(shifts[-1] + len(part.english))
    return Fragment(
        tuple(word for part in parts for word in part.english),
        tuple(word for index in order for word in parts[index].french),
        tuple(bits << shifts[index] for index in order for bits in parts[index].origins),
    )
