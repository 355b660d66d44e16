"""Encoded sentence pairs on the disk, read through memory maps, so that a corpus may be larger than memory.

    train-00000.source.npy    the ids of one source after the other, `<eos>` at the end of each
    train-00000.target.npy    the same of the targets
    train-00000.ends.npy      (2, pairs) where in these each source and each target ends

NumPy's own format: `numpy.load(file, mmap_mode="r")` reads it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import CheckpointError
from glassformer.text.batching import Examples, Ids
from glassformer.text.storage import hash_of_file, write_safely

__all__ = [
    "SHARD",
    "Encoded",
    "Sentences",
    "Shard",
    "id_type",
    "open_shards",
    "save_array",
    "write_shard",
]

SHARD = 1 << 18
"""Kept pairs of lines that a shard is made of: few enough to be held in memory while they are cut into tokens."""
_PARTS = ("source", "target", "ends")
_READ_AT_ONCE = 1 << 12

Ends = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Some encoded pairs, one after the other."""

    source: Ids
    """The ids of all sources, `<eos>` behind each."""
    target: Ids
    """The ids of all targets, `<eos>` behind each."""
    lengths: NDArray[np.int32]
    """(2, pairs) how many ids each source and each target has."""

    @classmethod
    def joined(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """Return the pairs of all parts, of which there is one at least, in order."""
        return cls(
            np.concatenate([part.source for part in parts]),
            np.concatenate([part.target for part in parts]),
            np.concatenate([part.lengths for part in parts], axis=1),
        )

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.lengths[0])

    @property
    def ends(self) -> Ends:
        """(2, pairs) where each source and each target ends."""
        return np.cumsum(self.lengths, axis=1, dtype=np.int64)

    def examples(self) -> Examples:
        """Return the pairs as examples in memory."""
        source, target = self.ends
        return Examples(source=Sentences([(self.source, source)]), target=Sentences([(self.target, target)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """What the manifest says about a shard."""

    name: str
    """Its files' names up to the first dot."""
    pairs: int
    """How many pairs it has."""
    source_tokens: int
    """Ids of all sources, `<eos>` included."""
    target_tokens: int
    """Ids of all targets, `<eos>` included."""
    too_long: int
    """Pairs that were left out because a side has more than `data.max_length` ids."""
    sizes: tuple[int, ...]
    """Bytes of each of its files: source, target, ends."""
    hashes: tuple[str, ...]
    """xxh3 (128 bits) of each of its files."""

    def is_whole(self, folder: Path) -> bool:
        """Return whether its files are there, and as they were written."""
        files = zip(_paths(folder, self.name), self.sizes, self.hashes, strict=True)
        return all(_has_size(path, size) and hash_of_file(path) == hash for path, size, hash in files)


class Sentences(Sequence[Ids]):
    """One side of some shards' pairs: a list of id arrays to look at, read from the disk when they are asked for."""

    def __init__(self, parts: Sequence[tuple[Ids, Ends]]) -> None:
        """Join parts: the ids of one sentence after the other, and where each of them ends."""
        self._parts = parts
        self._first = np.cumsum([0, *(len(ends) for _, ends in parts)]).tolist()

    def __len__(self) -> int:
        return int(self._first[-1])

    def __iter__(self) -> Iterator[Ids]:
        """Yield all sentences."""
        for begin in range(0, len(self), _READ_AT_ONCE):
            yield from self[begin : begin + _READ_AT_ONCE]

    @overload
    def __getitem__(self, row: SupportsIndex) -> Ids: ...

    @overload
    def __getitem__(self, row: slice) -> list[Ids]: ...

    def __getitem__(self, row: SupportsIndex | slice) -> Ids | list[Ids]:
        """Return the ids of a sentence; of neighbours, which are read in one go and no longer need the disk."""
        if isinstance(row, slice):
            begin, end, step = row.indices(len(self))
            if step != 1:
                return [self[place] for place in range(begin, end, step)]
            return [ids for number in range(len(self._parts)) for ids in self._neighbours(number, begin, end)]
        place = range(len(self))[row]
        [ids] = self[place : place + 1]
        return ids

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each sentence."""
        lengths = [np.diff(ends, prepend=0) for _, ends in self._parts]
        return np.concatenate(lengths) if lengths else np.zeros(0, np.int64)

    def _neighbours(self, number: int, begin: int, end: int) -> list[Ids]:
        """Return those of one part's sentences that are between these rows."""
        first, (ids, ends) = self._first[number], self._parts[number]
        begin, end = max(begin - first, 0), min(end - first, len(ends))
        if begin >= end:
            return []
        start = int(ends[begin - 1]) if begin else 0
        places = [0, *(ends[begin:end] - start).tolist()]
        read = np.array(ids[start : start + places[-1]])
        return [read[left:right] for left, right in pairwise(places)]


def id_type(vocabulary: int) -> type[np.uint16 | np.int32]:
    """Return the smallest type that holds the ids of a vocabulary of so many tokens."""
    return np.uint16 if vocabulary <= 1 << 16 else np.int32


def write_shard(folder: Path, name: str, encoded: Encoded, *, too_long: int) -> Shard:
    """Write a shard's files, each whole or not at all, and return what the manifest has to say about it.

    Raises:
        CheckpointError: it could not be written.
    """
    paths = _paths(folder, name)
    for path, array in zip(paths, (encoded.source, encoded.target, encoded.ends), strict=True):
        save_array(path, array)
    return Shard(
        name=name,
        pairs=encoded.pairs,
        source_tokens=len(encoded.source),
        target_tokens=len(encoded.target),
        too_long=too_long,
        sizes=tuple(path.stat().st_size for path in paths),
        hashes=tuple(map(hash_of_file, paths)),
    )


def open_shards(folder: Path, shards: Sequence[Shard]) -> Examples:
    """Return the pairs of shards, memory-mapped: nothing is read until it is needed.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    arrays = [tuple(map(_mapped, _paths(folder, shard.name))) for shard in shards if shard.pairs]
    return Examples(
        source=Sentences([(source, ends[0]) for source, _, ends in arrays]),
        target=Sentences([(target, ends[1]) for _, target, ends in arrays]),
    )


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in NumPy's format, whole or not at all.

    Raises:
        CheckpointError: it could not be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array)

    write_safely(path, write)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        # A plain view of the map: slices of np.memmap itself take several times as long.
        return np.asarray(np.load(path, mmap_mode="r"))
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} is missing or damaged ({error}): prepare makes it again") from error


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _paths(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{part}.npy" for part in _PARTS]
