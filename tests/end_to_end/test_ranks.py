"""Training by ranks that torchrun's agent starts: kills, stopped processes, Ctrl-C and a full disk."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from benchmarks.resume import difference_between_runs

from end_to_end.agent import Agents
from end_to_end.conftest import write_corpus
from end_to_end.runs import latest, steps, train

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "many_machines.md"
TIMEOUT = 8
"""Seconds after which a hanging rank ends the other ranks; a busy machine may delay an update by some seconds."""
LONG = ("training.steps=90", f"training.timeout={TIMEOUT}", "data.prepared=prepared")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def agents(folder):
    agents = Agents(folder)
    yield agents
    agents.close()


@pytest.fixture(scope="module")
def whole(folder, agents):
    """Return a run of two ranks that was not interrupted."""
    ended = agents.run(*train(folder / "whole", *LONG))
    assert ended.status == 0, ended.said
    return folder / "whole"


def assert_equal(run, whole):
    assert difference_between_runs(whole, run) is None
    assert not [path.name for path in run.rglob(".*") if path.name != ".lock"]


@pytest.mark.long
def test_killed_and_stopped_ranks_end_bit_identical_to_a_run_left_alone(folder, agents, whole):
    """A random rank is killed three times, and a rank hangs once; the agent restarts all ranks each time."""
    run = folder / "broken"
    launch = agents.start(*train(run, *LONG), restarts=4)
    for number, step in enumerate((8, 20, 32, 44)):
        launch.wait_until(lambda step=step: (run / "metrics.jsonl").exists() and steps(run) >= step)
        victim = random.choice(launch.agent.children())
        victim.send_signal(signal.SIGSTOP if number == 3 else signal.SIGKILL)
        launch.wait_until(lambda number=number: len(launch.errors()) > number)
        assert f"a rank was killed, or did not answer within {TIMEOUT} s" in launch.errors()[number]
    ended = launch.ended()
    assert ended.status == 0, ended.said
    assert len(launch.errors()) == 4, ended.said
    assert_equal(run, whole)


@pytest.mark.long
def test_the_commands_torchrun_and_glassformer_train_alike(folder, agents, whole):
    """One rank equals a process without torchrun, bit for bit; two ranks stop at Ctrl-C and leave no process behind."""
    plain, alone, run = folder / "plain", folder / "alone", folder / "interrupted"
    for starter, directory in (([], plain), (["torch.distributed.run", "--standalone", "-m"], alone)):
        launch = start(folder, starter, directory, "training.steps=24", "data.prepared=prepared")
        said, _ = launch.communicate()
        assert launch.returncode == 0, said
    assert_equal(alone, plain)
    launch = start(folder, ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"], run, *LONG)
    while not ((run / "metrics.jsonl").exists() and steps(run) >= 30):
        assert launch.poll() is None, launch.stdout.read()
        time.sleep(0.005)
    ranks = launch.children(recursive=True)
    launch.send_signal(signal.SIGINT)
    said, _ = launch.communicate()
    assert f"Stopped at step {latest(run)}; a checkpoint is in {run}" in said
    assert "error: " not in said
    assert len(ranks) >= 2
    assert not any(rank.is_running() for rank in ranks)
    assert agents.run(*train(run, *LONG)).status == 0
    assert_equal(run, whole)


@pytest.mark.long
def test_the_command_for_several_machines_trains_on_one(folder, agents, whole):
    """The guide's command, with two agents of one rank each in place of four machines."""
    [printed] = re.findall(r"^torchrun (--nnodes .*) -m glassformer train mine.toml$", GUIDE.read_text(), re.MULTILINE)
    for old, new in (("nnodes 4", "nnodes 2"), ("node 8", "node 1"), ("HOST:29400", f"127.0.0.1:{free_port()}")):
        assert old in printed
        printed = printed.replace(old, new)
    starter = ["torch.distributed.run", *printed.split(), "-m"]
    launches = [start(folder, starter, folder / "machines", *LONG) for _ in range(2)]
    for launch in launches:
        said, _ = launch.communicate()
        assert launch.returncode == 0, said
    assert_equal(folder / "machines", whole)


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def start(folder, starter, run, *settings):
    """Start the command in a fresh process."""
    given = [part for setting in train(run, *settings) for part in ("--set", setting)]
    command = [sys.executable, "-m", *starter, "glassformer", "train", "small.toml", *given]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return psutil.Popen(command, cwd=folder, text=True, env=environment, **output)


@pytest.mark.long
def test_a_full_disk_on_rank_0_ends_all_ranks_and_loses_nothing(folder, agents, whole):
    """The disk has space for the weights and one checkpoint, but not for two checkpoints."""
    disk, run = folder / "disk", folder / "full"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=2m tmpfs '{disk}' && head -c {1600 << 10} /dev/zero > '{disk}/ballast'"
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*prefix, mount, "sh"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    limited = Agents(folder, [*prefix, f'{mount} && "$@"', "sh"])
    launch = limited.start(*train(disk / "run", *LONG))
    said = launch.ended().said
    shutil.copytree(f"/proc/{limited.pid}/root{disk}/run", run)
    limited.close()
    [error] = launch.errors()
    assert error.startswith("error: rank 0 of 2 failed: "), said
    assert "cannot write " in error
    assert "No space left on device" in error
    step = latest(run)
    again = agents.run(*train(run, *LONG))
    assert again.status == 0
    assert f"resuming from step {step} " in again.said
    assert_equal(run, whole)
