"""What a self-test found, as data and as text."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["SIGNS", "Check", "Report", "Status"]

Status = Literal["passed", "failed", "skipped"]

SIGNS: dict[Status, str] = {"passed": "✓", "failed": "✗", "skipped": "–"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that has to hold, and whether it does."""

    name: str
    claim: str
    """What has to hold, in words."""
    status: Status
    measured: float | None = None
    """The number that was measured; None where there is none, or where it is not finite."""
    unit: str = ""
    """What the number is."""
    note: str = ""
    """What else there is to say: where a difference begins, why a check was skipped."""
    likely: tuple[str, ...] = ()
    """Of a check that failed, the likely mistakes in words."""

    @property
    def number(self) -> str:
        """What was measured, to be read; empty where there is none."""
        return "" if self.measured is None else f"{self.measured:.2g} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a self-test found."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(check.status != "failed" for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        plain: dict[str, Any] = json.loads(json.dumps({"passed": self.passed, **asdict(self)}))
        return plain

    def __str__(self) -> str:
        """Return a line for each check, with the likely mistakes below those that failed."""
        lines = []
        for one in self.checks:
            lines.append(f"{SIGNS[one.status]} {one.name:<15} {one.claim}: {one.number or one.note}")
            lines.extend([f"    {one.note}"] if one.number and one.note else [])
            lines.extend(f"    likely: {text}" for text in one.likely)
        return "\n".join(lines)
