"""The result of a self-test, as data and as text."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["SIGNS", "Check", "CheckStatus", "SelfTest"]

CheckStatus = Literal["passed", "failed", "skipped"]

SIGNS: dict[CheckStatus, str] = {"passed": "✓", "failed": "✗", "skipped": "–"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One checked property of a model."""

    name: str
    claim: str
    """The property, in words."""
    status: CheckStatus
    measured: float | None = None
    """The measured number; None if nothing was measured, or if the number is not finite."""
    unit: str = ""
    """The unit of the number."""
    note: str = ""
    """A remark, such as where a difference begins or why the check was skipped."""
    likely: tuple[str, ...] = ()
    """The likely mistakes behind a failure, in words."""

    @property
    def number(self) -> str:
        """The measured number as text; "" if there is none."""
        return "" if self.measured is None else f"{self.measured:.2g} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """The result of a self-test."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "failed" for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        plain: dict[str, Any] = json.loads(json.dumps({"passed": self.passed, **asdict(self)}))
        return plain

    def __str__(self) -> str:
        """Return one line per check, followed by the likely mistakes if the check failed."""
        lines = []
        for one in self.checks:
            lines.append(f"{SIGNS[one.status]} {one.name:<15} {one.claim}: {one.number or one.note}")
            lines.extend([f"    {one.note}"] if one.number and one.note else [])
            lines.extend(f"    likely: {text}" for text in one.likely)
        return "\n".join(lines)
