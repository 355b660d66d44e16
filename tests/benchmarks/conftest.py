"""A model and a corpus so small that a few updates in real processes take little time."""

import numpy as np
import pytest
from benchmarks.peers.task import Task, write_task
from benchmarks.work import write_examples

TASK = Task(
    vocabulary=61, d_model=16, heads=2, d_ff=24, encoder_layers=1, decoder_layers=2, max_length=40, batch_tokens=60
)


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """Return a folder with a task of random sentences of 2 to 11 tokens."""
    folder, random = tmp_path_factory.mktemp("work"), np.random.default_rng(3)
    sides = [
        [np.append(random.integers(4, TASK.vocabulary, random.integers(1, 11)), 2) for _ in range(90)] for _ in range(2)
    ]
    write_task(TASK, folder)
    write_examples(folder, TASK, *sides)
    return folder
