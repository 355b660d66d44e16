"""Damaged model folders give an answer or one error sentence: a few cases of `benchmarks.damage`."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("cases", [8, pytest.param(40, marks=pytest.mark.long)])
def test_damaged_folders_give_an_answer_or_one_sentence(cases):
    command = [sys.executable, "-m", "benchmarks.damage", "--cases", str(cases), "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| sentence |" in done.stdout
