"""`python -m benchmarks.resume`, with a training run that resumes exactly and a run that does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.conftest import write_corpus

ROOT = Path(__file__).parents[2]
FORGETFUL = """
import glassformer.training.checkpoint as checkpoint
checkpoint._set_random_states = lambda states: None
"""


@pytest.fixture
def verify(tmp_path):
    """Return a function that runs the command in a folder with a corpus; the configuration ends with these lines."""
    write_corpus(tmp_path)

    def run(*settings: str, path: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchmarks.resume", "small.toml"]
        changed = [word for setting in settings for word in ("--set", setting)]
        environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
        return subprocess.run([*command, *changed], cwd=tmp_path, capture_output=True, text=True, env=environment)

    return run


@pytest.mark.long
def test_a_training_that_resumes_exactly_passes(verify, tmp_path):
    done = verify("training.minutes=3", "training.steps=0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "exact: the same weights, optimiser state and log, bit for bit, as without interruption ("
    )
    assert "killed 0 times" not in done.stdout
    assert "training.minutes makes the learning rate follow the clock" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"train.tsv", "small.toml"}  # no other file is left behind


@pytest.mark.long
def test_a_training_that_resumes_differently_fails(verify, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(FORGETFUL)
    done = verify("model.dropout=0.5")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("NOT exact (")
    assert "The first difference: metrics.jsonl, line " in done.stdout
    assert "this machine does not give the same numbers twice" not in done.stdout


@pytest.mark.slow
def test_an_impossible_training_is_one_error(verify, tmp_path):
    (tmp_path / "train.tsv").write_text("")
    done = verify()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("error: train.tsv: none of")
    assert "Traceback" not in done.stderr
