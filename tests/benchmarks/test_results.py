import json
import sys

import pytest
from benchmarks.results import Spread, described, failures, leaders, machine, read, spread, table, write

from benchmarks import page, results


def test_a_spread_is_the_median_with_quartiles():
    assert spread([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3.0, 2.0, 4.0)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0)
    assert Spread(12345.6, 1.0, 2.0).text() == "12 346 (1–2)"
    assert Spread(1.256, 1.2, 1.3).text(2) == "1.26 (1.20–1.30)"


def test_a_table_is_markdown_with_numbers_aligned_right():
    assert table(["", "speed"], [["a", "1"]]) == "|  | speed |\n| --- | ---: |\n| a | 1 |\n"
    assert "| a \\| b | 1 |" in table(["", "speed"], [["a | b", "1"]])  # a pipe in a cell is escaped


@pytest.mark.slow
def test_written_figures_are_read_with_machine_command_and_day(tmp_path):
    of = machine()
    write("one", {"values": [1, 2], "spread": spread([1.0])}, of, tmp_path)
    found = read("one", tmp_path)
    assert found["values"] == [1, 2]
    assert found["spread"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert found["machine"]["cores"] == of["cores"]
    assert found["machine"]["versions"]["torch"]
    assert found["command"].startswith("python -m ")
    assert len(found["day"]) == 10


@pytest.mark.slow
def test_folders_of_this_machine_are_left_out_of_results(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--data", str(tmp_path / "multi30k"), "--rounds", "3"])
    path = write("one", {}, machine(), tmp_path)
    assert json.loads(path.read_text())["command"].endswith("--data …/multi30k --rounds 3")
    assert str(tmp_path) not in path.read_text()


@pytest.mark.parametrize("text", ["12 tokens/s", "https://example.org/a/b", "docs/decisions/x.md", "1/2"], ids=str)
def test_other_slashes_stay_in_results(text):
    assert results.FOLDERS.sub("…/", text) == text


def test_the_load_of_a_busy_machine_is_reported():
    of = {"processor": "a", "cores": 2, "flags": ["avx2"], "memory_gib": 3, "system": "b", "versions": {"torch": "2"}}
    assert described({**of, "busy_before": 0.02}) == "a (AVX2), 2 cores, 3 GiB, b; torch 2"
    assert "the machine was 50 % busy" in described({**of, "busy_before": 0.5})


def test_the_fastest_entry_and_the_fastest_of_the_other_side_are_named():
    speeds = {"ours, fp32": spread([2000.0]), "ours, bf16": spread([3.0]), "peer": spread([5000.0])}
    best = "The fastest entry is *peer* (5 000 lines/s). The fastest entry of glassformer is *ours, fp32* (2 000)."
    assert leaders(speeds, "lines/s") == best
    assert leaders({"ours": spread([3.0]), "peer": spread([2.0])}, "s").endswith("The fastest peer is *peer* (2).")
    assert leaders({"ours": spread([3.0])}, "s") == "The fastest entry is *ours* (3 s)."
    assert leaders({}, "s") == ""


def test_failures_are_listed_with_the_last_line_of_their_error():
    assert failures({"a": "Traceback\nKeyError: b"}) == "\nNot measured: a: KeyError: b\n"
    assert failures({}) == ""


@pytest.mark.slow
def test_the_page_has_all_measurements_and_nothing_else(tmp_path):
    assert "Start-up" not in page.page(tmp_path)
    figures = {"seconds": {"empty interpreter": [0.01, 0.02], "import glassformer": [0.03, 0.04]}}
    write("startup", figures, machine(), tmp_path)
    found = page.page(tmp_path)
    assert found.startswith("# Benchmarks")
    assert "| import glassformer | 35 (32–38) ms | +20 ms |" in found
    assert "## Training" not in found


@pytest.mark.slow
def test_results_of_a_different_machine_come_last_under_its_name(tmp_path):
    figures = {"seconds": {"empty interpreter": [0.01, 0.02], "import glassformer": [0.03, 0.04]}}
    path = write("startup", figures, machine(), tmp_path)
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "startup.json").write_text(path.read_text().replace("0.03", "0.09"))
    (tmp_path / "slow" / "startup.png").touch()
    before, _, other = page.page(tmp_path).partition("# On another machine: slow\n")
    assert "| import glassformer | 35 (32–38) ms | +20 ms |" in before
    assert "| import glassformer | 65 " in other
    assert "![startup](../benchmarks/results/slow/startup.png)" in other
    assert "![startup]" not in before
