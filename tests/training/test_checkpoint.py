"""Checkpoints: a resumed training run equals an uninterrupted one."""

import errno
import gc
import json
import logging
import os
import resource
import shutil
import signal
import sys
import threading
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from glassformer.bundle import check_weights, facts_of_weights
from glassformer.errors import CheckpointError, CheckpointVersionError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training import steps
from glassformer.training.checkpoint import Checkpoints, TrainingState, average_weights, step_of, use_weights
from glassformer.training.loss_watch import LossWatch
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.reports import StepReport

CONFIG = TrainingConfig(
    steps=20, batch_tokens=30, learning_rate=0.01, warmup=3, schedule="cosine", validate_every=5, checkpoint_every=100
)


@pytest.fixture
def training(make_model, make_examples, tmp_path):
    """Return a function that starts or resumes a training run up to a step, and returns its complete state."""

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


# Resuming


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["adam", "adamw", "muon"])
def test_ten_steps_and_ten_more_equal_twenty(training, tmp_path, optimiser):
    config = replace(CONFIG, optimiser=optimiser)
    losses, weights, moments = training(20, folder=tmp_path / "whole", config=config)
    first, _, _ = training(10, folder=tmp_path / "parts", config=config)
    second, resumed_weights, resumed_moments = training(20, folder=tmp_path / "parts", config=config, seed=11)
    assert {**first, **second} == losses
    assert (list(first), list(second)) == (list(range(1, 11)), list(range(11, 21)))
    torch.testing.assert_close(resumed_weights, weights, rtol=0, atol=0)
    torch.testing.assert_close(resumed_moments, moments, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stops", [(1, 2, 20), *(pytest.param(stops, marks=pytest.mark.long) for stops in ((7, 13, 20), (19, 20)))]
)
def test_a_training_may_stop_at_any_step(training, tmp_path, stops):
    losses, weights, _ = training(20, folder=tmp_path / "whole")
    parts = [training(stop, folder=tmp_path / "parts", seed=6 + place) for place, stop in enumerate(stops, start=1)]
    assert {step: loss for part, _, _ in parts for step, loss in part.items()} == losses
    torch.testing.assert_close(parts[-1][1], weights, rtol=0, atol=0)


@pytest.mark.slow
def test_accumulated_batches_resume_exactly(training, tmp_path):
    config = replace(CONFIG, accumulate=3)
    _, weights, _ = training(20, folder=tmp_path / "whole", config=config)
    training(7, folder=tmp_path / "parts", config=config)
    _, resumed, _ = training(20, folder=tmp_path / "parts", config=config, seed=11)
    torch.testing.assert_close(resumed, weights, rtol=0, atol=0)


@pytest.mark.slow
def test_several_processes_resume_exactly(training, tmp_path):
    config = replace(CONFIG, workers=2, checkpoint_every=7)
    _, weights, moments = training(20, folder=tmp_path / "whole", config=config)
    shutil.copytree(tmp_path / "whole" / "step-00000007", tmp_path / "parts" / "step-00000007")
    _, resumed, resumed_moments = training(20, folder=tmp_path / "parts", config=config, seed=11)
    torch.testing.assert_close(resumed, weights, rtol=0, atol=0)
    torch.testing.assert_close(resumed_moments, moments, rtol=0, atol=0)


def test_the_training_state_is_restored(training, tmp_path):
    training(10)
    state = json.loads((tmp_path / "step-00000010" / "state.json").read_text())
    assert (state["step"], state["best"] > 0, state["seconds"] > 0) == (10, True, True)
    fields = {"step", "epoch", "window", "batch", "seconds", "best", "best_step", "since_best", "validated", "watch"}
    assert set(state) == {"format_version", "passing", "loss_scale", "unscaled", *fields}


def test_moments_follow_their_weights_to_a_different_order(make_model, saved):
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


def test_moments_are_stored_under_the_names_of_the_weights(saved):
    model, _, checkpoints = saved
    found = set(load_file(checkpoints.paths()[0] / "optimiser.safetensors"))
    names = [name for name, _ in model.named_parameters()]
    assert found == {"random_state", *(f"{name}.{key}" for name in names for key in ("exp_avg", "exp_avg_sq", "step"))}


def test_the_latest_checkpoints_are_kept(saved):
    model, optimiser, checkpoints = saved
    few = Checkpoints(checkpoints.folder, keep=2)
    path = few.save(model, optimiser, TrainingState(step=10_000_000))
    assert [path.name for path in few.paths()] == ["step-00000003", "step-10000000"]
    assert path == few.paths()[-1]


def test_the_latest_checkpoint_is_restored(saved):
    model, optimiser, checkpoints = saved
    fill(model, 0)
    assert checkpoints.restore(model, optimiser) == TrainingState(step=3)
    assert_filled(model, 3)


def test_nothing_is_restored_from_an_empty_folder(saved, tmp_path):
    model, optimiser, _ = saved
    assert Checkpoints(tmp_path / "other", 5).restore(model, optimiser) is None


def test_a_checkpoint_of_the_same_step_is_replaced(saved):
    model, optimiser, checkpoints = saved
    fill(model, 7)
    checkpoints.save(model, optimiser, TrainingState(step=3))
    fill(model, 0)
    checkpoints.restore(model, optimiser)
    assert_filled(model, 7)


def test_the_last_checkpoint_up_to_the_best_validation_is_kept(saved):
    model, optimiser, checkpoints = saved
    few = Checkpoints(checkpoints.folder, keep=2)
    names = {}
    for step, best_step in ((4, 2), (5, 2), (6, 2), (7, 6), (8, 7), (11, 10), (12, 10), (13, 10), (14, 0)):
        few.save(model, optimiser, TrainingState(step=step, best_step=best_step))
        names[step] = [step_of(path) for path in few.paths()]
    assert names == {
        4: [2, 3, 4],
        5: [2, 4, 5],
        6: [2, 5, 6],
        7: [6, 7],
        8: [7, 8],
        11: [8, 11],
        12: [8, 11, 12],
        13: [8, 12, 13],
        14: [13, 14],
    }


def test_a_passing_checkpoint_is_dropped_after_a_later_one(saved):
    model, optimiser, checkpoints = saved
    for step, passing, kept in ((4, True, [1, 2, 3, 4]), (5, False, [1, 2, 3, 5]), (6, True, [1, 2, 3, 5, 6])):
        checkpoints.begin(model, optimiser, TrainingState(step=step), passing=passing)
        checkpoints.wait()
        assert [step_of(path) for path in checkpoints.paths()] == kept
    assert checkpoints.restore(model, optimiser) == TrainingState(step=6)


def test_a_checkpoint_due_to_be_dropped_is_dropped_on_restart(saved):
    """A process may be killed after writing a checkpoint and before removing older ones."""
    model, optimiser, checkpoints = saved
    few = Checkpoints(checkpoints.folder, keep=1)
    assert few.restore(model, optimiser) == TrainingState(step=3)
    assert [step_of(path) for path in few.paths()] == [3]


def test_the_random_state_is_restored(saved):
    model, optimiser, checkpoints = saved
    checkpoints.save(model, optimiser, TrainingState(step=4))
    drawn = torch.rand(7)
    checkpoints.restore(model, optimiser)
    assert torch.equal(torch.rand(7), drawn)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_random_states_of_devices_are_restored(saved):
    model, optimiser, checkpoints = saved
    torch.rand(7, device="cuda")  # CUDA has no random state until something is drawn, as training does before it saves
    checkpoints.save(model, optimiser, TrainingState(step=4))
    drawn = torch.rand(7, device="cuda")
    checkpoints.restore(model, optimiser)
    assert torch.equal(torch.rand(7, device="cuda"), drawn)


# The moving average


@pytest.mark.parametrize("with_average", [False, True])
def test_the_weights_that_a_run_uses_say_which_settings_the_model_has(saved, tmp_path, with_average):
    model, optimiser, checkpoints = saved
    average = MovingAverage(model, 0.9) if with_average else None
    use_weights(checkpoints.save(model, optimiser, TrainingState(step=4), average), tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == facts_of_weights(model)
    check_weights(tmp_path / "model.safetensors", model.config)


def test_the_moving_average_is_restored(saved):
    model, optimiser, checkpoints = saved
    average = MovingAverage(model, 0.9)
    fill(model, 5)
    average.update(model, 1000)
    kept = {name: weight.clone() for name, weight in average.weights.items()}
    path = checkpoints.save(model, optimiser, TrainingState(step=4), average)
    average.load({name: torch.zeros_like(weight) for name, weight in kept.items()})
    checkpoints.restore(model, optimiser, average)
    torch.testing.assert_close(average.weights, kept, rtol=0, atol=0)
    torch.testing.assert_close(load_file(path / "average.safetensors"), kept, rtol=0, atol=0)
    assert_filled(model, 5)


def test_a_moving_average_missing_in_a_checkpoint_starts_from_its_weights(saved):
    model, optimiser, checkpoints = saved
    fill(model, 7)
    average = MovingAverage(model, 0.9)
    checkpoints.restore(model, optimiser, average)
    assert all(bool((weight == 3).all()) for weight in average.weights.values())


@pytest.mark.parametrize("links", [True, False])
def test_a_run_uses_the_moving_average_if_one_exists(saved, tmp_path, monkeypatch, links):
    def refuse(*_):
        raise OSError(errno.EPERM, "no links here")

    model, optimiser, checkpoints = saved
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    for step, average in ((5, None), (6, MovingAverage(model, 0.9)), (7, None)):
        path = checkpoints.save(model, optimiser, TrainingState(step=step), average)
        use_weights(path, tmp_path / "model.safetensors")
        file = path / ("average.safetensors" if average else "model.safetensors")
        assert (tmp_path / "model.safetensors").read_bytes() == file.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoints", "model.safetensors"}


# In the background


def test_a_checkpoint_has_the_state_at_its_beginning(saved):
    model, optimiser, checkpoints = saved
    average, state = MovingAverage(model, 0.9), TrainingState(step=4, batch=5)
    checkpoints.begin(model, optimiser, state, average)
    fill(model, 9)
    average.load(dict(model.named_parameters()))
    optimiser.state[model.output.weight]["exp_avg"].fill_(9)
    state.step, state.batch = 5, 6
    expected = torch.rand(3)
    [path] = checkpoints.wait()
    assert path.name == "step-00000004"
    assert checkpoints.restore(model, optimiser, average) == TrainingState(step=4, batch=5)
    assert_filled(model, 3)
    assert all(bool((weight == 3).all()) for weight in average.weights.values())
    assert not optimiser.state[model.output.weight]["exp_avg"].any()
    assert torch.equal(torch.rand(3), expected)


def test_each_checkpoint_is_reported_once_when_it_exists(saved, monkeypatch):
    model, optimiser, checkpoints = saved
    gate = threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _: gate.wait())
    assert checkpoints.finished() == []
    checkpoints.begin(model, optimiser, TrainingState(step=4))
    assert checkpoints.finished() == []
    assert not (checkpoints.folder / "step-00000004").exists()
    gate.set()
    checkpoints.begin(model, optimiser, TrainingState(step=5))
    assert (checkpoints.folder / "step-00000004").exists()
    assert [step_of(path) for path in checkpoints.wait()] == [4, 5]
    assert checkpoints.wait() == checkpoints.finished() == []


@pytest.mark.parametrize("ask", ["finished", "wait", "begin"])
def test_an_error_is_raised_at_the_next_call(saved, monkeypatch, ask):
    model, optimiser, checkpoints = saved
    with failing(monkeypatch, 2):
        checkpoints.begin(model, optimiser, TrainingState(step=4))
        wait([checkpoints._writing])
    arguments = (model, optimiser, TrainingState(step=5)) if ask == "begin" else ()
    with pytest.raises(
        CheckpointError, match=r"step-00000004: No space left.*; the earlier checkpoints are kept: free some space, and"
    ):
        getattr(checkpoints, ask)(*arguments)
    assert checkpoints.save(model, optimiser, TrainingState(step=5)).name == "step-00000005"


def test_an_error_after_the_end_is_only_logged(saved, monkeypatch, caplog):
    model, optimiser, checkpoints = saved
    with failing(monkeypatch, 2):
        checkpoints.begin(model, optimiser, TrainingState(step=4))
        checkpoints.close()
    assert "No space left" in caplog.text
    assert checkpoints.finished() == []


# Versions


def test_every_field_of_the_state_is_restored(saved):
    model, optimiser, checkpoints = saved
    watch = LossWatch(first=9.5, smoothed=3.25, lowest=2.125, high=3)
    state = TrainingState(
        step=4,
        epoch=1,
        window=2,
        batch=5,
        seconds=7.1,
        best=-2.3,
        best_step=3,
        since_best=1,
        validated=4,
        loss_scale=2.0**9,
        unscaled=7,
        watch=watch,
    )
    assert all(value != getattr(TrainingState(), name) for name, value in asdict(state).items())
    checkpoints.save(model, optimiser, state)
    assert checkpoints.restore(model, optimiser) == state


def test_a_checkpoint_of_a_newer_glassformer_is_not_set_aside(saved):
    model, optimiser, checkpoints = saved
    path = checkpoints.paths()[-1] / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 2}))
    with pytest.raises(CheckpointVersionError, match=r"state\.json: expected at most format version 1, got 2; upgrade"):
        checkpoints.restore(model, optimiser)
    assert len(checkpoints.paths()) == 3


# Damage


def test_a_half_written_folder_is_ignored(saved):
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_only_damaged_checkpoints_are_an_error_and_stay_untouched(saved, damage):
    model, optimiser, checkpoints = saved
    for path in checkpoints.paths():
        damage(path)
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be read; .* The latest: .*step-00000003"):
        checkpoints.restore(model, optimiser)
    assert len(checkpoints.paths()) == 3


@pytest.mark.parametrize(("before", "after"), [("adam", "muon"), ("muon", "adam"), ("adamw", "muon")])
def test_a_training_resumes_with_a_different_optimiser_with_a_warning(training, tmp_path, caplog, before, after):
    training(4, config=replace(CONFIG, optimiser=before, checkpoint_every=4))
    assert "starts from zero" not in caplog.text
    losses, _, _ = training(6, config=replace(CONFIG, optimiser=after, checkpoint_every=4))
    assert list(losses) == [5, 6]
    assert "was written with a different training.optimiser: the optimiser's state of" in caplog.text


@pytest.mark.slow
def test_a_training_resumes_exactly_from_before_the_damage(training, tmp_path):
    config = replace(CONFIG, checkpoint_every=5)
    losses, weights, _ = training(20, folder=tmp_path / "whole", config=config)
    training(13, folder=tmp_path / "parts", config=config)
    cut(tmp_path / "parts" / "step-00000013" / "model.safetensors", 0.5)
    again, resumed, _ = training(20, folder=tmp_path / "parts", config=config, seed=11)
    assert again == {step: loss for step, loss in losses.items() if step > 10}
    torch.testing.assert_close(resumed, weights, rtol=0, atol=0)


def test_checkpoints_of_a_different_model_are_refused(saved, make_model):
    _, _, checkpoints = saved
    other = make_model(d_ff=17)
    with pytest.raises(CheckpointError, match=r"expected shape \(17,.*, got \(13,"):
        checkpoints.restore(other, make_optimiser(other, TrainingConfig()))


# Killed


def killed_at(number, call):
    """Run a call in a new process, which is killed before its `number`-th change on the disk.

    Return whether the process was killed.
    """
    pid = os.fork()
    if pid == 0:
        # otherwise, garbage collection would wait for ever for threads that exist only in the parent process, such as
        # the threads of CTranslate2
        gc.disable()
        left = [number]

        def watch(event, _):
            if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link"}:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        call()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
    return os.WIFSIGNALED(status)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "step"),
    [
        pytest.param(1, 3, id="1-again"),
        *(
            pytest.param(keep, step, id=name, marks=pytest.mark.long)
            for keep, step, name in ((1, 4, "1"), (2, 3, "2-again"), (2, 4, "2"))
        ),
    ],
)
def test_a_kill_during_a_write_leaves_a_complete_checkpoint(saved, tmp_path, keep, step):
    model, optimiser, before = saved
    seen = []
    for number in range(1000):
        checkpoints = Checkpoints(tmp_path / str(number), keep)
        shutil.copytree(before.folder, checkpoints.folder)
        Checkpoints(checkpoints.folder, keep).restore(model, optimiser)
        fill(model, 7)
        killed = killed_at(number, lambda: checkpoints.save(model, optimiser, TrainingState(step=step)))  # noqa: B023
        mean = average_weights(checkpoints.paths()[-1:])  # other processes can already read the checkpoint
        state = checkpoints.restore(model, optimiser)
        seen.append((state.step, model.output.weight[0, 0].item()))
        assert_filled(model, seen[-1][1])
        assert mean["target.tokens.weight"][0, 0].item() == seen[-1][1]
        steps = list(range(4 - keep, 4)) if seen[-1] == (3, 3.0) else list(range(step + 1 - keep, step + 1))
        assert [path.name for path in sorted(checkpoints.folder.iterdir())] == [f"step-{step:08d}" for step in steps]
        if not killed:
            break
    assert len(seen) > 10
    # readers see the old checkpoint first, and later the new one
    assert list(dict.fromkeys(seen)) == [(3, 3.0), (step, 7.0)]


# Full disk

CALLS = [(os, "fsync"), (os, "open"), (Path, "mkdir"), (Path, "write_text"), (Path, "rename")]


@contextmanager
def failing(monkeypatch, number):
    """Make the `number`-th writing call fail as on a full disk; yield the list of all writing calls."""
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
        patch.setattr(
            "safetensors.torch.save_file", guarded("save_file", save_file, SafetensorError("full (os error 28)"))
        )
        yield made


@pytest.mark.slow
def test_any_failed_write_leaves_the_earlier_checkpoints(saved, monkeypatch):
    model, optimiser, checkpoints = saved
    fill(model, 4)
    with failing(monkeypatch, -1) as calls:
        checkpoints.save(model, optimiser, TrainingState(step=4))
    assert {"fsync", "mkdir", "write_text", "rename", "save_file"} <= set(calls)
    for number, name in enumerate(calls):
        shutil.rmtree(checkpoints.folder / "step-00000004", ignore_errors=True)
        with failing(monkeypatch, number), pytest.raises(CheckpointError, match=r"cannot write .*No space left.* kept"):
            checkpoints.save(model, optimiser, TrainingState(step=4))
        # only the entry of the new name in its folder may not have reached the disk yet
        expected = 4 if number > calls.index("rename") else 3
        assert checkpoints.restore(model, optimiser) == TrainingState(step=expected), name
        assert not list(checkpoints.folder.glob(".*"))
        fill(model, 4)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 100, 4000, 30_000, 60_000])
def test_a_file_size_limit_leaves_the_earlier_checkpoints(saved, limit):
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


# The mean of checkpoints


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


def test_a_mean_of_no_checkpoints_is_refused():
    with pytest.raises(CheckpointError, match="no checkpoints to average; train with"):
        average_weights([])


@pytest.mark.parametrize("other", [{"x": torch.ones(2)}, {"output.weight": torch.ones(2)}])
def test_a_mean_of_different_models_is_refused(tmp_path, other):
    for name, weights in (("a", {"output.weight": torch.ones(3)}), ("b", other)):
        (tmp_path / name).mkdir()
        save_file(weights, tmp_path / name / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"b and .*a belong to different models"):
        average_weights([tmp_path / "a", tmp_path / "b"])
