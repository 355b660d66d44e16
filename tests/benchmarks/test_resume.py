"""Differences between two runs are found and named."""

import json
import shutil

import pytest
import torch
from benchmarks.resume import difference_between_runs
from safetensors.torch import load_file, save_file

from glassformer.jobs import train
from glassformer.recipes.toml import load

CONFIG = """
[data]
source = "train.tsv"
[tokenizer]
kind = "words"
[model]
preset = "tiny"
[training]
steps = 4
checkpoint_every = 2
validate_every = 2
log_every = 1
"""

BIAS = "encoder.layers.0.feed_forward.expand.bias"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return two runs of the same training."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "train.tsv").write_text("".join(f"a {word}\tb {word}\n" for word in "cdefghijklmnopqrstuvw"))
    (folder / "small.toml").write_text(CONFIG)
    for name in ("one", "other"):
        train(load(folder / "small.toml", [f"run.directory={folder / name}"], data=folder))
    return folder / "one", folder / "other"


@pytest.fixture
def runs(trained, tmp_path):
    """Return two runs; a test may change the second run."""
    one, other = trained
    return one, shutil.copytree(other, tmp_path / "other")


def change_tensor(path, name, change):
    tensors = load_file(path)
    tensors[name] = change(tensors[name].clone())
    save_file(tensors, path)


def change_line(path, number, **values):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[number].update(values)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def flip_the_last_bit(tensor):
    tensor.view(torch.int32).view(-1)[0] ^= 1
    return tensor


@pytest.mark.slow
def test_two_trainings_of_one_configuration_are_equal(runs):
    assert difference_between_runs(*runs) is None


@pytest.mark.slow
def test_times_are_not_compared(runs):
    change_line(runs[1] / "metrics.jsonl", 0, seconds=7, seconds_left=7, tokens_per_second=7, waited=7)
    assert difference_between_runs(*runs) is None


@pytest.mark.slow
@pytest.mark.parametrize("file", ["checkpoints/step-00000002/model.safetensors", "model.safetensors"])
def test_one_different_bit_of_a_weight_is_reported(runs, file):
    change_tensor(runs[1] / file, BIAS, flip_the_last_bit)
    name, shares = difference_between_runs(*runs).split(" differs in ")
    assert name == f"{file}: {BIAS}"
    assert shares == f"{1 / load_file(runs[0] / file)[BIAS].numel():.1%} of its numbers"


@pytest.mark.slow
def test_the_sign_of_zero_counts_and_nan_equals_nan(runs):
    file, name = "checkpoints/step-00000004/optimiser.safetensors", f"{BIAS}.exp_avg"
    runs = [shutil.copytree(run, run.with_name(f"{run.name}-changed")) for run in runs]
    for run in runs:
        change_tensor(run / file, name, lambda tensor: tensor.fill_(float("nan")))
    assert difference_between_runs(*runs) is None
    change_tensor(runs[0] / file, name, lambda tensor: tensor.fill_(0.0))
    change_tensor(runs[1] / file, name, lambda tensor: tensor.fill_(-0.0))
    assert difference_between_runs(*runs).startswith(f"{file}: {name} differs in ")


@pytest.mark.slow
def test_a_difference_in_the_log_is_reported_first(runs):
    change_tensor(runs[1] / "model.safetensors", BIAS, flip_the_last_bit)
    change_line(runs[1] / "metrics.jsonl", 1, loss=7.5)
    difference = difference_between_runs(*runs)
    assert difference.startswith("metrics.jsonl, line 2 (step 2): loss is ")
    assert difference.endswith(" in one run and 7.5 in the other")


def test_missing_files_are_named(runs):
    _, other = runs
    file = "checkpoints/step-00000004/state.json"
    (other / file).write_text((other / file).read_text().replace('"batch": ', '"batch": 1'))
    assert difference_between_runs(*runs).startswith(f"{file}: batch is ")
    shutil.rmtree(other / "checkpoints" / "step-00000004")
    expected = "the checkpoints are step-00000002, step-00000004 in one run and step-00000002 in the other"
    assert difference_between_runs(*runs) == expected
    lines = (other / "metrics.jsonl").read_text().splitlines()
    (other / "metrics.jsonl").write_text("\n".join(lines[:-1]))
    assert f"line {len(lines)} (step 4): reason is steps in one run and None" in difference_between_runs(*runs)
