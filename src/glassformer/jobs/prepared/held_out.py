"""Hold out random pairs of the training files for validation."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.doctor.duplicates import first_bits
from glassformer.corpus.kept_pairs import KeptBlock, PairsWithSources, kept_blocks, texts_at
from glassformer.corpus.readers import Corpus, TextPairs
from glassformer.system.pools import Pool
from glassformer.text.normalisation import normalise

__all__ = ["LEAST_PAIRS", "KeptBits", "hold_out"]

LEAST_PAIRS = 10
"""Minimum number of pairs for each pair that is held out."""
_BITS_AT_ONCE = 1 << 16

KeptBits = NDArray[np.uint8]
"""One packed bit per line pair of the training files: 1 if the pair is used for training."""
T = TypeVar("T")


def hold_out(corpus: Corpus, kept: KeptBits, lines: int, seed: int, pool: Pool) -> tuple[TextPairs, KeptBits]:
    """Return random pairs for validation, and the bits of the remaining pairs.

    At most `lines` pairs and at most a tenth of all pairs are held out. Pairs with the same normalised source are
    either all held out or all kept.
    """
    total, _ = first_bits(kept, 0)
    count = min(lines, total // LEAST_PAIRS)
    wanted = np.random.default_rng(seed).choice(total, size=count, replace=False)
    ascending = np.sort(wanted)
    chosen = texts_at(kept_blocks(corpus, kept), ascending, pool)
    sources = {place: normalise(source) for place, (source, _) in zip(ascending.tolist(), chosen, strict=True)}
    groups: dict[str, list[tuple[int, tuple[str, str]]]] = {sources[place]: [] for place in wanted.tolist()}
    for place, pair in _with_sources(kept_blocks(corpus, kept), frozenset(groups), pool):
        groups[normalise(pair[0])].append((place, pair))
    held_out = _fitting(groups.values(), count)
    pairs, places = [pair for _, pair in held_out], sorted(place for place, _ in held_out)
    return pairs, _without(kept, places)


def _with_sources(
    blocks: Iterable[KeptBlock], sources: frozenset[str], pool: Pool
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the index (among all kept pairs) and the texts of each pair with one of these normalised sources."""
    first = 0
    with closing(pool.map(PairsWithSources(sources), blocks)) as found:
        for count, pairs in found:
            yield from ((first + place, pair) for place, pair in pairs)
            first += count


def _fitting(groups: Iterable[Sequence[T]], count: int) -> list[T]:
    """Return the members of the groups, but skip each group that would raise the number of members above `count`."""
    members: list[T] = []
    for group in groups:
        if len(members) + len(group) <= count:
            members += group
    return members


def _without(kept: KeptBits, places: Sequence[int]) -> KeptBits:
    """Return the bits after clearing some set bits.

    The set bits are numbered from 0, and `places` holds the ascending numbers of the bits to clear.
    """
    remaining, first = kept.copy(), 0
    for begin in range(0, len(kept), _BITS_AT_ONCE):
        bits = np.unpackbits(kept[begin : begin + _BITS_AT_ONCE])
        numbers = np.flatnonzero(bits)
        here = slice(*np.searchsorted(places, (first, first + len(numbers))))
        bits[numbers[np.array(places[here], np.int64) - first]] = 0
        remaining[begin : begin + _BITS_AT_ONCE] = np.packbits(bits)
        first += len(numbers)
    return remaining
