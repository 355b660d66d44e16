import gzip
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.kept_pairs import kept_pairs
from glassformer.corpus.readers import (
    Corpus,
    PairReader,
    invalid_bytes,
    iterate_lines,
    read_lines,
    read_parallel_lines,
)
from glassformer.errors import ConfigError, DataError
from profiles import scaled

# Characters at which str.splitlines would split, or that confuse other readers, except the line end itself, which a
# line cannot contain.
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


@scaled(200)
@given(lines=st.lists(line, min_size=1), end=st.sampled_from(["\n", "\r\n"]), compressed=st.booleans())
def test_reading_returns_the_written_number_of_lines(
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
def test_line_ends_and_byte_order_marks_are_removed(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert read_lines(write(tmp_path / "lines", content)) == lines


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_utf_16_is_known_by_its_mark(tmp_path: Path, name: str, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""  # Python writes no mark if the order of the bytes is named
    content = f"{mark}für alle\nfür sie\n".encode(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match=r"expected UTF-8, got UTF-16 .*iconv -f UTF-16"):
        read_lines(path)
    with pytest.raises(DataError, match=r"expected UTF-8, got UTF-16 .*iconv -f UTF-16"):
        list(PairReader(Corpus((str(path),), (str(path),))))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"corpus\.txt: expected at least one line"):
        read_lines(write(tmp_path / "corpus.txt", content))


@pytest.mark.parametrize("name", ["lines", "lines.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8_is_an_error_with_file_line_and_byte(tmp_path: Path, name: str, mark: bytes) -> None:
    content = mark + "één\ntwo\nthr".encode() + b"\xe9e\n"
    with pytest.raises(DataError, match=rf"{name}, line 3: .*0xe9 at byte {content.index(0xE9, 10)} ") as caught:
        read_lines(write(tmp_path / name, content))
    assert "convert the file to UTF-8" in str(caught.value)


def test_lines_before_an_invalid_line_can_be_read(tmp_path: Path) -> None:
    lines = iterate_lines(write(tmp_path / "lines", b"one\n\xff\n"))
    assert next(lines) == "one"
    with pytest.raises(DataError, match="line 2"):
        next(lines)


def test_a_missing_file_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "train.de.gz", b"x")
    with pytest.raises(DataError, match=r"train\.de does not exist \(did you mean 'train\.de\.gz'\?\)"):
        read_lines(tmp_path / "train.de")
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        read_lines(tmp_path / "nowhere" / "train.de")


@pytest.mark.parametrize(
    "content",
    [b"plain text\n", gzip.compress(b"many lines\n" * 1000, mtime=0)[:-9], b"\x1f\x8b\x08\0\0\0\0\0"],
    ids=["plain", "truncated", "broken"],
)
def test_damaged_compressed_files_are_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lines.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"cannot read .*lines\.gz"):
        read_lines(tmp_path / "lines.gz")


def pairs_of(*arguments: Any, **options: Any) -> list[tuple[str, str]]:
    """Return all pairs of a corpus."""
    corpus = Corpus.of(*arguments, **options)
    count = sum(block.lines for block in PairReader(corpus))
    every = np.packbits(np.ones(count, bool))
    return list(kept_pairs(corpus, every))


@given(pairs=st.lists(st.tuples(line, line), min_size=1))
def test_pairs_stay_aligned_and_lines_stay_unchanged(tmp_path_factory: pytest.TempPathFactory, pairs) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    for side, name in enumerate(["source", "target"]):
        write(folder / name, "".join(pair[side] + "\n" for pair in [("\ufefffirst", "\ufefffirst"), *pairs]).encode())
    assert pairs_of("source", "target", str(folder)) == [("first", "first"), *pairs]


def test_files_of_unequal_length_are_an_error_with_both_counts(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", b"one\ntwo\nthree\n"), write(tmp_path / "a.de", b"eins\nzwei\n")
    with pytest.raises(DataError, match=r"a\.en has 3 lines, .*a\.de has 2: "):
        read_parallel_lines(source, target)


def test_columns_are_separated_by_tabs_only(tmp_path: Path) -> None:
    write(tmp_path / "words.tsv", 'cat\tK AE1 T\tx\n"a  b"\tB\u2028C\ty\n\nc\t \tz\n'.encode())
    assert pairs_of("words.tsv", "", str(tmp_path)) == [
        ("cat", "K AE1 T"),
        ('"a  b"', "B\u2028C"),
        ("", ""),
        ("c", " "),
    ]


def test_a_line_with_too_few_columns_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    write(tmp_path / "words.tsv", b"cat\tK AE1 T\ndog D AO1 G\n")
    with pytest.raises(DataError, match=r"words\.tsv, line 2: expected at least 2 columns .* got 1"):
        pairs_of("words.tsv", "", str(tmp_path))


@scaled(50)
@given(
    sides=st.tuples(*[st.lists(st.integers(0, 3), min_size=1, max_size=4)] * 2),
    seed=st.integers(0, 99),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_lists_of_files_are_parallel_wherever_they_are_split(
    tmp_path_factory: pytest.TempPathFactory, sides, seed, end
):
    folder = tmp_path_factory.mktemp("corpus")
    chosen = random.Random(seed)
    total = max(sum(side) for side in sides) + 5
    names = []
    for letter, cuts in zip("st", sides, strict=True):
        lines = [f"{letter}{number}" * chosen.choice([1, 1, 9_999]) for number in range(total)]
        bounds = [0, *(sum(cuts[: place + 1]) for place in range(len(cuts))), total]
        parts = [lines[start:stop] for start, stop in pairwise(bounds)]
        names.append(tuple(f"{letter}.{place}" for place in range(len(parts))))
        for name, part in zip(names[-1], parts, strict=True):
            (folder / name).write_bytes(("\ufeff" + "".join(line + end for line in part)).encode())
    pairs = pairs_of(*names, str(folder))
    assert [
        (source[: len(source) // (source.count("s"))], target[: len(target) // (target.count("t"))])
        for source, target in pairs
    ] == [(f"s{number}", f"t{number}") for number in range(total)]


def test_a_line_of_many_files_is_named_by_its_own_file(tmp_path: Path) -> None:
    for name, count in {"a.1": 3, "a.2": 0, "a.3": 4, "b.1": 5, "b.2": 2}.items():
        (tmp_path / name).write_text(f"{name}\n" * count)
    reader = PairReader(Corpus.of("a.*", "b.*", str(tmp_path)))
    assert sum(block.lines for block in reader) == 7
    named = [
        [(Path(file).name, line) for file, line in (reader.place(pair, side) for pair in range(7))] for side in (0, 1)
    ]
    assert named[0] == [("a.1", 1), ("a.1", 2), ("a.1", 3), ("a.3", 1), ("a.3", 2), ("a.3", 3), ("a.3", 4)]
    assert named[1] == [("b.1", 1), ("b.1", 2), ("b.1", 3), ("b.1", 4), ("b.1", 5), ("b.2", 1), ("b.2", 2)]


@pytest.mark.parametrize("counts", [(0, 1), (7, 6), (100_000, 99_999), (3, 300_000)])
def test_sides_of_unequal_length_are_an_error_with_both_counts(tmp_path: Path, counts: tuple[int, int]) -> None:
    for name, count in zip("ab", counts, strict=True):
        (tmp_path / name).write_bytes(b"line\n" * count)
    with pytest.raises(DataError, match=rf"a has {counts[0]} lines, .*b has {counts[1]}: expected equal numbers"):
        list(kept_pairs(Corpus.of("a", "b", str(tmp_path)), np.zeros(1, np.uint8)))


@pytest.mark.slow
def test_a_long_line_beside_many_short_ones_takes_no_more_memory(tmp_path: Path) -> None:
    count = 300
    (tmp_path / "a").write_bytes(b"x\n" * count + b"y" * 5_000_000 + b"\nz\n")
    (tmp_path / "b").write_bytes((b"y" * 300_000 + b"\n") * count + b"w\nv\n")
    largest = 0
    reader = PairReader(Corpus.of("a", "b", str(tmp_path)))
    for block in reader:
        largest = max(largest, len(block.source) + len(block.target))
        assert block.source.count(b"\n") == block.target.count(b"\n") == block.lines
    assert reader.lines == [count + 2] * 2
    assert largest < 8_000_000


def test_pairs_with_set_bits_are_kept(tmp_path: Path) -> None:
    chosen = np.random.default_rng(3).random(100_003) < 0.3
    for name in "ab":
        (tmp_path / name).write_bytes(b"".join(b"%s%d\n" % (name.encode(), number) for number in range(len(chosen))))
    corpus = Corpus.of("a", "b", str(tmp_path))
    read = list(kept_pairs(corpus, np.packbits(chosen)))
    assert read == [(f"a{number}", f"b{number}") for number in np.flatnonzero(chosen)]
    with pytest.raises(DataError, match="has changed: expected the 8 pairs that were checked, got 100003"):
        list(kept_pairs(corpus, np.zeros(1, np.uint8)))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_are_chosen_by_number_or_name(tmp_path: Path, end: str) -> None:
    lines = ["id\tde\ten", "1\tHund\tdog", "2\tKatze\tcat\textra", "", " \t\t"]
    (tmp_path / "words.tsv.gz").write_bytes(gzip.compress(end.join(lines).encode()))
    named = pairs_of("words.tsv.gz", "", str(tmp_path), "en", "de")
    assert named == [("dog", "Hund"), ("cat", "Katze"), ("", ""), ("", "")]
    numbered = pairs_of("words.tsv.gz", "", str(tmp_path), 1, 0)
    assert numbered == [("de", "id"), ("Hund", "1"), ("Katze", "2"), ("", ""), ("", " ")]
    assert pairs_of("words.tsv.gz", "", str(tmp_path), 2, "id")[0] == ("dog", "1")


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("id\tde\ten\tde\n1\tHund\tdog\n")
    with pytest.raises(DataError, match=r"words\.tsv, line 1: expected one column named 'eng' \(did you mean 'en'"):
        pairs_of("words.tsv", "", str(tmp_path), "eng", "de")
    with pytest.raises(DataError, match=r"line 1: expected one column named 'de', got"):
        pairs_of("words.tsv", "", str(tmp_path), "en", "de")
    with pytest.raises(
        DataError, match=r"words\.tsv, line 2: expected at least 4 columns between tab characters, got 3"
    ):
        pairs_of("words.tsv", "", str(tmp_path), 0, 3)


def jsonl(folder: Path, *lines: object) -> str:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "corpus.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return str(folder)


def test_fields_are_chosen_by_name_or_path(tmp_path: Path) -> None:
    folder = jsonl(
        tmp_path,
        {"source": "a", "target": "b", "translation": {"en": "c", "de": "ä\n\u2028\r\n"}},
        "",
        '  {"source": "\\u00e9", "target": "", "translation": {"en": "\\t", "de": "\\ud83d\\ude42"}} ',
    )
    assert pairs_of("corpus.jsonl", "", folder) == [("a", "b"), ("", ""), ("é", "")]
    assert pairs_of("corpus.jsonl", "", folder, "translation.en", "translation.de") == [
        ("c", "ä\u2028\u2028\u2028"),  # the line feed inside a text becomes U+2028 and does not end the line
        ("", ""),
        ("\t", "🙂"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not JSON", r"expected a JSON object, got 'not JSON' \(Expecting value at column 1\); correct the line"),
        ("[1]", r"expected a JSON object, got '\[1\]'"),
        ("[" * 100_000, "expected a JSON object, got"),
        ({"target": "x"}, "expected a field 'source', got an object with target"),
        ({"sourc": "x", "target": "y"}, r"expected a field 'source', .*\(did you mean 'sourc'\?\)"),
        ({"source": 7, "target": "y"}, "expected text in the field 'source', got 7;"),
        ({}, "expected a field 'source', got an object with no fields"),
    ],
    ids=["text", "list", "deep", "missing", "near", "number", "empty"],
)
def test_a_line_without_the_fields_is_an_error_that_names_the_line(tmp_path: Path, line: object, message: str) -> None:
    with pytest.raises(DataError, match=rf"corpus\.jsonl, line 2: {message}"):
        pairs_of("corpus.jsonl", "", jsonl(tmp_path, {"source": "a", "target": "b"}, line))


def test_only_invalid_utf_8_in_the_chosen_fields_matters(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(
        b'{"source": "a", "target": "b", "other": "\xff"}\n{"source": "\xff", "target": "b"}\n'
        b'{"source": "a", "target": "\\ud800"}\n'
    )
    [block] = PairReader(Corpus.of("corpus.jsonl", "", str(tmp_path)))
    assert block.source.startswith(b"a\n")
    assert block.target.startswith(b"b\nb\n")
    for side, line in ((block.source, 1), (block.target, 2)):
        with pytest.raises(UnicodeDecodeError):
            side.split(b"\n")[line].decode()
    path = str(tmp_path / "corpus.jsonl")
    first, second, third = (tmp_path / "corpus.jsonl").read_bytes().split(b"\n")[:3]
    beginning = len(first) + len(second) + 2
    assert invalid_bytes(path, [3, 2]) == [beginning, len(first) + 1 + second.index(b"\xff")]
    assert third.isascii()


def test_settings_that_do_not_fit_the_files_are_errors(tmp_path: Path) -> None:
    for name in ("a.tsv", "b.jsonl", "c.txt", "d.txt"):
        (tmp_path / name).write_text("x\ty\n")
    folder = str(tmp_path)
    with pytest.raises(ConfigError, match=r"data\.source: expected files of one format, got jsonl and tsv"):
        Corpus.of(("a.tsv", "b.jsonl"), "", folder)
    with pytest.raises(ConfigError, match=r"data\.target: expected the translation of .*c\.txt, got nothing"):
        Corpus.of("c.txt", "", folder)
    with pytest.raises(ConfigError, match=r"data\.source_column: expected no value with plain files, got 0"):
        Corpus.of("c.txt", "d.txt", folder, 0)
    with pytest.raises(ConfigError, match=r"data\.target_column: expected a number from 0 or a name, got -1"):
        Corpus.of("a.tsv", "", folder, 0, -1)
    with pytest.raises(ConfigError, match=r"data\.source_column: expected the name of a field of JSONL files, got 1"):
        Corpus.of("b.jsonl", "", folder, 1)


def test_a_corpus_may_consist_of_urls() -> None:
    for name, content in {
        "1.en": b"one\ntwo\n",
        "2.en": b"three",
        "1.de": b"eins\n",
        "2.de": b"zwei\r\ndrei\n",
    }.items():
        with fsspec.open(f"memory://parallel/{name}", "wb") as file:
            file.write(content)
    expected = [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    assert pairs_of("*.en", "*.de", "memory://parallel") == expected
