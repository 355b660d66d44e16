"""What the corpus doctor found: pairs kept and dropped by reason, and warnings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["REASONS", "SHOWN", "CorpusReport", "Examination", "Finding"]

REASONS = (
    "invalid_utf8",
    "blank",
    "control_characters",
    "too_long",
    "length_ratio",
    "copy",
    "leakage",
    "duplicate",
)
"""Why a pair is left out, in the order in which this is decided."""

SHOWN = 10
"""How many lines are named for each finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Lines that have something in common."""

    count: int
    """How many there are."""
    lines: tuple[int, ...]
    """The numbers of the first of them, from 1, counted through all files of a side."""
    places: tuple[str, ...]
    """The same as "file:line"."""
    pairs: tuple[int, ...] = ()
    """The same as numbers of pairs, from 0, for `pairs_at`."""
    offsets: tuple[int, ...] = ()
    """For bytes that are not UTF-8: where they are in their file's text, from 0."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What a corpus is like."""

    pairs: int
    """Pairs of lines that were read."""
    kept: int
    """Pairs that remain."""
    dropped: Mapping[str, Finding]
    """Pairs that are left out, by reason; reasons that did not occur are left out."""
    warnings: tuple[str, ...] = ()
    """What one should look at: a sentence each."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the warnings are about, as data for JSON, by a key each."""

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
    """What came out of looking at a corpus."""

    report: CorpusReport
    kept: "NDArray[np.uint8]"
    """One bit for each pair of lines (`numpy.packbits`), set if it is kept."""
