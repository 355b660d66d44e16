"""Estimates, compared with real models and real training runs."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import psutil
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import glassformer as gf
from glassformer.jobs.speed import measurement
from glassformer.jobs.speed.estimate import (
    Estimate,
    count_parameters,
    estimate,
    estimate_warnings,
    forward_flops,
    largest_batch,
    memory_line,
    training_length,
    update_seconds,
)
from glassformer.jobs.speed.measurement import Measurement, Workload
from glassformer.jobs.speed.sample import read_sample
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict, load
from glassformer.training.precision import matrix_speed

COPY = ["model.d_model=32", "model.heads=4", "model.d_ff=48", "training.batch_tokens=500", "training.steps=7"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the estimate of a small training, and the folder of its run, which does not exist."""
    run = tmp_path_factory.mktemp("estimate") / "run"
    return estimate(read_sample(load("copy", [*COPY, f"run.directory={run}"])), seconds=0.2), run


def corpus(folder, lines: int, data: str = "", **sections):
    """Write a corpus of pairs of ten and five words, and return its configuration."""
    words = [f"w{number % 17}" for number in range(10)]
    (folder / "a.tsv").write_text("".join(f"{' '.join(words)}\t{' '.join(words[:5])}\n" for _ in range(lines)))
    tokenizer = {"kind": "words", "joint": False}
    values = {"data": {"source": str(folder / "a.tsv"), "directory": data, "valid_lines": 7}, "tokenizer": tokenizer}
    return from_dict({**values, "model": {"preset": "tiny"}, **sections})


def measured(tokens: int, peak: int, seconds: float = 1.0, **more) -> Measurement:
    """Return a measurement of one update of `tokens` tokens."""
    return Measurement(
        **{
            "batch_tokens": tokens,
            "base_bytes": 100,
            "peak_bytes": peak,
            "updates": 1,
            "seconds": seconds,
            "target_tokens": tokens,
            "matrix_flops_per_second": 1e9,
            "validation_seconds_per_pair": 0.0,
            "translation_seconds_per_line": 0.0,
            **more,
        }
    )


# Computed figures


def test_the_parameters_of_the_papers_models_are_counted_without_allocation():
    assert count_parameters(gf.ModelConfig.preset("base", vocab_size=37_000)) == 63_082_496
    assert count_parameters(gf.ModelConfig.preset("big", vocab_size=37_000)) == 214_245_376


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "tie_output": False}, {"encoder_layers": 3}])
def test_flops_equal_torchs_count(make_model, settings):
    model = make_model(**settings)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.ones(1, 17, dtype=torch.int64), torch.ones(1, 7, dtype=torch.int64))
    assert forward_flops(model.config, source=17, target=7) == counter.get_total_flops()


def test_memory_is_a_line_through_the_measurements():
    start, slope = memory_line([measured(100, 1700), measured(200, 2700), measured(400, 4700)])
    assert (start, slope) == (pytest.approx(700), pytest.approx(10))
    assert memory_line([measured(100, 1700), measured(200, 1500)]) == (1700, 0)


def test_the_largest_batch_leaves_a_margin():
    assert largest_batch(start=700, slope=10, available=10_000) == 800  # (9000 − 700) / 10, rounded down to hundreds
    assert largest_batch(start=9500, slope=10, available=10_000) == 0


def test_a_measured_batch_keeps_its_measured_time():
    sizes = [measured(100, 1, 1.0), measured(400, 1, 2.0)]
    assert update_seconds(sizes, TrainingConfig(batch_tokens=400), tokens=400) == 2
    # With accumulation, the constant part counts once for each accumulated batch.
    larger = TrainingConfig(batch_tokens=1000, accumulate=2)
    assert update_seconds(sizes, larger, tokens=2000) == pytest.approx(2 * 2 / 3 + 2000 / 300)


@pytest.mark.parametrize(
    ("training", "steps", "seconds"),
    [
        (TrainingConfig(steps=100, validate_every=50), 100, 100 * 2 + 2 * 10),
        (TrainingConfig(steps=100, validate_every=0), 100, 200),
        (TrainingConfig(minutes=10, validate_every=50), 273, 600),
        (TrainingConfig(minutes=10, steps=100, validate_every=0), 100, 200),
    ],
)
def test_a_training_ends_by_its_steps_or_by_its_minutes_including_validation(training, steps, seconds):
    found = training_length(training, per_step=2.0, validation=10.0)
    assert found == (steps, pytest.approx(seconds, rel=0.005))


# The sample


def test_a_corpus_is_read_and_encoded(tmp_path):
    sample = read_sample(corpus(tmp_path, 301))
    assert (sample.pairs, sample.valid_pairs) == (294, 7)
    assert {len(ids) for ids in sample.examples.source} == {11}
    assert {len(ids) for ids in sample.examples.target} == {6}
    assert (sample.source_vocabulary, sample.target_vocabulary) == (14, 9)


@pytest.mark.slow
def test_a_large_corpus_is_estimated_from_its_beginning(tmp_path):
    sample = read_sample(corpus(tmp_path, 50_000), most_pairs=10)
    assert sample.pairs == pytest.approx(49_993, rel=0.05)
    assert "about" in sample.origin


def test_pairs_that_are_too_long_are_not_counted(tmp_path):
    configuration = corpus(tmp_path, 301)
    (tmp_path / "a.tsv").write_text("a b c\ta\n" * 30 + f"{'a ' * 300}\tb\n" * 70)
    sample = read_sample(configuration)
    assert sample.too_long == pytest.approx(0.7, abs=0.15)
    assert sample.pairs == round(93 * (1 - sample.too_long))


def test_a_corpus_with_named_columns_is_validated_on_plain_files(tmp_path):
    (tmp_path / "a.tsv").write_text("en\tde\n" + "the cat\tdie Katze\n" * 20)
    for file in ("v.en", "v.de"):
        (tmp_path / file).write_text("a\nb\nc\n")
    files = {"source": "a.tsv", "valid_source": "v.en", "valid_target": "v.de", "directory": str(tmp_path)}
    data = {**files, "source_column": "en", "target_column": "de"}
    sample = read_sample(from_dict({"data": data, "tokenizer": {"kind": "words", "vocab_size": 100}}))
    assert (sample.pairs, sample.valid_pairs) == (20, 3)


def test_a_configuration_without_its_corpus_is_measured_with_typical_sentences(tmp_path):
    training = {"batch_tokens": 500, "warmup": 10, "metric": "none"}
    values = {"data": {"source": "no.de", "target": "no.en"}, "model": {"preset": "tiny"}, "training": training}
    configuration = from_dict({**values, "tokenizer": {"kind": "bpe", "vocab_size": 100}})
    sample = read_sample(configuration)
    mean = sum(map(len, sample.examples.source)) / len(sample.examples)
    assert mean == pytest.approx(25, rel=0.05)
    assert sample.pairs == 0
    assert "no.de does not exist" in sample.origin
    assert "25 tokens" in sample.origin


def test_settings_that_depend_on_the_corpus_need_the_corpus():
    configuration = from_dict({"data": {"source": "no.de", "target": "no.en"}, "tokenizer": {"kind": "auto"}})
    with pytest.raises(gf.ConfigError, match="folder with --data"):
        read_sample(configuration)


def test_a_given_folder_must_contain_the_corpus(tmp_path):
    configuration = from_dict({"data": {"source": "no.de", "target": "no.en", "directory": str(tmp_path)}})
    with pytest.raises(gf.DataError, match="does not exist"):
        read_sample(configuration)


@pytest.mark.slow
def test_a_runs_tokenizer_encodes_its_sample(tmp_path):
    run = tmp_path / "run"
    configuration = corpus(tmp_path, 100, run={"directory": str(run)}, training={"steps": 1, "batch_tokens": 50})
    gf.train(configuration)
    assert "the run's tokenizer" in read_sample(configuration).origin


# The whole estimate


@pytest.mark.slow
def test_the_figures_of_an_estimate_are_consistent(made):
    found, _ = made
    assert found.steps == 7
    assert found.pairs == 20_000
    assert found.seconds_per_epoch == pytest.approx(found.steps_per_epoch * found.seconds_per_step)
    assert found.epochs == pytest.approx(7 / found.steps_per_epoch)
    assert found.tokens_per_second == pytest.approx(found.tokens_per_step / found.seconds_per_step)
    assert found.matrix_share == pytest.approx(
        found.flops_per_step / found.seconds_per_step / found.matrix_flops_per_second
    )
    assert found.base_bytes < found.training_bytes
    assert found.weights_bytes == 4 * found.parameters


@pytest.mark.slow
def test_a_step_is_three_forward_passes_of_each_pair_of_a_batch(made):
    found, _ = made
    config = gf.ModelConfig.preset("tiny", vocab_size=14, d_model=32, heads=4, d_ff=48)
    assert found.parameters == count_parameters(config)
    pairs = found.tokens_per_step / 11
    assert pairs == 45  # pairs of 11 tokens that fit into 500 positions
    assert found.flops_per_step == pytest.approx(3 * pairs * forward_flops(config, source=11, target=11))


@pytest.mark.slow
def test_nothing_is_written_into_the_runs_folder(made):
    assert not made[1].exists()


@pytest.mark.slow
def test_batches_of_several_sizes_are_measured(made):
    sizes = [one.batch_tokens for one in made[0].measurements]
    assert sizes == sorted(set(sizes))
    assert len(sizes) >= 2
    assert all(one.updates >= 2 and one.seconds > 0 for one in made[0].measurements)


@pytest.mark.slow
def test_the_estimate_can_be_written_as_json(made):
    assert json.loads(json.dumps(asdict(made[0])))["parameters"] == made[0].parameters


@pytest.mark.slow
def test_a_model_too_large_for_memory_is_refused_before_any_measurement(monkeypatch):
    monkeypatch.setattr("glassformer.jobs.speed.estimate.count_parameters", lambda config: 10**13)
    with pytest.raises(gf.ConfigError, match=r"need 160000\.0 GB in training"):
        estimate(read_sample(load("copy", COPY)), seconds=0.1)


@pytest.mark.slow
def test_a_training_killed_by_the_system_is_an_error_with_advice():
    before, sample = set(psutil.Process().children()), read_sample(load("copy", COPY))
    job = Workload(
        model=gf.ModelConfig.preset("tiny", vocab_size=40),
        training=sample.configuration.training,
        examples=sample.examples,
        longest=sample.longest,
        seconds=3600.0,
        threads=1,
        validate=False,
    )

    def kill() -> None:
        while not (others := set(psutil.Process().children()) - before):
            time.sleep(0.01)
        for other in others:
            other.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(gf.ConfigError, match=r"500 tokens stopped early: the process was killed; .*lower training\.b"):
        measurement.measured(job)
    killer.join()


@pytest.mark.slow
def test_the_speed_of_this_machine_is_in_operations_per_second():
    assert 1e8 < matrix_speed(0.05) < 1e15


# Warnings


def warned(made: Estimate, *, too_long: float = 0.0, busy: float = 0.0, **changes) -> str:
    sizes = (measured(250, 1), measured(500, 1, 2.0))
    even = {"measurements": sizes, "tokens_per_second": 250.0, "epochs": 9.0}
    return " ".join(estimate_warnings(replace(made, **{**even, **changes}), too_long, busy))


@pytest.mark.slow
def test_a_good_configuration_gets_no_warnings(made):
    assert warned(made[0]) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training_bytes": 95, "available_bytes": 100, "largest_batch_tokens": 300}, "to at most 300"),
        ({"training_bytes": 95, "available_bytes": 100, "largest_batch_tokens": 0}, "choose a smaller model"),
        ({"epochs": 1.5, "seconds_per_epoch": 60.0}, "seen 1.5 times"),
        ({"tokens_per_second": 200.0}, "25 % faster"),
        ({"measurements": (measured(50, 1, 0.2), measured(100, 1, 0.4))}, "far from 500"),
        ({"too_long": 0.2}, "20 % of the pairs are longer"),
        ({"busy": 0.5}, "50 % of the machine's cores"),
    ],
)
@pytest.mark.slow
def test_each_problem_gets_a_warning(made, changes, words):
    assert words in warned(made[0], **changes)


@pytest.mark.long
def test_the_memory_of_a_real_training_equals_the_estimate(tmp_path):
    settings = ["training.batch_tokens=2000", "training.steps=12", f"run.directory={tmp_path / 'run'}"]
    found = estimate(read_sample(load("copy", settings)), seconds=2)
    options = [option for setting in settings for option in ("--set", setting)]
    process = psutil.Popen([sys.executable, "-m", "glassformer", "train", "copy", *options], stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, process.memory_info().rss)
    assert process.wait() == 0
    assert found.training_bytes == pytest.approx(peak, rel=0.25)
