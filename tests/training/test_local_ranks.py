"""Local ranks: processes that share the gradient of an update, and the products of Muon."""

import errno
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from glassformer.corpus.batching import make_batch
from glassformer.errors import ConfigError, DataError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import MEMORY
from glassformer.training.gradients import add_gradients
from glassformer.training.local_ranks import count_of_ranks, local_ranks
from glassformer.training.loop import steps
from glassformer.training.optimiser import make_optimiser, turned
from models import random_model

CONFIG = TrainingConfig(batch_tokens=60, workers=2, steps=4, learning_rate=1e-3, validate_every=0)
MUON = replace(CONFIG, optimiser="muon")
LENGTHS = (3, 5, 5, 6, 7, 7, 7, 8, 9, 11, 11, 13)


def gradient_of(model, config, batches):
    """Return the loss and the gradients of the second of two updates with the same weights."""
    tokens = sum(batch.target_tokens for batch in batches)
    with local_ranks(model, config) as add:
        first = add(batches, tokens)
        model.zero_grad()
        assert add(batches, tokens) == pytest.approx(first, rel=1e-12)
        return first, {name: weight.grad.clone() for name, weight in model.named_parameters()}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [pytest.param(2, marks=pytest.mark.long), 3])
def test_the_gradients_of_all_shares_add_up(make_model, make_examples, workers):
    """A share may have no pairs: the last batch has only two."""
    examples = make_examples(LENGTHS)
    batches = [make_batch(examples, np.array(rows)) for rows in ([0, 4, 7], [1, 2, 3, 5, 6], [8, 9])]
    model = make_model(dropout=0.0)
    loss, whole = gradient_of(model, replace(CONFIG, workers=1), batches)
    for weight in model.parameters():
        weight.grad = None
    shared_loss, shared = gradient_of(model, replace(CONFIG, workers=workers), batches)
    assert shared_loss == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(shared, whole, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module", params=[pytest.param("adam", marks=pytest.mark.long), "muon"])
def trained(request, make_examples):
    """Train a model with a frozen weight, by one process and by two.

    Return the losses and the model of each training, the frozen weight, and the files that the second training left.
    """
    results = []
    # a folder of its own, because other tests make such files at the same time
    with tempfile.TemporaryDirectory(dir=MEMORY) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr("glassformer.training.sums.MEMORY", memory)
        for workers in (1, 2):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(7)
                model = random_model(dropout=0.0, tie_output=False).double()
                model.source.tokens.weight.requires_grad_(False)
                frozen = model.source.tokens.weight.clone()
                # With Adam's default ε, gradients that are mere rounding errors would be multiplied by up to 10⁹.
                config = replace(CONFIG, workers=workers, epsilon=1e-3, optimiser=request.param)
                *reports, _ = steps(model, make_examples(LENGTHS), config)
            results.append(([report.loss for report in reports], model))
        left = [*Path(memory).iterdir()]
    return *results, frozen, left


@pytest.mark.slow
def test_every_process_sees_each_change_of_the_weights(trained):
    """Four updates by two processes equal four updates by one, up to rounding."""
    (losses, model), (shared_losses, shared_model), *_ = trained
    assert len(losses) == CONFIG.steps
    assert shared_losses == pytest.approx(losses, rel=1e-9)
    weights, shared_weights = (dict(one.named_parameters()) for one in (model, shared_model))
    torch.testing.assert_close(shared_weights, weights, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_a_frozen_weight_is_unchanged(trained):
    _, (_, model), frozen, _ = trained
    assert model.source.tokens.weight.grad is None
    assert torch.equal(model.source.tokens.weight, frozen)


@pytest.mark.slow
def test_afterwards_the_model_owns_its_weights_and_no_file_is_left(trained):
    _, (_, model), _, left = trained
    assert not left
    storages = [weight.untyped_storage() for weight in model.parameters()]
    assert all(storage.nbytes() == weight.nbytes for storage, weight in zip(storages, model.parameters(), strict=True))
    assert not any(storage.is_shared() for storage in storages)


@pytest.mark.slow
def test_processes_share_the_products_of_muon(make_model):
    model = make_model()
    optimiser = make_optimiser(model, MUON)
    with local_ranks(model, MUON, optimiser):
        for shapes in ([(3, 5), (5, 3), (4, 4), (5, 3), (3, 5)], [(2, 3)], []):
            matrices = [torch.randn(shape) for shape in shapes]
            found = optimiser.turn(matrices, torch.float64)
            torch.testing.assert_close(list(found), turned(matrices, torch.float64), rtol=1e-12, atol=1e-12)
    assert optimiser.turn is turned


@pytest.mark.slow
def test_processes_drop_different_values_and_a_seed_repeats_them(make_model, make_examples):
    batches, losses = [make_batch(make_examples((7,) * 12), np.array([*range(12)]))], []
    with local_ranks(make_model(dropout=0.3), CONFIG) as add:
        for seed in (7, 7, 11):
            torch.manual_seed(seed)
            losses.append([add(batches, batches[0].target_tokens) for _ in range(4)])
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.slow
def test_an_abandoned_training_ends_its_processes(make_model, make_examples):
    known = set(psutil.Process().children())
    training = steps(make_model(), make_examples(LENGTHS), CONFIG)
    next(training)
    children = set(psutil.Process().children()) - known
    assert children
    training.close()
    assert not any(child.is_running() for child in children)


@pytest.mark.slow
def test_a_killed_process_is_an_error_with_advice(make_model, make_examples):
    known = set(psutil.Process().children())
    training = steps(make_model(), make_examples(LENGTHS), CONFIG)
    next(training)
    next(iter(set(psutil.Process().children()) - known)).kill()
    with pytest.raises(DataError, match=r"computes a part of each update was killed.*training\.workers = 1"):
        list(training)


@pytest.mark.parametrize(("cores", "tokens", "expected"), [(1, 4096, 1), (2, 4096, 2), (64, 4096, 4), (8, 900, 1)])
def test_0_means_one_process_per_core_with_enough_work(monkeypatch, cores, tokens, expected):
    monkeypatch.setattr("glassformer.training.local_ranks.cores", lambda: cores)
    assert count_of_ranks(TrainingConfig(batch_tokens=tokens, workers=0)) == expected
    assert count_of_ranks(TrainingConfig(batch_tokens=tokens, workers=3)) == 3


def test_several_processes_need_the_cpu(make_model):
    with (
        pytest.raises(ConfigError, match=r"training\.workers: expected 1 on meta, got 2; only the CPU can use several"),
        local_ranks(make_model().to("meta"), CONFIG),
    ):
        pass


def test_0_means_one_process_on_other_devices(make_model, monkeypatch):
    monkeypatch.setattr("glassformer.training.local_ranks.cores", lambda: 4)
    config = TrainingConfig(batch_tokens=4096, workers=0)
    assert count_of_ranks(config) == 4
    with local_ranks(make_model().to("meta"), config) as add:
        assert add.func is add_gradients
    monkeypatch.setattr("glassformer.training.local_ranks.device_of", lambda name, setting: torch.device("meta"))
    assert count_of_ranks(config) == 1


@pytest.mark.slow
def test_without_room_in_memory_the_numbers_lie_on_the_disk(make_model, make_examples, monkeypatch, tmp_path):
    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("glassformer.training.sums.os.posix_fallocate", no_room)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = []
    for workers in (1, 2):
        torch.manual_seed(7)
        reports = steps(make_model(dropout=0.0), make_examples(LENGTHS), replace(CONFIG, workers=workers, epsilon=1e-3))
        for report in reports:
            assert not list(tmp_path.iterdir())  # the file is deleted after both processes have mapped it
            results.append(getattr(report, "loss", 0.0))
    assert results[:5] == pytest.approx(results[5:], rel=1e-9)


SCRIPT = """
import numpy as np, glassformer as gf
from glassformer.recipes.configuration import TrainingConfig
from glassformer.corpus.batching import Examples
from glassformer.training.loop import steps
ids = [np.array([4, 5, 6, 2]), np.array([7, 8, 2])]
model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
print([report.step for report in steps(model, Examples(source=ids, target=ids), TrainingConfig(steps=2, workers=2))])
"""


@pytest.mark.long
def test_a_script_does_not_need_a_main_guard(tmp_path):
    """Unlike with `multiprocessing`, no `if __name__ == "__main__"` is needed."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 2, 2]\n"
