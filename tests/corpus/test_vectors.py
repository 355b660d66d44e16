import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.vectors import read_vectors
from glassformer.errors import DataError

TOKENS = ["<pad>", "cat", "dog", "a\u00a0b"]


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.vec.gz"])
@pytest.mark.parametrize("header", ["", "4 3\n"])
def test_vectors_are_returned_in_the_order_of_the_tokens(tmp_path: Path, name: str, header: str) -> None:
    lines = "bird 7 8 9\ndog 1 -2.5 3e-1 \na\u00a0b 4 5 6\ndog 0 0 0\n"
    rows, found = read_vectors(write(tmp_path / name, header + lines), TOKENS)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, np.array([[0, 0, 0], [0, 0, 0], [1, -2.5, 0.3], [4, 5, 6]], dtype=np.float32))
    assert found.tolist() == [False, False, True, True]


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"), st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3)
    )
)
def test_written_vectors_are_read_exactly(tmp_path_factory: pytest.TempPathFactory, vectors) -> None:
    path = tmp_path_factory.mktemp("vectors") / "v.vec"
    lines = [f"{token} {' '.join(map(repr, numbers))}\n" for token, numbers in vectors.items()]
    rows, found = read_vectors(write(path, "9 3\nz 1 2 3\n" + "".join(lines)), list("abcdefg"))
    for row, known, token in zip(rows, found, "abcdefg", strict=True):
        assert known == (token in vectors)
        assert tuple(row.tolist()) == vectors.get(token, (0, 0, 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat 1 2\ndog 1\n", "line 2: expected a token and 2 numbers"),
        ("cat 1 2\nlonely\n", "line 2"),
        ("2 3\ncat 1 2\n", "line 2: expected a token and 3 numbers"),
        ("cat 1 2\ndog 1 x\n", "line 2: expected numbers"),
        ("cat 1 2\ndog 1 nan\n", "line 2: expected finite numbers"),
        ("cat 1 2\ndog 1 1e99\n", "line 2: expected finite numbers"),
        ("cat 1 2\n. . 1 2\n", "line 2"),
        ("cat\n", "line 1"),
        ("7 2\n", "expected lines of a token"),
        ("", "expected lines of a token"),
    ],
)
def test_damaged_files_are_an_error_that_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_vectors(write(tmp_path / "v.vec", text), TOKENS)
