"""metrics.jsonl: the log of a run, one JSON object per line."""

import json
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from glassformer.jobs.run_reports import AlignmentReport, AverageReport
from glassformer.system.files import check_regular, parse_json, sync, unwritable, write_safely
from glassformer.training.checkpoint import TrainingState
from glassformer.training.reports import (
    CheckpointReport,
    Ending,
    EndReport,
    Measured,
    StepReport,
    TrainingReport,
    ValidationReport,
)

__all__ = ["METRICS_FILE", "Log", "best", "read_log"]

METRICS_FILE = "metrics.jsonl"
_REPORTS = (StepReport, ValidationReport, AverageReport, EndReport)
_NUMERIC = {field.name for report in _REPORTS for field in fields(report) if field.type in (int, float)}
"""Names of the values that are numbers."""


class Log:
    """A writer of metrics.jsonl: a JSON line for every `every`-th update, each validation, and the end of training."""

    def __init__(self, path: Path, every: int, state: TrainingState) -> None:
        """Keep the lines written before `state`, and remove later lines, because training will write them again."""
        self.path, self.every = path, every
        kept = [line for line in read_log(path) if _is_before(line, state)]
        write_safely(path, lambda temporary: temporary.write_text("".join(f"{json.dumps(line)}\n" for line in kept)))

    def sync(self) -> None:
        """Wait until all lines are on the disk: a run resumed from a checkpoint needs the lines before the checkpoint.

        Raises:
            OSError: the lines cannot be written.
        """
        with suppress(FileNotFoundError):  # the user may have removed the log
            sync(self.path)

    def has(self, kind: str, step: int) -> bool:
        """Return whether a line of this type was already written at this step."""
        return any((line["type"], line["step"]) == (kind, step) for line in read_log(self.path))

    def write(self, report: TrainingReport | AverageReport | AlignmentReport, step: int) -> None:
        """Append a report to the log, except checkpoint reports, whose timing depends on the disk.

        Raises:
            CheckpointError: the log cannot be written.
        """
        if isinstance(report, CheckpointReport) or (isinstance(report, StepReport) and step % self.every):
            return
        values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(report).items()}
        kind = type(report).__name__.removesuffix("Report").lower()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"type": kind, "step": step, **values}) + "\n")
        except OSError as error:
            raise unwritable(self.path, error, "the checkpoints are kept") from error


def _is_before(line: dict[str, Any], state: TrainingState) -> bool:
    """Return whether a line was written before a state; a validation that the state still awaits counts as later."""
    step: int = line["step"]
    return line["type"] != "end" and step <= (state.validated if line["type"] == "validation" else state.step)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the entries of metrics.jsonl; a line left incomplete by a killed process is skipped.

    Raises:
        CheckpointError: the path is not a regular file.
    """
    check_regular(path)
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        with suppress(ValueError):
            entries.append(_entry(parse_json(line)))
    return entries


def _entry(line: Any) -> dict[str, Any]:
    """Return an entry of the log.

    Raises:
        ValueError: the entry lacks its type or step, or a value has the wrong type.
    """
    match line:
        case {"type": str(), "step": int()} if all(_fits(name, value) for name, value in line.items()):
            return dict(line)
        case _:
            raise ValueError("not a line of metrics.jsonl")


def _fits(name: str, value: Any) -> bool:
    match name, value:
        case "metric", None | [str(), float() | int(), bool()]:
            return True
        case "metric", _:
            return False
        case "reason", _:
            return value in get_args(Ending)
        case _:
            return name not in _NUMERIC or isinstance(value, float | int)


def best(path: Path) -> tuple[float | None, Measured | None]:
    """Return the validation loss and metric of the run's kept weights, even if logged before the run was resumed."""
    for line in reversed(read_log(path)):
        if line.get("best") or line.get("kept"):
            metric = line.get("metric")
            return line.get("loss"), metric and Measured(*metric)
    return None, None
