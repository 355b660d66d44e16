"""Training by several ranks: real processes on loopback, connected by gloo."""

import json
import os
import re
import subprocess
import sys
from itertools import accumulate, chain
from pathlib import Path

import pytest
import torch

from glassformer.bundle import read_weights
from glassformer.errors import ConfigError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.distributed import gpu_of, joined
from glassformer.training.ranks import ALONE
from training.ranks import LENGTHS

STEPS = 20
COUNTS = (1, 2, 3, 4)
BOUNDS = {"adam": 1e-12, "adamw": 1e-12, "muon": 1e-12, "float32": 1e-5}
"""Largest allowed distance between the weights from one rank and from several ranks, relative to the weights."""


def case(
    name,
    ranks,
    steps=STEPS,
    dtype="float64",
    dropout=0.0,
    resume="",
    differs=False,
    diverges=False,
    killed=False,
    **settings,
):
    own = {"name": name, "dtype": dtype, "dropout": dropout, "resume": resume}
    own |= {"differs": differs, "diverges": diverges, "killed": killed}
    return {"ranks": ranks, "steps": steps, **own, **settings}


def cases_of(name, counts=COUNTS, steps=STEPS):
    kind = {"dtype": "float32"} if name == "float32" else {"optimiser": name}
    return [case(f"{name}-{count}", count, steps, **kind) for count in counts]


def run(folder, cases):
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
    command = [sys.executable, Path(__file__).with_name("ranks.py"), folder]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    subprocess.run(command, input=json.dumps(cases), check=True, text=True, env=environment)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Run all cases in one process; return the folder with their weights and used rows."""
    cases = cases_of("adam")
    cases += [case("changed", 4, 7), case("changed-to-1", 1, 12, resume="changed")]
    cases += [case("changed-to-3", 3, resume="changed-to-1")]
    cases += [case("whole", 2, 9, dropout=0.3), case("half", 2, 5, dropout=0.3)]
    cases += [case("resumed", 2, 9, dropout=0.3, resume="half")]
    others = [case("differs", 3, 3, differs=True), case("diverges", 3, diverges=True)]
    others += [case("patience", 3, 99, validate_every=1, patience=1, learning_rate=10)]
    others += [case("minutes", 3, 10**6, minutes=1e-9), case("killed", 2, killed=True)]
    folder = tmp_path_factory.mktemp("ranks")
    run(folder, cases + others)
    for one in cases:
        assert endings(folder, one["name"]) == [f"steps at step {one['steps']}"] * one["ranks"]
    return folder


def endings(folder, name):
    """Return the reason for which each rank ended."""
    return [path.read_text() for path in sorted(folder.glob(f"{name}-ended-*.txt"))]


def used(folder, name):
    """Return the rows of each update, by rank."""
    ranks = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name}-rank-*.json"))]
    return list(zip(*ranks, strict=True))


def together(updates):
    """Return the rows of each update, from all ranks together."""
    return [sorted(chain.from_iterable(rows)) for rows in updates]


def distance(folder, one, other):
    """Return the norm of the difference of all weights, relative to the norm of the weights."""
    left, right = (read_weights(folder / f"{name}.safetensors") for name in (one, other))
    assert left.keys() == right.keys()
    total = sum(float((left[name] - right[name]).square().sum()) for name in left)
    return (total / sum(float(weight.square().sum()) for weight in left.values())) ** 0.5


def assert_close(folder, name, counts=COUNTS):
    distances = [distance(folder, f"{name}-1", f"{name}-{count}") for count in counts]
    assert max(distances) <= BOUNDS[name], distances


@pytest.mark.slow
def test_the_weights_do_not_depend_on_the_number_of_ranks(trained):
    """Sums in a different order differ by rounding, in float64 by 1e-16; updates by Adam enlarge the difference."""
    assert_close(trained, "adam")
    assert distance(trained, "adam-1", "changed-to-3") <= BOUNDS["adam"]


@pytest.mark.long
def test_the_weights_do_not_depend_on_the_number_of_ranks_with_any_optimiser(tmp_path):
    counts = (1, 4)
    run(tmp_path, [one for name in BOUNDS for one in cases_of(name, counts, 50)])
    for name in BOUNDS:
        assert_close(tmp_path, name, counts)


@pytest.mark.slow
def test_every_pair_is_used_once_an_epoch_in_one_order_of_batches(trained):
    """The used rows of each rank show this, even if the number of ranks changes from 4 to 1 to 3."""
    updates = together(used(trained, "adam-1"))
    done = list(accumulate(len(rows) for rows in updates))
    # the numbers of the updates that end an epoch
    epochs = [done.index(number * len(LENGTHS)) + 1 for number in (1, 2)]
    for begin, end in ((0, epochs[0]), epochs):
        assert sorted(chain.from_iterable(updates[begin:end])) == list(range(len(LENGTHS)))
    for count in COUNTS[1:]:
        assert together(used(trained, f"adam-{count}")) == updates
    changed = [used(trained, name) for name in ("changed", "changed-to-1", "changed-to-3")]
    assert [len(part) for part in changed] == [7, 5, 8]
    assert together(chain.from_iterable(changed)) == updates


@pytest.mark.slow
def test_ranks_without_a_row_are_among_the_cases(trained):
    """With 2 ranks, each rank gets whole batches, and the last update of an epoch has a single batch; with 4, rows."""
    for count in (2, 3, 4):
        sizes = [[len(rows) for rows in ranks] for ranks in used(trained, f"adam-{count}")]
        assert any(0 in ranks for ranks in sizes)
        assert any(len(set(ranks)) > 1 and 0 not in ranks for ranks in sizes)


@pytest.mark.slow
def test_ranks_resume_bit_for_bit_with_dropout(trained):
    assert distance(trained, "whole", "resumed") == 0.0
    assert distance(trained, "whole", "half") > 0.0


@pytest.mark.slow
def test_a_rank_with_different_weights_ends_all_with_one_message(trained):
    *others, said = sorted(endings(trained, "differs"), key=len)
    assert others == ["SystemExit: 1"] * 2
    assert re.match(r"RankError: rank 1 of 3: expected the same weights after step 0 as rank 0", said)


@pytest.mark.slow
def test_all_ranks_end_together_and_rank_0_reports_a_divergence(trained):
    """The command prints the errors of rank 0, and errors that name a rank."""
    said, *others = endings(trained, "diverges")
    assert said.startswith("DivergenceError: training has diverged")
    assert others == ["SystemExit: 1"] * 2
    for name in ("patience", "minutes"):
        [ended] = set(endings(trained, name))
        assert ended.startswith(f"{name} at step ")


@pytest.mark.slow
def test_a_killed_rank_ends_the_others_with_advice(trained):
    [said] = endings(trained, "killed")
    assert re.match(r"RankError: a rank was killed, or did not answer within .*; run the same command to resume", said)


def test_a_process_alone_makes_no_group(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with joined(TrainingConfig(workers=2)) as ranks:
        assert ranks is ALONE
    assert not torch.distributed.is_initialized()


def test_a_process_without_a_gpu_of_its_own_is_an_error():
    with pytest.raises(ConfigError, match=r"a GPU for each process of this machine, got \d+ for at least 100; start"):
        gpu_of(99)


def test_ranks_of_torchrun_start_no_others(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    with (
        pytest.raises(ConfigError, match=r"training\.workers: expected 1 under torchrun, got 2; .*--nproc-per-node"),
        joined(TrainingConfig(workers=2)),
    ):
        pass
