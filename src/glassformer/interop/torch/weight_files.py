"""Read the tensors in files of `torch.save` or safetensors, without running code from these files.

A model may be in one file or in several. A file holds a dictionary that may contain further dictionaries: a checkpoint
contains a state dict and, for example, the state of an optimiser, a moving average or settings. Every dictionary with
tensors is returned under its place in the file.
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
"""State dicts by their places in a file, such as "model.ema"; the place of the outermost dictionary is ""."""

_INDEX = ".index.json"
"""The end of the name of an index: a file that lists the files of a model."""
_PART = re.compile(r"(.+)-(\d{1,9})-of-(\d{1,9})(\.\w+)", re.ASCII)
_CLASS = re.compile(r"\bGLOBAL ([\w.]{1,100}) ")
"""Finds the class of a refused object in PyTorch's message."""
_SETTINGS = (
    "argparse.Namespace",
    *("numpy.dtype", "numpy.ndarray"),
    *(f"numpy.{core}.multiarray.{made}" for core in ("core", "_core") for made in ("scalar", "_reconstruct")),
)
"""Classes and functions of the objects that programs save with a model besides tensors: options and NumPy values."""
_DEEPEST = 8
"""Maximum depth of nested dictionaries that are searched."""


class _Ignored:
    """A substitute for an object that is not needed, so that no code of the object's class runs."""

    def __init__(self, *_: object) -> None:
        pass

    def __setstate__(self, _: object) -> None:
        pass


def check_weights_file(path: Path) -> None:
    """Raise an error if the path is not a regular file.

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

    If the model is in several files, `path` is their index or any of them, and all of them are read.

    Raises:
        CheckpointError: a file is missing or damaged, or holds objects other than tensors, plain values, options of
            argparse and values of NumPy; options and NumPy values are not returned.
    """
    check_weights_file(path)
    found: dict[str, dict[str, Tensor]] = {}
    for part in _parts(path):
        check_weights_file(part)
        content: Mapping[Any, Any] = _safetensors(part) if part.suffix == ".safetensors" else _torch_file(part)
        for place, tensors in _state_dicts(content):
            found.setdefault(place, {}).update(tensors)
    if not found:
        raise CheckpointError(
            f"{path}: expected a state dict, got {quoted(sorted(map(str, content)))}; save model.state_dict()"
        )
    return found


def _parts(path: Path) -> list[Path]:
    """Return all files of the model to which a file belongs."""
    if path.name.endswith(_INDEX):
        index = read_any_json(path)
        parts = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts.values()):
            raise CheckpointError(
                f"{path}: expected the file's name for each weight under 'weight_map'; copy {path.name} again"
            )
        names = sorted({*parts.values()})
        for name in names:
            if Path(name).name != name:
                raise CheckpointError(
                    f"{path}: expected names of files in this folder, got {quoted(name)}; correct the file"
                )
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
    """Return the tensors of a file, with each shared tensor under all names that the file's metadata lists."""
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
            f"{path} holds objects other than tensors{kind}, which could run code, so it is not read; save a state "
            "dict: torch.save(model.state_dict(), FILE)"
        ) from error
    except Exception as error:  # for a damaged file, torch.load raises many types of errors, some by its own bugs
        raise CheckpointError(f"{path} is not a file of torch.save: {shortened(str(error))}; save it again") from error
    if not isinstance(content, Mapping):
        raise CheckpointError(f"{path}: expected a state dict, got {type(content).__name__}; save model.state_dict()")
    return dict(content)


def _state_dicts(values: Mapping[Any, Any], place: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Yield the place and the tensors of each dictionary that has tensors."""
    tensors = {str(name): value for name, value in values.items() if isinstance(value, Tensor)}
    if tensors:
        yield place, tensors
    if depth < _DEEPEST:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from _state_dicts(value, f"{place}.{name}" if place else str(name), depth + 1)
