"""Checkpoints: all that a stopped training needs to go on, and the mean of several.

    checkpoints/step-00000400/    model.safetensors, optimiser.safetensors, state.json

A folder gets its name only when it is whole, so that whatever has a name can be read.
"""

import json
import logging
import os
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from glassformer.bundle import WEIGHTS, load_weights, read_weights, save_weights
from glassformer.errors import CheckpointError

__all__ = ["Checkpoints", "TrainingState", "average_weights"]

_log = logging.getLogger(__name__)
_OPTIMISER, _STATE, _RANDOM = "optimiser.safetensors", "state.json", "random_state"


@dataclass(slots=True, kw_only=True)
class TrainingState:
    """How far a training has come: changed in place by the loop."""

    step: int = 0
    """Updates done."""
    epoch: int = 0
    """Passes over the data that are complete."""
    batch: int = 0
    """Batches of this epoch that are done."""
    seconds: float = 0.0
    """Time spent so far, over all starts."""
    best: float | None = None
    """The best validation so far; lower is better."""
    since_best: int = 0
    """Validations since then."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a run, of which the latest `keep` are kept."""

    folder: Path
    keep: int

    def save(self, model: nn.Module, optimiser: Optimizer, state: TrainingState) -> Path:
        """Write a checkpoint and drop the oldest; return its folder.

        Raises:
            CheckpointError: it could not be written; the earlier ones are still there.
        """
        path = self.folder / f"step-{state.step:08d}"
        temporary = self.folder / f".{path.name}.tmp"
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            save_weights(model, temporary / WEIGHTS)
            _write_optimiser(optimiser, temporary / _OPTIMISER)
            _write_text(temporary / _STATE, json.dumps(asdict(state), indent=1))
            if path.exists():
                shutil.rmtree(path)
            temporary.rename(path)
            _sync_folder(self.folder)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}; earlier ones are kept") from error
        for old in self.paths()[: -self.keep]:
            shutil.rmtree(old)
        return path

    def paths(self) -> list[Path]:
        """Return the folders of all checkpoints, oldest first."""
        return sorted(self.folder.glob("step-*"))

    def restore(self, model: nn.Module, optimiser: Optimizer) -> TrainingState | None:
        """Load the latest checkpoint that can be read, with the random state; None when there is none.

        Raises:
            CheckpointError: there are checkpoints, but none of them can be read.
        """
        problems: list[CheckpointError] = []
        for path in reversed(self.paths()):
            try:
                return _load(path, model, optimiser)
            except CheckpointError as error:
                _log.warning("checkpoint skipped: %s", error)
                problems.append(error)
        if problems:
            raise CheckpointError(f"no checkpoint in {self.folder} can be read; the latest: {problems[0]}")
        return None


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """Return the mean of each weight over several checkpoints. Paper: §6.1 (the last 5 for base, 20 for big).

    Raises:
        CheckpointError: there is none, or one cannot be read or is of another model.
    """
    if not paths:
        raise CheckpointError("no checkpoints to average: train with training.checkpoint_every first")
    mean = {name: weight.double() for name, weight in read_weights(paths[0] / WEIGHTS).items()}
    for count, path in enumerate(paths[1:], start=2):
        weights = read_weights(path / WEIGHTS)
        if weights.keys() != mean.keys():
            raise CheckpointError(f"{path} is of another model than {paths[0]}")
        for name, weight in weights.items():
            mean[name] += (weight.double() - mean[name]) / count
    return {name: weight.float() for name, weight in mean.items()}


def _load(path: Path, model: nn.Module, optimiser: Optimizer) -> TrainingState:
    state = _read_state(path / _STATE)
    moments = read_weights(path / _OPTIMISER)
    random_state = moments.pop(_RANDOM)
    load_weights(model, path / WEIGHTS)
    entries: dict[int, dict[str, Tensor]] = {}
    for name, tensor in moments.items():
        index, _, key = name.partition(".")
        entries.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({"state": entries, "param_groups": optimiser.state_dict()["param_groups"]})
    torch.set_rng_state(random_state)
    return state


def _write_optimiser(optimiser: Optimizer, path: Path) -> None:
    entries: dict[int, dict[str, Any]] = optimiser.state_dict()["state"]
    tensors = {f"{index}.{key}": value for index, entry in entries.items() for key, value in entry.items()}
    save_file({**tensors, _RANDOM: torch.get_rng_state()}, path)
    _sync_file(path)


def _read_state(path: Path) -> TrainingState:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)})
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {error}") from error


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    _sync_file(path)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
