"""The files that a configuration names for training, validation and testing."""

from glassformer.corpus.readers import Corpus
from glassformer.recipes.configuration import DataConfig

__all__ = ["SPLITS", "corpora_of", "corpus_for"]

SPLITS = {"train": "", "valid": "valid_", "test": "test_"}
"""The splits, each with the prefix of the fields that name its files."""


def corpus_for(data: DataConfig, split: str) -> Corpus | None:
    """Return the corpus for a split, or None if the configuration names no files for this split.

    `source_column` and `target_column` apply to every file with both sides; plain files have no columns.

    Raises:
        ConfigError: a column does not fit the format of the files.
        DataError: a file does not exist.
    """
    source, target = getattr(data, f"{SPLITS[split]}source"), getattr(data, f"{SPLITS[split]}target")
    if not source:
        return None
    columns = (None, None) if target else (data.source_column, data.target_column)
    return Corpus.of(source, target, data.directory, *columns)


def corpora_of(data: DataConfig) -> dict[str, Corpus]:
    """Return the corpus of each split for which the configuration names files, by the name of the split.

    Raises:
        ConfigError: no corpus is named, as in an imported run, or a column does not fit the format of the files.
        DataError: a file does not exist.
    """
    data.check_corpus()
    found = {split: corpus_for(data, split) for split in SPLITS}
    return {split: corpus for split, corpus in found.items() if corpus is not None}
