"""The advice on faster training follows from the measurements."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from benchmarks.speed.of_training import MOST_OUTPUT, concluded_speed, output_share, training_speed
from benchmarks.speed.profiling import OVERHEAD, WAITING, WORK_KINDS
from benchmarks.speed.rates import Trial, advice_of_trials

from glassformer.corpus.batching import Examples
from glassformer.jobs.speed.measurement import Measurement
from glassformer.jobs.speed.sample import read_sample
from glassformer.recipes.toml import load, model_config
from glassformer.system.machine import cores

WORK = {"matrix products": 0.7, WAITING: 0.05, OVERHEAD: 0.25}
"""The share of each kind of work in the time of an update."""
COPY = ["model.d_model=32", "model.heads=4", "model.d_ff=48", "training.batch_tokens=500", "training.workers=1"]


def measured(**more) -> Measurement:
    """Return a measurement of ten updates of a second and a thousand tokens each."""
    values = {
        "batch_tokens": 1200,
        "base_bytes": 1,
        "peak_bytes": 2,
        "updates": 10,
        "seconds": 10.0,
        "target_tokens": 10_000,
        "matrix_flops_per_second": 1e12,
        "validation_seconds_per_pair": 0.0,
        "translation_seconds_per_line": 0.0,
        "padding": 0.05,
    }
    return Measurement(**{**values, **more})


@cache
def copy_sample():
    """Return a sample of few pairs."""
    sample = read_sample(load("copy", COPY))
    few = Examples(source=sample.examples.source[:50], target=sample.examples.target[:50])
    return replace(sample, examples=few)


def concluded(measurement: Measurement, work=WORK, busy: float = 0.0, **settings):
    sample = copy_sample()
    configuration = sample.configuration
    configuration = replace(configuration, training=replace(configuration.training, **settings))
    sample = replace(sample, configuration=configuration)
    config = model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary)
    return concluded_speed(config, sample, measurement, measurement, work, (), busy)


@pytest.mark.long
def test_a_training_is_measured_with_its_own_and_with_other_settings(tmp_path):
    said: list[str] = []
    configuration = load("copy", [*COPY, f"run.directory={tmp_path / 'run'}"])
    speed = training_speed(configuration, seconds=0.5, on_progress=said.append)
    changes = [trial.change for trial in speed.trials]
    workers = [f"training.workers = {cores()}"] if cores() > 1 else []
    sizes = ["training.batch_tokens = 1000", "training.batch_tokens = 250"]
    assert changes == ['training.precision = "bf16"', *workers, *sizes]
    assert [line for line in said if line.startswith("trying")] == [f"trying {change}" for change in changes]
    assert sum(work.share for work in speed.work) == pytest.approx(1)
    assert {work.kind for work in speed.work} <= {*WORK_KINDS, WAITING, OVERHEAD}
    assert 0 < speed.matrix_share < 2  # may exceed 1 because the ceiling is a measurement as well
    assert speed.flops_per_second / speed.matrix_flops_per_second == pytest.approx(speed.matrix_share)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_training_is_measured_on_a_gpu(tmp_path):
    configuration = load("copy", [*COPY[:-1], "training.device=cuda", f"run.directory={tmp_path / 'run'}"])
    speed = training_speed(configuration, seconds=0.5)
    assert speed.processes == 1
    assert not any(trial.change.startswith("training.workers") for trial in speed.trials)


@pytest.mark.slow
def test_speeds_are_computed_from_the_measurement():
    speed = concluded(measured())
    assert (speed.tokens_per_second, speed.seconds_per_update, speed.padding) == (1000, 1, 0.05)
    assert [(work.kind, work.seconds) for work in speed.work] == [
        ("matrix products", pytest.approx(0.7)),
        (OVERHEAD, pytest.approx(0.25)),
        (WAITING, pytest.approx(0.05)),
    ]
    assert speed.advice == ()


def test_a_setting_is_advised_only_if_it_was_faster_by_more_than_chance():
    trials = [
        Trial(change="a", per_second=1.0, gain=1.05),
        Trial(change="b", per_second=1.0, gain=1.2, remark="but"),
        Trial(change="c", per_second=1.0, gain=1.5),
        Trial(change="d", per_second=1.0, gain=0.5),
    ]
    said = list(advice_of_trials(trials))
    assert said == ["c: 1.50 times as fast, measured here", "b: 1.20 times as fast, measured here; but"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measurement", "options", "beginning"),
    [
        ({}, {"work": {"matrix products": 0.5, WAITING: 0.5}}, "updates wait for their batches 50% of the time"),
        ({"padding": 0.3}, {}, "30% of the batches' positions are padding"),
        ({"validation_seconds_per_pair": 1.0}, {"validate_every": 10}, "validation takes"),
        ({}, {"busy": 0.5}, "other processes used 50%"),
    ],
    ids=["waiting", "padding", "validation", "busy"],
)
def test_the_table_is_read(measurement, options, beginning):
    [sentence] = concluded(measured(**measurement), **options).advice
    assert sentence.startswith(beginning)


@pytest.mark.slow
def test_a_large_vocabulary_gets_a_remark():
    sample = copy_sample()
    config = model_config(sample.configuration, 8000, 8000)
    share = output_share(config, sample)
    assert share > MOST_OUTPUT
    speed = concluded_speed(config, sample, measured(), measured(), WORK, (), 0.0)
    [sentence] = speed.advice
    assert sentence.startswith(f"the output layer takes {share:.0%} of the operations, for a vocabulary of 8,000")
