import os
import signal
import subprocess
import sys

import psutil
import pytest
from benchmarks.processes import KEEPING, Entry, PeerError, Process, peak_memory, rotated, sittings, take_turns

OURS, TORCH = Entry(peer="ours", threads=1), Entry(peer="torch_nn", threads=1)
UPDATES = [{"do": "update", "batch": number} for number in range(4)]


@pytest.fixture(autouse=True)
def no_peers(tmp_path, monkeypatch):
    """Pretend that no peer is installed, so that torch.nn.Transformer runs in the tests' environment."""
    monkeypatch.setenv("PEERS", str(tmp_path / "peers"))


def test_each_round_begins_with_a_different_peer_and_includes_all():
    names = ["a", "b", "c"]
    assert [rotated(names, number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]
    assert rotated([], 1) == []


def test_the_first_entry_is_in_every_sitting_and_each_other_in_one():
    entries = [Entry(peer=f"peer{number}") for number in range(6)]
    groups = sittings(entries, 3)
    assert all(group[0] == entries[0] and len(group) <= 3 for group in groups)
    assert [entry for group in groups for entry in group[1:]] == entries[1:]
    assert sittings(entries[:1], 3) == [[entries[0]]]


def test_entries_with_different_settings_have_different_names():
    assert Entry(peer="ours", precision="bf16", options={"workers": 2}).name == "ours, bf16, workers=2"
    assert Entry(peer="joeynmt", keeping=True).name == "joeynmt, fp32, allocator kept"
    assert Entry(peer="annotated", options={"path": "/somewhere"}).name == "annotated, fp32"


@pytest.mark.long
def test_two_peers_take_turns_on_the_same_batches(work):
    rounds = []
    turns = take_turns([OURS, TORCH], work, UPDATES, warm=1, on_round=rounds.append)
    assert turns.failed == {}
    assert rounds == [0, 1, 2, 3]
    for name in (OURS.name, TORCH.name):
        # three answers, because the first answer is only a warm-up
        assert [answer["seconds"] > 0 for answer in turns.answers[name]] == [True] * 3
        # an untrained model's loss is about log 61 = 4.1
        assert all(2 < answer["loss"] < 8 for answer in turns.answers[name])
        assert turns.peaks[name] > 10e6
        assert {"python", "torch"} <= turns.ready[name]["versions"].keys()


@pytest.mark.long
def test_a_peer_that_dies_is_reported_and_the_others_continue(work):
    def kill(number):
        if number == 2:
            [victim] = [child for child in psutil.Process().children() if "torch_nn" in child.cmdline()]
            os.kill(victim.pid, signal.SIGKILL)

    turns = take_turns([OURS, TORCH], work, UPDATES, on_round=kill)
    assert list(turns.answers) == [OURS.name]
    assert len(turns.answers[OURS.name]) == 4
    assert "status -9" in turns.failed[TORCH.name]


@pytest.mark.long
def test_a_peer_that_cannot_do_the_work_is_reported_with_the_reason(work):
    turns = take_turns([OURS, TORCH], work, [*UPDATES, {"do": "update", "batch": 999}])
    assert turns.answers == {}
    assert "IndexError" in turns.failed[TORCH.name]


@pytest.mark.long
def test_a_peer_that_is_not_installed_is_reported_with_advice(work):
    turns = take_turns([TORCH, Entry(peer="x_transformers")], work, UPDATES[:1])
    assert list(turns.answers) == [TORCH.name]
    assert "make bench-peers" in turns.failed["x_transformers, fp32"]


@pytest.mark.long
def test_a_peer_that_cannot_start_is_reported_with_the_reason(tmp_path):
    with pytest.raises(PeerError, match="FileNotFoundError"), Process(TORCH, tmp_path):
        pass


@pytest.mark.long
def test_no_process_survives_a_measurement(work):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    take_turns([TORCH, Entry(peer="ours", threads=1, options={"workers": 2})], work, UPDATES[:2])
    after = {child.pid for child in psutil.Process().children(recursive=True) if child.status() != "zombie"}
    assert after <= before


@pytest.mark.long
@pytest.mark.parametrize("keeping", [False, True], ids=["as it comes", "kept"])
def test_the_allocator_setting_reaches_the_process(work, keeping):
    with Process(Entry(peer="torch_nn", threads=1, keeping=keeping), work) as process:
        environment = psutil.Process(process.process.pid).environ()
        assert ({**environment, **KEEPING} == environment) is keeping
        assert environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.long
def test_peak_memory_includes_child_processes(work):
    with Process(Entry(peer="ours", threads=1, options={"workers": 2}), work) as process:
        process.ask("update", batch=0)
        pid = process.process.pid
        assert psutil.Process(pid).children()
        assert peak_memory(pid) > psutil.Process(pid).memory_info().rss
    assert peak_memory(pid) == 0


FAMILY = """
import mmap, subprocess, sys
file = open(sys.argv[1], "r+b")
shared = mmap.mmap(file.fileno(), 0)
sum(shared[::4096])
own = b"x" * 20_000_000
child = subprocess.Popen([sys.executable, *sys.argv[:-1]]) if sys.argv[2:] else None
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_memory_shared_through_a_file_is_counted_once(tmp_path):
    """Two processes map the same file of 100 MB, and each holds 20 MB of its own."""
    (tmp_path / "file").write_bytes(bytes(100_000_000))
    (tmp_path / "family.py").write_text(FAMILY)
    command = [sys.executable, str(tmp_path / "family.py"), str(tmp_path / "file"), "child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        assert [parent.stdout.readline() for _ in range(2)] == [b"ready\n"] * 2
        assert 140e6 < peak_memory(parent.pid) < 200e6
        parent.terminate()
