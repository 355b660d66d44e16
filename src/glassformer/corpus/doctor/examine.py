"""The corpus doctor: read a corpus once, report its problems, and decide which of its pairs are kept.

Each dropped pair is counted once, under the first problem in `PROBLEMS` that drops the pair, so that kept and dropped
pairs add up to all pairs. Validation and test files are not cleaned, except that pairs with a blank side are left out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor.case import Case, HeldOut, Pairs, facts_of
from glassformer.corpus.doctor.duplicates import MEGABYTES, Bits, Repeats, inverted
from glassformer.corpus.doctor.examination import Examination, Findings
from glassformer.corpus.doctor.problem import CorpusWarning, Problem
from glassformer.corpus.doctor.problems import PROBLEMS, where_they_part
from glassformer.corpus.files import stored_bytes
from glassformer.corpus.readers import Block, Corpus, PairReader
from glassformer.system.pools import HERE, Pool

__all__ = ["Examination", "examine", "examine_held_out"]

MOST_LEFT_OUT = 0.1
"""Share of the pairs, without repeated ones, that may be left out without a warning."""
REPEATED = ("duplicate", "copy", "leakage")
"""Problems whose pairs repeat a text that is right."""


def examine(
    corpus: Corpus,
    cleaning: CleaningConfig,
    held_out: Mapping[str, Corpus] | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
    pool: Pool = HERE,
    languages: tuple[str, str] = ("", ""),
) -> Examination:
    """Examine a corpus; return its problems, and for each pair whether the pair is kept.

    Args:
        corpus: The training pairs.
        cleaning: The settings that decide which problems to look for, and which problems leave pairs out.
        held_out: Corpora whose pairs should not be among the training pairs, by name, such as "valid".
        on_progress: Receives the number of bytes read so far, and the total number of bytes (0 = unknown).
        pool: The processes that measure the lines; the result does not depend on the pool.
        languages: The languages that source and target should have, as BCP 47 tags; "" = unknown.

    Raises:
        DataError: a file cannot be read, the sides have unequal numbers of lines, or a line is not UTF-8 while
            `cleaning.on_invalid` is "error".
    """
    known = {name: HeldOut(PairReader(other)) for name, other in (held_out or {}).items()}
    sizes = [stored_bytes(file) for file in (*corpus.source, *corpus.target)]
    total = sum(sizes) if all(sizes) else 0
    reader = PairReader(corpus, lambda done: on_progress(done, total))
    with Repeats(MEGABYTES) as repeats:
        case = Case(reader=reader, cleaning=cleaning, held_out=known, repeats=repeats, languages=languages)
        return _Doctor(case, PROBLEMS, pool).examination()


def examine_held_out(corpus: Corpus) -> Examination:
    """Examine a validation or test corpus, from which only pairs with a blank side are left out; return its problems.

    Raises:
        DataError: a file cannot be read, the sides have unequal numbers of lines, or a line is not UTF-8.
    """
    with Repeats(MEGABYTES) as repeats:
        case = Case(reader=PairReader(corpus), cleaning=CleaningConfig(), held_out={}, repeats=repeats)
        return _Doctor(case, (kind for kind in PROBLEMS if kind.in_held_out)).examination()


class _Doctor:
    """An examination: it passes every block to every problem, and collects the numbers of the pairs left out."""

    def __init__(self, case: Case, kinds: Iterable[type[Problem]], pool: Pool = HERE) -> None:
        self.case, self.pool = case, pool
        self.problems = [problem for problem in (kind(case) for kind in kinds) if problem.effect != "ignore"]
        self.waiting: deque[Block] = deque()
        self.pairs = 0
        self.left_out = Bits()

    def examination(self) -> Examination:
        """Read the corpus and return the result."""
        with closing(self.pool.map(facts_of, self._blocks())) as found:
            for sides in found:
                self._look_at(Pairs(self.waiting.popleft(), sides, self.pairs))
        self.case.reader.check(where_they_part(self.case.shifts, self.case.reader))
        left_out = self.left_out.packed(self.pairs)
        for problem in self.problems:
            besides = problem.finish()
            if besides is not None:
                left_out = left_out | besides
        return Examination(self._findings(), inverted(left_out, self.pairs))

    def _blocks(self) -> Iterator[Block]:
        """Yield the blocks of the corpus, and keep each block until it is measured."""
        for block in self.case.reader:
            self.waiting.append(block)
            yield block

    def _look_at(self, pairs: Pairs) -> None:
        for problem in self.problems:
            problem.look_at(pairs)
        self.case.sample.add(pairs)
        self.pairs += len(pairs.alive)
        self.left_out.add(np.flatnonzero(~pairs.alive) + pairs.first)

    def _findings(self) -> Findings:
        dropping = [problem for problem in self.problems if problem.effect == "drop" and problem.tally.count]
        kept = self.pairs - sum(problem.tally.count for problem in dropping)
        warnings = [warning for problem in self.problems for warning in problem.warnings()]
        texts = [warning.text for warning in warnings]
        unusable = sum(problem.tally.count for problem in dropping if problem.id not in REPEATED)
        if kept and unusable > MOST_LEFT_OUT * self.pairs:
            share = f"{100 * unusable / self.pairs:.0f} %"
            texts.append(f"{share} of the pairs are left out, repeated ones not counted: are these the right files?")
        if not kept:
            texts.append("no pair is kept: are these the right files?")
        return Findings(
            pairs=self.pairs,
            kept=kept,
            dropped={problem.id: problem.finding() for problem in dropping},
            warnings=tuple(texts),
            details=_details(warnings),
        )


def _details(warnings: list[CorpusWarning]) -> dict[str, Any]:
    """Return the data of all warnings by key; for warnings with parts, the value maps each part to its data."""
    details: dict[str, Any] = {}
    for warning in warnings:
        if warning.part:
            details.setdefault(warning.key, {})[warning.part] = warning.data
        else:
            details[warning.key] = warning.data
    return details
