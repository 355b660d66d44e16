"""The data that the corpus doctor examines: blocks of line pairs, and facts about the whole corpus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor.duplicates import Repeats
from glassformer.corpus.doctor.examination import SHOWN, Finding
from glassformer.corpus.doctor.lines import LineFacts, OddLines
from glassformer.corpus.doctor.sample import PairSample
from glassformer.corpus.doctor.shift import Shift, ShiftDetector
from glassformer.corpus.readers import Block, PairReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Case", "HeldOut", "Pairs", "Tally", "facts_of"]

_MULTIPLIERS = np.array([[0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], [0xD6E8FEB86659FD93, 0xA0761D6478BD642F]], np.uint64)


def facts_of(block: Block) -> tuple[LineFacts, LineFacts]:
    """Measure both sides of a block; return the facts about the source lines and about the target lines."""
    return LineFacts.of(block.source), LineFacts.of(block.target)


class Pairs:
    """A block of measured pairs. Arrays have one entry for each pair of the block."""

    def __init__(self, block: Block, sides: tuple[LineFacts, LineFacts], first: int = 0) -> None:
        self.block, self.first = block, first
        """The number of the block's first pair in the corpus, from 0."""
        self.source, self.target = sides
        self.alive: NDArray[np.bool_] = np.ones(block.lines, bool)
        """True for each pair that no problem has left out so far."""

    @property
    def sides(self) -> tuple[LineFacts, LineFacts]:
        """The facts about the source lines and about the target lines."""
        return self.source, self.target

    @cached_property
    def shorter(self) -> "NDArray[np.int64]":
        """Number of characters in the shorter side of each pair."""
        return np.minimum(self.source.characters, self.target.characters)

    @cached_property
    def longer(self) -> "NDArray[np.int64]":
        """Number of characters in the longer side of each pair."""
        return np.maximum(self.source.characters, self.target.characters)

    @cached_property
    def lines(self) -> tuple[list[bytes], list[bytes]]:
        """The source lines and the target lines, without line feeds, for problems that depend on the text itself."""
        return self.block.source.split(b"\n")[:-1], self.block.target.split(b"\n")[:-1]

    @property
    def odd(self) -> tuple[OddLines, OddLines]:
        """For each side, the lines that contain control characters or line separators."""
        return self.source.odd, self.target.odd

    @cached_property
    def fingerprints(self) -> "NDArray[np.uint64]":
        """A 128-bit hash of each pair, as two numbers."""
        mixed: NDArray[np.uint64] = (
            self.source.fingerprints * _MULTIPLIERS[0] + self.target.fingerprints * _MULTIPLIERS[1]
        )
        return mixed

    def with_any(self, *indices: "NDArray[np.int64]") -> "NDArray[np.bool_]":
        """Return a mask of the block's pairs: True for each pair whose index is in one of the arrays."""
        named = np.zeros(len(self.alive), bool)
        for some in indices:
            named[some] = True
        return named


@dataclass(slots=True)
class Tally:
    """A count of pairs, and the numbers (from 0) of the first `SHOWN` counted pairs."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, numbers: "NDArray[np.int64]") -> None:
        """Count pairs, given their numbers. The numbers must ascend, also from call to call."""
        self.count += len(numbers)
        if len(self.first) < SHOWN:
            self.first += numbers[: SHOWN - len(self.first)].tolist()


class HeldOut:
    """Fingerprints of a held-out corpus, and counts of the training pairs that also occur in this corpus."""

    def __init__(self, reader: PairReader) -> None:
        sources, pairs = [np.empty((0, 2), np.uint64)], [np.empty((0, 2), np.uint64)]
        for block in reader:
            held_out = Pairs(block, facts_of(block))
            sources.append(held_out.source.fingerprints)
            pairs.append(held_out.fingerprints)
        reader.check()
        self.total = reader.lines[0]
        """The number of held-out pairs."""
        self._sources, self._pairs = (_sorted(np.concatenate(parts)) for parts in (sources, pairs))
        self.pairs, self.sources = Tally(), Tally()
        """Counts of the training pairs that are also held-out pairs, and of those that share only the source."""

    def look_at(self, pairs: Pairs) -> "NDArray[np.int64]":
        """Return the indices of training pairs that are also held-out pairs; update `pairs` and `sources`.

        Pairs that are already left out are skipped.
        """
        alive = np.flatnonzero(pairs.alive)
        both = _among(pairs.fingerprints[alive], self._pairs)
        source = _among(pairs.source.fingerprints[alive], self._sources) & ~both
        self.pairs.add(alive[both] + pairs.first)
        self.sources.add(alive[source] + pairs.first)
        return alive[both]


def _sorted(fingerprints: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    return fingerprints[np.argsort(fingerprints[:, 0], kind="stable")]


def _among(fingerprints: "NDArray[np.uint64]", known: "NDArray[np.uint64]") -> "NDArray[np.bool_]":
    """Return a mask of the fingerprints that occur in `known`; `known` must be sorted."""
    if not len(known):
        return np.zeros(len(fingerprints), bool)
    places = np.minimum(np.searchsorted(known[:, 0], fingerprints[:, 0]), len(known) - 1)
    found: NDArray[np.bool_] = (known[places] == fingerprints).all(axis=1)
    return found


@dataclass(frozen=True, kw_only=True)
class Case:
    """One corpus under examination."""

    reader: PairReader
    """The reader of the corpus, which also knows the file and line of each pair that was read."""
    cleaning: CleaningConfig
    held_out: Mapping[str, HeldOut]
    """Held-out corpora by name, such as "valid"."""
    repeats: Repeats
    """Finds pairs that repeat an earlier pair."""
    languages: tuple[str, str] = ("", "")
    """The languages that source and target should have, as BCP 47 tags; "" = unknown."""
    shift_detector: ShiftDetector = field(default_factory=ShiftDetector)
    sample: PairSample = field(default_factory=PairSample)

    @cached_property
    def shifts(self) -> list[Shift]:
        """The shifts between source and target lines. Use this after all pairs have been read."""
        return self.shift_detector.finish()

    def finding(self, tally: Tally) -> Finding:
        """Return the finding for a tally, with the lines and places of its first pairs."""
        places = [self.reader.place(pair) for pair in tally.first]
        lines = tuple(self.reader.number(pair) for pair in tally.first)
        return Finding(tally.count, lines, tuple(f"{file}:{line}" for file, line in places), tuple(tally.first))
