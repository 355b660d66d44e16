"""metrics.jsonl always has the lines up to a checkpoint, and is cut at the checkpoint from which a run resumes."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest
from benchmarks.resume import difference_between_runs

from glassformer.jobs import train
from glassformer.jobs.log import METRICS_FILE, Log, read_log
from glassformer.jobs.run_reports import AverageReport
from glassformer.recipes.toml import load
from glassformer.training.checkpoint import Checkpoints, TrainingState
from glassformer.training.reports import EndReport, StepReport, ValidationReport

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 3
[tokenizer]
kind = "words"
[model]
preset = "tiny"
d_model = 16
d_ff = 16
heads = 2
[training]
steps = 7
checkpoint_every = 2
keep_checkpoints = 5
validate_every = 3
log_every = 1
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run of 7 steps, with its corpus and configuration beside it."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "train.tsv").write_text("".join(f"a {word}\tb {word}\n" for word in "cdefghijklmnopqrstuvwxyzäöüßéèê"))
    (folder / "small.toml").write_text(CONFIG)
    train(settings_of(folder / "whole"))
    return folder / "whole"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """Return a copy of the run, which may be changed."""
    return shutil.copytree(whole, tmp_path / "run")


def settings_of(run: Path, beside: Path | None = None):
    folder = (beside or run).parent
    return load(folder / "small.toml", [f"run.directory={run}", f"data.prepared={folder / 'prepared'}"], data=folder)


def lines_of(run: Path) -> list[tuple[str, int]]:
    return [(line["type"], line["step"]) for line in read_log(run / METRICS_FILE)]


def write_lines(path: Path, *lines: tuple[str, int]) -> None:
    path.write_text("".join(json.dumps({"type": kind, "step": step}) + "\n" for kind, step in lines))


@pytest.mark.slow
def test_a_checkpoint_is_written_after_its_log_lines(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, on_the_disk, found = tmp_path / "run" / METRICS_FILE, [""], {}
    sync, rename = os.fsync, Path.rename

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        if os.path.samestat(os.fstat(descriptor), log.stat() if log.exists() else os.stat("/")):
            on_the_disk[0] = log.read_text()

    def renamed(path: Path, target: Path) -> Path:
        found.setdefault(target.name, on_the_disk[0].splitlines())
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", renamed)
    train(settings_of(tmp_path / "run", beside=whole))
    assert set(found) == {f"step-{step:08d}" for step in (2, 4, 6, 7)}
    for name, text in found.items():
        step = int(name.removeprefix("step-"))
        expected = [line for line in lines_of(whole) if line[1] <= step and line[0] not in ("alignment", "end")]
        there = [(line["type"], line["step"]) for line in map(json.loads, text)]
        # a few more lines may have been added while the checkpoint was written
        assert there[: len(expected)] == expected


def test_lines_after_the_restored_step_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / METRICS_FILE
    lines = [("step", 5), ("validation", 5), ("step", 7), ("validation", 7), ("average", 7), ("end", 7), ("step", 8)]
    kept = {(0, 0): 0, (5, 5): 2, (6, 5): 2, (7, 7): 5, (8, 7): 6}
    for (step, validated), count in kept.items():
        write_lines(path, *lines)
        Log(path, 1, TrainingState(step=step, validated=validated))
        assert lines_of(tmp_path) == [line for line in lines if line[0] != "end"][:count]


def test_a_logged_validation_beyond_the_state_is_dropped(tmp_path: Path) -> None:
    write_lines(tmp_path / METRICS_FILE, ("validation", 5), ("step", 7), ("validation", 7))
    Log(tmp_path / METRICS_FILE, 1, TrainingState(step=7, validated=5))
    assert lines_of(tmp_path) == [("validation", 5), ("step", 7)]


@pytest.mark.parametrize("end", [b'{"type": "st', b"\0" * 23, b'{"a": "\xc3', b"\xff\xfe\n\n"])
def test_a_torn_end_of_the_log_is_dropped(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / METRICS_FILE
    write_lines(path, ("step", 1), ("step", 2))
    whole = path.read_bytes()
    path.write_bytes(whole + end)
    assert lines_of(tmp_path) == [("step", 1), ("step", 2)]
    Log(path, 1, TrainingState(step=3))
    assert path.read_bytes() == whole


# Resumed runs


def drop_checkpoints(run: Path, after: int) -> None:
    for path in Checkpoints(run / "checkpoints", keep=9).paths():
        if int(path.name.removeprefix("step-")) > after:
            shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 2, 4, 6])
def test_a_log_ahead_of_its_checkpoint_ends_the_same(whole: Path, run: Path, step: int) -> None:
    drop_checkpoints(run, step)
    with (run / METRICS_FILE).open("a") as file:
        file.write('{"type": "step", "st')
    train(settings_of(run, beside=whole))
    assert difference_between_runs(whole, run) is None


@pytest.mark.slow
def test_a_log_that_lost_lines_lacks_only_these(whole: Path, run: Path) -> None:
    drop_checkpoints(run, 4)
    lines = (run / METRICS_FILE).read_text().splitlines()
    (run / METRICS_FILE).write_text("".join(f"{line}\n" for line in lines[:2]))
    train(settings_of(run, beside=whole))
    assert lines_of(run) == [line for line in lines_of(whole) if not 2 < line[1] <= 4]
    shutil.copyfile(whole / METRICS_FILE, run / METRICS_FILE)  # the rest of the run is unchanged
    assert difference_between_runs(whole, run) is None


def stopped_after(step: int) -> tuple[Callable[[object], None], Callable[[], bool]]:
    """Return the callbacks that watch a training run and stop it after a step."""
    seen: list[int] = []
    return lambda report: seen.append(report.step) if isinstance(report, StepReport) else None, lambda: step in seen


@pytest.mark.slow
def test_a_repeated_validation_is_logged_once(whole: Path, tmp_path: Path) -> None:
    """A run stops at step 3, before a validation; then it resumes, and is killed after the validation but before a
    checkpoint.
    """
    settings = settings_of(tmp_path / "run", beside=whole)
    watch, stop = stopped_after(3)
    assert train(settings, on_report=watch, stop=stop).steps == 3
    assert ("validation", 3) not in lines_of(tmp_path / "run")

    def abandon(report: object) -> None:
        if isinstance(report, ValidationReport):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(settings, on_report=abandon)
    assert ("validation", 3) in lines_of(tmp_path / "run")
    train(settings)
    assert difference_between_runs(whole, tmp_path / "run") is None


@pytest.mark.parametrize("report", [StepReport, ValidationReport, AverageReport, EndReport])
def test_every_number_of_a_report_is_read_as_a_number(tmp_path, report):
    """A line in which a number is not a number counts as damaged, and is skipped."""
    numbers = [name for name, kind in get_type_hints(report).items() if kind in (int, float)]
    lines = [{"type": "step", "step": 1} | {name: value} for name in numbers for value in (7, "seven")]
    (tmp_path / METRICS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert read_log(tmp_path / METRICS_FILE) == [{"type": "step", "step": 1} | {name: 7} for name in numbers]
