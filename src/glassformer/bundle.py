"""A model in a folder: configuration, tokenizers and weights, saved and loaded. Only the weights need torch.

config.toml          the complete configuration
tokenizer/           source and target tokenizer
model.safetensors    the weights: plain numbers, so that loading a model somebody sent you runs no code
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.errors import CheckpointError, ConfigError, nearest
from glassformer.model.config import ModelConfig
from glassformer.model.shapes import Shape, weight_shapes
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load, model_config, to_toml
from glassformer.system.files import check_regular, read_bytes, sync, write_safely
from glassformer.text.tokenizer import Tokenizer, load_tokenizers, save_tokenizers

if TYPE_CHECKING:
    from torch import Tensor, nn

    from glassformer.model.transformer import Transformer

__all__ = [
    "CONFIG",
    "TOKENIZER",
    "WEIGHTS",
    "Bundle",
    "check_weights",
    "load_weights",
    "put_weights",
    "read_weights",
    "save_weights",
    "write_tensors",
]

CONFIG, TOKENIZER, WEIGHTS = "config.toml", "tokenizer", "model.safetensors"

_NUMBERS = ("F64", "F32", "F16", "BF16")
"""What weights may be, by safetensors' names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a model needs to read and write text; `model()` builds the model itself."""

    folder: Path
    configuration: Configuration
    model_config: ModelConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: str | Path) -> "Bundle":
        """Return what a run directory or an exported folder holds, without its weights.

        Raises:
            CheckpointError: the folder, its configuration or its tokenizers are missing or damaged.
        """
        folder = Path(folder)
        _check_folder(folder)
        source, target = load_tokenizers(folder / TOKENIZER)
        try:
            read_bytes(folder / CONFIG)  # refuses what is not a file, or too large
            configuration = load(folder / CONFIG)
            config = model_config(configuration, len(source), len(target))
        except CheckpointError:
            raise
        except (ConfigError, OSError) as error:
            raise CheckpointError(f"{folder / CONFIG} is damaged: {error}") from error
        return cls(
            folder=folder,
            configuration=configuration,
            model_config=config,
            source_tokenizer=source,
            target_tokenizer=target,
        )

    def save(self, model: "nn.Module | None" = None) -> None:
        """Write tokenizers and configuration into the folder, and the model's weights if it is given.

        Raises:
            CheckpointError: something could not be written.
        """
        try:
            save_tokenizers(self.folder / TOKENIZER, self.source_tokenizer, self.target_tokenizer)
        except OSError as error:
            raise CheckpointError(f"cannot write {self.folder / TOKENIZER}: {error.strerror or error}") from error
        self.save_configuration()
        if model is not None:
            save_weights(model, self.folder / WEIGHTS)

    def save_configuration(self) -> None:
        """Write the configuration only: what makes a folder with tokenizers a run.

        Raises:
            CheckpointError: it could not be written.
        """
        text = to_toml(self.configuration, self.model_config)
        write_safely(self.folder / CONFIG, lambda path: path.write_text(text, encoding="utf-8"))

    def model(self) -> "Transformer":
        """Return the model with the folder's weights, ready to translate (in evaluation mode).

        Raises:
            CheckpointError: the weights are missing, damaged, or of another model.
        """
        check_weights(self.folder / WEIGHTS, self.model_config)
        model = _without_weights(self.model_config)
        load_weights(model, self.folder / WEIGHTS)
        return model.eval()


def _without_weights(config: ModelConfig) -> "Transformer":
    """Return a model whose weights may be anything: to draw them takes longer than to read a file's."""
    import torch
    from torch.overrides import TorchFunctionMode

    from glassformer.model.transformer import Transformer

    class Undrawn(TorchFunctionMode):
        def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function in (torch.Tensor.uniform_, torch.Tensor.normal_):
                return args[0]
            return function(*args, **(kwargs or {}))

    with Undrawn():  # the device "meta" would do, but imports of PyTorch what takes two seconds
        return Transformer(config)


def save_weights(model: "nn.Module", path: Path) -> None:
    """Write a model's weights as safetensors; a matrix that several parts share is written once.

    Raises:
        CheckpointError: they could not be written; what was there before still is.
    """
    weights = {name: weight.detach().contiguous() for name, weight in model.named_parameters()}
    write_safely(path, lambda temporary: write_tensors(weights, temporary))


def write_tensors(tensors: "dict[str, Tensor]", path: Path) -> None:
    """Write tensors as safetensors, all the way to the disk.

    Raises:
        OSError: they could not be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise _os_error(error) from error
    sync(path)


def check_weights(path: Path, config: ModelConfig) -> None:
    """Refuse a file whose weights are not those of this configuration, before anything of that size is built.

    Only the file's header is read.

    Raises:
        CheckpointError: the file is missing or damaged, or a weight's name, shape or type is not the model's.
    """
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        with safe_open(path, framework="np") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # a file is not a mapping
            types = {name: str(one.get_dtype()) for name, one in found.items()}
            shapes = {name: tuple(one.get_shape()) for name, one in found.items()}
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from error
    for name, kind in types.items():
        if kind not in _NUMBERS:
            raise CheckpointError(f"{path}: {name} has the type {kind}: expected {', '.join(_NUMBERS)}")
    _check_shapes(str(path), shapes, weight_shapes(config))


def read_weights(path: Path) -> "dict[str, Tensor]":
    """Return the weights in a safetensors file, by name.

    Raises:
        CheckpointError: the file is missing, cut short or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    check_regular(path)
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, KeyError) as error:  # KeyError: a type that PyTorch does not have
        raise _unreadable(path, error) from error


def load_weights(model: "nn.Module", path: Path) -> None:
    """Put the weights of a file into a model.

    Raises:
        CheckpointError: the file is missing or damaged, or its names or shapes are not this model's.
    """
    put_weights(model, read_weights(path), str(path))


def put_weights(model: "nn.Module", weights: "Mapping[str, Tensor]", origin: str) -> None:
    """Put these weights into a model; `origin` says in an error where they come from.

    Raises:
        CheckpointError: their names or shapes are not this model's.
    """
    parameters = dict(model.named_parameters())
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    _check_shapes(origin, shapes, ((name, tuple(parameter.shape)) for name, parameter in parameters.items()))
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise CheckpointError(f"{origin}: {name} has the type {weight.dtype}: expected floating-point numbers")
    for name, parameter in parameters.items():
        parameter.data.copy_(weights[name])


def _check_shapes(origin: str, found: Mapping[str, Shape], expected: Iterable[tuple[str, Shape]]) -> None:
    """Refuse weights with a missing or unknown name or a wrong shape; `expected` is read up to the first of them."""
    unknown = dict(found)
    for name, shape in expected:
        if name not in unknown:
            raise CheckpointError(f"{origin} has no weight {name!r}: it belongs to a model of another configuration")
        if (got := unknown.pop(name)) != shape:
            raise CheckpointError(f"{origin}: {name} has shape {got}, but the configuration says {shape}")
    if unknown:
        raise CheckpointError(
            f"{origin} has an unknown weight {min(unknown)[:100]!r}: it belongs to a model of another configuration"
        )


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    if isinstance(error, FileNotFoundError):
        return CheckpointError(f"{path} does not exist: train the run to its first validation, or copy the file")
    reason = str(error).partition("\n")[0][:200]
    return CheckpointError(f"{path} is damaged or cut short ({reason}): copy it again, or use a checkpoint of the run")


def _os_error(error: Exception) -> OSError:
    """Return the system's error that safetensors has put into words."""
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        raise CheckpointError(f"'{folder}' is a file: give the folder of a run, such as runs/demo")
    if not folder.is_dir():
        siblings = [str(path) for path in folder.parent.glob("*")] if folder.parent.is_dir() else []
        raise CheckpointError(f"no run in '{folder}': there is no such folder{nearest(str(folder), siblings)}")
    for name in (CONFIG, TOKENIZER):
        if not (folder / name).exists():
            raise CheckpointError(f"'{folder}' is no run: it has no {name}; `glassformer train` makes one")
