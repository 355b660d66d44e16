"""The validation and test sets of a run: its own files or splits, grouped in the same way as in `evaluate`."""

import pytest

from glassformer.corpus.readers import Corpus
from glassformer.errors import ConfigError
from glassformer.jobs.comparison import shared_test_sets
from glassformer.jobs.evaluation import corpus_of, held_out, validation_items
from glassformer.recipes.toml import from_dict

PAIRS = [("read", "R EH D"), ("cat", "K AE T"), ("read", "R IY D"), ("dog", "D AO G")]


def configured(**data):
    return from_dict({"data": data, "training": {"metric_lines": 2}})


@pytest.mark.parametrize(
    ("data", "references"),
    [
        ({"source": "words.tsv"}, [("R EH D", "R IY D"), ("K AE T",)]),
        ({"source": "a", "target": "b", "valid_source": "words.tsv"}, [("R EH D", "R IY D"), ("K AE T",)]),
        ({"source": "words.tsv", "valid_source": "a", "valid_target": "b"}, [("R EH D",), ("K AE T",)]),
        ({"source": "a", "target": "b"}, [("R EH D",), ("K AE T",)]),
        ({"task": "copy"}, [("R EH D",), ("K AE T",)]),
    ],
    ids=["one file", "one file for validation", "two files for validation", "two files", "task"],
)
def test_validation_groups_lines_like_evaluation(data, references):
    assert list(validation_items(configured(**data), PAIRS).references) == references


def test_the_test_files_come_before_the_validation_files(tmp_path):
    for name in ("test", "valid"):
        (tmp_path / f"{name}.tsv").write_text(f"{name}\tx\n{name}\ty\n")
    valid = configured(source="t.tsv", directory=str(tmp_path), valid_source="valid.tsv")
    both = configured(source="t.tsv", directory=str(tmp_path), valid_source="valid.tsv", test_source="test.tsv")
    assert {name: items.references for name, items in held_out(both).items()} == {"test": (("x", "y"),)}
    assert list(held_out(valid)) == ["valid"]
    assert shared_test_sets(both, both) == held_out(both)
    with pytest.raises(ConfigError, match="different test sets"):
        shared_test_sets(valid, both)
    with pytest.raises(ConfigError, match="names no test or validation files"):
        held_out(configured(source="t.tsv"))


def test_a_task_is_tested_on_all_splits_except_training():
    sets = held_out(configured(task="copy"))
    assert "test" in sets
    assert "train" not in sets


def test_files_in_the_runs_format_use_its_columns(tmp_path):
    for name in ("a.tsv", "a.jsonl"):
        (tmp_path / name).write_text("")
    run = configured(source="train.jsonl", source_column="word", target_column="ipa")
    assert corpus_of(str(tmp_path / "a.jsonl"), None, run).columns == ("word", "ipa")
    assert corpus_of(str(tmp_path / "a.jsonl"), None).columns == ("source", "target")
    assert corpus_of(str(tmp_path / "a.tsv"), None, run).columns == (0, 1)


def test_a_run_trained_on_named_columns_can_be_tested_on_plain_files(tmp_path):
    (tmp_path / "train.tsv").write_text("en\tde\nx\ty\n")
    (tmp_path / "v.en").write_text("a\nb\n")
    (tmp_path / "v.de").write_text("A\nB\n")
    named = {"source": "train.tsv", "source_column": "en", "target_column": "de", "directory": str(tmp_path)}
    run = configured(**named, valid_source="v.en", valid_target="v.de")
    assert held_out(run)["valid"].references == (("A",), ("B",))
    assert shared_test_sets(run, run) == held_out(run)


def test_a_table_in_a_format_that_is_not_read_is_to_be_converted():
    with pytest.raises(ConfigError, match=r"got only pairs\.csv; \.csv is not read: convert the file to \.tsv or"):
        corpus_of("pairs.csv", None)
    with pytest.raises(ConfigError, match=r"got nothing; \.parquet is not read: convert the file to \.tsv or \.jsonl"):
        Corpus(("pairs.parquet",), ())
