"""Prepare the training of a student on a corpus that teacher models made."""

import glob
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glassformer.bundle import TOKENIZER, Bundle
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.student_corpus import CORPUS, StudentCorpus
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.system.files import remove, unwritable
from glassformer.text.tokenizer import save_tokenizers

__all__ = ["prepare_student"]

_STUDENT = "student"


def prepare_student(
    corpus: StudentCorpus, config: str | Path, overrides: Iterable[str] = (), *, new_tokenizer: bool = False
) -> Configuration:
    """Return the configuration that trains a student on a corpus; copy the teacher's tokenizer into the student's run.

    `config` is a recipe or file. The section [data] is replaced by the corpus and, unless `new_tokenizer` is true, the
    section [tokenizer] by the teacher's tokenizer. The student's run is in the corpus's folder unless
    "run.directory=…" is among the overrides.

    Raises:
        ConfigError: a setting is unknown or impossible, or an override contradicts the teacher's tokenizer.
        CheckpointError: the tokenizer cannot be written.
    """
    teachers = corpus.teacher.configuration.tokenizer
    changes = [*_data_overrides(corpus.folder), f"run.directory={_toml(str(corpus.folder / _STUDENT))}"]
    if not new_tokenizer:
        changes += [f"tokenizer.{name}={_toml(value)}" for name, value in asdict(teachers).items() if value is not None]
    configuration = load(config, [*changes, *overrides])
    if not new_tokenizer:
        _check_tokenizer(asdict(configuration.tokenizer), asdict(teachers))
        _give_tokenizer(corpus.teacher, Path(configuration.run.directory))
    return configuration


def _data_overrides(folder: Path) -> list[str]:
    """Return overrides in the form of `--set` that make the corpus in a folder the [data] of a configuration."""
    values = {
        "task": "",
        "directory": "",
        "prepared": "",
        "source": f"{glob.escape(str(folder / CORPUS))}/*.jsonl",
        "target": "",
        "source_column": "source",
        "target_column": "target",
    }
    for name in ("valid", "test"):
        both, source, target = (folder / f"{name}.{ending}" for ending in ("jsonl", "source", "target"))
        values[f"{name}_source"] = str(both if both.exists() else source) if both.exists() or source.exists() else ""
        values[f"{name}_target"] = str(target) if target.exists() else ""
    return [f"data.{name}={_toml(value)}" for name, value in values.items()]


def _toml(value: Any) -> str:
    """Return a string, number, boolean or list of strings as TOML, which writes such values like JSON."""
    return json.dumps(value, ensure_ascii=False)


def _check_tokenizer(given: dict[str, Any], teachers: dict[str, Any]) -> None:
    """Raise an error for settings that the teacher's tokenizer would override; the student may choose `sampling`."""
    for name, value in teachers.items():
        if name != "sampling" and given[name] != value:
            raise ConfigError(
                f"tokenizer.{name}: expected {quoted(value)} as in the teacher's tokenizer, which the student "
                f"uses, got {quoted(given[name])}; leave the setting out, or ask for a new tokenizer"
            )


def _give_tokenizer(teacher: Bundle, run: Path) -> None:
    """Copy the teacher's tokenizer into the student's run, unless the run already has a tokenizer."""
    if (run / TOKENIZER).exists():
        return
    temporary = run / f".{TOKENIZER}.tmp"
    remove(temporary)
    try:
        save_tokenizers(temporary, teacher.source_tokenizer, teacher.target_tokenizer)
        temporary.replace(run / TOKENIZER)
    except OSError as error:
        raise unwritable(run / TOKENIZER, error) from error
