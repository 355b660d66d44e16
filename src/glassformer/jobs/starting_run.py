"""Fine-tuning: the run whose weights, tokenizers and model configuration another run starts from.

    start.safetensors    in the new run: the initial weights, so that the starting run may be deleted

The tokenizers and the model's configuration are also stored in the new run, as in every run.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.bundle import CONFIG, WEIGHTS, Bundle, check_weights
from glassformer.errors import CheckpointError, ConfigError, quoted
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import model_section
from glassformer.system.files import hash_of_file, sync, write_safely
from glassformer.text.tokenizer import Tokenizer, TokenizerConfig

__all__ = ["START", "StartingRun", "check_start", "keep_start"]

START = "start.safetensors"

_FREE = ("dropout", "attention_dropout", "activation_dropout")
"""Fields of [model] that fine-tuning may change, because no weight depends on them."""


@dataclass(frozen=True, slots=True)
class StartingRun:
    """The run that a training run starts from."""

    bundle: Bundle
    """The bundle of the starting run, or the new run's own bundle once the new run has copies of all files."""

    @classmethod
    def of(cls, configuration: Configuration) -> "StartingRun | None":
        """Return the starting run of a configuration, or None if training starts from random weights.

        Raises:
            ConfigError: the folder is not a run with weights, or another setting contradicts `training.start_from`.
            CheckpointError: the new run's own files are damaged.
        """
        start, run = configuration.training.start_from, Path(configuration.run.directory)
        if not start:
            if configuration.data.replay_source:
                raise ConfigError(
                    f"data.replay_source: expected no value without training.start_from, got "
                    f"{quoted(configuration.data.replay_source)}; set training.start_from to the run to fine-tune"
                )
            return None
        if configuration.run.directory and Path(start).resolve() == run.resolve():
            raise ConfigError(
                f"training.start_from: expected another run, got {quoted(start)}, the folder of this run; choose "
                "another run.directory"
            )
        if configuration.embeddings.source or configuration.embeddings.target:
            raise ConfigError(
                "embeddings.source: expected no vectors with training.start_from, because the starting run has its own "
                "embeddings; leave the vectors out"
            )
        if configuration.run.directory and (run / CONFIG).exists() and (run / START).exists():
            return cls(Bundle.load(run))
        try:
            bundle = Bundle.load(start)
            check_weights(bundle.folder / WEIGHTS, bundle.model_config)
        except CheckpointError as error:
            raise ConfigError(f"training.start_from: {error}") from error
        return cls(bundle)

    def adapted(self, configuration: Configuration) -> Configuration:
        """Return a configuration with the tokenizer and the model of this run.

        Raises:
            ConfigError: a setting of [tokenizer] or [model], or the order of targets, contradicts this run.
        """
        if configuration.data.reverse_target != (own := self.bundle.configuration.data.reverse_target):
            raise ConfigError(
                f"data.reverse_target: expected {str(own).lower()} as in training.start_from, got "
                f"{str(not own).lower()}; a model can only write in the order that it learned"
            )
        model = model_section(self.bundle.model_config)
        _check_model_settings(configuration.model, self.bundle.model_config)
        free = {name: value for name, value in configuration.model.items() if name in _FREE}
        if configuration.data.max_length > self.bundle.model_config.longest:
            raise ConfigError(
                f"data.max_length: expected at most {model['max_length']}, the number of positions that "
                f"{configuration.training.start_from} has learned, got {configuration.data.max_length}; lower "
                "data.max_length"
            )
        tokenizer = _tokenizer(configuration.tokenizer, self.bundle.configuration.tokenizer)
        return replace(configuration, tokenizer=tokenizer, model={**model, **free})

    def check_tokenizers(self, source: Tokenizer, target: Tokenizer, folder: Path) -> None:
        """Raise an error if the vocabularies of a prepared corpus differ from the vocabularies of this run."""
        own = (self.bundle.source_tokenizer, self.bundle.target_tokenizer)
        for name, here, there in zip(("source", "target"), own, (source, target), strict=True):
            if here.tokens(range(len(here))) != there.tokens(range(len(there))):
                raise ConfigError(
                    f"{folder} holds a prepared corpus whose {name} vocabulary differs from the vocabulary of "
                    f"{self.bundle.folder}: choose another folder (run.directory or data.prepared), or delete {folder}"
                )


def keep_start(run: Bundle) -> None:
    """Copy the starting run's weights into a new run.

    Raises:
        CheckpointError: the weights cannot be read or written.
    """
    path, origin = run.folder / START, Path(run.configuration.training.start_from) / WEIGHTS
    if (run.folder / CONFIG).exists() and path.exists():
        return

    def copy(temporary: Path) -> None:
        shutil.copyfile(origin, temporary)
        sync(temporary)

    write_safely(path, copy)


def check_start(run: Bundle) -> None:
    """Raise an error if the starting run's weights have changed since the run began. A deleted starting run is fine.

    Raises:
        ConfigError: the starting run's weights differ from the run's copy.
    """
    origin = Path(run.configuration.training.start_from) / WEIGHTS
    copied = run.folder / START
    both = run.configuration.training.start_from and origin.exists() and copied.exists()
    if both and hash_of_file(origin) != hash_of_file(copied):
        raise ConfigError(
            f"{run.folder} holds a run that started from different weights than {origin}: choose another "
            f"run.directory, or delete {run.folder}"
        )


def _tokenizer(given: TokenizerConfig, own: TokenizerConfig) -> TokenizerConfig:
    """Return the starting run's [tokenizer] section, with the new run's `sampling`, which only training reads."""
    adapted = replace(own, sampling=given.sampling)
    if given == TokenizerConfig(kind="auto", vocab_size=0, sampling=given.sampling):
        return adapted
    for name, value in asdict(adapted).items():
        if (got := getattr(given, name)) != value:
            raise ConfigError(
                f"tokenizer.{name}: expected {quoted(value)} as in training.start_from, got {quoted(got)}; leave "
                '[tokenizer] out, or, to change only `sampling`, set kind = "auto" and vocab_size = 0'
            )
    return adapted


def _check_model_settings(given: Mapping[str, Any], own: ModelConfig) -> None:
    values = own.to_dict()
    for name, value in given.items():
        if name == "preset" and value != "auto":
            raise ConfigError(
                f"model.preset: expected no value with training.start_from, got {quoted(value)}; leave it out, because "
                "the starting run decides the model"
            )
        if name != "preset" and name not in _FREE and value != values.get(name):
            raise ConfigError(
                f"model.{name}: expected {quoted(values.get(name))} as in training.start_from, got {quoted(value)}; "
                "leave it out, because the starting run decides the model"
            )
