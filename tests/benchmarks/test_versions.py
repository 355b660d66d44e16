import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.processes import ROOT, Entry, Turns
from benchmarks.versions import markdown

SMALL = ["model.d_model=16", "model.heads=2", "model.d_ff=16", "training.batch_tokens=500"]


def versions(*arguments):
    command = [sys.executable, "-m", "benchmarks.versions", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_a_ratio_is_the_median_of_single_turns_in_the_same_precision():
    here, other = Entry(peer="configured"), Entry(peer="configured", checkout=Path("/old"))
    alone, dead = replace(here, precision="bf16"), replace(other, precision="bf16")
    seconds = {here.name: [0.1, 0.2, 0.4], other.name: [0.2, 0.3, 0.4], alone.name: [0.1, 0.1, 0.1]}
    answers = {name: [{"seconds": one, "loss": 2.0} for one in some] for name, some in seconds.items()}
    turns = Turns(answers, {}, dict.fromkeys(answers, 10**9), {dead.name: "it died"})
    rows = [line.split(" | ") for line in markdown([here, alone, other, dead], turns, 2).splitlines()]
    assert rows[2][:3] == ["| this checkout, fp32", "100 (75–150)", "1.50 (1.25–1.75)"]
    assert rows[3][:3] == ["| this checkout, bf16", "50 (50–50)", ""]
    assert rows[4][:3] == ["| old, fp32", "150 (125–175)", ""]
    assert rows[-1] == [f"Not measured: {dead.name}: it died"]


@pytest.mark.long
def test_equal_checkouts_do_the_same_work(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "src").symlink_to(ROOT / "src")
    sets = [argument for one in SMALL for argument in ("--set", one)]
    found = versions(tmp_path / "other", "copy", *sets, "--rounds", 2, "--warm", 1, "--updates", 3)
    assert found.returncode == 0, found.stderr
    assert "Not measured" not in found.stdout
    [mine, other] = re.findall(r"^\| (?:this checkout|other), bf16 .* ([\d.]+) \|$", found.stdout, re.M)
    assert mine == other


@pytest.mark.slow
def test_mistakes_are_one_error(tmp_path):
    found = versions(ROOT, "cmudict", "--data", tmp_path / "absent")
    assert found.returncode == 1
    assert "train.tsv.gz does not exist" in found.stderr


@pytest.mark.long
def test_a_wrong_checkout_or_configuration_is_named(tmp_path):
    assert "expected a folder with src/glassformer" in versions(tmp_path, "copy").stderr
    assert versions(ROOT, "copi").stderr.startswith("error: CONFIG: expected a file or one of")
