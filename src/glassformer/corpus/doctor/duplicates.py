"""Find repeated pairs, even among more pairs than fit in memory, by sorting 128-bit fingerprints."""

import tempfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MEGABYTES", "Bits", "Repeats", "first_bits", "inverted"]

MEGABYTES = 256
"""Megabytes of memory for finding repeated pairs; if this is too little, a temporary file is used as well."""
_BYTES_EACH = 80
"""Bytes of memory per fingerprint, including sorting."""

_PARTS = 256
"""Number of parts in which sorted runs are merged; the highest 8 bits of a fingerprint decide its part."""

_COUNTS = np.array([number.bit_count() for number in range(256)])

_RECORD = np.dtype([("high", np.uint64), ("low", np.uint64), ("number", np.int64)])


class Bits:
    """A set of non-negative integers, stored as one bit per integer."""

    def __init__(self) -> None:
        self._packed = np.zeros(0, np.uint8)

    def add(self, numbers: "NDArray[np.int64]") -> None:
        """Add numbers to the set."""
        if len(numbers):
            last = int(numbers.max()) // 8
            if last >= len(self._packed):
                more = np.zeros(max(last + 1, 2 * len(self._packed)) - len(self._packed), np.uint8)
                self._packed = np.concatenate([self._packed, more])
            np.bitwise_or.at(self._packed, numbers // 8, (128 >> (numbers % 8)).astype(np.uint8))

    def packed(self, count: int) -> "NDArray[np.uint8]":
        """Return one bit for each number below `count`, 1 for members of the set, packed as by `numpy.packbits`."""
        size = (count + 7) // 8
        packed = self._packed[:size]
        return np.concatenate([packed, np.zeros(size - len(packed), np.uint8)])


def first_bits(packed: "NDArray[np.uint8]", most: int) -> tuple[int, list[int]]:
    """Return the number of set bits, and the indices of the first `most` set bits."""
    first: list[int] = []
    for byte in np.flatnonzero(packed)[:most]:
        first += (np.flatnonzero(np.unpackbits(packed[byte : byte + 1])) + 8 * byte).tolist()
    return int(_COUNTS[packed].sum()), first[:most]


def inverted(packed: "NDArray[np.uint8]", count: int) -> "NDArray[np.uint8]":
    """Return the inverse of `count` packed bits, also packed."""
    others = ~packed
    if count % 8:
        others[-1] &= np.uint8(0xFF00 >> count % 8 & 0xFF)
    return others


def _same_as_before(values: "NDArray[np.uint64]") -> "NDArray[np.bool_]":
    return np.concatenate([np.zeros(min(len(values), 1), bool), values[1:] == values[:-1]])


class Repeats:
    """A collection of numbered fingerprints that finds repeats: numbers whose fingerprint was added before.

    Fingerprints that exceed the memory limit are written to an unnamed temporary file, in sorted runs.
    """

    def __init__(self, megabytes: int) -> None:
        self.capacity = max((megabytes << 20) // _BYTES_EACH, 1024)
        self.found = Bits()
        self._waiting: list[NDArray[np.void]] = []
        self._count = 0
        self._runs: list[tuple[int, NDArray[np.int64]]] = []
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "Repeats":
        """Return this object. The temporary file is removed when the context ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the temporary file."""
        self._stack.close()

    def add(self, fingerprints: "NDArray[np.uint64]", numbers: "NDArray[np.int64]") -> None:
        """Add fingerprints (N, 2) with their numbers (N), which must be higher than all earlier numbers."""
        records = np.empty(len(numbers), _RECORD)
        records["high"], records["low"], records["number"] = fingerprints[:, 0], fingerprints[:, 1], numbers
        self._waiting.append(records)
        self._count += len(records)
        if self._count >= self.capacity:
            self._write(self._sorted())

    def finish(self) -> Bits:
        """Return the repeats: the numbers whose fingerprint was also added with a lower number."""
        rest = self._sorted()
        if self._runs:
            self._write(rest)
            for part in range(_PARTS):
                self._first_ones(np.concatenate([self._read(*run, part) for run in self._runs]))
        return self.found

    def _sorted(self) -> "NDArray[np.void]":
        """Return the sorted fingerprints added since the last call, without repeats; add the repeats to `found`."""
        records = np.concatenate([*self._waiting, np.empty(0, _RECORD)])
        self._waiting, self._count = [], 0
        return self._first_ones(records)

    def _first_ones(self, records: "NDArray[np.void]") -> "NDArray[np.void]":
        records = records[np.argsort(records["high"], kind="stable")]
        same = _same_as_before(records["high"])
        if (same & ~_same_as_before(records["low"])).any():
            records = records[np.lexsort((records["low"], records["high"]))]
            same = _same_as_before(records["high"])
        repeated = same & _same_as_before(records["low"])
        self.found.add(records["number"][repeated])
        return records[~repeated]

    def _write(self, records: "NDArray[np.void]") -> None:
        if self._file is None:
            self._file = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 – the stack closes it
        bounds = np.searchsorted(records["high"], np.arange(_PARTS, dtype=np.uint64) << np.uint64(56))
        self._runs.append((self._file.seek(0, 2), np.append(bounds, len(records))))
        self._file.write(records.tobytes())

    def _read(self, start: int, bounds: "NDArray[np.int64]", part: int) -> "NDArray[np.void]":
        assert self._file is not None
        self._file.seek(start + int(bounds[part]) * _RECORD.itemsize)
        size = int(bounds[part + 1] - bounds[part]) * _RECORD.itemsize
        return np.frombuffer(self._file.read(size), _RECORD)
