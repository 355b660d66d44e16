"""Encoded sentence pairs on the disk, read through memory maps, so that a corpus may be larger than memory.

    train-00000.source.npy    the ids of the sources, concatenated, each ending with `<eos>`
    train-00000.target.npy    the ids of the targets, concatenated, each ending with `<eos>`
    train-00000.ends.npy      (2, pairs) the ends of each source and each target in these arrays

The format is NumPy's own: `numpy.load(file, mmap_mode="r")` reads it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.batching import Examples, IdArray
from glassformer.errors import CheckpointError
from glassformer.system.files import hash_of_file, write_safely

__all__ = [
    "ARRAYS",
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
"""Number of kept line pairs per shard: few enough that a shard fits into memory while it is encoded."""
ARRAYS = ("source", "target", "ends")
"""The arrays of a shard."""
_READ_AT_ONCE = 1 << 12

Ends = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Encoded pairs, concatenated."""

    source: IdArray
    """The ids of all sources, each followed by `<eos>`."""
    target: IdArray
    """The ids of all targets, each followed by `<eos>`."""
    lengths: NDArray[np.int32]
    """(2, pairs) the number of ids of each source and each target."""

    @classmethod
    def joined(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """Return the pairs of all parts, in order; there must be at least one part."""
        return cls(
            np.concatenate([part.source for part in parts]),
            np.concatenate([part.target for part in parts]),
            np.concatenate([part.lengths for part in parts], axis=1),
        )

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.lengths[0])

    @property
    def ends(self) -> Ends:
        """(2, pairs) the end of each source in `source`, and the end of each target in `target`."""
        return np.cumsum(self.lengths, axis=1, dtype=np.int64)

    def examples(self) -> Examples:
        """Return the pairs as examples in memory."""
        source, target = self.ends
        return Examples(source=Sentences([(self.source, source)]), target=Sentences([(self.target, target)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A shard's entry in the manifest."""

    name: str
    """The common beginning of the shard's file names, up to the first dot."""
    pairs: int
    """Number of pairs."""
    source_tokens: int
    """Number of ids of all sources, including `<eos>`."""
    target_tokens: int
    """Number of ids of all targets, including `<eos>`."""
    too_long: int
    """Number of pairs left out because a side has more than `data.max_length` ids."""
    sizes: tuple[int, ...]
    """Size in bytes of each file of the shard, in the order of `ARRAYS`."""
    hashes: tuple[str, ...]
    """xxh3 hash (128 bits) of each file of the shard, in the order of `ARRAYS`."""

    def __post_init__(self) -> None:
        if not len(self.sizes) == len(self.hashes) == len(ARRAYS):
            raise ValueError(f"expected {len(ARRAYS)} sizes and hashes, got {len(self.sizes)} and {len(self.hashes)}")

    def is_whole(self, folder: Path) -> bool:
        """Return whether the shard's files exist and are unchanged."""
        files = zip(_paths(folder, self.name), self.sizes, self.hashes, strict=True)
        return all(_has_size(path, size) and hash_of_file(path) == hash for path, size, hash in files)


class Sentences(Sequence[IdArray]):
    """One side of the pairs in some shards: a sequence of id arrays, which are read from the disk on access."""

    def __init__(self, parts: Sequence[tuple[IdArray, Ends]]) -> None:
        """Join parts, each given as concatenated ids and the end of each sentence."""
        self._parts = parts
        self._first = np.cumsum([0, *(len(ends) for _, ends in parts)]).tolist()

    def __len__(self) -> int:
        return int(self._first[-1])

    def __iter__(self) -> Iterator[IdArray]:
        """Yield all sentences."""
        for begin in range(0, len(self), _READ_AT_ONCE):
            yield from self[begin : begin + _READ_AT_ONCE]

    @overload
    def __getitem__(self, row: SupportsIndex) -> IdArray: ...

    @overload
    def __getitem__(self, row: slice) -> list[IdArray]: ...

    def __getitem__(self, row: SupportsIndex | slice) -> IdArray | list[IdArray]:
        """Return the ids of one sentence, or of all sentences in a slice. A slice is read at once, into memory."""
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

    def _neighbours(self, number: int, begin: int, end: int) -> list[IdArray]:
        """Return the sentences in the rows `begin` to `end` - 1 of the part with this number."""
        first, (ids, ends) = self._first[number], self._parts[number]
        begin, end = max(begin - first, 0), min(end - first, len(ends))
        if begin >= end:
            return []
        start = int(ends[begin - 1]) if begin else 0
        places = [0, *(ends[begin:end] - start).tolist()]
        read = np.array(ids[start : start + places[-1]])
        return [read[left:right] for left, right in pairwise(places)]


def id_type(vocabulary: int) -> type[np.uint16 | np.int32]:
    """Return the smallest NumPy type for the ids of a vocabulary of this size."""
    return np.uint16 if vocabulary <= 1 << 16 else np.int32


def write_shard(folder: Path, name: str, encoded: Encoded, *, too_long: int) -> Shard:
    """Write a shard's files, each completely or not at all, and return the shard's entry for the manifest.

    Raises:
        CheckpointError: a file cannot be written.
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
    """Return the pairs of some shards. The files are memory-mapped, and each pair is read on access.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    arrays = [tuple(map(_mapped, _paths(folder, shard.name))) for shard in shards if shard.pairs]
    return Examples(
        source=Sentences([(source, ends[0]) for source, _, ends in arrays]),
        target=Sentences([(target, ends[1]) for _, target, ends in arrays]),
    )


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in NumPy's format, completely or not at all.

    Raises:
        CheckpointError: the file cannot be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array)

    write_safely(path, write)


def _mapped(path: Path) -> NDArray[Any]:
    """Return the array in a file, memory-mapped.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        # A plain array view of the memory map: slicing np.memmap itself takes several times as long.
        return np.asarray(np.load(path, mmap_mode="r"))
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {error}; run `glassformer prepare` again") from error


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _paths(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{part}.npy" for part in ARRAYS]
