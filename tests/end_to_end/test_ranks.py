"""Training by processes that torchrun starts: kills, stopped processes, Ctrl-C and a full disk."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from end_to_end.conftest import write_corpus
from end_to_end.runs import steps, train
from glassformer.jobs.verify_resume import difference_between_runs
from glassformer.training.checkpoint import Checkpoints, step_of

TIMEOUT = 6
LONG = ("training.steps=120", f"training.timeout={TIMEOUT}", "data.prepared=prepared")


class Launch:
    """A command of torchrun, running."""

    def __init__(self, folder, ranks, settings, *options, prefix=()):
        command = [*prefix, sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += [*options, "-m", "glassformer", "train", "small.toml"]
        command += [part for setting in settings for part in ("--set", setting)]
        self.said = folder / f"said-{time.monotonic_ns()}.txt"
        with self.said.open("wb") as file:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, env=environment)

    def ranks(self):
        """Return the ranks that run, by their numbers."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            try:
                found[child.environ()["RANK"]] = child
            except (psutil.Error, KeyError):
                continue
        return found

    def wait_for(self, seen):
        while not seen():
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.005)

    def ended(self):
        """Return the exit status and the output."""
        return self.process.wait(), self.said.read_text()

    def errors(self):
        """Return our own messages."""
        return [line for line in self.said.read_text().splitlines() if line.startswith("error: ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    """Return a run of two ranks that was left alone."""
    assert Launch(folder, 2, train(folder / "whole", *LONG)).ended()[0] == 0
    return folder / "whole"


def assert_equal(run, whole):
    assert difference_between_runs(whole, run) is None
    assert not [path.name for path in run.rglob(".*") if path.name != ".lock"]


@pytest.mark.long
def test_killed_stopped_and_interrupted_ranks_end_bit_identical_to_a_run_left_alone(folder, whole):
    """Three kills of a random rank and one that hangs, after each of which torchrun starts all again; then Ctrl-C."""
    run = folder / "broken"
    launch = Launch(folder, 2, train(run, *LONG), "--max-restarts=4")
    for number, step in enumerate((10, 25, 40, 60)):
        launch.wait_for(lambda step=step: (run / "metrics.jsonl").exists() and steps(run) >= step)
        rank, victim = random.choice(list(launch.ranks().items()))
        victim.send_signal(signal.SIGSTOP if number == 3 else signal.SIGKILL)
        launch.wait_for(lambda number=number: len(launch.errors()) > number)
        assert f"rank {rank} of 2 (process {victim.pid} on " in launch.errors()[number]
        assert ("was killed", f"did not answer within {TIMEOUT} s")[number == 3] in launch.errors()[number]
    launch.wait_for(lambda: steps(run) >= 75)
    ranks = launch.ranks().values()
    launch.process.send_signal(signal.SIGINT)
    said = launch.ended()[1]
    assert len(ranks) == 2
    assert not any(rank.is_running() for rank in ranks)
    assert len(launch.errors()) == 4, said
    latest = step_of(Checkpoints(run / "checkpoints", 2).paths()[-1])
    assert f"Stopped at step {latest}; a checkpoint is in {run}" in said
    assert Launch(folder, 2, train(run, *LONG)).ended()[0] == 0
    assert_equal(run, whole)


@pytest.mark.long
def test_one_process_under_torchrun_equals_a_process_without(folder):
    settings = ("training.steps=24", "data.prepared=prepared")
    plain = [part for setting in train(folder / "plain", *settings) for part in ("--set", setting)]
    command = [sys.executable, "-m", "glassformer", "train", "small.toml", *plain]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert Launch(folder, 1, train(folder / "alone", *settings)).ended()[0] == 0
    assert_equal(folder / "alone", folder / "plain")


@pytest.mark.long
def test_a_full_disk_on_rank_0_ends_all_ranks_and_loses_nothing(folder, whole):
    """The disk has room for one checkpoint, and not for two beside the weights."""
    disk, run = folder / "disk", folder / "full"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=2m tmpfs '{disk}' && head -c {1600 << 10} /dev/zero > '{disk}/ballast'"
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*prefix, mount, "sh"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    copied = f"{mount} && \"$@\"; cp -a '{disk}/run' '{run}'"
    launch = Launch(folder, 2, train(disk / "run", *LONG), prefix=[*prefix, copied, "sh"])
    said = launch.ended()[1]
    [error] = launch.errors()
    assert error.startswith("error: rank 0 of 2 (process "), said
    assert "cannot write " in error
    assert "No space left on device" in error
    latest = step_of(Checkpoints(run / "checkpoints", 2).paths()[-1])
    again, said = Launch(folder, 2, train(run, *LONG)).ended()
    assert again == 0
    assert f"resuming from step {latest} " in said
    assert_equal(run, whole)
