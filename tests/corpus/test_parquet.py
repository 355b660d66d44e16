"""Ranges of a Parquet file hold each row once; a damaged file or a wrong column gives one line of error."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import ParquetWriter, write_table

from glassformer.corpus.parquet import group_starts
from glassformer.corpus.ranges import FileRange, check_column, count_texts, ranges_of
from glassformer.errors import ConfigError, DataError, MissingDependencyError

ROWS = st.lists(st.lists(st.none() | st.text(max_size=5), max_size=4), max_size=6)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("parquet") / "text.parquet")


def write(file: str, groups: list[list[str | None]]) -> None:
    """Write row groups with a number and a text in each row."""
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with ParquetWriter(file, schema) as writer:
        for texts in groups:
            writer.write_table(pa.table([range(len(texts)), pa.array(texts, pa.string())], schema=schema))


@given(ROWS, st.integers(1, 2000))
def test_ranges_hold_each_row_once(file, groups, size):
    write(file, groups)
    ranges = list(ranges_of(file, size))
    assert [one.begin for one in ranges] == [0, *(one.end for one in ranges[:-1])]
    assert ranges[-1].end == Path(file).stat().st_size
    assert all(one.end - one.begin >= size for one in ranges[:-1])
    assert {one.begin for one in ranges[1:]} <= set(group_starts(file))
    texts = [text for one in ranges for text in one.texts("text")]
    rows = [text or "" for texts in groups for text in texts]
    assert texts == [text.replace("\r\n", "\n").replace("\n", "\u2028") for text in rows]
    assert count_texts(file, "text") == len(rows)


def test_a_small_size_makes_a_range_of_each_row_group(file):
    write(file, [["a"], ["b", "c"], ["d"]])
    assert [list(one.texts("text")) for one in ranges_of(file, 1)] == [["a"], ["b", "c"], ["d"]]
    assert len(list(ranges_of(file, 1_000_000))) == 1


def test_texts_may_be_nested_in_a_dictionary_or_bytes(file):
    pairs = [{"en": "the cat", "fr": "le chat"}, {"en": "a dog", "fr": None}, None]
    columns = {
        "translation": pairs,
        "word": pa.array(["u", "v", "u"]).dictionary_encode(),
        "bytes": [b"caf\xc3\xa9", b"\xff", None],
        "long": pa.array(["x", "y", None], pa.large_string()),
    }
    write_table(pa.table(columns), file, row_group_size=2)
    found = {
        name: [text for one in ranges_of(file, 1) for text in one.texts(name)]
        for name in ("translation.en", "translation.fr", "word", "bytes", "long")
    }
    assert found == {
        "translation.en": ["the cat", "a dog", ""],
        "translation.fr": ["le chat", "", ""],
        "word": ["u", "v", "u"],
        "bytes": ["café", "\udcff", ""],
        "long": ["x", "y", ""],
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("txt", r"text.parquet: expected a column 'txt' \(did you mean 'text'\?\), got \['id', 'text'\]; correct"),
        ("text.en", r"expected a column 'text.en', got \[\]"),
        ("id", "text.parquet: expected texts in the column 'id', got int64; choose a different column"),
    ],
)
def test_a_wrong_column_is_named(file, column, message):
    write(file, [["a"]])
    with pytest.raises(DataError, match=message):
        list(FileRange(file, 0, 1000).texts(column))


def test_a_parquet_file_needs_a_column():
    check_column("a.parquet", "x")
    with pytest.raises(ConfigError, match=r"column: expected the column of a.parquet to translate, got none"):
        check_column("a.parquet", None)


def test_a_damaged_file_is_one_message(file):
    write(file, [["a", "b"]])
    whole = Path(file).read_bytes()
    for damaged in (b"", b"PAR1", whole[:-20], whole[:4] + b"x" * 200 + whole[204:]):
        Path(file).write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot read .*text.parquet: .*complete Parquet file"):
            list(FileRange(file, 0, 10_000).texts("text"))


def test_without_pyarrow_the_extra_is_named(file, monkeypatch):
    write(file, [["a"]])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingDependencyError, match=r"text.parquet needs pyarrow: run `pip install .* '.\[parquet\]'`"
    ):
        list(ranges_of(file, 1))
