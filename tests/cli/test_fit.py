"""`glassformer estimate CONFIG --fit RUN RUN …`."""

import json
import shutil
from dataclasses import replace

import pytest

from glassformer.bench.estimate import estimate
from glassformer.bench.loss import estimate_loss
from glassformer.bench.sample import read_sample
from glassformer.bundle import ALIGNMENT, CONFIG, Bundle
from glassformer.errors import ConfigError
from glassformer.jobs import METRICS_FILE
from glassformer.recipes.toml import load, model_config

SHAPES = ((12, 2, 2), (12, 2, 1), (12, 1, 2), (8, 2, 2), (16, 1, 1), (16, 2, 2))
"""d_model, encoder layers and decoder layers of each small run."""


def small_run(trained, folder, shape, *, losses=(), ending="steps", settings=None):
    """Write a finished run whose validation loss falls with the size of its model, and return its folder."""
    shutil.copytree(
        trained, folder, ignore=shutil.ignore_patterns("checkpoints", "*.safetensors", "report*", ALIGNMENT)
    )
    there = Bundle.load(folder)
    width, encoder, decoder = shape
    sizes = {"d_model": width, "d_ff": 2 * width, "heads": 2, "encoder_layers": encoder, "decoder_layers": decoder}
    model = {**there.configuration.model, **sizes, "d_k": width // 2, "d_v": width // 2}
    configuration = replace(there.configuration, model=model)
    if settings:
        configuration = replace(configuration, tokenizer=replace(configuration.tokenizer, **settings))
    config = model_config(configuration, len(there.source_tokenizer), len(there.target_tokenizer))
    replace(there, configuration=configuration, model_config=config).save_configuration()
    loss = 1.0 + (encoder * width**2) ** -0.15 + (decoder * width**2) ** -0.25
    lines = [{"type": "step", "step": 60, "target_tokens": 480}]
    lines += [{"type": "validation", "step": 60, "loss": found} for found in losses or [loss]]
    lines += [{"type": "end", "step": 60, "reason": ending, "seconds": 1.0}]
    (folder / METRICS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


@pytest.fixture
def runs(trained, tmp_path):
    """Return the folders of six finished runs of different sizes."""
    return [small_run(trained, tmp_path / f"run-{number}", shape) for number, shape in enumerate(SHAPES)]


@pytest.fixture(scope="module")
def whole(trained):
    """Return the estimate of a larger model on the same corpus."""
    configuration = load(trained / CONFIG, ["model.d_model=24", "model.d_k=6", "model.d_v=6", "training.steps=90"])
    return estimate(read_sample(configuration), seconds=0.1)


@pytest.mark.long
def test_the_loss_is_predicted_with_an_interval_and_a_split(glassformer, corpus, runs):
    command = ("estimate", runs[0] / CONFIG, "--data", corpus, "--seconds", 0.1, "--fit", *runs)
    found = json.loads(glassformer(*command, "--json").out)["loss"]
    loss = found["prediction"]
    assert loss["low"] < loss["loss"] < loss["high"]
    # The same model as that of the first run, with fewer tokens than are in its log.
    assert found["runs"][0]["loss"] < loss["high"] < found["runs"][0]["loss"] + 0.3
    assert [run["folder"] for run in found["runs"]] == [str(run) for run in runs]
    assert found["residual"] < 0.02
    text = " ".join(glassformer(*command).out.split())
    assert f"{loss['loss']:.2f} nats per token" in text
    assert "this does not predict BLEU" in text
    assert "layers of encoder and decoder at no higher cost" in text


@pytest.mark.long
def test_unsuitable_runs_are_named_and_left_out(whole, runs, trained, tmp_path):
    unsuitable = {
        "stopped": small_run(trained, tmp_path / "stopped", (12, 2, 2), ending="stopped"),
        "patience": small_run(trained, tmp_path / "patience", (12, 2, 2), ending="patience"),
        "overfitted": small_run(trained, tmp_path / "overfitted", (12, 2, 2), losses=(1.5, 1.6)),
        "other": small_run(trained, tmp_path / "other", (12, 2, 2), settings={"vocab_size": 77}),
        "unfinished": small_run(trained, tmp_path / "unfinished", (12, 2, 2)),
        "renamed": small_run(trained, tmp_path / "renamed", (12, 2, 2)),
    }
    log = unsuitable["unfinished"] / METRICS_FILE
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    for file in (unsuitable["renamed"] / "tokenizer").iterdir():
        file.write_text(f"{file.read_text()} ")
    found = estimate_loss(whole, [*runs, *unsuitable.values()])
    reasons = {one.folder.rpartition("/")[2]: one.reason for one in found.left_out}
    assert list(reasons) == list(unsuitable)
    assert reasons["stopped"] == "it was stopped early, at step 60 (stopped)"
    assert reasons["patience"] == "it was stopped early, at step 60 (patience)"
    assert reasons["overfitted"].startswith("it is overfitted: its validation loss rose from 1.500 at step 60 to 1.600")
    assert reasons["other"].startswith("it has another tokenizer: tokenizer.vocab_size = 77, not ")
    assert reasons["unfinished"] == "its training has not ended"
    assert reasons["renamed"] == "it has another tokenizer than most of these runs"
    with pytest.raises(ConfigError, match=r"at least 5 finished runs on one corpus, got 4; .*stopped is left out: it"):
        estimate_loss(whole, [*runs[:4], unsuitable["stopped"]])


@pytest.mark.long
def test_runs_of_another_corpus_or_validation_set_are_refused(whole, runs):
    data = whole.configuration.data
    for changed, what in (({"valid_lines": 14}, "validation set"), ({"max_length": 99}, "corpus")):
        other = replace(whole.configuration, data=replace(data, **changed))
        with pytest.raises(ConfigError, match=f"got 0; .*run-0 is left out: it has another {what}: data."):
            estimate_loss(replace(whole, configuration=other), runs)


@pytest.mark.long
def test_a_prediction_beyond_16_times_the_size_is_refused(whole, runs):
    with pytest.raises(ConfigError, match=r"within 16 times the size of the runs, got .* target tokens to train on"):
        estimate_loss(replace(whole, steps=100_000), runs)
    large = replace(whole.configuration, model={**whole.configuration.model, "d_model": 256})
    with pytest.raises(ConfigError, match=r"within 16 times the size of the runs, got .* parameters in matrices"):
        estimate_loss(replace(whole, configuration=large), runs)


def test_runs_need_the_option(glassformer, corpus):
    assert "add --fit to predict from runs" in glassformer("estimate", "small.toml", "elsewhere").err
