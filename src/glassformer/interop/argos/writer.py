"""Export a run to a package that Argos Translate and LibreTranslate can install: one file, a zip archive.

The archive has one folder with metadata.json, model/ (CTranslate2's files), sentencepiece.model, README.md and, for
those who import the package, habits.json and spellings.txt: how the training sources were written. Argos splits a text
into sentences, cuts each sentence with the sentencepiece model, and joins the outputs with the same model.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from glassformer.bundle import HABITS, SPELLINGS, Bundle
from glassformer.errors import CheckpointError, ConfigError
from glassformer.interop.ctranslate2.model import check_convertible, specification
from glassformer.interop.exporting import (
    EXPORTER,
    ExportOptions,
    check_order,
    check_trained,
    languages_of,
    normalising,
    replaced_file,
    sentencepiece_model,
    weights_of,
)
from glassformer.interop.huggingface.model_card import model_card
from glassformer.interop.verification import Verification, verify_outside
from glassformer.system.files import parse_json
from glassformer.text.languages import argos_code, language_name

__all__ = ["argos_remarks", "export_argos"]

_PACKAGES = "argos-translate-lt"
LONGEST_SOURCE = 1024
"""Number of tokens after which CTranslate2 cuts a source off by default; Argos keeps this default."""
LARGEST_METADATA = 1_000_000
"""Maximum size in bytes of a metadata.json that is read from an existing package."""


def export_argos(bundle: Bundle, file: Path, options: ExportOptions) -> Verification | None:
    """Write a run's model as a package of Argos; return how closely Argos reproduces the run.

    Raises:
        CheckpointError: the weights are missing or damaged, the file cannot be written, or Argos gives different log
            probabilities.
        ConfigError: a package cannot hold the model, the run does not name its languages, or the file exists and is
            not an export.
        MissingDependencyError: CTranslate2 or Argos is not installed.
    """
    check_trained(bundle)
    check_order(bundle)
    _check(bundle)
    with replaced_file(file, _is_written_by_us) as temporary:
        _write(bundle, temporary, options)
        return verify_outside("argos", _PACKAGES, bundle, temporary, options)


def argos_remarks(bundle: Bundle) -> Iterator[str]:
    """Yield remarks on what Argos does differently from glassformer."""
    underscores = sum("_" in token for token in bundle.target_tokenizer.tokens(range(len(bundle.target_tokenizer))))
    if underscores:
        yield f"Argos writes each underscore as a space: {underscores} tokens of the vocabulary contain an underscore"
    yield (
        "Argos ignores the run's search settings: it uses a beam of 4, CTranslate2's length penalty with α = 0.2, and "
        "up to 256 tokens per sentence"
    )
    if cutting := normalising(bundle.source_tokenizer, "Argos"):
        yield cutting
    yield (
        "when Argos first translates from a language, it downloads a model that splits texts into sentences; without a "
        "network, copy this model into Argos's data folder, under minisbd/"
    )


def _check(bundle: Bundle) -> None:
    """Refuse a run that a package cannot hold.

    Raises:
        ConfigError: a setting has a value that a package cannot hold.
    """
    check_convertible(bundle.model_config)
    _joint_model(bundle)
    languages_of(bundle)
    if bundle.model_config.longest < LONGEST_SOURCE:
        raise ConfigError(
            f"model.max_length: expected at least {LONGEST_SOURCE}, the longest source that Argos translates, "
            f"got {bundle.model_config.longest}; export --to ctranslate2"
        )


def _joint_model(bundle: Bundle) -> bytes:
    """Return the joint tokenizer's sentencepiece model; refuse separate tokenizers, and tokenizers of other kinds."""
    models = [
        sentencepiece_model(tokenizer, side, "ctranslate2")
        for side, tokenizer in (("source", bundle.source_tokenizer), ("target", bundle.target_tokenizer))
    ]
    if models[0] != models[1]:
        raise ConfigError(
            "tokenizer.joint: expected true, as a package of Argos has one sentencepiece model, got false; train with "
            "tokenizer.joint = true, or export --to ctranslate2"
        )
    return models[0]


def _write(bundle: Bundle, file: Path, options: ExportOptions) -> None:
    metadata = _metadata(bundle)
    top = f"translate-{metadata['from_code']}_{metadata['to_code']}-1_0"
    spec = specification(bundle, weights_of(bundle), options.quantization)
    with (
        TemporaryDirectory(dir=file.parent, prefix=f".{file.name}.") as folder,
        ZipFile(file, "w", ZIP_DEFLATED) as out,
    ):
        spec.save(folder)
        for path in sorted(Path(folder).iterdir()):
            out.write(path, f"{top}/model/{path.name}")
        bundle.source_facts.save(Path(folder))
        for path in (Path(folder) / HABITS, Path(folder) / SPELLINGS):
            if path.exists():
                out.write(path, f"{top}/{path.name}")
        out.writestr(f"{top}/sentencepiece.model", _joint_model(bundle))
        out.writestr(f"{top}/metadata.json", json.dumps(metadata, ensure_ascii=False, indent=1))
        notes = [f"{remark}." for remark in argos_remarks(bundle)]
        out.writestr(f"{top}/README.md", model_card(bundle, options, _LOADING.format(**metadata), notes))


def _metadata(bundle: Bundle) -> dict[str, Any]:
    source, target = (argos_code(tag) for tag in languages_of(bundle))
    return {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": source,
        "from_name": language_name(source),
        "to_code": target,
        "to_name": language_name(target),
        "type": "translate",
        "links": [],
        "target_prefix": "",
        EXPORTER: {"run": bundle.folder.name},
    }


_LOADING = """```sh
argospm install FILE.argosmodel
argos-translate --from {from_code} --to {to_code} "A sentence."
```"""


def _is_written_by_us(file: Path) -> bool:
    """Return whether a file is a package whose metadata say that glassformer wrote it."""
    try:
        with ZipFile(file) as package:
            [info] = [one for one in package.infolist() if one.filename.endswith("/metadata.json")]
            if info.file_size > LARGEST_METADATA:
                return False
            values = parse_json(package.read(info))
    except (OSError, ValueError, BadZipFile, NotImplementedError, RuntimeError, EOFError, CheckpointError):
        return False
    return isinstance(values, dict) and EXPORTER in values
