"""What all exports share: options, the run's weights, and an export that appears only when it is complete."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.bundle import WEIGHTS, Bundle, check_weights
from glassformer.decoding.options import Quantization
from glassformer.errors import CheckpointError, ConfigError, either, nearest, quoted, shortened
from glassformer.system.files import parse_json, read_bytes, remove, unwritable
from glassformer.text.tokenizer import Tokenizer

__all__ = [
    "EXPORTER",
    "ExportOptions",
    "check_order",
    "check_quantization",
    "check_trained",
    "have_one_vocabulary",
    "is_written_by_us",
    "languages_of",
    "normalising",
    "replaced_file",
    "replaced_folder",
    "sentencepiece_model",
    "weights_of",
]

EXPORTER = "glassformer"
"""A field that we add to the config.json for another program; it marks a folder that a new export may replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export; each format lists the options that it ignores (`glassformer.interop.formats`)."""

    quantization: Quantization = "float32"
    """Number format of the weight matrices."""
    probes: Sequence[str] | None = None
    """Texts to verify the export with; None means random tokens."""
    verified: bool = True
    """Whether to verify the export; an export that is not verified may be wrong."""
    python: str = ""
    """The Python interpreter that runs the other program to verify the export; by default, glassformer's own."""
    licence: str = ""
    """Licence of the model, for its model card."""
    page: str = ""
    """The folder node_modules with the packages for a web page that translates; "" for no page."""
    scores: Sequence[dict[str, Any]] = ()
    """Scores for the model card, as `glassformer evaluate --json` prints them."""
    validation: str = ""
    """The loss and the score of the exported weights on the validation texts, for the model card."""


def check_trained(bundle: Bundle) -> None:
    """Refuse a run whose weights are missing or damaged.

    Raises:
        CheckpointError: the weights are missing or damaged.
    """
    if not (bundle.folder / WEIGHTS).exists():
        raise CheckpointError(f"{bundle.folder / WEIGHTS} does not exist; export a run that has been trained")
    check_weights(bundle.folder / WEIGHTS, bundle.model_config)


def check_quantization(quantization: str, known: Sequence[str], program: str) -> None:
    """Refuse a number format that a program's files cannot have.

    Raises:
        ConfigError: the number format is not among the known ones.
    """
    if quantization not in known:
        raise ConfigError(
            f"quantization: expected {either(known)} for {program}, got {quoted(quantization)}"
            f"{nearest(quantization, known)}"
        )


def check_order(bundle: Bundle) -> None:
    """Refuse a run that writes from right to left, because other programs would print its outputs backwards.

    Raises:
        ConfigError: the run writes from right to left.
    """
    if bundle.configuration.data.reverse_target:
        raise ConfigError(
            "data.reverse_target: expected false, got true; other programs would print the outputs backwards: export a "
            "run that writes from left to right"
        )


def weights_of(bundle: Bundle) -> dict[str, Any]:
    """Return the weights of a run by name, as writable NumPy arrays in float32.

    Raises:
        CheckpointError: the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = bundle.folder / WEIGHTS
    try:
        return {name: weight.astype("float32") for name, weight in load_file(path).items()}
    except (SafetensorError, OSError, TypeError, MemoryError) as error:
        raise CheckpointError(
            f"{path} is damaged or cut short: {shortened(str(error))}; copy the file again"
        ) from error


def languages_of(bundle: Bundle) -> tuple[str, str]:
    """Return the languages of a run's source and target, as BCP 47 tags.

    Raises:
        ConfigError: the run does not name a language.
    """
    data = bundle.configuration.data
    languages = {"source_language": data.source_language, "target_language": data.target_language}
    for name, language in languages.items():
        if not language:
            raise ConfigError(
                f"data.{name}: expected the language as a tag, got none; set it, for example --set data.{name}=en"
            )
    return data.languages


def sentencepiece_model(tokenizer: Tokenizer, side: str, able: str) -> bytes:
    """Return the sentencepiece model of a tokenizer.

    The error text names the tokenizer by `side` ("source" or "target"), and names a format that needs no sentencepiece
    model (`able`).

    Raises:
        ConfigError: the tokenizer has no such model.
    """
    model = getattr(tokenizer, "model", None)
    if not isinstance(model, bytes):
        raise ConfigError(
            f"the {side}'s tokenizer: expected subwords, got {tokenizer.kind}; export --to {able}, or train with "
            'tokenizer.kind = "unigram"'
        )
    return model


def normalising(tokenizer: Tokenizer, program: str) -> str:
    """Return a sentence about what to do with texts before a program cuts them with a tokenizer's sentencepiece model.

    The sentence has no full stop. It is "" if the model has a normalisation of its own.
    """
    match tokenizer.normalisation:
        case "plain":
            steps = (
                "compose its letters (Unicode NFC), remove invisible characters such as soft hyphens and marks of the "
                "writing direction, and replace every run of white space by one space"
            )
        case "spaces":
            steps = "replace every run of white space by one space"
        case None:
            return ""
    return f"before you give a text to {program}, {steps}: glassformer does this itself, {program} does not"


def have_one_vocabulary(bundle: Bundle) -> bool:
    """Return whether source and target tokenizers have the same tokens and ids, even if they cut texts differently."""
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    return source is target or source.tokens(range(len(source))) == target.tokens(range(len(target)))


@contextmanager
def replaced_folder(folder: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the path of a temporary folder to write; it is renamed to `folder` if the context ends without an error.

    Raises:
        CheckpointError: the folder cannot be written.
        ConfigError: the folder exists, is not empty, and is not an earlier export (`is_ours`).
    """
    if folder.is_file():
        raise ConfigError(f"{folder} is a file; give a folder, which need not exist yet")
    with _replaced(folder, lambda: is_ours(folder) or not any(folder.iterdir())) as temporary:
        yield temporary


@contextmanager
def replaced_file(file: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the path of a temporary file to write; it is renamed to `file` if the context ends without an error.

    Raises:
        CheckpointError: the file cannot be written.
        ConfigError: the file exists and is not an earlier export (`is_ours`).
    """
    if file.is_dir():
        raise ConfigError(f"{file} is a folder; give a file, which need not exist yet")
    with _replaced(file, lambda: is_ours(file)) as temporary:
        yield temporary


@contextmanager
def _replaced(path: Path, may_be_replaced: Callable[[], bool]) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.exists() and not may_be_replaced():
            raise ConfigError(f"{path} exists and is not an export; choose another name, or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        remove(path)
        temporary.rename(path)
    except (OSError, shutil.Error) as error:
        raise unwritable(path, error) from error
    finally:
        remove(temporary)


def is_written_by_us(folder: Path) -> bool:
    """Return whether the `config.json` in a folder says that glassformer wrote the folder."""
    try:
        values = parse_json(read_bytes(folder / "config.json"))
    except (OSError, ValueError, CheckpointError):
        return False
    return isinstance(values, dict) and EXPORTER in values
