"""Read pretrained word vectors in the text format of word2vec and fastText.

V: vocabulary · d: width of the vectors.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.corpus.readers import iterate_lines
from glassformer.errors import DataError, quoted, shortened

__all__ = ["read_vectors"]


def read_vectors(path: str | Path, tokens: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the (V, d) vectors of `tokens`, with zeros for missing tokens, and a (V) mask of the tokens in the file.

    A line has a token and its d numbers, separated by single spaces. The first line may be a header with the number of
    vectors and d. The file may be compressed, according to the ending of its name. If a token has several lines, only
    the first line counts.

    Raises:
        DataError: the file is missing, damaged, empty or not UTF-8, or a line does not have d finite numbers.
    """
    places = {token: place for place, token in enumerate(tokens)}
    vectors: dict[int, NDArray[np.float32]] = {}
    width = 0
    for number, token, numbers in _entries(path):
        width = len(numbers)
        if token in places and places[token] not in vectors:
            vectors[places[token]] = _vector(numbers, f"{path}, line {number}")
    if not width:
        raise DataError(f"{path}: expected lines of a token and its numbers, got no such line; choose another file")
    rows = np.zeros((len(tokens), width), dtype=np.float32)
    found = np.zeros(len(tokens), dtype=np.bool_)
    for place, vector in vectors.items():
        rows[place], found[place] = vector, True
    return rows, found


def _entries(path: str | Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line number, the token and the numbers of each vector in a file."""
    width = 0
    for number, line in enumerate(iterate_lines(path), start=1):
        token, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and token.isdecimal() and numbers[0].isdecimal():
            width = int(numbers[0])
            continue
        width = width or len(numbers)
        if not numbers or len(numbers) != width:
            raise DataError(
                f"{path}, line {number}: expected a token and {width or 'its'} numbers separated by single spaces, "
                f"got {len(numbers)} after {quoted(token)}; correct or remove the line"
            )
        yield number, token, numbers


def _vector(numbers: Sequence[str], place: str) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array([float(number) for number in numbers], dtype=np.float32)
    except ValueError as error:
        raise DataError(
            f"{place}: expected numbers after the token ({shortened(str(error))}); correct or remove the line"
        ) from error
    if not np.isfinite(vector).all():
        raise DataError(f"{place}: expected finite numbers, got nan or infinity; correct or remove the line")
    return vector
