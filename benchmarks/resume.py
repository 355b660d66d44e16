"""Kill and resume a training run, which must end like an uninterrupted run: `python -m benchmarks.resume CONFIG`.

One training run is not interrupted. Another run is killed at a random moment and while it writes a checkpoint, and is
restarted after each kill. Both runs must end with the same files, bit for bit. Each training run is a process of its
own. The check takes about a minute; its exit status is 0 only if the runs are equal.
"""

import argparse
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

from benchmarks.command import as_command
from glassformer.bundle import WEIGHTS, read_weights
from glassformer.errors import ConfigError
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.jobs.preparation import prepare
from glassformer.jobs.prepared.folder import PREPARED, prepared_folder
from glassformer.jobs.run_reports import ProgressReport
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.training.checkpoint import CHECKPOINTS

__all__ = ["difference_between_runs"]

TARGET_SECONDS = 60.0
"""Target duration of the check."""
STARTS, RUNS = 5, 2.5
"""The cost of the check, as a number of process starts and a number of complete training runs."""
FEWEST_STEPS, MOST_STEPS = 12, 120
"""Bounds on the number of steps of a training run, whatever the speed."""
PARTS = 6
"""Number of checkpoints that a training run writes."""
METRIC_LINES = 20
"""Maximum number of validation lines to translate; it is low because an untrained model writes long sentences."""

TRAIN = """
import sys
from glassformer.jobs import train
train(sys.argv[1], data=sys.argv[2] or None, overrides=sys.argv[3:])
"""
"""The program of a training process; it has the same arguments as `train`."""

_CLOCK = {"seconds", "seconds_left", "tokens_per_second", "waited"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The comparison of an interrupted training run with an uninterrupted one."""

    steps: int
    kills: int
    inside: int
    """Number of kills during the write of a checkpoint."""
    seconds: float
    """Duration of the check."""
    difference: str | None
    """The first difference between the runs' files; None if the files are equal, bit for bit."""
    repeatable: bool = True
    """Whether two uninterrupted training runs give equal files; checked only if there is a difference."""


def verify(name_or_path: str, overrides: Iterable[str], data: str | None) -> Verdict:
    """Check whether training runs of a configuration resume exactly; the arguments are as in `train`.

    All files are written into a temporary folder. A corpus that is already prepared is used in its place.

    Raises:
        ConfigError: a setting is wrong, or a training run fails.
        DataError: the corpus cannot be read.
    """
    started, overrides = time.perf_counter(), list(overrides)
    configuration = load(name_or_path, overrides, data)
    settings = configuration.training
    with tempfile.TemporaryDirectory(prefix="glassformer-resume-") as temporary:
        folder = Path(temporary)
        prepared = _prepared(configuration, folder)
        given = [*overrides, f"data.prepared={json.dumps(str(prepared))}", "training.minutes=0", "training.log_every=1"]
        given += [f"training.metric_lines={min(settings.metric_lines, METRIC_LINES)}"]
        command = [sys.executable, "-c", TRAIN, name_or_path, data or "", *given]

        def trainer(name: str, steps: int) -> _Trainer:
            pace = {"steps": steps, "validate_every": max(steps // 2, 1), "checkpoint_every": max(steps // PARTS, 1)}
            own = [f"training.{field}={value}" for field, value in pace.items()]
            return _Trainer(folder / name, [*command, *own, f"run.directory={json.dumps(str(folder / name))}"])

        start, step = _pace(trainer("pace", 10**6))
        steps = max(FEWEST_STEPS, min(MOST_STEPS, int((TARGET_SECONDS - STARTS * start) / RUNS / step)))
        if settings.minutes and not settings.steps:
            _say(f"training.minutes makes the learning rate follow the clock: checking {steps} steps instead")
        minutes = (STARTS * start + RUNS * steps * step) / 60
        _say(f"training {steps} uninterrupted steps, about {step:.2g} s each; {minutes:.1f} minutes in all")
        whole, broken = trainer("whole", steps), trainer("broken", steps)
        whole.finish()
        _say("training the same steps, killed and resumed")
        kills, inside = _break(broken, random.Random().randint(2 * steps // PARTS, 4 * steps // PARTS), step)
        difference = difference_between_runs(whole.folder, broken.folder)
        repeatable = True
        if difference:
            _say("the results differ: repeating the uninterrupted training run, to see whether it is repeatable")
            again = trainer("again", steps)
            again.finish()
            repeatable = difference_between_runs(whole.folder, again.folder) is None
    seconds = time.perf_counter() - started
    return Verdict(
        steps=steps, kills=kills, inside=inside, seconds=seconds, difference=difference, repeatable=repeatable
    )


def difference_between_runs(one: Path, other: Path) -> str | None:
    """Return a description of the first difference between two runs, except times; None if they are equal."""
    return next(_differences(one, other), None)


class _Trainer:
    """A training process that can be started repeatedly."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder, self.command = folder, command
        self.messages = folder.with_name(f"{folder.name}.txt")

    @contextmanager
    def started(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Start the process; kill it at the end if it is still running."""
        with self.messages.open("wb") as file:
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def finish(self) -> None:
        """Run the training to its end."""
        with self.started() as process:
            self.check(process.wait())

    def check(self, status: int | None) -> None:
        """If the process ended with an error, raise an error with the last line of its messages."""
        if status:
            lines = self.messages.read_text(encoding="utf-8", errors="replace").split("\n")
            said = next((line for line in reversed(lines) if line.strip()), f"status {status}")
            raise ConfigError(f"the training under test failed: {said}")

    def wait_for(self, process: "subprocess.Popen[bytes]", seen: Callable[[], object]) -> bool:
        """Wait until `seen()` is true and return True; return False if the process ends first."""
        while process.poll() is None:
            if seen():
                return True
            time.sleep(0.001)
        self.check(process.returncode)
        return bool(seen())

    def steps(self) -> list[dict[str, Any]]:
        """Return the step entries that are in the log so far."""
        return [line for line in read_log(self.folder / METRICS_FILE) if line["type"] == "step"]

    def checkpoints(self) -> list[Path]:
        """Return the complete checkpoints."""
        return list((self.folder / CHECKPOINTS).glob("step-*"))

    def half_written(self) -> list[Path]:
        """Return the incomplete checkpoints: checkpoints that are being written, or were interrupted by a kill."""
        return list((self.folder / CHECKPOINTS).glob(".step-????????.tmp"))


def _say(text: str) -> None:
    print(f"{text} …", file=sys.stderr)


def _prepared(configuration: Configuration, folder: Path) -> Path:
    """Return the folder of the prepared corpus: the run's own folder if it exists, otherwise a folder in `folder`."""
    there = prepared_folder(configuration)
    place = there if there.exists() else folder / PREPARED
    stages: list[str] = []

    def tell(report: object) -> None:
        if isinstance(report, ProgressReport) and report.stage not in stages:
            stages.append(report.stage)
            _say(report.stage)

    prepare(replace(configuration, data=replace(configuration.data, prepared=str(place))), tell)
    return place


def _pace(trainer: _Trainer) -> tuple[float, float]:
    """Return the seconds until the first step is done, and the median seconds of each later step."""
    with trainer.started() as process:
        begun = time.perf_counter()
        trainer.wait_for(process, trainer.steps)
        start = time.perf_counter() - begun
        trainer.wait_for(process, lambda: len(trainer.steps()) >= 4 and time.perf_counter() - begun > start + 3)
    seconds = [float(line["seconds"]) for line in trainer.steps()]
    return start, median(later - earlier for earlier, later in pairwise(seconds))


def _break(trainer: _Trainer, after: int, step: float) -> tuple[int, int]:
    """Train to the end, with kills; return the number of kills, and the number of kills during a checkpoint's write.

    The first kill happens at a random moment after step `after` and the first checkpoint. Later kills happen while a
    checkpoint is written.
    """
    kills = inside = 0
    with trainer.started() as process:
        if trainer.wait_for(process, lambda: trainer.checkpoints() and len(trainer.steps()) >= after):
            time.sleep(random.uniform(0, step))
            kills += process.poll() is None
    while inside == 0:
        with trainer.started() as process:
            if not trainer.wait_for(process, trainer.half_written):
                break  # the training has ended
        kills += 1
        inside += bool(trainer.half_written())
    trainer.finish()
    return kills, inside


def _differences(one: Path, other: Path) -> Iterator[str]:
    yield from _log_differences(one / METRICS_FILE, other / METRICS_FILE)
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
            if repr(left.get(name)) != repr(right.get(name)):  # compares texts, because NaN does not equal NaN
                place = f"{METRICS_FILE}, line {number} (step {(left or right).get('step')})"
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
    """Return the values that do not depend on the clock."""
    return {name: value for name, value in values.items() if name not in _CLOCK}


def _in_words(verdict: Verdict) -> str:
    done = (
        f"{verdict.steps} steps, killed {verdict.kills} times ({verdict.inside} while writing a checkpoint) and "
        f"started again, {verdict.seconds:.0f} s"
    )
    if verdict.difference is None and not verdict.kills:
        return "not proven: each training run ended before it could be killed"
    if verdict.difference is None:
        return f"exact: the same weights, optimiser state and log, bit for bit, as without interruption ({done})"
    remedy = (
        ""
        if verdict.repeatable
        else "\nTwo uninterrupted training runs differ as well: this machine does not give the same numbers twice. "
        "Try one thread (OMP_NUM_THREADS=1)."
    )
    return f"NOT exact ({done}). The first difference: {verdict.difference}{remedy}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration", metavar="CONFIG", help="TOML file or name of a recipe")
    parser.add_argument("--data", help="read the corpus from this folder")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="change a setting; repeatable")
    given = parser.parse_args()
    verdict = verify(given.configuration, given.settings, given.data)
    print(_in_words(verdict))
    sys.exit(verdict.difference is not None or not verdict.kills)


if __name__ == "__main__":
    as_command(main)
