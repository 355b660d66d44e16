"""The corpus doctor: read a corpus once, report its problems, and decide which of its pairs are kept.

Each pair that is left out is counted under the first problem in `PROBLEMS` that leaves it out, so that the kept and the
dropped pairs add up to all pairs. Validation and test files are only searched for pairs of the training files.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor.case import Case, HeldOut, Pairs
from glassformer.corpus.doctor.duplicates import Bits, Repeats, inverted
from glassformer.corpus.doctor.examination import CorpusReport, Examination
from glassformer.corpus.doctor.problems import PROBLEMS, CorpusWarning, where_they_part
from glassformer.corpus.files import stored_bytes
from glassformer.corpus.readers import Corpus, PairReader

__all__ = ["Examination", "examine"]


def examine(
    corpus: Corpus,
    cleaning: CleaningConfig,
    held_out: Mapping[str, Corpus] | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Examination:
    """Return the problems of a corpus, and which of its pairs are kept.

    Args:
        corpus: The training pairs.
        cleaning: Which problems are looked for, and which of them leave pairs out.
        held_out: Corpora whose pairs should not be among the training pairs, by name, such as "valid".
        on_progress: Gets the bytes of the files read so far, and all bytes (0 = unknown).

    Raises:
        DataError: a file cannot be read, the sides have unequal numbers of lines, or a line is not UTF-8 while
            `cleaning.on_invalid` is "error".
    """
    known = {name: HeldOut(PairReader(other)) for name, other in (held_out or {}).items()}
    sizes = [stored_bytes(file) for file in (*corpus.source, *corpus.target)]
    total = sum(sizes) if all(sizes) else 0
    reader = PairReader(corpus, lambda done: on_progress(done, total))
    with Repeats(cleaning.memory) as repeats:
        doctor = _Doctor(Case(reader=reader, cleaning=cleaning, held_out=known, repeats=repeats))
        for block in reader:
            doctor.look_at(Pairs(block, doctor.pairs))
        return doctor.examination()


class _Doctor:
    """Shows every block of pairs to every problem, and collects what is left out."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.problems = [problem for problem in (kind(case) for kind in PROBLEMS) if problem.looked_for]
        self.pairs = 0
        self.left_out = Bits()

    def look_at(self, pairs: Pairs) -> None:
        """Decide about the pairs of a block."""
        self.pairs += len(pairs.alive)
        for problem in self.problems:
            found = problem.find(pairs)
            if found is None:
                continue
            indices = np.flatnonzero(found & pairs.alive if problem.drops else found)
            problem.tally.add(indices + pairs.first)
            if problem.leaves_out:
                pairs.alive[indices] = False
                self.left_out.add(indices + pairs.first)

    def examination(self) -> Examination:
        """Return what was found, once all blocks have been looked at."""
        self.case.reader.check(where_they_part(self.case.shifts, self.case.reader))
        left_out = self.left_out.packed(self.pairs)
        for problem in self.problems:
            besides = problem.finish()
            if besides is not None:
                left_out = left_out | besides
        return Examination(self._report(), inverted(left_out, self.pairs))

    def _report(self) -> CorpusReport:
        dropping = [problem for problem in self.problems if problem.leaves_out and problem.tally.count]
        kept = self.pairs - sum(problem.tally.count for problem in dropping)
        warnings = [warning for problem in self.problems for warning in problem.warnings()]
        texts = [warning.text for warning in warnings]
        if not kept:
            texts.append("no pair is kept: are these the right files?")
        return CorpusReport(
            pairs=self.pairs,
            kept=kept,
            dropped={problem.id: problem.finding() for problem in dropping},
            warnings=tuple(texts),
            details=_details(warnings),
        )


def _details(warnings: list[CorpusWarning]) -> dict[str, Any]:
    """Return the data of all warnings by key; warnings of several parts share one key."""
    details: dict[str, Any] = {}
    for warning in warnings:
        if warning.part:
            details.setdefault(warning.key, {})[warning.part] = warning.data
        else:
            details[warning.key] = warning.data
    return details
