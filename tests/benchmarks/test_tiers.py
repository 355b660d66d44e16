"""What `python -m benchmarks.tiers` measures and adds up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.tiers import Target, markdown, records, rows_of_files, rows_of_fixtures, rows_of_tests
from benchmarks.timing import VARIABLE

TESTS = """
import os, subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def inner():
    time.sleep(0.2)

@pytest.fixture
def outer(request, inner):
    time.sleep(0.1)
    request.getfixturevalue("asked_for")

@pytest.fixture
def asked_for():
    time.sleep(0.3)

def test_with_fixtures(outer):
    time.sleep(0.1)

def test_that_starts_pytest(tmp_path):
    (tmp_path / "test_inside.py").write_text("def test_inside(): pass")
    subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tmp_path], check=True)
"""


def one(kind: str, name: str, seconds: float, **more: str) -> dict[str, object]:
    return {"kind": kind, "name": name, "seconds": seconds, **more}


FOUND = [
    one("import", "a.py", 1.0),
    one("import", "a.py", 2.0),
    *(one(kind, "a.py::test_one[x]", seconds) for kind, seconds in (("setup", 0.5), ("call", 4.0), ("teardown", 0.0))),
    one("call", "a.py::test_two", 1.0),
    one("call", "b.py::test_one", 20.0),
    one("fixture", "run", 0.25, test="a.py::test_one[x]", scope="function"),
    one("fixture", "run", 0.25, test="a.py::test_two", scope="function"),
    one("fixture", "browser", 3.0, test="", scope="session"),
]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "2"), marks=pytest.mark.long)], ids=["alone", "xdist"])
def test_each_test_and_fixture_is_timed_once_without_what_it_waits_for(tmp_path: Path, processes: tuple[str, ...]):
    (tmp_path / "test_toy.py").write_text(TESTS)
    times = tmp_path / "times"
    times.mkdir()
    # The plugin is found by its name, as `make` finds it from the repository's root.
    environment = os.environ | {VARIABLE: str(times), "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2])])}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "benchmarks.timing",
        "-p",
        "no:cacheprovider",
        *processes,
        tmp_path,
    ]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
    found = list(records(times))
    calls = sorted(each["name"].rpartition("::")[2] for each in found if each["kind"] == "call")
    assert calls == ["test_that_starts_pytest", "test_with_fixtures"]
    fixtures = {each["name"]: each["seconds"] for each in found if each["kind"] == "fixture"}
    # Sleeping takes at least as long as asked; `outer` would take 0.4 with the fixture that it asks for.
    assert fixtures["inner"] >= 0.2
    assert fixtures["asked_for"] >= 0.3
    assert 0.1 <= fixtures["outer"] < 0.4


def test_rows_add_up_the_slowest_first():
    assert rows_of_files(FOUND) == [
        ["b.py", "1", "0.0", "0.0", "20.0", "0.0", "20.0"],
        ["a.py", "2", "3.0", "0.5", "5.0", "0.0", "8.5"],
    ]
    assert rows_of_fixtures(FOUND) == [["browser", "(session)", "1", "3.0"], ["run", "a.py", "2", "0.5"]]
    assert rows_of_tests(FOUND)[:2] == [
        ["`b.py::test_one`", "0.0", "20.0", "0.0"],
        ["`a.py::test_one[x]`", "0.5", "4.0", "0.0"],
    ]


@pytest.mark.parametrize(("load", "said"), [(0.1, False), (0.3, True)])
def test_the_table_has_each_target_and_says_whether_the_machine_was_idle(load: float, said: bool):
    text = markdown([Target("test", 61.5, 100, 0), Target("site", 5, 3.25, 1)], load, FOUND)
    assert "| test | 1:01.5 | 1:40.0 | 0 |" in text
    assert "| all | 1:06.5 | 1:43.2 |  |" in text
    assert "| all | 3 | 3.0 | 0.5 | 25.0 | 0.0 | 28.5 |" in text
    assert ("not idle" in text) == said


def test_each_record_is_a_line_of_json(tmp_path: Path):
    for name in ("1.jsonl", "2.jsonl"):
        (tmp_path / name).write_text(json.dumps(FOUND[0]) + "\n")
    assert list(records(tmp_path)) == [FOUND[0], FOUND[0]]
