"""Ranges that cover a file hold each of its lines once, wherever the file is cut."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus import ranges as module
from glassformer.corpus.files import LONGEST_LINE, raw_lines, text_of
from glassformer.corpus.ranges import FileRange, check_column, count_texts, ranges_of
from glassformer.errors import ConfigError, DataError

PIECES = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b"\xe2\x80\xa8", b"\x0c", b"\xff", b"\xef\xbb\xbf", b"a", b"caf\xc3\xa9"]
)
TEXTS = st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=30).map(b"".join))


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ranges") / "text"


@given(TEXTS, st.data())
def test_ranges_hold_each_line_once_wherever_the_file_is_cut(file, text, data):
    file.write_bytes(text)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    covering = [FileRange(str(file), *bounds) for bounds in pairwise([0, *cuts, len(text)])]
    lines = [line for one in covering for _, line in one.lines()]
    *ended, rest = text.split(b"\n")
    assert lines == [*(line + b"\n" for line in ended), *filter(None, [rest])]
    texts = [one for part in covering for one in part.texts()]
    expected = [text_of(line, first=number == 0) for number, line in enumerate(raw_lines(file))]
    assert texts == [text for text in expected if text is not None]
    assert count_texts(str(file)) == len(texts)


@given(TEXTS, st.integers(1, 70))
def test_ranges_of_a_size_cover_the_file(file, text, size):
    file.write_bytes(text)
    bounds = [(one.begin, one.end) for one in ranges_of(str(file), size)]
    assert [begin for begin, _ in bounds] == list(range(0, len(text), size))
    assert [end for _, end in bounds] == [*range(size, len(text), size), *([len(text)] if text else [])]


def test_a_long_line_is_read_once_by_the_range_in_which_it_starts(file, monkeypatch):
    """A range without a start of a line is not searched beyond its end."""
    monkeypatch.setattr(module, "READ_BYTES", 4)
    text = b"first\n" + b"x" * 1000 + b"\nlast"
    file.write_bytes(text)
    found = [[line for _, line in one.lines()] for one in ranges_of(str(file), 50)]
    assert found[0] == [b"first\n", b"x" * 1000 + b"\n"]
    assert found[1:-1] == [[]] * (len(found) - 2)
    assert found[-1] == [b"last"]


def test_a_line_beyond_the_limit_is_named_by_its_position(file, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 10)
    file.write_bytes(b"short\n" + b"x" * 20 + b"\n")
    with pytest.raises(DataError, match=r"text, byte 6: expected a line of at most 10 bytes"):
        list(FileRange(str(file), 0, 27).lines())
    assert LONGEST_LINE > 10**7


@pytest.mark.parametrize("ending", [".gz", ""])
def test_a_compressed_file_is_one_range(tmp_path, ending):
    path = tmp_path / f"text{ending}"
    text = b"".join(b"line %d\n" % number for number in range(1000))
    path.write_bytes(gzip.compress(text) if ending else text)
    found = list(ranges_of(str(path), 100))
    assert len(found) == (1 if ending else -(-len(text) // 100))
    assert b"".join(line for one in found for _, line in one.lines()) == text


def test_a_column_of_tsv_is_read_by_number_or_by_name(tmp_path):
    path = tmp_path / "text.tsv"
    path.write_bytes(b"\xef\xbb\xbfid\ttext\r\n1\tthe cat\r\n\n2\tcaf\xff\n3\ta \xe2\x80\xa8 dog")
    expected = ["the cat", "", "caf\udcff", "a \u2028 dog"]
    for size in (1, 7, 100):
        texts = [text for one in ranges_of(str(path), size) for text in one.texts("text")]
        assert texts == expected
        assert [text for one in ranges_of(str(path), size) for text in one.texts("1")] == ["text", *expected]
    assert (count_texts(str(path), "text"), count_texts(str(path), "1")) == (4, 5)
    with pytest.raises(DataError, match=r"text.tsv, line 1: expected one column named 'txt' \(did you mean 'text'"):
        list(next(ranges_of(str(path), 9)).texts("txt"))
    with pytest.raises(DataError, match=r"text\.tsv, byte 12: expected at least 3 columns"):
        list(FileRange(str(path), 5, 20).texts("2"))


def test_a_field_of_jsonl_is_read_by_its_path(tmp_path):
    path = tmp_path / "text.jsonl"
    texts = ["the cat", "", "a\nb", "日本"]
    path.write_text("".join(json.dumps({"a": {"b": text}}) + "\n" for text in texts) + "\n")
    for size in (1, 10, 1000):
        found = [text for one in ranges_of(str(path), size) for text in one.texts("a.b")]
        assert found == ["the cat", "", "a\u2028b", "日本", ""]
    assert count_texts(str(path), "a.b") == 5


def test_a_column_must_fit_the_format():
    check_column("a.txt", None)
    check_column("a.tsv.gz", "0")
    with pytest.raises(ConfigError, match=r"column: expected the column of a.jsonl to translate, got none"):
        check_column("a.jsonl", None)
    with pytest.raises(ConfigError, match=r"column: expected none for a.txt, which has no columns, got 'x'"):
        check_column("a.txt", "x")
