"""metrics.jsonl: how a run went, one JSON object a line."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError
from glassformer.run.reports import AverageReport
from glassformer.text.storage import sync, write_safely
from glassformer.training.checkpoint import TrainingState
from glassformer.training.loop import CheckpointReport, Measured, Report, StepReport

__all__ = ["METRICS", "Log", "best", "read_log"]

METRICS = "metrics.jsonl"


class Log:
    """metrics.jsonl: one JSON object a line, for every `every`-th update, each validation, and the end."""

    def __init__(self, path: Path, every: int, state: TrainingState) -> None:
        """Keep of the lines that are there those from before this state; what came after it will come again."""
        self.path, self.every = path, every
        kept = [line for line in read_log(path) if _is_before(line, state)]
        write_safely(path, lambda temporary: temporary.write_text("".join(f"{json.dumps(line)}\n" for line in kept)))

    def sync(self) -> None:
        """Wait until all lines are on the disk: a checkpoint without those that led to it could not go on exactly.

        Raises:
            OSError: they could not be written.
        """
        with suppress(FileNotFoundError):  # somebody has removed it
            sync(self.path)

    def has_average(self, step: int) -> bool:
        """Return whether the mean of the checkpoints was already validated at this step."""
        return any((line["type"], line["step"]) == ("average", step) for line in read_log(self.path))

    def write(self, report: Report | AverageReport, step: int) -> None:
        """Append what a report says, but not that a checkpoint is there: when it comes to that depends on the disk.

        Raises:
            CheckpointError: it could not be written.
        """
        if isinstance(report, CheckpointReport) or (isinstance(report, StepReport) and step % self.every):
            return
        values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(report).items()}
        kind = type(report).__name__.removesuffix("Report").lower()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"type": kind, "step": step, **values}) + "\n")
        except OSError as error:
            raise CheckpointError(
                f"cannot write {self.path}: {error.strerror or error}; the checkpoints are kept: once there is room, "
                "the same command goes on from the latest"
            ) from error


def _is_before(line: dict[str, Any], state: TrainingState) -> bool:
    """Return whether a state has this line behind it: not yet a validation before which the training was stopped."""
    step: int = line["step"]
    return line["type"] != "end" and step <= (state.validated if line["type"] == "validation" else state.step)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl; one that is not whole, because the process was killed, is passed over."""
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            entries.append(json.loads(line))
    return entries


def best(path: Path) -> tuple[float | None, Measured | None]:
    """Return what the weights that are kept were validated with, over all starts of the run."""
    for line in reversed(read_log(path)):
        if line.get("best") or line.get("kept"):
            return line["loss"], line["metric"] and Measured(*line["metric"])
    return None, None
