"""Checkpoints: save everything that an exact resumption of a training run needs, and average several checkpoints.

    checkpoints/step-00000400/    model.safetensors, optimiser.safetensors, average.safetensors, state.json

A folder gets its name (step-…) only once it is complete and on the disk, so every folder with such a name can be read.
Checkpoints are written in the background, from a copy, while training continues.
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

from glassformer.bundle import WEIGHTS, facts_of_weights, load_weights, read_weights, write_tensors
from glassformer.errors import CheckpointError, CheckpointVersionError, quoted, shortened
from glassformer.system.files import clear_temporaries, parse_json, read_bytes, remove, sync, unwritable, write_safely
from glassformer.training.loss_watch import LossWatch
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import moment_names

__all__ = ["CHECKPOINTS", "Checkpoints", "TrainingState", "average_weights", "restore_from", "step_of", "use_weights"]

CHECKPOINTS = "checkpoints"
"""The folder of the checkpoints in a run's folder."""

CHECKPOINT_VERSION = 1

_log = logging.getLogger(__name__)
_OPTIMISER, _AVERAGE, _STATE = "optimiser.safetensors", "average.safetensors", "state.json"
_RANDOM, _RANDOM_CUDA = "random_state", "random_state_cuda_"

_TYPES: Mapping[Any, Any] = {float: float | int, float | None: float | int | None}
"""Fields of these types may have a different type in JSON, where a whole number may be written as an integer."""

T = TypeVar("T", "TrainingState", LossWatch)


@dataclass(slots=True, kw_only=True)
class TrainingState:
    """The progress of a training run; the loop changes it in place."""

    step: int = 0
    """Number of updates done."""
    epoch: int = 0
    """Number of complete passes over the data."""
    window: int = 0
    """Number of complete windows of this epoch. A window is a part of the data that is read and sorted by length at a
    time."""
    batch: int = 0
    """Number of complete batches of the current window."""
    seconds: float = 0.0
    """Training time so far, in seconds, summed over all starts of the run."""
    best: float | None = None
    """The result of the best validation so far, computed by `badness`; lower is better."""
    best_step: int = 0
    """The step of the best validation; 0 before the first validation."""
    since_best: int = 0
    """Number of validations since the best validation."""
    validated: int = 0
    """The step of the last validation."""
    loss_scale: float = 2.0**16
    """Factor by which the loss is multiplied in fp16, so that gradients do not underflow; halved when a gradient
    overflows."""
    unscaled: int = 0
    """Number of updates since `loss_scale` last changed."""
    watch: LossWatch = field(default_factory=LossWatch)
    """The history of the losses, from which divergence is detected."""


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of a run: the latest `keep`, and the last checkpoint that is not later than the best validation.

    Only one checkpoint is written at a time. `begin` returns once the state is copied; `finished` and `wait` return the
    checkpoints that have been written completely.
    """

    folder: Path
    keep: int
    before_naming: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)
    """Function called before a checkpoint gets its name, to write files that must be on the disk earlier. The function
    may raise an OSError."""
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
        """Wait for the previous checkpoint, copy the state, and write the new checkpoint in the background.

        A `passing` (temporary) checkpoint is written only because training stops here. The next checkpoint replaces it.
        The checkpoints that are kept and averaged are therefore the same as in an uninterrupted run.

        Raises:
            CheckpointError: the previous checkpoint could not be written.
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
        self._writing = self._writer.submit(
            self._write, f"step-{state.step:08d}", copies, facts_of_weights(model), values
        )

    def finished(self) -> list[Path]:
        """Return the folders of the checkpoints that have been completed since the last call.

        Raises:
            CheckpointError: a checkpoint could not be written; the earlier checkpoints are unchanged.
        """
        if self._writing is not None and self._writing.done():
            self._collect()
        finished, self._finished = self._finished, []
        return finished

    def wait(self) -> list[Path]:
        """Wait until the current checkpoint is on the disk; then do the same as `finished`."""
        self._collect()
        return self.finished()

    def close(self) -> None:
        """Wait until the current checkpoint is on the disk. An error is only logged, because training has ended."""
        try:
            self._collect()
        except CheckpointError as error:
            _log.warning("%s", error)

    def save(
        self, model: nn.Module, optimiser: Optimizer, state: TrainingState, average: MovingAverage | None = None
    ) -> Path:
        """Write a checkpoint and wait until it is on the disk; return its folder.

        Raises:
            CheckpointError: the checkpoint could not be written; the earlier checkpoints are unchanged.
        """
        self.begin(model, optimiser, state, average)
        return self.wait()[-1]

    def paths(self) -> list[Path]:
        """Return the folders of all checkpoints, oldest first."""
        return sorted(self.folder.glob(f"step-{'[0-9]' * 8}*"))

    def restore(
        self, model: nn.Module, optimiser: Optimizer, average: MovingAverage | None = None
    ) -> TrainingState | None:
        """Load the latest readable checkpoint, including the random state; return None if there are no checkpoints.

        Later checkpoints that cannot be read get names that begin with "damaged-". Incomplete files of a killed process
        are removed. If the checkpoint has no moving average, `average` starts from the checkpoint's weights. If the
        checkpoint was written with a different optimiser, the optimiser's state starts from zero, with a warning in the
        log.

        Raises:
            CheckpointError: there are checkpoints, but none of them can be read.
            CheckpointVersionError: a newer version of glassformer wrote the latest checkpoint.
        """
        self._clear()
        problems: dict[Path, CheckpointError] = {}
        for path in reversed(self.paths()):
            try:
                state = restore_from(path, model, optimiser, average)
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
            raise CheckpointError(
                f"no checkpoint in {self.folder} can be read; restore this folder from a copy, or delete it to train "
                f"from the start. The latest: {latest}"
            )
        return None

    def _collect(self) -> None:
        """Wait until the current checkpoint is on the disk, and add it to the finished checkpoints."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            self._finished.append(writing.result())

    def _write(
        self, name: str, tensors: Mapping[str, dict[str, Tensor]], facts: Mapping[str, str], state: dict[str, Any]
    ) -> Path:
        path, temporary = self.folder / name, self.folder / f".{name}.tmp"
        try:
            remove(temporary)
            temporary.mkdir(parents=True)
            for file, held in tensors.items():
                write_tensors(held, temporary / file, None if file == _OPTIMISER else facts)
            (temporary / _STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")
            sync(temporary / _STATE)
            sync(temporary)
            self.before_naming()
            self._put(temporary, path)
            sync(self.folder)
            sync(self.folder.parent)
        except OSError as error:
            remove(temporary)
            raise unwritable(path, error, "the earlier checkpoints are kept") from error
        self._drop_old(state["best_step"])
        return path

    def _put(self, temporary: Path, path: Path) -> None:
        """Give a complete checkpoint its final name; until then, keep an old checkpoint of the same step."""
        if path.exists():
            again = path.with_name(f"{path.name}-again")  # sorts after the old checkpoint, so `restore` prefers it
            temporary.rename(again)
            self._drop(path)
            temporary = again
        temporary.rename(path)

    def _clear(self) -> None:
        """Delete or complete the files that a killed process has left behind."""
        clear_temporaries(self.folder)
        for again in self.folder.glob("step-*-again"):
            with suppress(OSError):  # if renaming fails, the checkpoint can still be read under its temporary name
                self._put(again, again.with_name(again.name.removesuffix("-again")))

    def _drop_old(self, best_step: int) -> None:
        *earlier, latest = self.paths()
        lasting = [*(path for path in earlier if not _is_passing(path)), latest]
        best = [path for path in lasting if step_of(path) <= best_step]
        for path in {*earlier} - {*lasting[-self.keep :], *best[-1:]}:
            with suppress(OSError):  # a surplus checkpoint does no harm; the next call deletes it
                self._drop(path)

    def _drop(self, path: Path) -> None:
        """Rename a checkpoint before deleting its files, so that no named checkpoint is ever incomplete."""
        temporary = path.with_name(f".{path.name}.old.tmp")
        remove(temporary)
        path.rename(temporary)
        remove(temporary)


def step_of(path: Path) -> int:
    """Return the step at which a checkpoint was written."""
    return int(path.name[len("step-") :][:8])


def use_weights(checkpoint: Path, place: Path) -> None:
    """Write a checkpoint's weights, or their moving average if there is one, to the file `place`.

    Raises:
        CheckpointError: the file could not be written; an existing file is unchanged.
    """
    source = next(path for path in (checkpoint / _AVERAGE, checkpoint / WEIGHTS) if path.exists())

    def write(temporary: Path) -> None:
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)  # weight files are never changed in place, so two names may refer to one file
        except OSError:
            shutil.copyfile(source, temporary)

    write_safely(place, write)


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """Return the mean of each weight over several checkpoints. Paper: §6.1 (the last 5 for base, 20 for big).

    Raises:
        CheckpointError: the list is empty, or a checkpoint cannot be read or belongs to a different model.
    """
    if not paths:
        raise CheckpointError("no checkpoints to average; train with training.checkpoint_every first")
    mean = {name: weight.double() for name, weight in read_weights(paths[0] / WEIGHTS).items()}
    for count, path in enumerate(paths[1:], start=2):
        weights = read_weights(path / WEIGHTS)
        if _shapes(weights) != _shapes(mean):
            raise CheckpointError(f"{path} and {paths[0]} belong to different models; average checkpoints of one run")
        for name, weight in weights.items():
            mean[name] += (weight.double() - mean[name]) / count
    return {name: weight.float() for name, weight in mean.items()}


def restore_from(path: Path, model: nn.Module, optimiser: Optimizer, average: MovingAverage | None) -> TrainingState:
    """Load a checkpoint, including the random state, without changing anything on the disk.

    Raises:
        CheckpointError: a file cannot be read, or belongs to a different model.
        CheckpointVersionError: a newer version of glassformer wrote the checkpoint.
    """
    state = _read_state(path / _STATE)
    moments = read_weights(path / _OPTIMISER)
    random_states = {name: moments.pop(name) for name in list(moments) if name.startswith(_RANDOM)}
    if _RANDOM not in random_states:
        raise CheckpointError(f"{path / _OPTIMISER} is damaged: the random state is missing")
    places = {name: place for place, name in enumerate(_names(model, optimiser))}
    entries: dict[int, dict[str, Tensor]] = {}
    for name, moment in moments.items():
        parameter, _, key = name.rpartition(".")
        if parameter not in places:
            raise CheckpointError(
                f"{path / _OPTIMISER} has a {shortened(key)} of {quoted(parameter)}, a parameter that this "
                "training run does not train: the checkpoint belongs to a different configuration"
            )
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
            "%s was written with a different training.optimiser: the optimiser's state of %d of %d weights starts "
            "from zero",
            path,
            len(entries) - len(kept),
            len(entries),
        )
    optimiser.load_state_dict({"state": kept, "param_groups": optimiser.state_dict()["param_groups"]})
    try:
        _set_random_states(random_states)
    except (RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path / _OPTIMISER} is damaged: the random state is invalid") from error
    return state


def _check_moments(model: nn.Module, moments: Mapping[str, Tensor], path: Path) -> None:
    """Raise an error unless each moment is a float tensor that is a scalar (a step count) or has its weight's shape."""
    shapes = {name: weight.shape for name, weight in model.named_parameters()}
    for name, moment in moments.items():
        if moment.shape not in ((), shapes[name.rpartition(".")[0]]) or not moment.is_floating_point():
            raise CheckpointError(f"{path} is damaged: {name} has a wrong shape or type")


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


def _random_states() -> dict[str, Tensor]:
    """Return the states of all random generators that training uses."""
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
    """Return the optimiser's state of each weight, by the names of the weight and of the state."""
    names = _names(model, optimiser)
    entries: dict[int, dict[str, Tensor]] = optimiser.state_dict()["state"]
    return {f"{names[place]}.{key}": moment for place, entry in entries.items() for key, moment in entry.items()}


def _names(model: nn.Module, optimiser: Optimizer) -> list[str]:
    """Return the names of the weights that the optimiser changes, in the optimiser's order."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[parameter] for group in optimiser.param_groups for parameter in group["params"]]


def _read_state(path: Path) -> TrainingState:
    try:
        values = _read_object(path)
        if values["format_version"] > CHECKPOINT_VERSION:
            raise CheckpointVersionError(
                f"{path}: expected at most format version {CHECKPOINT_VERSION}, got {values['format_version']}; "
                "upgrade glassformer"
            )
        values["watch"] = _checked(LossWatch(**values["watch"]))
        return _checked(TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)}))
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is missing or damaged: {shortened(str(error))}") from error


def _is_passing(path: Path) -> bool:
    try:
        return bool(_read_object(path / _STATE).get("passing"))
    except (OSError, ValueError):  # ValueError includes CheckpointError
        return False


def _read_object(path: Path) -> dict[str, Any]:
    values = parse_json(read_bytes(path))
    if not isinstance(values, dict):
        raise ValueError("expected a JSON object")
    return values


def _checked(state: T) -> T:
    """Return `state` unchanged if all fields have their declared types and no count is negative.

    Raises:
        ValueError: a field does not have its declared type, or a count is negative.
    """
    for one in fields(state):
        value = getattr(state, one.name)
        fits = isinstance(value, _TYPES.get(one.type, one.type)) and not isinstance(value, bool)
        if not fits or (isinstance(value, int) and value < 0):
            raise ValueError(f"{one.name}: expected {one.type}, got {quoted(value)}")
    return state


def _set_aside(paths: Iterable[Path]) -> None:
    for path in paths:
        aside = path.with_name(f"damaged-{path.name}")
        remove(aside)
        try:
            path.rename(aside)
        except OSError as error:
            raise CheckpointError(
                f"{path} is damaged and cannot be renamed: {error.strerror or error}; remove this folder"
            ) from error


def _shapes(weights: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}
