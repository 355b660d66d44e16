"""The problems that the corpus doctor reports: one class each, in one table.

To add a problem, write a subclass of `PairProblem` with an `id` and a method `find` in this file, and add it to
`PROBLEMS`. If the
problem leaves pairs out, put the class before `_Duplicate`. If a setting decides the problem's effect, add the setting
to `CleaningConfig` (corpus/cleaning.py).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from glassformer.corpus.doctor.case import Case, Pairs, Tally
from glassformer.corpus.doctor.duplicates import first_bits
from glassformer.corpus.doctor.examination import SHOWN, Finding
from glassformer.corpus.doctor.problem import CorpusWarning, PairProblem, Problem, data_of, such_as
from glassformer.corpus.doctor.shift import Shift
from glassformer.corpus.doctor.suspicions import Header, IgnoredColumns, Languages, Misfits, Mojibake, NoWords
from glassformer.corpus.readers import PairReader, invalid_bytes
from glassformer.errors import DataError, counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ALWAYS_LEFT_OUT", "PROBLEMS", "where_they_part"]


class _ShiftedLines(Problem):
    id, effect, in_held_out = "shift", "report", True

    def look_at(self, pairs: Pairs) -> None:
        source, target = pairs.sides
        lengths, digits = (source.characters, target.characters), (source.digits, target.digits)
        self.case.shift_detector.add(lengths, digits)

    def warnings(self) -> Iterator[CorpusWarning]:
        number = self.case.reader.number
        data = [
            {"line": number(one.start), "by": one.by, "until": None if one.end is None else number(one.end) - 1}
            for one in self.case.shifts
        ]
        if not data:
            return
        first, others = data[0], len(data) - 1
        until = f"to line {first['until']}" if first["until"] else "on"
        yield CorpusWarning(
            f"suspected shift of the alignment: from about line {first['line']} {until}, line n of the source seems to "
            f"belong to line n {_signed(first['by'])} of the target{f', and {others} more shifts' * (others > 0)}",
            self.id,
            {**first, "all": data} if others else first,
        )


class _InvalidUtf8(PairProblem):
    id, setting, in_held_out = "invalid_utf8", "on_invalid", True

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.first_sides: list[int] = []
        """For each of the first pairs, the side that is not UTF-8: 0 = source, 1 = target."""

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        invalid: NDArray[np.bool_] = pairs.source.invalid | pairs.target.invalid
        for index in np.flatnonzero(invalid)[: SHOWN - len(self.first_sides)].tolist():
            side = 0 if pairs.source.invalid[index] else 1
            if self.case.cleaning.on_invalid == "error":
                raise self._error(pairs.first + index, side)
            self.first_sides.append(side)
        return invalid

    def _error(self, pair: int, side: int) -> DataError:
        file, line = self.case.reader.place(pair, side)
        (offset,) = invalid_bytes(file, [line])
        return DataError(
            f"{file}, line {line}: expected UTF-8, got an invalid byte at byte {offset} of the file: convert the file, "
            'or leave such pairs out with cleaning.on_invalid = "skip"'
        )

    def finding(self) -> Finding:
        """Return the finding with the file, line and byte offset of each invalid line, in the source or the target."""
        first = zip(self.tally.first, self.first_sides, strict=True)
        places = [self.case.reader.place(pair, side) for pair, side in first]
        lines_of: dict[str, list[int]] = {}
        for file, line in places:
            lines_of.setdefault(file, []).append(line)
        offsets = {
            (file, line): offset
            for file, lines in lines_of.items()
            for line, offset in zip(lines, invalid_bytes(file, lines), strict=True)
        }
        return replace(
            super().finding(),
            places=tuple(f"{file}:{line}" for file, line in places),
            offsets=tuple(offsets[place] for place in places),
        )


class _Blank(PairProblem):
    id, in_held_out = "blank", True

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        return pairs.source.blank | pairs.target.blank


class _ControlCharacters(PairProblem):
    id, setting = "control_characters", "control_characters"
    sentence = "control characters are in {}"

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        return pairs.with_any(*(side.control for side in pairs.odd))


class _TooLong(PairProblem):
    id, setting = "too_long", "max_characters"

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        return np.asarray(pairs.longer > self.case.cleaning.max_characters)


class _LengthRatio(PairProblem):
    id, setting = "length_ratio", "max_ratio"

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        return np.asarray(pairs.longer + 5 > self.case.cleaning.max_ratio * (pairs.shorter + 5))


class _Copy(PairProblem):
    id, setting = "copy", "copies"
    sentence = "copies: in {} the target equals the source"

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        same: NDArray[np.bool_] = (pairs.source.fingerprints == pairs.target.fingerprints).all(axis=1)
        return same


class _Leakage(PairProblem):
    id, setting = "leakage", "leakage"

    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        return pairs.with_any(*(one.look_at(pairs) for one in self.case.held_out.values()))

    def warnings(self) -> Iterator[CorpusWarning]:
        left_out = "left out" if self.effect == "drop" else 'kept: cleaning.leakage = "drop" leaves them out'
        for name, held_out in self.case.held_out.items():
            pairs, sources = self.case.finding(held_out.pairs), self.case.finding(held_out.sources)
            both = f"{counted(pairs.count, 'training pair')} also in the {name} files{such_as(pairs)} ({left_out})"
            with_another = f"with another target{such_as(sources)}"
            alone = f"{counted(sources.count, 'training source')} also in the {name} files, {with_another}"
            parts = [text for text, finding in ((both, pairs), (alone, sources)) if finding.count]
            if parts:
                yield CorpusWarning(
                    f"leakage: {'; '.join(parts)}. {name} has {held_out.total} pairs",
                    self.id,
                    {
                        "pairs": pairs.count,
                        "lines": [*pairs.lines],
                        "sources": sources.count,
                        "source_lines": [*sources.lines],
                    },
                    name,
                )


class _Duplicate(Problem):
    id, setting = "duplicate", "duplicates"
    sentence = "duplicates: {} occurred before"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.pairs = 0

    def look_at(self, pairs: Pairs) -> None:
        numbers = np.flatnonzero(pairs.alive)
        self.case.repeats.add(pairs.fingerprints[numbers], numbers + pairs.first)
        self.pairs += len(pairs.alive)

    def finish(self) -> "NDArray[np.uint8] | None":
        repeated = self.case.repeats.finish().packed(self.pairs)
        self.tally = Tally(*first_bits(repeated, SHOWN))
        return repeated if self.effect == "drop" else None


class _ByteOrderMarks(Problem):
    id, effect = "byte_order_marks", "report"

    def look_at(self, pairs: Pairs) -> None:
        """Do nothing: the reader of the files notes the marks that it skips."""

    def warnings(self) -> Iterator[CorpusWarning]:
        if files := self.case.reader.marked:
            text = f"BOM (byte order mark) at the beginning of {', '.join(files)}: skipped"
            yield CorpusWarning(text, self.id, {"files": [*files]})


class _LineSeparators(Problem):
    id, effect = "line_separators", "report"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.by_name: Counter[str] = Counter()

    def look_at(self, pairs: Pairs) -> None:
        """Count all pairs with a separator, including pairs that are left out."""
        found = [(name, lines) for side in pairs.odd for name, lines in side.separators.items()]
        for name, lines in found:
            self.by_name[name] += len(lines)
        self.tally.add(np.flatnonzero(pairs.with_any(*(lines for _, lines in found))) + pairs.first)

    def warnings(self) -> Iterator[CorpusWarning]:
        if self.tally.count:
            finding, by_name = self.finding(), sorted(self.by_name.items())
            pairs = f"{counted(finding.count, 'pair')}{such_as(finding)}"
            yield CorpusWarning(
                f"characters at which other software ends a line, within {pairs}: "
                f"{', '.join(f'{count} × {name}' for name, count in by_name)} (kept, read as white space)",
                self.id,
                {**data_of(finding), "characters": dict(by_name)},
            )


PROBLEMS: tuple[type[Problem], ...] = (
    _ShiftedLines,
    _InvalidUtf8,
    _Blank,
    _ControlCharacters,
    _TooLong,
    _LengthRatio,
    _Copy,
    _Leakage,
    _Duplicate,  # the last problem that leaves pairs out, because it examines only the pairs that remain
    _ByteOrderMarks,
    _LineSeparators,
    IgnoredColumns,
    Header,
    NoWords,
    Languages,
    Mojibake,
    Misfits,
)
"""All problems, in the order of their warnings. A dropped pair is counted under the first problem that drops it."""

ALWAYS_LEFT_OUT = tuple(kind.id for kind in PROBLEMS if kind.effect == "drop" and not kind.setting)
"""Problems that leave pairs out whatever the settings. A folder prepared with a different list is examined again."""


def where_they_part(shifts: Sequence[Shift], reader: PairReader) -> str:
    """Return words that say where sides with unequal numbers of lines seem to run apart, or "" if this is unknown."""
    lasting = [shift for shift in shifts if shift.end is None] or list(shifts)
    if not lasting:
        return ""
    first = next(shift for shift in shifts if shift.end is None or shift is lasting[0])
    return (
        f". The sides seem to run apart at line {reader.number(first.start)}: from there on, line n of the source fits "
        f"line n {_signed(first.by)} of the target"
    )


def _signed(by: int | None) -> str:
    return f"{'−' if (by or 0) < 0 else '+'} {abs(by or 0)}"
