"""A proof that a run of this configuration, on this machine, goes on exactly after it was killed.

One training runs to its end. Another one is killed at a random moment, again inside the write of a checkpoint, and
started again each time: both have to end in the same files, bit for bit. All of them are processes of their own.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from glassformer.bundle import WEIGHTS, read_weights
from glassformer.errors import ConfigError
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.run.corpus import PREPARED, prepare
from glassformer.run.log import METRICS, read_log
from glassformer.run.reports import ProgressReport
from glassformer.training.checkpoint import CHECKPOINTS

__all__ = ["Verdict", "first_difference", "verify_resume"]

SECONDS = 60.0
"""How long the check shall take."""
STARTS, TRAININGS = 5, 2.5
"""What it consists of: so many starts of the command, and so many times all steps."""
LEAST, MOST = 12, 120
"""Steps of a training, however slow or fast they are."""
PARTS = 6
"""There is a checkpoint after each of so many parts of a training."""
METRIC_LINES = 20
"""Validation lines that are translated at most: an untrained model writes long sentences."""

TRAIN = """
import sys
from glassformer.run import train
train(sys.argv[1], data=sys.argv[2] or None, overrides=sys.argv[3:])
"""
"""The program of a training, which takes what `train` does."""

_CLOCK = {"seconds", "seconds_left", "tokens_per_second", "waited"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the training that was killed, beside the one that was not."""

    steps: int
    kills: int
    inside: int
    """How many of the kills came inside the write of a checkpoint."""
    seconds: float
    """How long the check took."""
    difference: str | None
    """The first that differs; None: nothing does, bit for bit."""
    repeatable: bool = True
    """Whether two trainings that were not killed agree; only looked at when there is a difference."""


def verify_resume(
    name_or_path: str | Path,
    overrides: Iterable[str] = (),
    data: str | Path | None = None,
    *,
    on_progress: Callable[[str], object] = lambda _: None,
) -> Verdict:
    """Return whether trainings of a configuration go on exactly, in about a minute; `train`'s arguments.

    All is kept in a temporary folder, but for a corpus that is already prepared, which is used where it is.

    Raises:
        ConfigError: a setting is wrong, or a training fails.
        DataError: the corpus cannot be read.
    """
    started, overrides = time.perf_counter(), list(overrides)
    configuration = load(name_or_path, overrides, data)
    settings = configuration.training
    with tempfile.TemporaryDirectory(prefix="glassformer-resume-") as temporary:
        folder = Path(temporary)
        prepared = _prepared(configuration, folder, on_progress)
        given = [*overrides, f"data.prepared={json.dumps(str(prepared))}", "training.minutes=0", "training.log_every=1"]
        given += [f"training.metric_lines={min(settings.metric_lines, METRIC_LINES)}"]
        command = [sys.executable, "-c", TRAIN, str(name_or_path), "" if data is None else str(data), *given]

        def trainer(name: str, steps: int) -> _Trainer:
            pace = {"steps": steps, "validate_every": max(steps // 2, 1), "checkpoint_every": max(steps // PARTS, 1)}
            own = [f"training.{field}={value}" for field, value in pace.items()]
            return _Trainer(folder / name, [*command, *own, f"run.directory={json.dumps(str(folder / name))}"])

        start, step = _pace(trainer("pace", 10**6))
        steps = max(LEAST, min(MOST, int((SECONDS - STARTS * start) / TRAININGS / step)))
        if settings.minutes and not settings.steps:
            on_progress(f"with training.minutes the learning rate follows the clock: {steps} steps are checked instead")
        minutes = (STARTS * start + TRAININGS * steps * step) / 60
        on_progress(f"{steps} steps without a break, of about {step:.2g} s each; {minutes:.1f} minutes in all")
        whole, broken = trainer("whole", steps), trainer("broken", steps)
        whole.finish()
        on_progress("the same, killed and started again")
        kills, inside = _break(broken, random.Random().randint(2 * steps // PARTS, 4 * steps // PARTS), step)
        difference = first_difference(whole.folder, broken.folder)
        repeatable = True
        if difference:
            on_progress("they differ: the training without a break again, to see whether that comes out the same")
            again = trainer("again", steps)
            again.finish()
            repeatable = first_difference(whole.folder, again.folder) is None
    seconds = time.perf_counter() - started
    return Verdict(
        steps=steps, kills=kills, inside=inside, seconds=seconds, difference=difference, repeatable=repeatable
    )


def first_difference(one: Path, other: Path) -> str | None:
    """Return in words where two runs differ first, times left aside; None when they are equal, bit for bit."""
    return next(_differences(one, other), None)


class _Trainer:
    """A training that can be started again and again, as a process."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder, self.command = folder, command
        self.messages = folder.with_name(f"{folder.name}.txt")

    @contextmanager
    def started(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Start it; it is killed at the end, if it is still there."""
        with self.messages.open("wb") as file:
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def finish(self) -> None:
        """Run it to its end."""
        with self.started() as process:
            self.check(process.wait())

    def check(self, status: int | None) -> None:
        """Raise what the process said, if it ended with an error."""
        if status:
            lines = self.messages.read_text(encoding="utf-8", errors="replace").split("\n")
            said = next((line for line in reversed(lines) if line.strip()), f"status {status}")
            raise ConfigError(f"the training that is checked failed: {said}")

    def wait_for(self, process: "subprocess.Popen[bytes]", seen: Callable[[], object]) -> bool:
        """Return True once something is seen, and False when the process ends before."""
        while process.poll() is None:
            if seen():
                return True
            time.sleep(0.001)
        self.check(process.returncode)
        return bool(seen())

    def steps(self) -> list[dict[str, Any]]:
        """Return what the log says of each step so far."""
        return [line for line in read_log(self.folder / METRICS) if line["type"] == "step"]

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints that are whole."""
        return list((self.folder / CHECKPOINTS).glob("step-*"))

    def half_written(self) -> list[Path]:
        """Return the checkpoints that are being written, or that were when the process was killed."""
        return list((self.folder / CHECKPOINTS).glob(".step-????????.tmp"))


def _prepared(configuration: Configuration, folder: Path, on_progress: Callable[[str], object]) -> Path:
    """Return the folder of the corpus, made ready: where the run looks for it, or else in this folder."""
    there = Path(configuration.data.prepared or Path(configuration.run.directory) / PREPARED)
    place = there if there.exists() else folder / PREPARED
    stages: list[str] = []

    def tell(report: object) -> None:
        if isinstance(report, ProgressReport) and report.stage not in stages:
            stages.append(report.stage)
            on_progress(report.stage)

    prepare(replace(configuration, data=replace(configuration.data, prepared=str(place))), tell)
    return place


def _pace(trainer: _Trainer) -> tuple[float, float]:
    """Return how many seconds it takes until the first step is done, and then for each step, as seen over some."""
    with trainer.started() as process:
        begun = time.perf_counter()
        trainer.wait_for(process, trainer.steps)
        start = time.perf_counter() - begun
        trainer.wait_for(process, lambda: len(trainer.steps()) >= 4 and time.perf_counter() - begun > start + 3)
    seconds = [float(line["seconds"]) for line in trainer.steps()]
    return start, median(later - earlier for earlier, later in pairwise(seconds))


def _break(trainer: _Trainer, after: int, step: float) -> tuple[int, int]:
    """Train to the end, with kills on the way; return how many there were, and how many came inside a write.

    The first comes at some moment `after` this step (and a checkpoint), the others when one is seen that is not whole.
    """
    kills = inside = 0
    with trainer.started() as process:
        if trainer.wait_for(process, lambda: trainer.checkpoints() and len(trainer.steps()) >= after):
            time.sleep(random.uniform(0, step))
            kills += process.poll() is None
    while inside == 0:
        with trainer.started() as process:
            if not trainer.wait_for(process, trainer.half_written):
                break  # it has come to its end
        kills += 1
        inside += bool(trainer.half_written())
    trainer.finish()
    return kills, inside


def _differences(one: Path, other: Path) -> Iterator[str]:
    yield from _log_differences(one / METRICS, other / METRICS)
    names = [sorted(path.name for path in (run / CHECKPOINTS).glob("step-*")) for run in (one, other)]
    if names[0] != names[1]:
        yield f"the checkpoints are {', '.join(names[0])} in one run and {', '.join(names[1])} in the other"
    files = sorted(path.relative_to(one) for name in names[0] for path in (one / CHECKPOINTS / name).iterdir())
    for file in [*files, Path(WEIGHTS)]:
        if file.suffix == ".json":
            yield from _state_differences(one / file, other / file, file)
        else:
            yield from _tensor_differences(read_weights(one / file), read_weights(other / file), file)


def _log_differences(one: Path, other: Path) -> Iterator[str]:
    for number, lines in enumerate(zip_longest(read_log(one), read_log(other)), start=1):
        left, right = (_timeless(line or {}) for line in lines)
        for name in sorted(left.keys() | right.keys()):
            if repr(left.get(name)) != repr(right.get(name)):  # a loss that is no number equals itself, too
                place = f"{METRICS}, line {number} (step {(left or right).get('step')})"
                yield f"{place}: {name} is {left.get(name)} in one run and {right.get(name)} in the other"


def _state_differences(one: Path, other: Path, file: Path) -> Iterator[str]:
    left, right = (_timeless(json.loads(path.read_text(encoding="utf-8"))) for path in (one, other))
    for name in sorted(left.keys() | right.keys()):
        if repr(left.get(name)) != repr(right.get(name)):
            yield f"{file}: {name} is {left.get(name)} in one run and {right.get(name)} in the other"


def _tensor_differences(left: dict[str, Tensor], right: dict[str, Tensor], file: Path) -> Iterator[str]:
    for name in sorted(left.keys() ^ right.keys()):
        yield f"{file}: only one run has {name}"
    for name in sorted(left.keys() & right.keys()):
        if left[name].shape != right[name].shape or not torch.equal(_bits(left[name]), _bits(right[name])):
            unequal = (left[name] != right[name]).float().mean().item() if left[name].shape == right[name].shape else 1
            yield f"{file}: {name} differs in {unequal:.1%} of its numbers"


def _bits(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _timeless(values: dict[str, Any]) -> dict[str, Any]:
    """Return what does not depend on the clock."""
    return {name: value for name, value in values.items() if name not in _CLOCK}
