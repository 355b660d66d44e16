"""Encode many pairs of texts into ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.batching import IdArray
from glassformer.corpus.kept_pairs import KeptBlock
from glassformer.corpus.shards import Encoded, id_type
from glassformer.text.tokenizer import Tokenizer

__all__ = ["PairEncoder", "Part", "Texts", "encode", "joined_parts"]

AT_ONCE = 1 << 11
"""Number of pairs encoded at a time: few enough that the ids stay in the processor's cache until they are packed."""

Texts = tuple[Sequence[str], Sequence[str]]
"""Sources and targets."""


class Part(NamedTuple):
    """The encoding of some pairs of texts."""

    encoded: Encoded
    too_long: int
    """Number of pairs left out because a side has too many ids."""


def encode(texts: Texts, source: Tokenizer, target: Tokenizer, max_length: int) -> Part:
    """Return the encoded pairs, without pairs that have a side of more than `max_length` ids, including `<eos>`."""
    sides = [tokenizer.encode_all(side) for tokenizer, side in zip((source, target), texts, strict=True)]
    lengths = np.array([np.fromiter(map(len, side), np.int32, len(side)) + 1 for side in sides])
    fits = lengths.max(0, initial=0) <= max_length
    if not fits.all():
        sides = [[ids for ids, fit in zip(side, fits.tolist(), strict=True) if fit] for side in sides]
        lengths = lengths[:, fits]
    flat = [
        _flat(side, ends, tokenizer)
        for side, ends, tokenizer in zip(sides, lengths.cumsum(1, np.int64), (source, target), strict=True)
    ]
    return Part(Encoded(flat[0], flat[1], lengths), int((~fits).sum()))


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """A callable that encodes the kept pairs of a block; the processes of a pool receive it with its tokenizers."""

    source: Tokenizer
    target: Tokenizer
    max_length: int
    """Maximum number of ids per side, including `<eos>`."""

    def __call__(self, block: KeptBlock) -> Part:
        """Return the block's encoded pairs; a few pairs are encoded at a time."""
        texts = block.texts()
        starts = range(0, max(len(texts[0]), 1), AT_ONCE)
        few = [(texts[0][start : start + AT_ONCE], texts[1][start : start + AT_ONCE]) for start in starts]
        return joined_parts(encode(one, self.source, self.target, self.max_length) for one in few)


def joined_parts(parts: Iterable[Part]) -> Part:
    """Return the pairs of all parts, in order; there must be at least one part."""
    encoded, too_long = zip(*parts, strict=True)
    return Part(encoded[0] if len(encoded) == 1 else Encoded.joined(encoded), sum(too_long))


def _flat(sentences: Sequence[list[int]], ends: NDArray[np.int64], tokenizer: Tokenizer) -> IdArray:
    """Return the ids of all sentences in one array, with `<eos>` at the end of each sentence, as given by `ends`."""
    ids = np.full(int(ends[-1]) if len(ends) else 0, tokenizer.eos_id, id_type(len(tokenizer)))
    own = np.ones(len(ids), bool)
    own[ends - 1] = False
    ids[own] = np.fromiter(chain.from_iterable(sentences), ids.dtype, len(ids) - len(ends))
    return ids
