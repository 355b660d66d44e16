import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import DataError
from glassformer.text.corpus import iterate_lines, read_lines, read_parallel, read_tsv

# Everything that str.splitlines would cut at, or that confuses other readers; a line cannot hold its own end.
NASTY = [
    "\u2028",
    "\u2029",
    "\x85",
    "\f",
    "\v",
    "\r",
    "\x1c",
    "\x1d",
    "\x1e",
    "\0",
    "\u200f",
    "\u202e",
    "\ufeff",
    "\t",
    " ",
]
line = (
    st.lists(st.sampled_from(NASTY) | st.text(max_size=3), max_size=8)
    .map(lambda parts: "".join(parts).replace("\n", " "))
    .filter(lambda text: not text.endswith("\r"))
)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@settings(max_examples=200)
@given(lines=st.lists(line, min_size=1), end=st.sampled_from(["\n", "\r\n"]), compressed=st.booleans())
def test_as_many_lines_are_read_as_were_written(
    tmp_path_factory: pytest.TempPathFactory, lines, end, compressed
) -> None:
    path = tmp_path_factory.mktemp("corpus") / ("lines.gz" if compressed else "lines")
    write(path, "".join(text + end for text in lines).encode())
    assert read_lines(path) == [lines[0].removeprefix("\ufeff"), *lines[1:]]


@pytest.mark.parametrize("separator", NASTY)
def test_lines_end_at_line_feeds_only(tmp_path: Path, separator: str) -> None:
    path = write(tmp_path / "lines", f"one{separator}still one\ntwo\n".encode())
    assert read_lines(path) == [f"one{separator}still one", "two"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb\n\n", ["a", "b", ""]),
        (b"\n", [""]),
        (b"a\r\nb\r", ["a", "b\r"]),
        (b"a\r\r\n", ["a\r"]),
        (b" a \n", [" a "]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf\nb\n", ["", "b"]),
    ],
)
def test_line_ends_and_byte_order_marks(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert read_lines(write(tmp_path / "lines", content)) == lines


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"corpus\.txt is empty"):
        read_lines(write(tmp_path / "corpus.txt", content))


@pytest.mark.parametrize("name", ["lines", "lines.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8_is_an_error_with_file_line_and_byte(tmp_path: Path, name: str, mark: bytes) -> None:
    content = mark + "één\ntwo\nthr".encode() + b"\xe9e\n"
    with pytest.raises(DataError, match=rf"{name}, line 3: .*0xe9 at byte {content.index(0xE9, 10)} ") as caught:
        read_lines(write(tmp_path / name, content))
    assert "convert the file to UTF-8" in str(caught.value)


def test_lines_before_an_invalid_one_can_be_read(tmp_path: Path) -> None:
    lines = iterate_lines(write(tmp_path / "lines", b"one\n\xff\n"))
    assert next(lines) == "one"
    with pytest.raises(DataError, match="line 2"):
        next(lines)


def test_a_missing_file_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "train.de.gz", b"x")
    with pytest.raises(DataError, match=r"train\.de does not exist \(did you mean 'train\.de\.gz'\?\)"):
        read_lines(tmp_path / "train.de")
    with pytest.raises(DataError, match="no folder"):
        read_lines(tmp_path / "nowhere" / "train.de")


@pytest.mark.parametrize(
    "content",
    [b"plain text\n", gzip.compress(b"many lines\n" * 1000, mtime=0)[:-9], b"\x1f\x8b\x08\0\0\0\0\0"],
    ids=["plain", "truncated", "broken"],
)
def test_damaged_compressed_files_are_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lines.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"lines\.gz cannot be read"):
        read_lines(tmp_path / "lines.gz")


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_lines(tmp_path)


def test_a_blank_line_on_one_side_drops_the_pair_and_shifts_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "source", "one\n\nthree\n \t\u00a0\nfive\n".encode())
    target = write(tmp_path / "target", b"un\ndeux\ntrois\nquatre\n\n")
    corpus = read_parallel(source, target)
    assert (corpus.source, corpus.target) == (["one", "three"], ["un", "trois"])
    assert corpus.dropped == {"blank": [2, 4, 5]}
    assert len(corpus) == 2


@given(pairs=st.lists(st.tuples(line, line), min_size=1))
def test_pairs_stay_pairs_and_every_line_is_kept_or_counted(tmp_path_factory: pytest.TempPathFactory, pairs) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    pairs = [("\ufefffirst", "\ufefffirst"), *pairs]
    for side, name in enumerate(["source", "target"]):
        write(folder / name, "".join(pair[side] + "\n" for pair in pairs).encode())
    corpus = read_parallel(folder / "source", folder / "target")
    expected = [pair for pair in [("first", "first"), *pairs[1:]] if pair[0].strip() and pair[1].strip()]
    assert list(zip(corpus.source, corpus.target, strict=True)) == expected
    assert len(corpus) + len(corpus.dropped.get("blank", [])) == len(pairs)


def test_lines_are_kept_as_they_are(tmp_path: Path) -> None:
    source = write(tmp_path / "source", b"two  spaces \n")
    target = write(tmp_path / "target", "deux\u00a0espaces\u2028\n".encode())
    corpus = read_parallel(source, target)
    assert (corpus.source, corpus.target, corpus.dropped) == (["two  spaces "], ["deux\u00a0espaces\u2028"], {})


def test_files_of_unequal_length_are_an_error_that_names_both_counts(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", b"one\ntwo\nthree\n"), write(tmp_path / "a.de", b"eins\nzwei\n")
    with pytest.raises(DataError, match=r"a\.en has 3 lines, .*a\.de has 2: "):
        read_parallel(source, target)


def test_a_corpus_without_any_pair_is_an_error(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", b"one\n\n"), write(tmp_path / "a.de", b"\nzwei\n")
    with pytest.raises(DataError, match="no pair"):
        read_parallel(source, target)


def test_columns_are_separated_by_tabs_only(tmp_path: Path) -> None:
    path = write(tmp_path / "words.tsv", 'cat\tK AE1 T\tx\n"a  b"\tB\u2028C\ty\n\nc\t \tz\n'.encode())
    corpus = read_tsv(path)
    assert (corpus.source, corpus.target) == (["cat", '"a  b"'], ["K AE1 T", "B\u2028C"])
    assert corpus.dropped == {"blank": [3, 4]}
    assert read_tsv(path, source_column=2, target_column=0).source == ["x", "y", "z"]


def test_a_line_with_too_few_columns_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "words.tsv", b"cat\tK AE1 T\ndog D AO1 G\n")
    with pytest.raises(DataError, match=r"words\.tsv, line 2: expected at least 2 columns .* got 1"):
        read_tsv(path)
