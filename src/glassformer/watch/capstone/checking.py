"""Check a reader's file in a separate process, with limits on time and memory."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.errors import DataError
from glassformer.watch.capstone.exercises import EXERCISES, Exercise

__all__ = ["FileCheck", "check_file"]

_SECONDS = 30.0
"""Maximum number of seconds for loading the file, and for each step except the last."""
_TRAINING_SECONDS = 300.0
"""Maximum number of seconds for the last step."""
_LARGEST = 1 << 20
"""Maximum size of the file, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """Which steps of a reader's file are right, and what is wrong with the next step."""

    file: str
    """The file's name."""
    passed_steps: tuple[str, ...]
    """For each step that agrees with the reference, a sentence about what is right."""
    message: str = ""
    """What is wrong, in one sentence; empty if nothing is wrong."""
    line: int | None = None
    """The line of the file that is wrong, from 1."""
    point: str = ""
    """The first tensor that differs from the reference."""
    likely: tuple[str, ...] = ()
    """The mistakes that would give the file's numbers; several mistakes may give the same numbers."""
    notes: tuple[str, ...] = ()
    """Remarks about things that are not wrong."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong so far."""
        return not self.message

    @property
    def next(self) -> Exercise | None:
        """The step to write or correct next, or None after the last step."""
        return EXERCISES[len(self.passed_steps)] if len(self.passed_steps) < len(EXERCISES) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the number of the next step as plain data."""
        return asdict(self) | {"next_step": len(self.passed_steps) + 1 if self.next else None}


def check_file(
    path: str | Path, *, seconds: float = _SECONDS, training_seconds: float = _TRAINING_SECONDS
) -> FileCheck:
    """Check a reader's file of the page "Write it yourself", step by step, and return which steps are right.

    The file runs in a separate process. The file's weights are copied into the reference model, so the check compares
    numbers, not code.

    Args:
        path: the file; it may import torch and the standard library.
        seconds: maximum time for loading the file, and for each step except the last.
        training_seconds: maximum time for the last step, the training.

    Raises:
        DataError: the file cannot be read.
    """
    path = Path(path)
    _readable(path)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        _run(path, results, seconds, training_seconds)
        lines = (
            [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []
        )
        stack = results.with_suffix(".stack")
        return _read(path, lines, stack.read_text(encoding="utf-8") if stack.exists() else "")


def _readable(path: Path) -> None:
    if not path.is_file():
        raise DataError(
            f"{path}: expected a Python file, got {'a folder' if path.is_dir() else 'nothing'}; create this file"
        )
    if path.stat().st_size > _LARGEST:
        raise DataError(
            f"{path}: expected at most {_LARGEST:,} bytes, got {path.stat().st_size:,}; give your own code only"
        )
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected UTF-8, got other bytes at {error.start}; save the file as UTF-8") from error


def _run(path: Path, results: Path, seconds: float, training_seconds: float) -> None:
    """Run the worker until it ends, or until the maximum time of all steps is over."""
    limits = [str(seconds), str(training_seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "glassformer.watch.capstone.worker", str(path.resolve()), str(results), *limits],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=results.parent,
        env=environment,
        start_new_session=True,
    )
    try:
        process.wait(timeout=60 + len(EXERCISES) * seconds + training_seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also kills processes that the reader's file has started
        process.wait()


def _read(path: Path, lines: list[Mapping[str, Any]], stack: str) -> FileCheck:
    """Return the result, read from the worker's lines and, if a step took too long, from the worker's stack."""
    values: dict[str, Any] = {}
    for line in lines:
        values |= line
    passed = tuple(line["shown"] for line in lines if "passed" in line)
    found: dict[str, Any] = {"file": path.name, "passed_steps": passed}
    if "printed" in values:
        found["notes"] = (f"{path.name}, line {values['line']}: prints {values['printed']}; the check shows no output",)
        del values["line"]
    if values.get("nearest"):
        found["notes"] = (*found.get("notes", ()), f"{values['missing']} is missing{values['nearest']}")
    if "message" in values:
        found |= {name: values[name] for name in ("message", "line", "point")} | {"likely": tuple(values["likely"])}
    elif "end" not in values:
        place = re.search(rf'File "{re.escape(str(path.resolve()))}", line (\d+)', stack)
        found["line"] = int(place[1]) if place else None
        what = EXERCISES[values["step"] - 1].title if "step" in values else "the file"
        found["message"] = f"{what}: " + (
            "takes too long; look for an endless loop"
            if stack
            else "ended the process, or needs more memory than allowed"
        )
    return FileCheck(**found)
