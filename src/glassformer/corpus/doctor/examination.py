"""The corpus doctor's findings: kept pairs, dropped pairs by problem, and warnings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SHOWN", "Examination", "Finding", "Findings"]

SHOWN = 10
"""Maximum number of lines that a finding names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The number of pairs with a problem, and the lines of the first `SHOWN` pairs with the problem."""

    count: int
    """The number of pairs with the problem."""
    lines: tuple[int, ...]
    """Line numbers of the first pairs, from 1, counted across all source files."""
    places: tuple[str, ...]
    """The same pairs as "file:line"."""
    pairs: tuple[int, ...] = ()
    """The same pairs by number, from 0, for `pairs_at`."""
    offsets: tuple[int, ...] = ()
    """For lines that are not UTF-8: the offset of the line's first invalid byte in the decompressed file."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The corpus doctor's findings in a corpus."""

    pairs: int
    """Number of pairs read."""
    kept: int
    """Number of pairs kept."""
    dropped: Mapping[str, Finding]
    """The pairs that are left out, by the id of the problem; problems that did not occur are missing."""
    warnings: tuple[str, ...] = ()
    """Warnings about problems to examine before training, one string each."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The warnings as data for JSON, by key."""

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as `glassformer prepare --check --json` prints them."""
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

    findings: Findings
    kept: "NDArray[np.uint8]"
    """One bit for each line pair, packed as by `numpy.packbits`; 1 if the pair is kept."""
