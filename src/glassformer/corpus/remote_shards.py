"""Shards in an object store: ids are read block by block through a cache on this machine's disk.

The ends and the checks of a shard (16 bytes for each pair) lie in a local folder; the ids, most of a corpus, do not.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.batching import Examples, IdArray
from glassformer.corpus.block_cache import BlockCache
from glassformer.corpus.shards import Sentences, Shard, block_bounds, mapped
from glassformer.system.storage import RemoteStorage, using

__all__ = ["RemoteIds", "open_remote_shards"]

_HEADER = 128
"""Bytes before the numbers of a one-dimensional array in NumPy's format."""
_RECENT = 2
"""Blocks that stay in memory: neighbouring sentences may lie on both sides of a block's end."""


class RemoteIds:
    """The ids of one side of a shard."""

    def __init__(
        self,
        storage: RemoteStorage,
        cache: BlockCache,
        name: str,
        ends: NDArray[np.int64],
        checks: NDArray[np.uint64],
        size: int,
    ) -> None:
        """Read the ids from the file `name`, which has `size` bytes."""
        self._storage, self._cache, self._name = storage, cache, name
        self._bounds, self._checks = block_bounds(ends), checks
        self._type = np.dtype(np.uint16 if size - _HEADER == 2 * int(ends[-1]) else np.int32)
        self._recent = lru_cache(_RECENT)(self._block)

    def __getitem__(self, places: slice) -> IdArray:
        """Return some of the ids."""
        begin, end, _ = places.indices(int(self._bounds[-1]))
        first, last = np.searchsorted(self._bounds, (begin, end - 1), side="right") - 1
        blocks = [self._recent(number) for number in range(int(first), int(last) + 1)]
        start = int(self._bounds[first])
        return np.concatenate(blocks)[begin - start : end - start]

    def _block(self, number: int) -> IdArray:
        begin, end = (_HEADER + self._type.itemsize * int(self._bounds[one]) for one in (number, number + 1))
        where = f"{self._storage.place.rstrip('/')}/{self._name}"

        def fetch() -> bytes:
            with using(where):
                return self._storage.read_range(self._name, begin, end)

        return np.frombuffer(self._cache.get(int(self._checks[number]), end - begin, fetch, where), self._type)


def open_remote_shards(storage: RemoteStorage, cache: BlockCache, folder: Path, shards: Sequence[Shard]) -> Examples:
    """Return the pairs of shards in a storage; their ends and checks lie in `folder`.

    Raises:
        CheckpointError: a file in `folder` is missing or damaged, or a shard was prepared without checks.
    """
    source: list[tuple[RemoteIds, NDArray[np.int64]]] = []
    target: list[tuple[RemoteIds, NDArray[np.int64]]] = []
    for shard in shards:
        if not shard.pairs:
            continue
        ends, checks = (mapped(folder / f"{shard.name}.{part}.npy") for part in ("ends", "checks"))
        for side, (parts, kind) in enumerate(((source, "source"), (target, "target"))):
            name = f"{shard.name}.{kind}.npy"
            parts.append((RemoteIds(storage, cache, name, ends[side], checks[side], shard.sizes[side]), ends[side]))
    return Examples(source=Sentences(source), target=Sentences(target), far=True)
