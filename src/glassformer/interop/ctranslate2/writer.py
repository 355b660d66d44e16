"""Export a run to a folder that both CTranslate2 and glassformer's `Translator.load` can load without PyTorch.

config.toml, tokenizer/    as in a run, and shortlist.safetensors if the setting `decoding.shortlist` is not 0
`model.bin`, `config.json`, `*_vocabulary.json`    CTranslate2's own files, and its `vmap.txt` for a shortlist
export.json                facts about the conversion, with a hash of each file

The hashes show whether an export is unchanged, and whether a conversion still matches its run's weights and model.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from glassformer.built_in import cache_folder
from glassformer.bundle import ALIGNMENT, CONFIG, SHORTLIST, TOKENIZER, WEIGHTS, Bundle
from glassformer.decoding.options import Quantization
from glassformer.errors import CheckpointError, quoted, shortened
from glassformer.evaluation.guards import Guards
from glassformer.interop.ctranslate2.model import positions_of, specification
from glassformer.model.config import ModelConfig
from glassformer.settings import with_defaults
from glassformer.system.files import read_json, remove, write_json
from glassformer.system.fingerprints import Fingerprint, changed_file, fingerprints, refreshed
from glassformer.system.locks import locked

if TYPE_CHECKING:
    from glassformer.interop.verification import Verification

__all__ = ["EXPORT", "Export", "check_export", "converted", "export_ctranslate2", "is_export", "read_export"]

_log = logging.getLogger(__name__)

EXPORT = "export.json"
VOCABULARY_MAP = "vmap.txt"
"""The name of the vocabulary map in a folder for CTranslate2."""
CACHE = "ctranslate2"
"""The folder inside a run for converted models, which are written when the run translates with CTranslate2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """The content of `export.json`."""

    quantization: Quantization
    positions: int
    """Maximum number of positions of a source or an output."""
    weights: str
    """The hash of the run's weights that were converted."""
    model: Mapping[str, Any]
    """The model's configuration when it was converted."""
    run: Mapping[str, Fingerprint]
    """Fingerprints of the run's weights, alignment and tokenizers when they were converted, by file name."""
    shortlist: int
    """The setting `decoding.shortlist` for which the export has a vocabulary map; 0 = no vocabulary map."""
    files: Mapping[str, Fingerprint]
    """Fingerprints of the export's files, except config.toml and export.json, by file name."""


def is_export(folder: Path) -> bool:
    """Return whether a folder holds an exported model."""
    return (folder / EXPORT).exists()


def read_export(folder: Path) -> Export:
    """Return the content of a folder's `export.json`.

    Raises:
        CheckpointError: the file cannot be read.
    """
    values = read_json(folder / EXPORT)
    try:
        match values:
            case {"quantization": str(quantization), "positions": int(positions), "weights": str(weights)}:
                return Export(
                    quantization=_known_quantization(folder / EXPORT, quantization),
                    positions=positions,
                    weights=weights,
                    model=with_defaults(values["model"], ModelConfig),
                    shortlist=int(values["shortlist"]),
                    run=_parsed_fingerprints(values["run"]),
                    files=_parsed_fingerprints(values["files"]),
                )
            case _:
                pass
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{folder / EXPORT} is damaged ({shortened(str(error))}); export the run again"
        ) from error
    raise CheckpointError(f"{folder / EXPORT} is damaged; export the run again")


def _known_quantization(path: Path, name: str) -> Quantization:
    """Return the number format of this name.

    Raises:
        CheckpointError: the format is unknown.
    """
    if name not in get_args(Quantization):
        known = ", ".join(get_args(Quantization))
        raise CheckpointError(
            f"{path}: quantization: expected one of {known}, got {quoted(name)}; export the run again"
        )
    return cast(Quantization, name)


def check_export(bundle: Bundle) -> None:
    """Refuse an export whose files or configuration have changed since the export.

    A file is hashed again only if its size or its time has changed, for example after it was copied.

    Raises:
        CheckpointError: a file is missing or has changed, or the configuration describes a different model.
    """
    export = read_export(bundle.folder)
    if problem := _other_model(export, bundle.model_config) or _touched(bundle.folder, export, None):
        raise CheckpointError(f"{bundle.folder} is not what was exported: {problem}; export the run again")


def export_ctranslate2(
    bundle: Bundle, folder: Path, quantization: Quantization = "int8", probes: Sequence[str] | None = None
) -> "Verification":
    """Write a run's model for CTranslate2 into a folder; return how closely the export reproduces the run.

    The folder appears, or replaces an earlier export, only when the export is complete and verified.

    Args:
        bundle: the run.
        folder: the folder to write.
        quantization: number format of the weight matrices.
        probes: texts to verify the export with; None means random tokens.

    Raises:
        CheckpointError: the weights are missing or damaged, the folder cannot be written, or the export gives different
            log probabilities.
        ConfigError: CTranslate2 cannot express the model, or the folder exists and is not an export.
        MissingDependencyError: CTranslate2 is not installed.
    """
    from glassformer.interop.exporting import check_trained, replaced_folder
    from glassformer.interop.verification import verify_ctranslate2

    check_trained(bundle)
    with replaced_folder(folder, is_export) as temporary:
        _write(bundle, temporary, quantization)
        return verify_ctranslate2(bundle, temporary, quantization, probes)


def converted(bundle: Bundle, quantization: Quantization) -> Path:
    """Return the folder with a run's model for CTranslate2; convert and verify the model first if necessary.

    If several processes need the model at the same time, the first converts it and the others wait.

    The model is converted again if the weights, the alignment, the tokenizers, the model's configuration or a converted
    file have changed since `export.json` was written.

    Raises:
        the errors of `export_ctranslate2`.
    """
    count = bundle.configuration.decoding.shortlist
    folder = cache_folder(bundle.folder) / CACHE / (f"{quantization}-shortlist-{count}" if count else quantization)
    if not _why_convert(bundle, folder):
        return folder
    with locked(folder.parent, on_wait=lambda: _log.info("waiting for the process that converts %s", bundle.folder)):
        if reason := _why_convert(bundle, folder):  # another process may have converted it in the meantime
            _log.warning(
                "converting %s for CTranslate2 and verifying the result (%s); later calls reuse it",
                bundle.folder,
                reason,
            )
            export_ctranslate2(bundle, folder, quantization)
    return folder


def _why_convert(bundle: Bundle, folder: Path) -> str:
    """Return why a run must be converted, or "" if its conversion can be used."""
    if not is_export(folder):
        return "not converted yet"
    try:
        export = read_export(folder)
        return _other_model(export, bundle.model_config) or _touched(folder, export, bundle.folder)
    except CheckpointError as error:
        return str(error)


def _other_model(export: Export, config: ModelConfig) -> str:
    """Return the first difference between a configuration and the exported model's, or "" if they are equal."""
    for name, value in config.to_dict().items():
        if export.model[name] != value:
            return f"model.{name} is {value!r}, but was {export.model[name]!r}"
    return ""


def _touched(folder: Path, export: Export, run: Path | None) -> str:
    """Return which file of an export, or of its run, has changed since the export; "" if no file has changed.

    Raises:
        CheckpointError: a file is not a regular file.
    """
    try:
        files = refreshed(folder, export.files)
        of_run = refreshed(run, export.run) if run else export.run
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if changed := changed_file(export.files, files) or changed_file(export.run, of_run):
        return f"{changed} has changed"
    if run and (more := {*_alignment_files(run)} - export.run.keys()):
        return f"{min(more)} was added"
    if more := {path.name for path in folder.glob("*vocabulary*")} - files.keys():
        return f"{min(more)} was added"
    now = replace(export, files=files, run=of_run)
    if now != export:  # only times are new; record them, so that the files are not hashed again
        with suppress(OSError):
            _write_export(now, folder)
    return ""


def _write(bundle: Bundle, folder: Path, quantization: Quantization) -> None:
    from glassformer.interop.exporting import weights_of

    count = bundle.configuration.decoding.shortlist
    shortlist = bundle.shortlist() if count else None
    made_of = [WEIGHTS, *_alignment_files(bundle.folder), *_tokenizer_files(bundle.folder)]
    run = fingerprints(bundle.folder, [*made_of, *([SHORTLIST] if shortlist else [])])
    spec = specification(bundle, weights_of(bundle), quantization)
    folder.mkdir(parents=True)
    spec.save(str(folder))
    replace(bundle, folder=folder).save()
    if shortlist:
        tokens = (one.tokens(range(len(one))) for one in (bundle.source_tokenizer, bundle.target_tokenizer))
        lines = [f"{line}\n" for line in shortlist.lines(count, *tokens)]
        (folder / VOCABULARY_MAP).write_text("".join(lines), encoding="utf-8", newline="\n")
        shortlist.save(folder / SHORTLIST)
    own = [path.name for path in sorted(folder.iterdir()) if path.is_file() and path.name != CONFIG]
    if guards := Guards.load(bundle.folder):  # not in `own`, because guards may be calibrated again after an export
        guards.save(folder)
    export = Export(
        quantization=quantization,
        positions=positions_of(bundle.model_config),
        weights=run[WEIGHTS].hash,
        model=bundle.model_config.to_dict(),
        run=run,
        shortlist=count,
        files=fingerprints(folder, [*own, *_tokenizer_files(folder)]),
    )
    _write_export(export, folder)


def _alignment_files(folder: Path) -> list[str]:
    return [ALIGNMENT] if (folder / ALIGNMENT).exists() else []


def _tokenizer_files(folder: Path) -> list[str]:
    return sorted(f"{TOKENIZER}/{path.name}" for path in (folder / TOKENIZER).glob("*") if path.is_file())


def _write_export(export: Export, folder: Path) -> None:
    """Write export.json completely or not at all, because another process may be reading it."""
    temporary = folder / f".{EXPORT}.{os.getpid()}.tmp"
    try:
        write_json(temporary, asdict(export))
        temporary.replace(folder / EXPORT)
    finally:
        remove(temporary)


def _parsed_fingerprints(values: Mapping[str, Any]) -> dict[str, Fingerprint]:
    return {name: Fingerprint(**value) for name, value in values.items()}
