"""Decide whether a prepared folder still fits a configuration and the files of its corpus."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from glassformer.corpus.cleaning import CleaningConfig
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.prepared.folder import SAMPLE_FILE, PreparedFolder
from glassformer.jobs.prepared.manifest import CorpusFile, Manifest
from glassformer.recipes.configuration import NOT_CONTENT, Configuration, DataConfig
from glassformer.recipes.toml import changed_settings
from glassformer.settings import with_defaults
from glassformer.text.tokenizer import TokenizerConfig

__all__ = ["matching_folder"]

_SECTIONS = {"data": DataConfig, "cleaning": CleaningConfig, "tokenizer": TokenizerConfig}
"""The sections whose settings decide the content of a prepared folder."""


def matching_folder(path: Path, configuration: Configuration, names: Sequence[str] | None) -> PreparedFolder:
    """Return the prepared folder at `path` if it matches the configuration, or a new folder with an empty manifest.

    `names` are the corpus's files. None = this machine does not have the files; the files in the manifest are then
    taken as unchanged.

    Raises:
        ConfigError: the folder holds a corpus prepared with different settings or from different files.
        DataError: a file of the corpus cannot be read.
    """
    settings, there = _settings(configuration), Manifest.load(path)
    files = _files(names, there)
    if there is None:
        return PreparedFolder(path, Manifest(settings=settings, files=files))
    folder = PreparedFolder(path, there)
    if problem := _difference(there, settings, files):
        problem = _difference(there, {**settings, **_left_open(folder, configuration, settings)}, files)
    if problem:
        raise ConfigError(
            f"{path} holds a prepared corpus, but {problem}: choose another folder (run.directory or data.prepared), "
            f"or delete {path}"
        )
    return PreparedFolder(path, replace(there, files=files))


def _files(names: Sequence[str] | None, there: Manifest | None) -> tuple[CorpusFile, ...]:
    if there and names is None:
        return there.files
    known = {file.name: file for file in there.files} if there else {}
    return tuple(CorpusFile.of(name, known) for name in names or ())


def _left_open(folder: PreparedFolder, configuration: Configuration, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer settings that differ between a run and its folder only because the run stores chosen values.

    The run stores the value chosen for the corpus, such as "unigram"; the folder stores the user's setting, such as
    "auto". Each returned value is the folder's.
    """
    if not folder.has(SAMPLE_FILE):
        return {}
    there, section = folder.manifest.settings, "tokenizer."
    then = {name: there[name] for name in settings if name.startswith(section) and name in there}
    changes = {name.removeprefix(section): value for name, value in then.items()}
    before = replace(configuration, tokenizer=changed_settings("tokenizer", TokenizerConfig(), changes))
    chosen = _settings(folder.fitted(before))
    return {name: value for name, value in then.items() if settings[name] == chosen[name]}


def _settings(configuration: Configuration) -> dict[str, Any]:
    """Return the settings that decide the result of the preparation; tuples become lists, as in JSON."""
    data = configuration.data
    without = {"data": (*NOT_CONTENT, "replay_share"), "cleaning": ("workers",), "tokenizer": ("sampling",)}
    flat = {
        name: value
        for section, names in without.items()
        for name, value in _flat_section(section, asdict(getattr(configuration, section)), names).items()
    }
    # The seed decides only which pairs are held out. With validation files, no pairs are held out, so runs with
    # different seeds may share a folder.
    return flat if data.valid_source else {**flat, "run.seed": configuration.run.seed}


def _flat_section(section: str, values: Mapping[str, Any], without: Container[str]) -> dict[str, Any]:
    return {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if name not in without
    }


def _difference(there: Manifest, settings: Mapping[str, Any], files: Sequence[CorpusFile]) -> str:
    """Return the first difference between a folder and the given settings and files, in words; "" if there is none."""
    then = dict(there.settings)
    for section, kind in _SECTIONS.items():
        then = with_defaults(then, kind, section=f"{section}.")
    for name, value in settings.items():
        if then.get(name) != value:
            return f"with {name} = {quoted(then.get(name))}, not {quoted(value)}"
    if len(files) != len(there.files):
        return f"of {len(there.files)} files, not {len(files)}"
    changed = [new.name for new, old in zip(files, there.files, strict=True) if new.hash != old.hash]
    return f"{changed[0]} has changed since" if changed else ""
