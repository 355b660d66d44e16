"""The files of a configuration, and the columns that are read from each file."""

import pytest

from glassformer.errors import DataError
from glassformer.recipes.configuration import DataConfig
from glassformer.recipes.corpora import corpora_of, corpus_for

PLAIN = {"valid_source": "v.en", "valid_target": "v.de", "test_source": "t.en", "test_target": "t.de"}


def data(folder, **files):
    """Return the configuration of a TSV file with named columns, beside other existing files."""
    config = DataConfig(directory=str(folder), source="a.tsv", source_column="en", target_column="de", **files)
    for file in ("a.tsv", *files.values()):
        (folder / file).write_text("en\tde\n")
    return config


def test_columns_are_only_for_files_with_both_sides(tmp_path):
    plain = corpora_of(data(tmp_path, **PLAIN))
    assert {split: corpus.format for split, corpus in plain.items()} == {
        "train": "tsv",
        "valid": "lines",
        "test": "lines",
    }
    both = corpora_of(data(tmp_path, valid_source="v.tsv", test_source="t.jsonl"))
    assert {split: corpus.columns for split, corpus in both.items()} == dict.fromkeys(both, ("en", "de"))


def test_a_split_without_files_has_no_corpus(tmp_path):
    assert corpus_for(data(tmp_path), "valid") is None
    assert list(corpora_of(data(tmp_path))) == ["train"]


def test_a_file_that_does_not_exist_is_named(tmp_path):
    config = data(tmp_path, **PLAIN)
    (tmp_path / "v.de").unlink()
    with pytest.raises(DataError, match=r"v\.de does not exist"):
        corpus_for(config, "valid")
