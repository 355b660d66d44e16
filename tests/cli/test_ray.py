"""`glassformer bulk --ray` on two nodes: actors, a node and the driver are killed, and the bytes stay the same."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from benchmarks.bulk import ENVIRONMENT, actors, complete, contents, ray_nodes, write_nasty

import word_by_word


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
    wait_for(110)  # the other node goes on, while the new node starts
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
