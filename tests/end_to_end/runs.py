"""Questions about a run, for the tests of interrupted training runs."""

from pathlib import Path

from benchmarks.resume import difference_between_runs

from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.training.checkpoint import Checkpoints, average_weights, step_of

SHORT = (
    "training.steps=4",
    "training.checkpoint_every=2",
    "training.validate_every=2",
    "training.log_every=2",
    "data.prepared=prepared",
)
"""Settings of a minimal run that is killed at each of its moments; its corpus is prepared in a different folder."""


def train(folder: Path, *settings: str) -> tuple[str, ...]:
    """Return the settings of a training run in a folder."""
    return (f"run.directory={folder}", *settings)


def steps(folder: Path) -> int:
    """Return the last step in the log."""
    return max((line["step"] for line in read_log(folder / METRICS_FILE)), default=0)


def latest(folder: Path) -> int:
    """Check that the latest checkpoint can be read, and return its step; 0 if there is no checkpoint."""
    paths = Checkpoints(folder / "checkpoints", keep=2).paths()
    return step_of(paths[-1]) if paths and average_weights(paths[-1:]) else 0


def files(folder: Path, name: str) -> dict[str, bytes]:
    """Return a run's files except checkpoints and log; RUN replaces the folder's own name."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "checkpoints" not in path.parts]
    return {
        str(path.relative_to(folder)): path.read_bytes().replace(name.encode(), b"RUN")
        for path in paths
        if path.name != METRICS_FILE
    }


def assert_equal(folder: Path, whole: Path, name: str = "") -> None:
    """Assert that two runs have equal files; `name` is the folder's name within the run."""
    assert difference_between_runs(whole, folder) is None
    assert files(folder, name or str(folder)) == files(whole, str(whole))
    assert not [path.name for path in folder.rglob(".*") if path.name != ".lock"]
