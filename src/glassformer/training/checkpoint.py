"""Checkpoints: all that a stopped training needs to go on, and the mean of several.

    checkpoints/step-00000400/    model.safetensors, optimiser.safetensors, state.json

A folder gets its name only when it is whole, so that whatever has a name can be read.
"""

import json
import logging
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from glassformer.bundle import WEIGHTS, load_weights, read_weights, sync, write_tensors
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
            _write(temporary, model, optimiser, state)
            if path.exists():
                shutil.rmtree(path)
            temporary.rename(path)
            sync(self.folder)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise CheckpointError(f"cannot write {path}: {error.strerror or error}; earlier ones are kept") from error
        for old in self.paths()[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)
        return path

    def paths(self) -> list[Path]:
        """Return the folders of all checkpoints, oldest first."""
        return sorted(self.folder.glob("step-*"))

    def restore(self, model: nn.Module, optimiser: Optimizer) -> TrainingState | None:
        """Load the latest checkpoint that can be read, with the random state; None when there is none.

        Later ones, which cannot be read, are set aside: they get "damaged-" before their names.

        Raises:
            CheckpointError: there are checkpoints, but none of them can be read.
        """
        problems: dict[Path, CheckpointError] = {}
        for path in reversed(self.paths()):
            try:
                state = _load(path, model, optimiser)
            except CheckpointError as error:
                _log.warning("checkpoint skipped: %s", error)
                problems[path] = error
            else:
                _set_aside(problems)
                return state
        if problems:
            latest = next(iter(problems.values()))
            raise CheckpointError(f"no checkpoint in {self.folder} can be read; the latest: {latest}")
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
        if _shapes(weights) != _shapes(mean):
            raise CheckpointError(f"{path} is of another model than {paths[0]}")
        for name, weight in weights.items():
            mean[name] += (weight.double() - mean[name]) / count
    return {name: weight.float() for name, weight in mean.items()}


def _write(folder: Path, model: nn.Module, optimiser: Optimizer, state: TrainingState) -> None:
    write_tensors({name: weight.detach().contiguous() for name, weight in model.named_parameters()}, folder / WEIGHTS)
    write_tensors({**_moments(model, optimiser), _RANDOM: torch.get_rng_state()}, folder / _OPTIMISER)
    (folder / _STATE).write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
    sync(folder / _STATE)


def _load(path: Path, model: nn.Module, optimiser: Optimizer) -> TrainingState:
    state = _read_state(path / _STATE)
    moments = read_weights(path / _OPTIMISER)
    random_state = moments.pop(_RANDOM, None)
    if random_state is None:
        raise CheckpointError(f"{path / _OPTIMISER} has no random state: it is damaged")
    load_weights(model, path / WEIGHTS)
    places = {name: place for place, name in enumerate(_names(model, optimiser))}
    entries: dict[int, dict[str, Tensor]] = {}
    for name, moment in moments.items():
        parameter, _, key = name.rpartition(".")
        if parameter not in places:
            raise CheckpointError(f"{path / _OPTIMISER} has a {key} of {parameter!r}, which this training leaves alone")
        entries.setdefault(places[parameter], {})[key] = moment
    optimiser.load_state_dict({"state": entries, "param_groups": optimiser.state_dict()["param_groups"]})
    torch.set_rng_state(random_state)
    return state


def _moments(model: nn.Module, optimiser: Optimizer) -> dict[str, Tensor]:
    """Return what the optimiser remembers of each weight, by the weight's name."""
    names = _names(model, optimiser)
    entries: dict[int, dict[str, Tensor]] = optimiser.state_dict()["state"]
    return {f"{names[place]}.{key}": moment for place, entry in entries.items() for key, moment in entry.items()}


def _names(model: nn.Module, optimiser: Optimizer) -> list[str]:
    """Return the names of the weights that the optimiser changes, in its order."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[parameter] for group in optimiser.param_groups for parameter in group["params"]]


def _read_state(path: Path) -> TrainingState:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {error}") from error


def _set_aside(paths: Iterable[Path]) -> None:
    for path in paths:
        aside = path.with_name(f"damaged-{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)


def _shapes(weights: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}
