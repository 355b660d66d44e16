"""The corpus doctor: reads a corpus once, says what is wrong with it, and which of its pairs are kept.

Each pair that is left out is counted under the first reason of `REASONS` that applies to it, so that kept and dropped
pairs are all pairs. Validation and test files are only looked at for pairs that are in the training files, too.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.errors import DataError
from glassformer.text.checks import Lines, composed, decomposed
from glassformer.text.cleaning import CleaningConfig
from glassformer.text.corpus import Block, Corpus, PairReader, invalid_bytes
from glassformer.text.duplicates import Bits, Repeats, first_bits, inverted
from glassformer.text.examination import REASONS, SHOWN, CorpusReport, Examination, Finding
from glassformer.text.files import stored_bytes
from glassformer.text.remarks import (
    Remark,
    kept_remark,
    leakage_remark,
    marks_remark,
    normalisation_remark,
    separators_remark,
    shift_remark,
    where_they_part,
)
from glassformer.text.shift import Shift, ShiftDetector

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["REASONS", "CorpusReport", "Examination", "Finding", "examine"]

_SIDES = ("source", "target")
_MULTIPLIERS = np.array([[0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], [0xD6E8FEB86659FD93, 0xA0761D6478BD642F]], np.uint64)


def examine(
    corpus: Corpus,
    cleaning: CleaningConfig,
    held_out: Mapping[str, Corpus] | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Examination:
    """Return what is wrong with a corpus and which of its pairs are kept; held-out ones by name, such as "valid".

    `on_progress` is told how many bytes of the files have been read, and of how many (0 = unknown).

    Raises:
        DataError: a file cannot be read, the sides have unequal numbers of lines, or a line is not UTF-8 while
            `cleaning.on_invalid` is "error".
    """
    leaks = {name: _Leaks(PairReader(other)) for name, other in (held_out or {}).items()}
    sizes = [stored_bytes(file) for file in (*corpus.source, *corpus.target)]
    total = sum(sizes) if all(sizes) else 0
    reader = PairReader(corpus, lambda done: on_progress(done, total))
    with Repeats(cleaning.memory) as repeats:
        doctor = _Doctor(reader, cleaning, leaks, repeats)
        for block in reader:
            doctor.look_at(block)
        return doctor.examination()


@dataclass(slots=True)
class _Tally:
    """How many pairs have something, and the first of them, by their numbers from 0."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, numbers: "NDArray[np.int64]") -> None:
        self.count += len(numbers)
        if len(self.first) < SHOWN:
            self.first += numbers[: SHOWN - len(self.first)].tolist()


class _Leaks:
    """The fingerprints of held-out pairs, and which training pairs have the same."""

    def __init__(self, reader: PairReader) -> None:
        sources, pairs = [np.empty((0, 2), np.uint64)], [np.empty((0, 2), np.uint64)]
        for block in reader:
            source, target = Lines.of(block.source), Lines.of(block.target)
            sources.append(source.fingerprints)
            pairs.append(_pair_fingerprints(source, target))
        reader.check()
        self.total = reader.lines[0]
        self.sources, self.pairs = (_sorted(np.concatenate(parts)) for parts in (sources, pairs))
        self.leaked, self.sources_alone = _Tally(), _Tally()


def _sorted(fingerprints: "NDArray[np.uint64]") -> "NDArray[np.uint64]":
    return fingerprints[np.argsort(fingerprints[:, 0], kind="stable")]


def _among(fingerprints: "NDArray[np.uint64]", known: "NDArray[np.uint64]") -> "NDArray[np.bool_]":
    """Return which fingerprints are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(fingerprints), bool)
    places = np.minimum(np.searchsorted(known[:, 0], fingerprints[:, 0]), len(known) - 1)
    found: NDArray[np.bool_] = (known[places] == fingerprints).all(axis=1)
    return found


def _pair_fingerprints(source: Lines, target: Lines) -> "NDArray[np.uint64]":
    mixed: NDArray[np.uint64] = source.fingerprints * _MULTIPLIERS[0] + target.fingerprints * _MULTIPLIERS[1]
    return mixed


class _Doctor:
    """Looks at one block after the other, and adds up what it finds."""

    def __init__(
        self, reader: PairReader, cleaning: CleaningConfig, leaks: Mapping[str, _Leaks], repeats: Repeats
    ) -> None:
        self.reader, self.cleaning, self.leaks, self.repeats = reader, cleaning, leaks, repeats
        self.pairs = 0
        self.left_out = Bits()
        self.dropped, self.noted = ({reason: _Tally() for reason in REASONS} for _ in range(2))
        self.invalid_sides: list[int] = []
        self.separators, self.marks = _Tally(), _Tally()
        self.separators_by_name: Counter[str] = Counter()
        self.decomposed = (_Tally(), _Tally())
        self.shifts = ShiftDetector()

    def look_at(self, block: Block) -> None:
        """Decide about the pairs of a block."""
        source, target = sides = Lines.of(block.source), Lines.of(block.target)
        first = self.pairs
        self.pairs += block.lines
        self.shifts.add((source.characters, target.characters), (source.digits(), target.digits()))
        for tally, side in zip(self.decomposed, sides, strict=True):
            tally.add(decomposed(side) + first)
        alive = np.ones(block.lines, bool)
        for reason, which, drop in self._reasons(sides, first):
            numbers = np.flatnonzero(which & alive)
            self._count(reason, numbers + first, drop)
            if drop:
                alive[numbers] = False
        numbers = np.flatnonzero(alive)
        pairs = _pair_fingerprints(source, target)[numbers]
        leaked = self._leaked(source.fingerprints[numbers], pairs, numbers + first)
        self._count("leakage", numbers[leaked] + first, self.cleaning.leakage == "drop")
        if self.cleaning.leakage == "drop":
            numbers, pairs = numbers[~leaked], pairs[~leaked]
        self.repeats.add(pairs, numbers + first)

    def _count(self, reason: str, numbers: "NDArray[np.int64]", drop: bool) -> None:
        if len(numbers):
            (self.dropped if drop else self.noted)[reason].add(numbers)
            if drop:
                self.left_out.add(numbers)

    def _reasons(self, sides: tuple[Lines, Lines], first: int) -> "Iterator[tuple[str, NDArray[np.bool_], bool]]":
        """Yield which pairs there is a reason to leave out, in the order of `REASONS`, and whether they are."""
        source, target = sides
        cleaning = self.cleaning
        self._note_invalid(sides, first)
        yield "invalid_utf8", source.invalid | target.invalid, True
        yield "blank", source.blank() | target.blank(), True
        yield "control_characters", self._odd(sides, first), cleaning.control_characters == "drop"
        shorter = np.minimum(source.characters, target.characters)
        longer = np.maximum(source.characters, target.characters)
        if cleaning.max_characters:
            yield "too_long", longer > cleaning.max_characters, True
        if cleaning.max_ratio:
            yield "length_ratio", longer + 5 > cleaning.max_ratio * (shorter + 5), True
        yield "copy", (source.fingerprints == target.fingerprints).all(axis=1), cleaning.copies == "drop"

    def _note_invalid(self, sides: tuple[Lines, Lines], first: int) -> None:
        """Remember which side of a pair is not UTF-8, or stop there."""
        for index in np.flatnonzero(sides[0].invalid | sides[1].invalid)[: SHOWN - len(self.invalid_sides)]:
            self.invalid_sides.append(0 if sides[0].invalid[index] else 1)
            if self.cleaning.on_invalid == "error":
                raise self._invalid_error(first + int(index), self.invalid_sides[-1])

    def _invalid_error(self, pair: int, side: int) -> DataError:
        file, line = self.reader.place(pair, side)
        (offset,) = invalid_bytes(file, [line])
        return DataError(
            f"{file}, line {line}: expected UTF-8, got something else at byte {offset} of the file: convert the file, "
            'or leave such pairs out with cleaning.on_invalid = "skip"'
        )

    def _odd(self, sides: tuple[Lines, Lines], first: int) -> "NDArray[np.bool_]":
        """Return which pairs have control characters; note separators and byte order marks."""
        control, separated, marked = np.zeros((3, len(sides[0].ends)), bool)
        for side in sides:
            with_control, separators, marks = side.odd()
            control[with_control] = True
            marked[marks] = True
            for name, found in separators.items():
                separated[found] = True
                self.separators_by_name[name] += len(found)
        self.separators.add(np.flatnonzero(separated) + first)
        self.marks.add(np.flatnonzero(marked) + first)
        return control

    def _leaked(
        self, sources: "NDArray[np.uint64]", pairs: "NDArray[np.uint64]", numbers: "NDArray[np.int64]"
    ) -> "NDArray[np.bool_]":
        """Return which pairs are held out, too; count those of each set, and sources that have another target there."""
        leaked = np.zeros(len(pairs), bool)
        for leaks in self.leaks.values():
            here = _among(pairs, leaks.pairs)
            leaks.leaked.add(numbers[here])
            leaks.sources_alone.add(numbers[_among(sources, leaks.sources) & ~here])
            leaked |= here
        return leaked

    def examination(self) -> Examination:
        """Return what was found, once all blocks have been looked at."""
        shifts = self.shifts.finish()
        self.reader.check(where_they_part(shifts, self.reader.number))
        repeated = self.repeats.finish().packed(self.pairs)
        count, numbers = first_bits(repeated, SHOWN)
        drop = self.cleaning.duplicates == "drop"
        (self.dropped if drop else self.noted)["duplicate"] = _Tally(count, numbers)
        left_out = self.left_out.packed(self.pairs)
        if drop:
            left_out = left_out | repeated
        return Examination(self._report(shifts), inverted(left_out, self.pairs))

    def _report(self, shifts: Sequence[Shift]) -> CorpusReport:
        dropped = {reason: self._finding(tally) for reason, tally in self.dropped.items() if tally.count}
        if "invalid_utf8" in dropped:
            dropped["invalid_utf8"] = self._invalid()
        kept = self.pairs - sum(finding.count for finding in dropped.values())
        remarks = [*self._remarks(shifts)]
        if not kept:
            remarks.append((("nothing", ""), "no pair is kept: are these the right files?", None))
        details: dict[str, Any] = {}
        for (key, part), _, detail in remarks:
            if part:
                details.setdefault(key, {})[part] = detail
            elif detail is not None:
                details[key] = detail
        return CorpusReport(
            pairs=self.pairs,
            kept=kept,
            dropped=dropped,
            warnings=tuple(text for _, text, _ in remarks),
            details=details,
        )

    def _remarks(self, shifts: Sequence[Shift]) -> Iterator[Remark]:
        """Yield what one should look at: a key, a sentence, and data."""
        number = self.reader.number
        if shifts:
            yield shift_remark(shifts, number)
        for name, leaks in self.leaks.items():
            if leaks.leaked.count or leaks.sources_alone.count:
                pairs, sources = self._finding(leaks.leaked), self._finding(leaks.sources_alone)
                yield leakage_remark(name, leaks.total, pairs, sources, self.cleaning.leakage)
        for reason in ("copy", "duplicate", "control_characters"):
            if self.noted[reason].count:
                yield kept_remark(reason, self._finding(self.noted[reason]))
        for side, tally in zip(("source", "target"), self.decomposed, strict=True):
            if tally.count:
                yield from self._normalisation(side, tally)
        if self.reader.marked or self.marks.count:
            yield marks_remark(self.reader.marked, self._finding(self.marks))
        if self.separators.count:
            yield separators_remark(self.separators_by_name, self._finding(self.separators))

    def _normalisation(self, side: str, tally: _Tally) -> Iterator[Remark]:
        """Yield a remark if a side is written in both normal forms; for that, read it once more."""
        count = sum(composed(Lines.of(getattr(block, side))) for block in PairReader(self.reader.corpus))
        if count:
            yield normalisation_remark(side, count, self._finding(tally))

    def _finding(self, tally: _Tally) -> Finding:
        places = [self.reader.place(pair) for pair in tally.first]
        lines = tuple(self.reader.number(pair) for pair in tally.first)
        return Finding(tally.count, lines, tuple(f"{file}:{line}" for file, line in places), tuple(tally.first))

    def _invalid(self) -> Finding:
        """Return where lines are not UTF-8: the place is that of the side which is not."""
        tally = self.dropped["invalid_utf8"]
        places = [self.reader.place(pair, side) for pair, side in zip(tally.first, self.invalid_sides, strict=True)]
        lines_of: dict[str, list[int]] = {}
        for file, line in places:
            lines_of.setdefault(file, []).append(line)
        offsets = {
            (file, line): offset
            for file, lines in lines_of.items()
            for line, offset in zip(lines, invalid_bytes(file, lines), strict=True)
        }
        return replace(
            self._finding(tally),
            places=tuple(f"{file}:{line}" for file, line in places),
            offsets=tuple(offsets[place] for place in places),
        )
