"""The folder of a corpus that teacher models made for a student.

    distillation.json     how the corpus was made: its models and settings
    texts/                the record of the pairs that a model was trained on
    corpus/*.jsonl        the student's corpus: records with a source and a target
    valid.*, test.*       pairs that no model was trained on, with their original references

Each file appears only when it is complete, so a second call makes only the missing files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.bundle import WEIGHTS, Bundle
from glassformer.errors import ConfigError
from glassformer.jobs.kept_settings import difference_of_settings
from glassformer.jobs.preparation import CorpusTexts, read_texts
from glassformer.jobs.run_reports import OnProgress
from glassformer.recipes.configuration import DataConfig, DecodingConfig
from glassformer.settings import with_defaults
from glassformer.system.files import read_json, write_json, write_safely

__all__ = [
    "CORPUS",
    "DISTILLATION",
    "Pair",
    "StudentCorpus",
    "TeacherSearch",
    "check_place",
    "distilled_pairs",
    "keep_settings",
    "texts_of_run",
    "write_held_out",
    "write_records",
]

DISTILLATION = "distillation.json"
"""The file that records how a folder's corpus was made."""
CORPUS = "corpus"
"""The name of the folder of the corpus's files."""
_TEXTS = "texts"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherSearch:
    """The choice of the hypotheses of a teacher's beam that become the student's corpus."""

    n_best: int = 1
    """Maximum number of different translations kept per source."""
    best_of_reference: str = ""
    """The metric, such as "bleu", that chooses the hypotheses nearest to the reference; "" chooses the hypotheses with
    the highest model scores."""
    keep_reference: bool = False
    """Whether the reference is kept as an additional translation."""
    sample: bool = False
    """Whether the `n_best` translations are drawn at random, not found by beam search; equal translations count
    once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentCorpus:
    """A folder with a corpus that teacher models made for a student."""

    folder: Path
    teacher: Bundle
    """The bundle of the first teacher; the student uses its tokenizer."""


def texts_of_run(bundle: Bundle, folder: Path, data: str | Path | None, on_progress: OnProgress) -> CorpusTexts:
    """Return the corpus that a run was trained on, checked and split as in the run's training.

    The split is kept in `folder`. `data` names the current folder of the corpus; by default, the corpus is where it was
    during training.

    Raises:
        ConfigError: the folder holds the split of a different corpus.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    configuration = bundle.configuration
    if data is not None:
        configuration = replace(configuration, data=replace(configuration.data, directory=str(data)))
    return read_texts(configuration, folder / _TEXTS, on_progress)


def check_place(folder: Path) -> None:
    """Raise an error if the folder for a corpus is the folder of a run.

    Raises:
        ConfigError: the folder is a run.
    """
    # A folder with a DISTILLATION file is a distilled corpus, even if a student was trained in it.
    if (folder / WEIGHTS).exists() and not (folder / DISTILLATION).exists():
        raise ConfigError(f"{folder} is a run: choose a different folder for the distilled corpus")


def keep_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a corpus into its folder; raise an error if the folder was made with different settings.

    Raises:
        ConfigError: the folder was made with different settings.
        CheckpointError: the settings cannot be read or written.
    """
    path = folder / DISTILLATION
    if not path.exists():
        write_safely(path, lambda temporary: write_json(temporary, dict(settings)))
        return
    there = with_defaults(read_json(path), DecodingConfig, TeacherSearch)
    if difference := difference_of_settings(there, settings):
        raise ConfigError(
            f"{folder} holds a corpus that was distilled with {difference}: choose another folder, or delete {folder}"
        )


def write_held_out(folder: Path, held_out: Mapping[str, Sequence[Pair]], data: DataConfig) -> None:
    """Write the held-out pairs of each name, such as "valid", in one file or in two files, like the corpus of `data`.

    In one file, as in a dictionary, lines with the same source form one item; in two files, they do not (see `Items`).

    Raises:
        CheckpointError: a file cannot be written.
    """
    for name, pairs in held_out.items():
        if not pairs:
            continue
        if not data.task and not data.target:
            write_records(folder / f"{name}.jsonl", ({"source": one, "target": other} for one, other in pairs))
            continue
        for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            _write_lines(folder / f"{name}.{side}", (f"{line}\n" for line in texts))


def distilled_pairs(folder: Path) -> Iterator[Pair]:
    """Yield each source of a distilled corpus with each of its translations."""
    for path in sorted((folder / CORPUS).glob("*.jsonl")):
        with path.open(encoding="utf-8", newline="\n") as file:
            records = map(json.loads, file)
            yield from ((record["source"], record["target"]) for record in records if record["status"] == "ok")


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSONL, completely or not at all.

    Raises:
        CheckpointError: the file cannot be written.
    """
    _write_lines(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    def write(temporary: Path) -> None:
        # Unpaired surrogates cannot be written as UTF-8. A line that contains surrogates has no translation anyway.
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(lines)

    write_safely(path, write)
