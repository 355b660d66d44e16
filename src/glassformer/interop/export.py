"""A run in another program's format: a folder that CTranslate2 opens, and `Translator.load` too, without PyTorch.

config.toml, tokenizer/    as in a run
model.bin, config.json, *_vocabulary.json    CTranslate2's own
export.json                which weights these are, how they are held, and how many positions there are
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.decoding.engine import Quantization
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.ctranslate2_model import positions_of, specification
from glassformer.interop.verification import Verification, verify
from glassformer.text.storage import hash_of_file, read_json, remove, write_json

__all__ = ["EXPORT", "Export", "converted", "export_ctranslate2", "is_export", "read_export"]

_log = logging.getLogger(__name__)

EXPORT = "export.json"
CACHE = "ctranslate2"
"""Folder of a run that holds what was converted for translating with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is said of an exported model."""

    quantization: Quantization
    positions: int
    """How many positions a source or an output may have."""
    weights: str
    """The hash of the weights that were converted."""


def is_export(folder: Path) -> bool:
    """Return whether a folder holds an exported model."""
    return (folder / EXPORT).is_file()


def read_export(folder: Path) -> Export:
    """Return what is said of the exported model in a folder.

    Raises:
        CheckpointError: it cannot be read.
    """
    match read_json(folder / EXPORT):
        case {"quantization": str(quantization), "positions": int(positions), "weights": str(weights)}:
            return Export(quantization=cast(Quantization, quantization), positions=positions, weights=weights)
    raise CheckpointError(f"{folder / EXPORT} is damaged: export the run again")


def export_ctranslate2(
    bundle: Bundle, folder: Path, quantization: Quantization = "int8", probes: Sequence[str] | None = None
) -> Verification:
    """Write a run's model for CTranslate2 into a folder, and return how closely it keeps to the run's own answers.

    The folder appears when it is whole and verified; an earlier export in it is replaced.

    Args:
        bundle: of the run.
        folder: where to.
        quantization: how the matrices are held.
        probes: texts to verify it with; random tokens unless given.

    Raises:
        CheckpointError: the weights are missing or damaged, the folder cannot be written, or the answers differ.
        ConfigError: CTranslate2 cannot express the model, or the folder is a file or holds something else.
        MissingDependencyError: CTranslate2 is not installed.
    """
    if folder.is_file():
        raise ConfigError(f"{folder} is a file: give a folder, which need not be there yet")
    if folder.exists() and not is_export(folder) and any(folder.iterdir()):
        raise ConfigError(f"{folder} holds something else than an export: choose another folder, or remove it")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write(bundle, temporary, quantization)
        verification = verify(bundle, temporary, quantization, probes)
        remove(folder)
        temporary.rename(folder)
    except OSError as error:
        raise CheckpointError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        remove(temporary)
    return verification


def converted(bundle: Bundle, quantization: Quantization) -> Path:
    """Return the folder within a run that holds its model for CTranslate2, converted and verified if it is not yet.

    What was converted from other weights than the run has now, or is damaged as far as `export.json` can tell, is
    converted again.

    Raises:
        the errors of `export_ctranslate2`.
    """
    folder = bundle.folder / CACHE / quantization
    if _weights_of(folder) != _hash(bundle):
        _log.warning("converting %s for CTranslate2 and verifying it, once: this takes a moment", bundle.folder)
        export_ctranslate2(bundle, folder, quantization)
    return folder


def _weights_of(folder: Path) -> str | None:
    """Return the hash of the weights that an exported model comes from; None where nobody can tell."""
    try:
        return read_export(folder).weights
    except CheckpointError:
        return None


def _write(bundle: Bundle, folder: Path, quantization: Quantization) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = bundle.folder / WEIGHTS
    try:
        weights = {name: weight.copy() for name, weight in load_file(path).items()}  # quantised in place
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist: export a run that has been trained") from error
    except (SafetensorError, OSError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged or cut short ({error}): copy it again") from error
    spec = specification(bundle, weights, quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))
    replace(bundle, folder=folder).save()
    positions = positions_of(bundle.model_config)
    write_json(folder / EXPORT, {"quantization": quantization, "positions": positions, "weights": _hash(bundle)})


def _hash(bundle: Bundle) -> str:
    return hash_of_file(bundle.folder / WEIGHTS)
