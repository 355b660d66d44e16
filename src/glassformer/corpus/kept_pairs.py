"""The kept pairs of a corpus, read in blocks. The processes of a pool turn the blocks into texts."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from glassformer.corpus.readers import Block, Corpus, PairReader, TextPairs
from glassformer.errors import DataError
from glassformer.system.pools import Pool
from glassformer.text.normalisation import normalise

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KeptBlock", "PairsWithSources", "kept_blocks", "kept_pairs", "only", "texts_at"]


@dataclass(frozen=True, slots=True, eq=False)
class KeptBlock:
    """Consecutive line pairs, with a mark on each pair that is kept."""

    block: Block
    kept: "NDArray[np.bool_]"
    """For each pair, True if the pair is kept."""

    @classmethod
    def of(cls, pairs: TextPairs) -> "KeptBlock":
        """Return a block in which all pairs are kept; the texts must not contain line feeds."""
        source, target = ("".join(f"{pair[side]}\n" for pair in pairs).encode() for side in (0, 1))
        return cls(Block(source, target, len(pairs)), np.ones(len(pairs), bool))

    @property
    def pairs(self) -> int:
        """Number of kept pairs."""
        return int(np.count_nonzero(self.kept))

    def only(self, places: "NDArray[np.int64]") -> "KeptBlock":
        """Return a block that keeps only the pairs at `places`, which are indices among this block's kept pairs."""
        kept = np.zeros(len(self.kept), bool)
        kept[np.flatnonzero(self.kept)[places]] = True
        return KeptBlock(self.block, kept)

    def texts(self) -> tuple[list[str], list[str]]:
        """Return the sources and the targets of the kept pairs."""
        # Only lines that are not kept can contain invalid bytes.
        sides = (text.decode(errors="surrogateescape").split("\n") for text in (self.block.source, self.block.target))
        source, target = (list(compress(side, self.kept)) for side in sides)
        return source, target


@dataclass(frozen=True, slots=True)
class PairsWithSources:
    """A callable that finds, in a block, the kept pairs whose sources are in a collection."""

    sources: Collection[str]
    """The normalised sources to find."""

    def __call__(self, block: KeptBlock) -> tuple[int, list[tuple[int, tuple[str, str]]]]:
        """Return the number of kept pairs, and the found pairs, each with its index among the kept pairs."""
        sources, targets = block.texts()
        pairs = enumerate(zip(sources, targets, strict=True))
        return len(sources), [(place, pair) for place, pair in pairs if normalise(pair[0]) in self.sources]


def kept_blocks(corpus: Corpus, kept: "NDArray[np.uint8]") -> Iterator[KeptBlock]:
    """Yield the blocks of a corpus; `kept` has one packed bit for each pair, set if the pair is kept.

    Raises:
        DataError: the files' number of pairs differs from the number of bits.
    """
    reader, first = PairReader(corpus), 0
    for block in reader:
        bits = np.unpackbits(kept[first // 8 : (first + block.lines + 7) // 8])[first % 8 :][: block.lines]
        first += block.lines
        yield KeptBlock(block, bits.astype(bool))
    reader.check()
    if (first + 7) // 8 != len(kept):
        raise DataError(
            f"{corpus.names} has changed: expected the {8 * len(kept)} pairs that were checked, got {first}; run "
            "`glassformer prepare` again"
        )


def kept_pairs(corpus: Corpus, kept: "NDArray[np.uint8]") -> Iterator[tuple[str, str]]:
    """Yield the kept pairs of a corpus, in order; arguments and errors are as in `kept_blocks`."""
    return (pair for block in kept_blocks(corpus, kept) for pair in zip(*block.texts(), strict=True))


def only(blocks: Iterable[KeptBlock], places: "NDArray[np.int64]") -> Iterator[KeptBlock]:
    """Yield blocks that keep only the pairs at `places` (ascending indices among all kept pairs); skip empty blocks."""
    first = 0
    for block in blocks:
        begin, end = np.searchsorted(places, (first, first + block.pairs))
        if begin < end:
            yield block.only(places[begin:end] - first)
        first += block.pairs


def texts_at(blocks: Iterable[KeptBlock], places: "NDArray[np.int64]", pool: Pool) -> TextPairs:
    """Return the kept pairs at `places`, ascending indices among all kept pairs; a pool's processes read the pairs."""
    with closing(pool.map(KeptBlock.texts, only(blocks, places))) as texts:
        return [pair for sides in texts for pair in zip(*sides, strict=True)]
