"""What a problem of the corpus doctor is: the classes that each problem is derived from."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from glassformer.corpus.doctor.case import Case, Pairs, Tally
from glassformer.corpus.doctor.examination import Finding
from glassformer.errors import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CorpusWarning", "Effect", "PairProblem", "Problem", "data_of", "such_as"]

Effect = Literal["ignore", "report", "drop"]
"""The effect of a problem: "ignore" does not look for pairs with the problem, "report" counts the pairs and warns,
"drop" leaves the pairs out."""


@dataclass(frozen=True, slots=True)
class CorpusWarning:
    """A warning as text, and as data for JSON."""

    text: str
    key: str
    """The key of the data in the findings."""
    data: Any
    part: str = ""
    """The second-level key of the data, if a problem has several warnings, such as one per side."""


class Problem(ABC):
    """A kind of problem with pairs. Each object examines one corpus."""

    id: ClassVar[str]
    """The name of the problem in reports."""
    setting: ClassVar[str] = ""
    """The setting of [cleaning] that decides the effect; "" = no setting, so the effect is always the same."""
    effect: Effect = "drop"
    """The effect of the problem, unless `setting` names a setting that decides it."""
    in_held_out: ClassVar[bool] = False
    """Whether to look for the problem in validation and test files, too."""
    sentence: ClassVar[str] = ""
    """The warning if pairs with the problem are kept. The number of these pairs, such as "3 pairs", replaces {}."""

    def __init__(self, case: Case) -> None:
        self.case, self.tally = case, Tally()
        if self.setting:
            self.effect = _effect_of(getattr(case.cleaning, self.setting))

    @abstractmethod
    def look_at(self, pairs: Pairs) -> None:
        """Count the pairs of a block that have the problem, and mark the pairs that are left out."""

    def finish(self) -> "NDArray[np.uint8] | None":
        """Return additional pairs to leave out, as packed bits, after all pairs have been read; None = no pairs."""
        return None

    def finding(self) -> Finding:
        """Return the number of pairs with the problem, and the lines of the first pairs with the problem."""
        return self.case.finding(self.tally)

    def warnings(self) -> Iterator[CorpusWarning]:
        """Yield the warnings; by default, one warning if pairs with the problem are kept."""
        if self.sentence and self.tally.count and self.effect != "drop":
            finding = self.finding()
            remedy = f' (kept: cleaning.{self.setting} = "drop" leaves them out)' if self.setting else ""
            text = f"{self.sentence.format(counted(finding.count, 'pair'))}{such_as(finding)}{remedy}"
            yield CorpusWarning(text, self.setting or self.id, data_of(finding))


def _effect_of(value: str | float) -> Effect:
    """Return the effect that a setting's value stands for; a number is a threshold, and 0 means no threshold."""
    if isinstance(value, str):
        return "report" if value in ("keep", "warn") else "drop"
    return "drop" if value else "ignore"


class PairProblem(Problem):
    """A problem of single pairs. A pair that an earlier problem has left out is not counted again."""

    @abstractmethod
    def find(self, pairs: Pairs) -> "NDArray[np.bool_]":
        """Return a mask of the pairs in a block that have the problem."""

    def look_at(self, pairs: Pairs) -> None:
        """Count the pairs that `find` returns; if the effect is "drop", mark the pairs as left out."""
        indices = np.flatnonzero(self.find(pairs) & pairs.alive)
        self.tally.add(indices + pairs.first)
        if self.effect == "drop":
            pairs.alive[indices] = False


def such_as(finding: Finding) -> str:
    """Return words that name the first lines, or "" if there are none."""
    lines = ", ".join(map(str, finding.lines[:3]))
    return f", such as line {lines}" if lines else ""


def data_of(finding: Finding) -> dict[str, Any]:
    """Return a finding as data for JSON."""
    return {"count": finding.count, "lines": [*finding.lines]}
