"""`glassformer bulk --ray` on two nodes: actors, a node and the driver are killed, and the bytes stay the same."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from benchmarks.bulk import ENVIRONMENT, actors, complete, contents, ray_nodes, write_nasty

import word_by_word
from glassformer.jobs.ray_pool import needs_of_actor


@pytest.fixture
def nodes() -> Iterator[subprocess.Popen]:
    """Return the program with two nodes, which prints the address."""
    with ray_nodes() as program:
        yield program


@pytest.mark.long
def test_kills_of_actors_a_node_and_the_driver_change_nothing(trained, glassformer, tmp_path, nodes):
    lines, alone, out = tmp_path / "nasty.txt", tmp_path / "alone", tmp_path / "out"
    write_nasty(lines, 12_000, 3, list(word_by_word.WORDS))
    options = ["--part-bytes", "2000", "--beam-size", "4"]
    parts = -(-lines.stat().st_size // 2000)
    assert glassformer("bulk", trained, lines, "--output", alone, *options).status == 0
    address = nodes.stdout.readline().strip()
    command = [sys.executable, "-m", "glassformer", "bulk", trained, lines, "--output", out, *options, "--ray", address]

    def start() -> subprocess.Popen:
        return subprocess.Popen(list(map(str, command)), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)

    def wait_for(number: int) -> None:
        while len(complete(out)) < number:
            assert driver.poll() is None
            time.sleep(0.01)

    driver = start()
    for number in (15, 45):
        wait_for(number)
        while not (found := actors(nodes)):
            time.sleep(0.01)
        found[0].kill()
    wait_for(75)
    nodes.stdin.write("replace\n")
    nodes.stdin.flush()
    wait_for(110)  # the other node continues while a new node starts
    driver.kill()
    driver.communicate()
    before = complete(out)
    assert 110 <= len(before) < parts
    assert nodes.stdout.readline() == "replaced\n"
    again = start()
    said, _ = again.communicate(timeout=120)
    assert again.returncode == 0
    after = complete(out)
    assert {name: when for name, when in after.items() if name in before} == before
    [(total, now)] = re.findall(r"parts: ([\d,]+), translated now: ([\d,]+)", said)
    assert (int(total), int(now)) == (parts, parts - len(before))
    assert contents(out) == contents(alone)
    assert glassformer("bulk", trained, lines, "--output", out, *options, "--finish").status == 0


ON_A_GPU = """
import sys, time, ray
from pathlib import Path
from ray.cluster_utils import Cluster
from glassformer.jobs.bulk import BulkJob
from glassformer.jobs.ray_bulk import bulk_with_ray

def see(report):
    end = time.monotonic() + 10
    while not free and ray.available_resources().get("GPU") and time.monotonic() < end:  # known after a moment
        time.sleep(0.05)
    free.append(ray.available_resources().get("GPU", 0))

run, lines, out = sys.argv[1:]
node = {"num_cpus": 2, "num_gpus": 1, "node_ip_address": "127.0.0.1"}
cluster = Cluster(True, head_node_args={**node, "include_dashboard": False, "object_store_memory": 80 << 20})
free = []
job = BulkJob.of([Path(run)], [lines], out, part_bytes=2000)
print(bulk_with_ray(job, cluster.address, on_progress=see).made, free[0])
"""


@pytest.mark.long
def test_an_actor_has_a_gpu_to_itself(trained, tmp_path):
    """The node only declares its GPU, so the model is computed on the processor."""
    lines = tmp_path / "nasty.txt"
    write_nasty(lines, 600, 3, list(word_by_word.WORDS))
    command = [sys.executable, "-c", ON_A_GPU, *map(str, (trained, lines, tmp_path / "out"))]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(-(-lines.stat().st_size // 2000)), "0"]


def test_actors_reserve_gpus_where_a_cluster_has_some():
    cluster = {"CPU": 16.0, "GPU": 4.0, "memory": 1e9}
    on_gpus, on_processors = {"num_cpus": 1, "num_gpus": 1}, {"num_cpus": 1}
    assert needs_of_actor(cluster, "auto") == needs_of_actor(cluster, "cuda") == (on_gpus, 4)
    assert needs_of_actor(cluster, "cpu") == needs_of_actor({"CPU": 16.0}, "auto") == (on_processors, 16)
    assert needs_of_actor({"GPU": 0.0}, "auto") == (on_processors, 1)


@pytest.mark.slow
def test_an_address_without_a_cluster_is_one_line(trained, tmp_path):
    (tmp_path / "text").write_text("the cat\n")
    command = ["bulk", trained, tmp_path / "text", "--output", tmp_path / "out", "--ray", "127.0.0.1:1"]
    done = subprocess.run(
        [sys.executable, "-m", "glassformer", *map(str, command)], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "error: --ray: expected the address of a Ray cluster, got '127.0.0.1:1'" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


PREPARED = """
[data]
source = "corpus.tsv"
valid_lines = 50
[tokenizer]
kind = "bpe"
vocab_size = 60
[model]
preset = "tiny"
"""


@pytest.mark.long
def test_a_corpus_prepared_on_two_nodes_has_the_same_bytes(tmp_path, glassformer, nodes):
    """An actor is killed during the preparation."""
    chance = random.Random(4)
    lines = (" ".join(chance.choices("abcdefgh", k=chance.randint(4, 40))) for _ in range(400_000))
    (tmp_path / "corpus.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    config = tmp_path / "corpus.toml"
    config.write_text(PREPARED)
    common = ["--data", tmp_path, "--set", f"run.directory={tmp_path / 'run'}"]

    def folder(name: str) -> list[str]:
        return ["--set", f'data.prepared="{tmp_path / name}"', "--set", "cleaning.workers=1"]

    assert glassformer("prepare", config, *common, *folder("alone")).status == 0
    command = ["prepare", config, *common, *folder("nodes"), "--ray", nodes.stdout.readline().strip()]
    driver = subprocess.Popen(
        [sys.executable, "-m", "glassformer", *map(str, command)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    while not (found := actors(nodes, "_Calls.ask")):
        assert driver.poll() is None
        time.sleep(0.01)
    found[0].kill()
    driver.communicate(timeout=150)
    assert driver.returncode == 0
    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("alone", "nodes")
    )
    assert here == there
    assert len([name for name in there if name.endswith(".ends.npy")]) == 2
