"""Save and load a model's folder: configuration, tokenizers and weights. Only loading the weights imports torch.

config.toml          the complete configuration
tokenizer/           source and target tokenizer
model.safetensors    the weights: plain numbers, so that loading an untrusted model runs no code
alignment.json       the attention heads that align words, if they have been compared
habits.json          how the training sources were written, if it is known
spellings.txt        the words that are usually not in lower case, one in each line, if they are known
origin.json          the name of what the model was imported from, if it was
shortlist.safetensors    the candidates of `glassformer.corpus.shortlist`, if they have been made
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from glassformer.built_in import refuse_built_in, run_folder
from glassformer.errors import CheckpointError, ConfigError, DataError, nearest, quoted, shortened
from glassformer.model.alignment import Alignment
from glassformer.model.config import ModelConfig
from glassformer.model.shapes import Shape, weight_shapes
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load_stored, to_toml
from glassformer.system.files import (
    check_regular,
    parse_json,
    read_bytes,
    read_json,
    sync,
    unwritable,
    write_json,
    write_safely,
)
from glassformer.text.habits import Habits
from glassformer.text.reversal import from_right_to_left
from glassformer.text.tokenizer import Tokenizer, load_tokenizers, save_tokenizers

if TYPE_CHECKING:
    from torch import Tensor, nn

    from glassformer.corpus.shortlist import Shortlist
    from glassformer.model.transformer import Transformer

__all__ = [
    "ALIGNMENT",
    "CONFIG",
    "HABITS",
    "ORIGIN",
    "SHORTLIST",
    "SPELLINGS",
    "TOKENIZER",
    "WEIGHTS",
    "Bundle",
    "SourceFacts",
    "check_weights",
    "facts_of_weights",
    "load_weights",
    "put_weights",
    "read_weights",
    "save_weights",
    "write_tensors",
]

CONFIG, TOKENIZER, WEIGHTS, ALIGNMENT = "config.toml", "tokenizer", "model.safetensors", "alignment.json"
HABITS, ORIGIN, SHORTLIST = "habits.json", "origin.json", "shortlist.safetensors"
SPELLINGS = "spellings.txt"

_UNBOUND = ("vocab_size", "source_vocab_size", "target_vocab_size", "max_length")
"""Fields of a model that only the shapes of its weights decide."""
_OF_TRAINING = ("dropout", "attention_dropout", "activation_dropout")
"""Fields of a model that have no effect after training."""
_FLOATS = ("F64", "F32", "F16", "BF16")
"""The number formats allowed for weights, by safetensors' names."""


class SourceFacts(NamedTuple):
    """How the sources of a training were written; None: it is not known, as for most imported models."""

    habits: Habits | None = None
    spellings: Path | None = None
    """The file of the words that are usually not in lower case."""

    @classmethod
    def load(cls, folder: Path) -> "SourceFacts":
        """Return what a run or an export knows.

        Raises:
            CheckpointError: a file is damaged.
        """
        habits, spellings = folder / HABITS, folder / SPELLINGS
        return cls(_habits(habits) if habits.exists() else None, spellings if spellings.exists() else None)

    def save(self, folder: Path) -> None:
        """Write what is known.

        Raises:
            CheckpointError: a file could not be written.
        """
        if self.habits:
            written = self.habits.to_json()
            write_safely(folder / HABITS, lambda path: write_json(path, written))
        if self.spellings and self.spellings != folder / SPELLINGS:
            forms = read_bytes(self.spellings)
            write_safely(folder / SPELLINGS, lambda path: path.write_bytes(forms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A model's folder, configuration and tokenizers; `model()` loads the weights."""

    folder: Path
    configuration: Configuration
    model_config: ModelConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    alignment: Alignment | None = None
    """The attention heads that align words; None if they have not been compared."""
    habits: Habits | None = None
    """How the sources of the training were written; None if it is not known, as for imported models."""
    spellings: Path | None = None
    """The file of the words that are usually not in lower case; None if they are not known."""
    origin: str = ""
    """The name of the file or folder that the model was imported from; "" for a model trained here."""

    @classmethod
    def load(cls, folder: str | Path) -> "Bundle":
        """Return the bundle in a run directory, an exported folder, or the package (`demo`), without its weights.

        Raises:
            CheckpointError: the folder, its configuration or its tokenizers are missing, or one of its files is
                damaged.
        """
        folder = run_folder(folder)
        alignment, origin = folder / ALIGNMENT, folder / ORIGIN
        _check_folder(folder)
        source, target = load_tokenizers(folder / TOKENIZER)
        try:
            configuration, config = load_stored(read_bytes(folder / CONFIG), len(source), len(target))
        except CheckpointError:
            raise
        except (ConfigError, OSError) as error:
            raise CheckpointError(f"{folder / CONFIG} is damaged: {error}; copy the file again") from error
        facts = SourceFacts.load(folder)
        return cls(
            folder=folder,
            configuration=configuration,
            model_config=config,
            source_tokenizer=source,
            target_tokenizer=from_right_to_left(target) if configuration.data.reverse_target else target,
            alignment=_alignment(alignment, config) if alignment.exists() else None,
            habits=facts.habits,
            spellings=facts.spellings,
            origin=_origin(origin) if origin.exists() else "",
        )

    def save(self, model: "nn.Module | None" = None) -> None:
        """Write all but the weights and the shortlist; if a model is given, also its weights.

        Raises:
            CheckpointError: a file could not be written.
        """
        try:
            save_tokenizers(self.folder / TOKENIZER, self.source_tokenizer, self.target_tokenizer)
        except OSError as error:
            raise unwritable(self.folder / TOKENIZER, error) from error
        self.save_alignment()
        self.source_facts.save(self.folder)
        if self.origin:
            content = {"imported_from": self.origin}
            write_safely(self.folder / ORIGIN, lambda path: write_json(path, content))
        self.save_configuration()
        if model is not None:
            save_weights(model, self.folder / WEIGHTS)

    @property
    def source_facts(self) -> SourceFacts:
        """How the sources of the training were written."""
        return SourceFacts(self.habits, self.spellings)

    def save_configuration(self) -> None:
        """Write only the configuration; a folder with tokenizers and a configuration is a run.

        Raises:
            CheckpointError: the file could not be written.
        """
        text = to_toml(self.configuration, self.model_config)
        write_safely(self.folder / CONFIG, lambda path: path.write_text(text, encoding="utf-8"))

    def save_alignment(self) -> None:
        """Write the heads that align words, if they have been compared.

        Raises:
            CheckpointError: the file could not be written.
        """
        if self.alignment is not None:
            content = self.alignment.to_json()
            write_safely(self.folder / ALIGNMENT, lambda path: write_json(path, content))

    def model(self) -> "Transformer":
        """Return the model with the folder's weights, ready to translate (in evaluation mode).

        Raises:
            CheckpointError: the weights are missing or damaged, or belong to a different model.
        """
        path = self.folder / WEIGHTS
        with _opened(path, "pt") as file:
            _check_header(path, file, self.model_config)  # rejects a wrong size before the model is allocated
            model = _without_weights(self.model_config)
            for name, parameter in model.named_parameters():
                parameter.data.copy_(file.get_tensor(name))
        return model.eval()

    def shortlist(self) -> "Shortlist":
        """Return the run's shortlist.

        Raises:
            CheckpointError: the shortlist is missing or damaged, or belongs to a run with different vocabularies.
            ConfigError: the run is the model in the package.
        """
        # Imported here because this module needs NumPy, which loading a run without shortlist does not need.
        from glassformer.corpus.shortlist import Shortlist

        refuse_built_in(self.folder, "decoding.shortlist")
        return Shortlist.load(self.folder / SHORTLIST, len(self.source_tokenizer), len(self.target_tokenizer))


def _alignment(path: Path, config: ModelConfig) -> Alignment:
    """Return the content of alignment.json.

    Raises:
        CheckpointError: the file is damaged, or names a layer or head that the model does not have.
    """
    try:
        return Alignment.from_json(read_json(path), config)
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}; delete the file to do without it, or copy it again") from error


def _habits(path: Path) -> Habits:
    """Return the content of habits.json.

    Raises:
        CheckpointError: the file is damaged.
    """
    try:
        return Habits.from_json(read_json(path))
    except DataError as error:
        raise CheckpointError(f"{path}: {error}; delete the file to do without it, or copy it again") from error


def _origin(path: Path) -> str:
    """Return the name in origin.json.

    Raises:
        CheckpointError: the file is damaged.
    """
    origin = read_json(path).get("imported_from")
    if not isinstance(origin, str):
        raise CheckpointError(f"{path}: expected a name in imported_from, got {quoted(origin)}; copy the file again")
    return origin


def _without_weights(config: ModelConfig) -> "Transformer":
    """Return a model with uninitialised weights; initialising them would take longer than reading them from a file."""
    import torch
    from torch.overrides import TorchFunctionMode

    from glassformer.model.transformer import Transformer

    class Undrawn(TorchFunctionMode):
        def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function in (torch.Tensor.uniform_, torch.Tensor.normal_):
                return args[0]
            return function(*args, **(kwargs or {}))

    with Undrawn():  # the device "meta" would also work, but PyTorch then imports modules for two seconds
        return Transformer(config)


def save_weights(model: "nn.Module", path: Path) -> None:
    """Write a model's weights as safetensors; a matrix shared by several parts is written once.

    Raises:
        CheckpointError: the file could not be written; an earlier file is unchanged.
    """
    weights = {name: weight.detach().contiguous() for name, weight in model.named_parameters()}
    write_safely(path, lambda temporary: write_tensors(weights, temporary, facts_of_weights(model)))


def facts_of_weights(model: "nn.Module") -> dict[str, str]:
    """Return what a file of a model's weights says about the model: the settings that decide what it computes.

    The names and shapes of the weights do not show all settings, such as the place of the norms.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, ModelConfig):
        return {}
    settings = {name: value for name, value in config.to_dict().items() if name not in (*_UNBOUND, *_OF_TRAINING)}
    return {"model": json.dumps(settings)}


def write_tensors(tensors: "dict[str, Tensor]", path: Path, facts: Mapping[str, str] | None = None) -> None:
    """Write tensors, and facts about them, as safetensors; return when the file is on the disk.

    Raises:
        OSError: the file could not be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(tensors, path, dict(facts or {}) or None)
    except SafetensorError as error:
        raise _os_error(error) from error
    path.chmod(mode)  # safetensors 0.8 makes the file readable by its owner only, regardless of the umask
    sync(path)


def check_weights(path: Path, config: ModelConfig) -> None:
    """Raise an error if a file's weights do not fit this configuration; only the file's header is read.

    Raises:
        CheckpointError: the file is missing or damaged, or a weight has another name, shape or type than in the model.
    """
    with _opened(path, "np") as file:
        _check_header(path, file, config)


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[Any]:
    """Yield an open safetensors file, from which tensors can be read one by one, for NumPy ("np") or PyTorch ("pt").

    Raises:
        CheckpointError: the file is missing, cut short or damaged.
    """
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        opened = safe_open(path, framework=framework)
    except (SafetensorError, OSError, MemoryError) as error:
        raise _unreadable(path, error) from error
    try:
        with opened as file:
            yield file
    except SafetensorError as error:
        raise _unreadable(path, error) from error


def _check_header(path: Path, file: Any, config: ModelConfig) -> None:
    """Raise an error for a weight whose name, shape or type differs from the model's, or for other settings."""
    _check_facts(path, file.metadata() or {}, config)
    weights = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # the file is not iterable
    for name, weight in weights.items():
        if (kind := str(weight.get_dtype())) not in _FLOATS:
            raise CheckpointError(
                f"{path}: expected numbers of type {', '.join(_FLOATS)} in {shortened(name)}, got {kind}; copy the "
                "file again"
            )
    shapes = {name: tuple(weight.get_shape()) for name, weight in weights.items()}
    _check_shapes(str(path), shapes, weight_shapes(config))


def _check_facts(path: Path, facts: Mapping[str, str], config: ModelConfig) -> None:
    """Raise an error if the settings of the model whose weights are in the file differ from the configuration's."""
    try:
        trained = parse_json(facts.get("model", "{}"))
    except ValueError as error:
        raise _unreadable(path, error) from error
    for name, value in config.to_dict().items():
        if isinstance(trained, dict) and trained.get(name, value) != value:
            raise CheckpointError(
                f"{path.parent / CONFIG}: model.{name}: expected {trained[name]!r}, with which the weights in "
                f"{path.name} were trained, got {value!r}; set it back, or copy both files of the run again"
            )


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
    except (SafetensorError, OSError, KeyError, MemoryError) as error:  # KeyError: a dtype that PyTorch lacks
        raise _unreadable(path, error) from error


def load_weights(model: "nn.Module", path: Path) -> None:
    """Load a file's weights into a model.

    Raises:
        CheckpointError: the file is missing or damaged, or its names or shapes differ from the model's.
    """
    put_weights(model, read_weights(path), str(path))


def put_weights(model: "nn.Module", weights: "Mapping[str, Tensor]", origin: str) -> None:
    """Copy these weights into a model; error messages begin with `origin`.

    Raises:
        CheckpointError: the weights' names or shapes differ from the model's.
    """
    parameters = dict(model.named_parameters())
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    _check_shapes(origin, shapes, ((name, tuple(parameter.shape)) for name, parameter in parameters.items()))
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise CheckpointError(f"{origin}: expected floating-point numbers in {name}, got {weight.dtype}")
    for name, parameter in parameters.items():
        parameter.data.copy_(weights[name])


def _check_shapes(origin: str, found: Mapping[str, Shape], expected: Iterable[tuple[str, Shape]]) -> None:
    """Raise an error for a missing or unknown weight, or a wrong shape; stop reading `expected` at the first error."""
    unknown = dict(found)
    for name, shape in expected:
        if name not in unknown:
            raise CheckpointError(
                f"{origin} has no weight {name!r}: the weights belong to a model with a different configuration"
            )
        if (got := unknown.pop(name)) != shape:
            raise CheckpointError(
                f"{origin}: expected shape {shape} for {name}, got {shortened(str(got))}: the weights belong to a "
                "model with a different configuration"
            )
    if unknown:
        raise CheckpointError(
            f"{origin} has an unknown weight {quoted(min(unknown))}: the weights belong to a model with a different "
            "configuration"
        )


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    if isinstance(error, FileNotFoundError):
        return CheckpointError(f"{path} does not exist; train the run to its first validation, or copy the file")
    reason = shortened(str(error).partition("\n")[0])
    return CheckpointError(f"{path} is damaged or cut short: {reason}; copy it again, or use a checkpoint of the run")


def _os_error(error: Exception) -> OSError:
    """Return the OSError whose number the text of a safetensors error contains."""
    number = re.search(r"os error (\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        raise CheckpointError(f"'{folder}' is a file; give the folder of a run, such as runs/demo")
    if not folder.is_dir():
        siblings = [path.name for path in folder.parent.glob("*")] if folder.parent.is_dir() else []
        raise CheckpointError(
            f"'{folder}' does not exist{nearest(folder.name, siblings)}; give the folder of a run, such as runs/demo"
        )
    for name in (CONFIG, TOKENIZER):
        if not (folder / name).exists():
            raise CheckpointError(f"'{folder}' is not a run: {name} is missing; `glassformer train` makes a run")
