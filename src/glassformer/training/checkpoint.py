"""Checkpoints: all that a stopped training needs to go on exactly, and the mean of several.

    checkpoints/step-00000400/    model.safetensors, optimiser.safetensors, average.safetensors, state.json

A folder gets its name only when it is whole and on the disk, so that whatever has a name can be read. They are written
in the background, from a copy, while training goes on.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from glassformer.bundle import WEIGHTS, load_weights, read_weights, write_tensors
from glassformer.errors import CheckpointError, CheckpointVersionError
from glassformer.system.files import clear_temporaries, parse_json, read_bytes, remove, sync, write_safely
from glassformer.training.loss_watch import LossWatch
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import moment_names

__all__ = ["CHECKPOINTS", "Checkpoints", "TrainingState", "average_weights", "step_of", "use_weights"]

CHECKPOINTS = "checkpoints"
"""Their folder in a run."""

CHECKPOINT_VERSION = 2
"""1 had neither the window of the data, nor the step of the best validation, nor what the watch has seen."""

_log = logging.getLogger(__name__)
_OPTIMISER, _AVERAGE, _STATE = "optimiser.safetensors", "average.safetensors", "state.json"
_RANDOM, _RANDOM_CUDA = "random_state", "random_state_cuda_"

_TYPES: Mapping[Any, Any] = {float: float | int, float | None: float | int | None}
"""What JSON may have for a field of this type."""

T = TypeVar("T", "TrainingState", LossWatch)


@dataclass(slots=True, kw_only=True)
class TrainingState:
    """How far a training has come: changed in place by the loop."""

    step: int = 0
    """Updates done."""
    epoch: int = 0
    """Passes over the data that are complete."""
    window: int = 0
    """Windows of this epoch that are done."""
    batch: int = 0
    """Batches of this window that are done."""
    seconds: float = 0.0
    """Time spent so far, over all starts."""
    best: float | None = None
    """The best validation so far; lower is better."""
    best_step: int = 0
    """The step of that validation; 0 = there was none."""
    since_best: int = 0
    """Validations since then."""
    validated: int = 0
    """The step of the last validation."""
    loss_scale: float = 2.0**16
    """In fp16: what the loss is multiplied by, so that no gradient gets too small; halved when one gets too large."""
    unscaled: int = 0
    """Updates since it was last changed."""
    watch: LossWatch = field(default_factory=LossWatch)
    """What is remembered of the losses, to notice that they climb back."""


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of a run. The latest `keep` stay, and the last one that is not later than the best validation.

    One is written at a time: `begin` returns once all is copied, and `finished` and `wait` tell what is on the disk.
    """

    folder: Path
    keep: int
    before: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Called when one is about to get its name: what has to be on the disk before it is. May raise an OSError."""
    _writer: ThreadPoolExecutor | None = field(default=None, init=False, repr=False, compare=False)
    _writing: "Future[Path] | None" = field(default=None, init=False, repr=False, compare=False)
    _finished: list[Path] = field(default_factory=list, init=False, repr=False, compare=False)

    def begin(
        self,
        model: nn.Module,
        optimiser: Optimizer,
        state: TrainingState,
        average: MovingAverage | None = None,
        *,
        passing: bool = False,
    ) -> None:
        """Copy all that a checkpoint holds, and write it in the background; one that is being written is waited for.

        A `passing` one is written only because training stops here: once there is a later one, it is dropped, so that
        the same checkpoints are kept, and averaged, as without the stop.

        Raises:
            CheckpointError: the one before could not be written.
        """
        self._collect()
        copies = {
            WEIGHTS: _copied(dict(model.named_parameters())),
            _OPTIMISER: {**_copied(_moments(model, optimiser)), **_random_states()},
        }
        if average is not None:
            copies[_AVERAGE] = _copied(average.weights)
        values = {"format_version": CHECKPOINT_VERSION, **asdict(state), "passing": passing}
        self._writer = self._writer or ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing = self._writer.submit(self._write, f"step-{state.step:08d}", copies, values)

    def finished(self) -> list[Path]:
        """Return the folders of the checkpoints that have come to the disk since this was asked last.

        Raises:
            CheckpointError: one could not be written; the earlier ones are still there.
        """
        if self._writing is not None and self._writing.done():
            self._collect()
        finished, self._finished = self._finished, []
        return finished

    def wait(self) -> list[Path]:
        """Wait for the one that is being written; return and raise what `finished` does."""
        self._collect()
        return self.finished()

    def close(self) -> None:
        """Wait for the one that is being written; if it fails, say so in the log: training has ended anyway."""
        try:
            self._collect()
        except CheckpointError as error:
            _log.warning("%s", error)

    def save(
        self, model: nn.Module, optimiser: Optimizer, state: TrainingState, average: MovingAverage | None = None
    ) -> Path:
        """Write a checkpoint and wait until it is on the disk; return its folder.

        Raises:
            CheckpointError: it could not be written; the earlier ones are still there.
        """
        self.begin(model, optimiser, state, average)
        return self.wait()[-1]

    def paths(self) -> list[Path]:
        """Return the folders of all checkpoints, oldest first."""
        return sorted(self.folder.glob(f"step-{'[0-9]' * 8}*"))

    def restore(
        self, model: nn.Module, optimiser: Optimizer, average: MovingAverage | None = None
    ) -> TrainingState | None:
        """Load the latest checkpoint that can be read, with the random state; None when there is none.

        Later ones, which cannot be read, are set aside: they get "damaged-" before their names. What a killed process
        left behind is cleared away. A moving average that the checkpoint does not have starts from its weights, and the
        state of an optimiser that is not the checkpoint's starts anew, with a warning in the log.

        Raises:
            CheckpointError: there are checkpoints, but none of them can be read.
            CheckpointVersionError: a newer glassformer wrote the latest.
        """
        self._clear()
        problems: dict[Path, CheckpointError] = {}
        for path in reversed(self.paths()):
            try:
                state = _load(path, model, optimiser, average)
            except CheckpointVersionError:
                raise
            except CheckpointError as error:
                _log.warning("checkpoint skipped: %s", error)
                problems[path] = error
            else:
                _set_aside(problems)
                self._drop_old(state.best_step)
                return state
        if problems:
            latest = next(iter(problems.values()))
            raise CheckpointError(f"no checkpoint in {self.folder} can be read; the latest: {latest}")
        return None

    def _collect(self) -> None:
        """Wait for the one that is being written, and note it as finished."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            self._finished.append(writing.result())

    def _write(self, name: str, tensors: Mapping[str, dict[str, Tensor]], state: dict[str, Any]) -> Path:
        path, temporary = self.folder / name, self.folder / f".{name}.tmp"
        try:
            remove(temporary)
            temporary.mkdir(parents=True)
            for file, held in tensors.items():
                write_tensors(held, temporary / file)
            (temporary / _STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")
            sync(temporary / _STATE)
            sync(temporary)
            self.before()
            self._put(temporary, path)
            sync(self.folder)
            sync(self.folder.parent)
        except OSError as error:
            remove(temporary)
            raise CheckpointError(
                f"cannot write {path}: {error.strerror or error}; the checkpoints before it are kept: once there is "
                "room, the same command goes on from there"
            ) from error
        self._drop_old(state["best_step"])
        return path

    def _put(self, temporary: Path, path: Path) -> None:
        """Give a checkpoint that is whole its name; one of the same step is there until the new one is, too."""
        if path.exists():
            again = path.with_name(f"{path.name}-again")  # sorted behind the old one: it is the one that is restored
            temporary.rename(again)
            self._drop(path)
            temporary = again
        temporary.rename(path)

    def _clear(self) -> None:
        """Clear away what a process that was killed has left behind."""
        clear_temporaries(self.folder)
        for again in self.folder.glob("step-*-again"):
            with suppress(OSError):  # it can be read as it is
                self._put(again, again.with_name(again.name.removesuffix("-again")))

    def _drop_old(self, best_step: int) -> None:
        *earlier, latest = self.paths()
        lasting = [*(path for path in earlier if not _is_passing(path)), latest]
        best = [path for path in lasting if step_of(path) <= best_step]
        for path in {*earlier} - {*lasting[-self.keep :], *best[-1:]}:
            with suppress(OSError):  # it is in nobody's way, and goes another time
                self._drop(path)

    def _drop(self, path: Path) -> None:
        """Take a checkpoint's name away before its files, so that it is never half there."""
        temporary = path.with_name(f".{path.name}.old.tmp")
        remove(temporary)
        path.rename(temporary)
        remove(temporary)


def step_of(path: Path) -> int:
    """Return the step at which a checkpoint was written."""
    return int(path.name[len("step-") :][:8])


def use_weights(checkpoint: Path, place: Path) -> None:
    """Make a checkpoint's weights, or their moving average if it has one, those of a run.

    Raises:
        CheckpointError: they could not be written; what was there before still is.
    """
    source = next(path for path in (checkpoint / _AVERAGE, checkpoint / WEIGHTS) if path.exists())

    def write(temporary: Path) -> None:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)  # weights are never changed in place, so that two names may share them
        except OSError:
            shutil.copyfile(source, temporary)

    write_safely(place, write)


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


def _load(path: Path, model: nn.Module, optimiser: Optimizer, average: MovingAverage | None) -> TrainingState:
    state = _read_state(path / _STATE)
    moments = read_weights(path / _OPTIMISER)
    random_states = {name: moments.pop(name) for name in list(moments) if name.startswith(_RANDOM)}
    if _RANDOM not in random_states:
        raise CheckpointError(f"{path / _OPTIMISER} has no random state: it is damaged")
    places = {name: place for place, name in enumerate(_names(model, optimiser))}
    entries: dict[int, dict[str, Tensor]] = {}
    for name, moment in moments.items():
        parameter, _, key = name.rpartition(".")
        if parameter not in places:
            raise CheckpointError(f"{path / _OPTIMISER} has a {key} of {parameter!r}, which this training leaves alone")
        entries.setdefault(places[parameter], {})[key] = moment
    averaged = read_weights(path / _AVERAGE) if average is not None and (path / _AVERAGE).exists() else None
    load_weights(model, path / WEIGHTS)
    _check_moments(model, moments, path / _OPTIMISER)
    if average is not None:
        average.load(dict(model.named_parameters()) if averaged is None else averaged)
    expected = moment_names(optimiser)
    kept = {place: entry for place, entry in entries.items() if entry.keys() == expected[place]}
    if len(kept) < len(entries):
        _log.warning(
            "%s is of a different training.optimiser: the optimiser's state of %d of %d weights starts anew",
            path,
            len(entries) - len(kept),
            len(entries),
        )
    optimiser.load_state_dict({"state": kept, "param_groups": optimiser.state_dict()["param_groups"]})
    try:
        _set_random_states(random_states)
    except (RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path / _OPTIMISER}: the random state is damaged") from error
    return state


def _check_moments(model: nn.Module, moments: Mapping[str, Tensor], path: Path) -> None:
    """Refuse moments that are not of their weight's shape, and not a count of steps."""
    shapes = {name: weight.shape for name, weight in model.named_parameters()}
    for name, moment in moments.items():
        if moment.shape not in ((), shapes[name.rpartition(".")[0]]) or not moment.is_floating_point():
            raise CheckpointError(f"{path}: {name} has a wrong shape or type: it is damaged")


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _random_states() -> dict[str, Tensor]:
    """Return the states of all random generators from which training draws."""
    states = {_RANDOM: torch.get_rng_state()}
    if torch.cuda.is_initialized():
        states |= {f"{_RANDOM_CUDA}{place}": state for place, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _set_random_states(states: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(states[_RANDOM])
    for name, state in states.items():
        if name.startswith(_RANDOM_CUDA) and int(name.removeprefix(_RANDOM_CUDA)) < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, int(name.removeprefix(_RANDOM_CUDA)))


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
        values = _read_json(path)
        if values.get("format_version", 1) > CHECKPOINT_VERSION:
            raise CheckpointVersionError(
                f"{path} has format version {values['format_version']}, this glassformer reads up to "
                f"{CHECKPOINT_VERSION}: upgrade glassformer"
            )
        if "format_version" not in values:
            values = {"window": 0, "best_step": 0, "validated": values["step"], "watch": {}, **values}
        values = {"loss_scale": TrainingState().loss_scale, "unscaled": 0, **values}  # not in those before fp16
        values["watch"] = _checked(LossWatch(**values["watch"]))
        return _checked(TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)}))
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {error}") from error


def _is_passing(path: Path) -> bool:
    try:
        return bool(_read_json(path / _STATE).get("passing"))
    except (OSError, ValueError):  # a CheckpointError is a ValueError
        return False


def _read_json(path: Path) -> dict[str, Any]:
    values = parse_json(read_bytes(path))
    if not isinstance(values, dict):
        raise ValueError("expected a JSON object")
    return values


def _checked(state: T) -> T:
    """Return a state whose fields have their types; counts are not negative.

    Raises:
        ValueError: a field has another type, or is negative.
    """
    for one in fields(state):
        value = getattr(state, one.name)
        fits = isinstance(value, _TYPES.get(one.type, one.type)) and not isinstance(value, bool)
        if not fits or (isinstance(value, int) and value < 0):
            raise ValueError(f"{one.name}: expected {one.type}, got {str(value)[:100]!r}")
    return state


def _set_aside(paths: Iterable[Path]) -> None:
    for path in paths:
        aside = path.with_name(f"damaged-{path.name}")
        remove(aside)
        try:
            path.rename(aside)
        except OSError as error:
            raise CheckpointError(f"{path} is damaged and in the way: remove it ({error.strerror or error})") from error


def _shapes(weights: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}
