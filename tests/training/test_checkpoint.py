"""Checkpoints: a training that stops and goes on is the training that never stopped."""

import errno
import json
import logging
import os
import resource
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from glassformer.errors import CheckpointError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import steps
from glassformer.training.checkpoint import Checkpoints, TrainingState, average_weights
from glassformer.training.loop import StepReport
from glassformer.training.optimiser import make_optimiser

CONFIG = TrainingConfig(
    steps=20, batch_tokens=30, learning_rate=0.01, warmup=3, schedule="cosine", validate_every=5, checkpoint_every=100
)


@pytest.fixture
def training(make_model, make_examples, tmp_path):
    """Return a function that starts a training, or goes on with it, up to a step; it returns all that matters of it."""

    def run(until, *, folder=tmp_path, config=CONFIG, seed=7, **model):
        torch.manual_seed(seed)
        model = make_model(**{"dropout": 0.3, "attention_dropout": 0.1, **model})
        optimiser, checkpoints = make_optimiser(model, config), Checkpoints(folder, keep=3)
        state = checkpoints.restore(model, optimiser)
        losses = {}
        options = {"valid": make_examples(seed=2), "stop": lambda: until in losses, "checkpoints": checkpoints}
        for report in steps(model, make_examples(), config, seed=3, optimiser=optimiser, state=state, **options):
            if isinstance(report, StepReport):
                losses[report.step] = report.loss
        return losses, dict(model.named_parameters()), optimiser.state_dict()["state"]

    return run


@pytest.fixture
def saved(make_model, tmp_path):
    """Return a model, its optimiser, and the checkpoints of steps 1, 2 and 3, in which all weights are 1, 2 and 3."""
    model = make_model()
    optimiser = make_optimiser(model, TrainingConfig())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=5)
    for step in (1, 2, 3):
        fill(model, step)
        checkpoints.save(model, optimiser, TrainingState(step=step))
    return model, optimiser, checkpoints


def fill(model, value):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


def assert_filled(model, value):
    assert all(bool((parameter == value).all()) for parameter in model.parameters())


# Going on


@pytest.mark.parametrize("optimiser", ["adam", "adamw"])
def test_ten_steps_and_ten_more_are_twenty(training, tmp_path, optimiser):
    config = replace(CONFIG, optimiser=optimiser)
    losses, weights, moments = training(20, folder=tmp_path / "whole", config=config)
    first, _, _ = training(10, folder=tmp_path / "parts", config=config)
    second, resumed_weights, resumed_moments = training(20, folder=tmp_path / "parts", config=config, seed=11)
    assert {**first, **second} == losses
    assert (list(first), list(second)) == (list(range(1, 11)), list(range(11, 21)))
    torch.testing.assert_close(resumed_weights, weights, rtol=0, atol=0)
    torch.testing.assert_close(resumed_moments, moments, rtol=0, atol=0)


@pytest.mark.parametrize("stops", [(1, 2, 20), (7, 13, 20), (19, 20)])
def test_it_does_not_matter_where_a_training_stops(training, tmp_path, stops):
    losses, weights, _ = training(20, folder=tmp_path / "whole")
    parts = [training(stop, folder=tmp_path / "parts", seed=6 + place) for place, stop in enumerate(stops, start=1)]
    assert {step: loss for part, _, _ in parts for step, loss in part.items()} == losses
    torch.testing.assert_close(parts[-1][1], weights, rtol=0, atol=0)


def test_accumulated_batches_go_on_too(training, tmp_path):
    config = replace(CONFIG, accumulate=3)
    _, weights, _ = training(20, folder=tmp_path / "whole", config=config)
    training(7, folder=tmp_path / "parts", config=config)
    _, resumed, _ = training(20, folder=tmp_path / "parts", config=config, seed=11)
    torch.testing.assert_close(resumed, weights, rtol=0, atol=0)


def test_the_state_goes_on(training, tmp_path):
    training(10)
    state = json.loads((tmp_path / "step-00000010" / "state.json").read_text())
    assert (state["step"], state["best"] > 0, state["seconds"] > 0) == (10, True, True)
    assert set(state) == {"step", "epoch", "batch", "seconds", "best", "since_best"}


def test_moments_follow_their_weights_to_an_optimiser_of_another_order(make_model, saved):
    model, adam, checkpoints = saved
    for number, parameter in enumerate(model.parameters()):
        adam.state[parameter]["exp_avg"].fill_(number)
    checkpoints.save(model, adam, TrainingState(step=4))
    other = make_model()
    adamw = make_optimiser(other, TrainingConfig(optimiser="adamw"))
    checkpoints.restore(other, adamw)
    for number, parameter in enumerate(other.parameters()):
        assert adamw.state[parameter]["exp_avg"].shape == parameter.shape
        assert bool((adamw.state[parameter]["exp_avg"] == number).all())


# Files


def test_a_checkpoint_has_three_files_and_no_pickle(saved):
    _, _, checkpoints = saved
    names = {path.name for path in checkpoints.paths()[0].iterdir()}
    assert names == {"model.safetensors", "optimiser.safetensors", "state.json"}


def test_moments_are_filed_under_the_names_of_the_weights(saved):
    model, _, checkpoints = saved
    found = set(load_file(checkpoints.paths()[0] / "optimiser.safetensors"))
    names = [name for name, _ in model.named_parameters()]
    assert found == {"random_state", *(f"{name}.{key}" for name in names for key in ("exp_avg", "exp_avg_sq", "step"))}


def test_the_latest_are_kept(saved):
    model, optimiser, checkpoints = saved
    few = Checkpoints(checkpoints.folder, keep=2)
    path = few.save(model, optimiser, TrainingState(step=10_000_000))
    assert [path.name for path in few.paths()] == ["step-00000003", "step-10000000"]
    assert path == few.paths()[-1]


def test_the_latest_is_restored(saved):
    model, optimiser, checkpoints = saved
    fill(model, 0)
    assert checkpoints.restore(model, optimiser) == TrainingState(step=3)
    assert_filled(model, 3)


def test_where_nothing_was_saved_nothing_is_restored(saved, tmp_path):
    model, optimiser, _ = saved
    assert Checkpoints(tmp_path / "other", 5).restore(model, optimiser) is None


def test_a_checkpoint_of_the_same_step_is_replaced(saved):
    model, optimiser, checkpoints = saved
    fill(model, 7)
    checkpoints.save(model, optimiser, TrainingState(step=3))
    fill(model, 0)
    checkpoints.restore(model, optimiser)
    assert_filled(model, 7)


def test_the_random_state_comes_back(saved):
    model, optimiser, checkpoints = saved
    checkpoints.save(model, optimiser, TrainingState(step=4))
    drawn = torch.rand(7)
    checkpoints.restore(model, optimiser)
    assert torch.equal(torch.rand(7), drawn)


# Damage


def test_a_half_written_folder_is_overlooked(saved):
    model, optimiser, checkpoints = saved
    shutil.copytree(checkpoints.paths()[0], checkpoints.folder / ".step-00000009.tmp")
    (checkpoints.folder / ".step-00000009.tmp" / "state.json").unlink()
    assert checkpoints.restore(model, optimiser) == TrainingState(step=3)
    assert checkpoints.save(model, optimiser, TrainingState(step=9)).name == "step-00000009"


def cut(path, share):
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


DAMAGES = {
    "cut weights": lambda path: cut(path / "model.safetensors", 0.7),
    "empty weights": lambda path: cut(path / "model.safetensors", 0),
    "no weights": lambda path: (path / "model.safetensors").unlink(),
    "cut moments": lambda path: cut(path / "optimiser.safetensors", 0.99),
    "other weights": lambda path: save_file({"x": torch.ones(2)}, path / "model.safetensors"),
    "other moments": lambda path: save_file(
        {"x.step": torch.ones(2), "random_state": torch.get_rng_state()}, path / "optimiser.safetensors"
    ),
    "no random state": lambda path: save_file({}, path / "optimiser.safetensors"),
    "no state": lambda path: (path / "state.json").unlink(),
    "cut state": lambda path: cut(path / "state.json", 0.5),
    "empty state": lambda path: (path / "state.json").write_text("{}"),
    "odd state": lambda path: (path / "state.json").write_text("[]"),
    "empty folder": lambda path: [file.unlink() for file in path.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_with_a_warning(saved, caplog, damage):
    model, optimiser, checkpoints = saved
    damage(checkpoints.paths()[-1])
    with caplog.at_level(logging.WARNING):
        assert checkpoints.restore(model, optimiser) == TrainingState(step=2)
    assert_filled(model, 2)
    [message] = caplog.messages
    assert message.startswith("checkpoint skipped: ")
    assert "step-00000003" in message
    assert [path.name for path in checkpoints.paths()] == ["step-00000001", "step-00000002"]
    assert (checkpoints.folder / "damaged-step-00000003").is_dir()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_when_all_are_damaged_it_is_an_error_and_nothing_is_touched(saved, damage):
    model, optimiser, checkpoints = saved
    for path in checkpoints.paths():
        damage(path)
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be read; the latest: .*step-00000003"):
        checkpoints.restore(model, optimiser)
    assert len(checkpoints.paths()) == 3


def test_a_training_goes_on_from_before_the_damage_as_if_nothing_had_happened(training, tmp_path):
    config = replace(CONFIG, checkpoint_every=5)
    losses, weights, _ = training(20, folder=tmp_path / "whole", config=config)
    training(13, folder=tmp_path / "parts", config=config)
    cut(tmp_path / "parts" / "step-00000013" / "model.safetensors", 0.5)
    again, resumed, _ = training(20, folder=tmp_path / "parts", config=config, seed=11)
    assert again == {step: loss for step, loss in losses.items() if step > 10}
    torch.testing.assert_close(resumed, weights, rtol=0, atol=0)


def test_checkpoints_of_another_model_are_not_loaded(saved, make_model):
    _, _, checkpoints = saved
    other = make_model(d_ff=17)
    with pytest.raises(CheckpointError, match=r"has shape \(13,.*but the configuration says \(17,"):
        checkpoints.restore(other, make_optimiser(other, TrainingConfig()))


# Full disks

CALLS = [(os, "fsync"), (os, "open"), (Path, "mkdir"), (Path, "write_text"), (Path, "rename")]


@contextmanager
def failing(monkeypatch, number):
    """Let the `number`-th of the calls that write fail, as they do on a full disk; yield the list of calls made."""
    made = []

    def guarded(name, call, error):
        def guard(*args, **kwargs):
            made.append(name)
            if len(made) - 1 == number:
                raise error
            return call(*args, **kwargs)

        return guard

    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        for owner, name in CALLS:
            patch.setattr(owner, name, guarded(name, getattr(owner, name), full))
        patch.setattr("safetensors.torch.save_file", guarded("save_file", save_file, SafetensorError("No space left")))
        yield made


def test_a_write_that_fails_leaves_the_earlier_checkpoints_whichever_it_is(saved, monkeypatch):
    model, optimiser, checkpoints = saved
    fill(model, 4)
    with failing(monkeypatch, -1) as calls:
        checkpoints.save(model, optimiser, TrainingState(step=4))
    assert {"fsync", "mkdir", "write_text", "rename", "save_file"} <= set(calls)
    for number, name in enumerate(calls):
        shutil.rmtree(checkpoints.folder / "step-00000004", ignore_errors=True)
        with failing(monkeypatch, number), pytest.raises(CheckpointError, match=r"cannot write .*No space left.* kept"):
            checkpoints.save(model, optimiser, TrainingState(step=4))
        expected = (
            4 if number > calls.index("rename") else 3
        )  # only its entry in the folder may not have reached the disk
        assert checkpoints.restore(model, optimiser) == TrainingState(step=expected), name
        assert not list(checkpoints.folder.glob(".*"))
        fill(model, 4)


@pytest.mark.parametrize("limit", [0, 100, 4000, 30_000, 60_000])
def test_a_file_that_really_cannot_be_written_leaves_the_earlier_checkpoints(saved, limit):
    model, optimiser, checkpoints = saved
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CheckpointError, match=r"cannot write .*File too large.* kept"):
            checkpoints.save(model, optimiser, TrainingState(step=4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(checkpoints.folder.glob(".*"))
    assert checkpoints.restore(model, optimiser) == TrainingState(step=3)


# The mean


def test_the_mean_of_checkpoints_is_the_mean_of_their_weights(saved):
    model, _, checkpoints = saved
    for paths, value in ((checkpoints.paths(), 2.0), (checkpoints.paths()[1:], 2.5), (checkpoints.paths()[:1], 1.0)):
        mean = average_weights(paths)
        assert set(mean) == {name for name, _ in model.named_parameters()}
        assert all(bool((weight == value).all()) for weight in mean.values())


def test_the_mean_of_random_weights_is_exact(make_model, tmp_path):
    model, weights = make_model(), []
    checkpoints = Checkpoints(tmp_path, keep=7)
    for step in range(7):
        with torch.no_grad():
            model.output.weight.normal_()
        weights.append(model.output.weight.detach().clone())
        checkpoints.save(model, make_optimiser(model, TrainingConfig()), TrainingState(step=step))
    mean = average_weights(checkpoints.paths())["target.tokens.weight"]
    torch.testing.assert_close(mean, torch.stack(weights).mean(0).float(), rtol=0, atol=1e-7)


def test_no_checkpoints_have_no_mean():
    with pytest.raises(CheckpointError, match="no checkpoints to average: train with"):
        average_weights([])


@pytest.mark.parametrize("other", [{"x": torch.ones(2)}, {"output.weight": torch.ones(2)}])
def test_checkpoints_of_different_models_have_no_mean(tmp_path, other):
    for name, weights in (("a", {"output.weight": torch.ones(3)}), ("b", other)):
        (tmp_path / name).mkdir()
        save_file(weights, tmp_path / name / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"b is of another model than .*a"):
        average_weights([tmp_path / "a", tmp_path / "b"])
