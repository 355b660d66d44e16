"""The corpus doctor's findings: pairs kept, pairs dropped by problem, and warnings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SHOWN", "CorpusReport", "Examination", "Finding"]

SHOWN = 10
"""Lines named for each finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Lines that have something in common."""

    count: int
    """The number of lines."""
    lines: tuple[int, ...]
    """The numbers of the first of them, from 1, counted through all files of a side."""
    places: tuple[str, ...]
    """The same lines as "file:line"."""
    pairs: tuple[int, ...] = ()
    """The same lines as numbers of pairs, from 0, for `pairs_at`."""
    offsets: tuple[int, ...] = ()
    """For lines that are not UTF-8: the place of the first invalid byte in its file's text, from 0."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What the doctor says about a corpus."""

    pairs: int
    """Pairs of lines that were read."""
    kept: int
    """Pairs that remain."""
    dropped: Mapping[str, Finding]
    """Pairs that are left out, by the problem's id; only problems that occurred."""
    warnings: tuple[str, ...] = ()
    """What to look at before training, one sentence each."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The warnings as data for JSON, by key."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `glassformer prepare --check --json` prints it."""
        dropped = {}
        for reason, finding in self.dropped.items():
            dropped[reason] = {"count": finding.count, "lines": [*finding.lines], "places": [*finding.places]}
            if finding.offsets:
                files = [place.rpartition(":")[0] for place in finding.places]
                dropped[reason] |= {"offsets": [*finding.offsets], "files": files}
        return {
            "pairs": self.pairs,
            "kept": self.kept,
            "dropped": dropped,
            "warnings": [*self.warnings],
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a corpus."""

    report: CorpusReport
    kept: "NDArray[np.uint8]"
    """One bit for each pair of lines (`numpy.packbits`), set if it is kept."""
