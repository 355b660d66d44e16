"""Damaged model folders give an answer or one error sentence: a few cases of `benchmarks.damage`."""

import subprocess
import sys

import pytest

CASES = 40


@pytest.mark.slow
def test_damaged_folders_give_an_answer_or_one_sentence():
    command = [sys.executable, "-m", "benchmarks.damage", "--cases", str(CASES), "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| sentence |" in done.stdout
