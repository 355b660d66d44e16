"""Read the tensors that `torch.save` or safetensors wrote, from one file or the parts of a model, without running code.

A file is a dictionary that may hold further dictionaries: a checkpoint holds a state dict beside the state of an
optimiser, a moving average or settings. All of them are returned, each under its place.
"""

import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from glassformer.bundle import read_weights
from glassformer.errors import CheckpointError, quoted, shortened
from glassformer.system.files import check_regular, read_any_json

__all__ = ["StateDict", "StateDicts", "check_weights_file", "read_state_dicts"]

StateDict = Mapping[str, Tensor]
StateDicts = Mapping[str, StateDict]
"""State dicts by their places in a file, such as "model.ema"; the outermost one is ""."""

_INDEX = ".index.json"
"""The end of the name of a file that names the parts of a model."""
_PART = re.compile(r"(.+)-(\d{1,9})-of-(\d{1,9})(\.\w+)", re.ASCII)
_CLASS = re.compile(r"\bGLOBAL ([\w.]{1,100}) ")
"""Where PyTorch's message names the class of a refused object."""
_SETTINGS = (
    "argparse.Namespace",
    *("numpy.dtype", "numpy.ndarray"),
    *(f"numpy.{core}.multiarray.{made}" for core in ("core", "_core") for made in ("scalar", "_reconstruct")),
)
"""The objects other than tensors that programs save together with a model: options, and NumPy numbers."""
_DEEPEST = 8
"""Maximum depth of nested dictionaries that are searched."""


class _Ignored:
    """Stands for an object that is not needed: neither its class nor anything else of its module is used."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass


def check_weights_file(path: Path) -> None:
    """Raise an error for everything but a file.

    Raises:
        CheckpointError: the path does not exist, or is a folder, a pipe, a device or a socket.
    """
    if path.is_dir():
        raise CheckpointError(
            f"{path}: expected a file of weights, or a folder with the config.json of transformers or the model.bin of "
            "CTranslate2, got a different folder; correct the path"
        )
    check_regular(path)
    if not path.exists():
        raise CheckpointError(f"{path} does not exist; correct the path")


def read_state_dicts(path: Path) -> StateDicts:
    """Return all tensors of a file by place and name.

    For a model in parts, `path` is its index or any part; all parts are read.

    Raises:
        CheckpointError: a file is missing or damaged, or holds objects other than tensors and plain values; options of
            argparse and values of NumPy are left out.
    """
    check_weights_file(path)
    found: dict[str, dict[str, Tensor]] = {}
    for part in _parts(path):
        check_weights_file(part)
        content: Mapping[Any, Any] = _safetensors(part) if part.suffix == ".safetensors" else _torch_file(part)
        for place, tensors in _state_dicts(content):
            found.setdefault(place, {}).update(tensors)
    if not found:
        raise CheckpointError(f"{path}: expected a state dict, got {quoted(sorted(map(str, content)))}; save one")
    return found


def _parts(path: Path) -> list[Path]:
    """Return the files that hold the model of a file."""
    if path.name.endswith(_INDEX):
        index = read_any_json(path)
        parts = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts.values()):
            raise CheckpointError(f"{path}: expected the file of each weight under 'weight_map'; copy the file again")
        names = sorted({*parts.values()})
        for name in names:
            if Path(name).name != name:
                raise CheckpointError(f"{path}: expected names of files in this folder, got {quoted(name)}")
        return [path.with_name(name) for name in names]
    if (found := _PART.fullmatch(path.name)) is None:
        return [path]
    before, number, count, end = found.groups()
    parts_found = []
    for part in range(1, int(count) + 1):
        parts_found.append(path.with_name(f"{before}-{part:0{len(number)}}-of-{count}{end}"))
        if not parts_found[-1].exists():
            raise CheckpointError(
                f"{parts_found[-1]} does not exist: the model is in {int(count)} parts; copy all of them"
            )
    return parts_found


def _safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file, with a shared one under all its names, as `safetensors.torch.save_model` notes."""
    tensors = read_weights(path)
    try:
        with safe_open(path, "pt") as file:
            notes = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {shortened(str(error))}; copy the file again") from error
    return {name: tensors[kept] for name, kept in notes.items() if kept in tensors} | tensors


def _torch_file(path: Path) -> dict[Any, Any]:
    try:
        with torch.serialization.safe_globals([(_Ignored, name) for name in _SETTINGS]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        kind = f" ({found[1]})" if (found := _CLASS.search(str(error))) else ""
        raise CheckpointError(
            f"{path} holds more than tensors{kind}, which could run code, and is not read; save its state dict: "
            "torch.save(model.state_dict(), FILE)"
        ) from error
    except Exception as error:  # for a damaged file, torch.load raises many types, some of them by bugs of its own
        raise CheckpointError(f"{path} is not a file of torch.save: {shortened(str(error))}; save it again") from error
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: expected a state dict, got {type(content).__name__}; save model.state_dict()")
    return dict(content)


def _state_dicts(values: Mapping[Any, Any], place: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Yield the tensors of each dictionary that has some, with its place."""
    tensors = {str(name): value for name, value in values.items() if isinstance(value, Tensor)}
    if tensors:
        yield place, tensors
    if depth < _DEEPEST:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from _state_dicts(value, f"{place}.{name}" if place else str(name), depth + 1)
