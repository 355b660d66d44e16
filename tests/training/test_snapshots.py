"""Snapshots: the weights of a training run at powers of two; only the latest are kept."""

import errno
import os

import pytest
import torch
from safetensors.torch import load_file

from glassformer.bundle import load_weights
from glassformer.errors import CheckpointError
from glassformer.training.snapshots import Snapshots


@pytest.fixture
def snapshots(tmp_path):
    """Return the snapshots of a run that keeps three snapshots."""
    return Snapshots(tmp_path / "snapshots", keep=3)


def test_snapshots_are_due_at_powers_of_two_from_eight(snapshots):
    assert [step for step in range(1200) if snapshots.due(step)] == [8, 16, 32, 64, 128, 256, 512, 1024]


def test_no_snapshot_is_due_if_none_are_kept(tmp_path):
    assert not any(Snapshots(tmp_path, keep=0).due(step) for step in range(1200))


def test_a_snapshot_is_the_model_in_half_precision(snapshots, make_model):
    model, other = make_model(tie_output=True), make_model(tie_output=True)
    path = snapshots.save(model, 8)
    weights = load_file(path)
    assert path.name == "step-00000008.safetensors"
    assert sorted(weights) == sorted(name for name, _ in model.named_parameters())
    load_weights(other, path)
    for name, parameter in other.named_parameters():
        assert weights[name].dtype == torch.float16
        assert torch.equal(parameter, dict(model.named_parameters())[name].half().double())


def test_the_latest_snapshots_are_kept(snapshots, make_model):
    for step in (8, 16, 32, 64, 128):
        snapshots.save(make_model(), step)
    assert list(snapshots.paths()) == [32, 64, 128]
    assert sorted(path.name for path in snapshots.folder.iterdir()) == [
        f"step-{step:08d}.safetensors" for step in (32, 64, 128)
    ]


def test_other_files_in_the_folder_are_left_alone(snapshots, make_model):
    snapshots.folder.mkdir()
    for name in ("step-mine.safetensors", "notes.txt"):
        (snapshots.folder / name).write_text("")
    for step in (8, 16, 32, 64):
        snapshots.save(make_model(), step)
    assert list(snapshots.paths()) == [16, 32, 64]
    assert (snapshots.folder / "step-mine.safetensors").exists()


def test_snapshots_after_a_step_can_be_dropped(snapshots, make_model):
    for step in (8, 16, 32):
        snapshots.save(make_model(), step)
    snapshots.forget_after(16)
    assert list(snapshots.paths()) == [8, 16]


def test_a_missing_folder_has_no_snapshots(snapshots):
    snapshots.forget_after(0)
    assert snapshots.paths() == {}
    assert not snapshots.folder.exists()


def test_a_full_disk_is_an_error_that_loses_nothing(snapshots, make_model, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    model = make_model()
    for step in (8, 16, 32):
        snapshots.save(model, step)
    before = {path: path.read_bytes() for path in snapshots.folder.iterdir()}
    for step in (64, 32):  # a new snapshot, and one that replaces an earlier one
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(CheckpointError, match=r"cannot write .*No space left"):
                snapshots.save(model, step)
        assert {path: path.read_bytes() for path in snapshots.folder.iterdir()} == before
