"""Read the texts in columns of a Parquet file by row groups, so that several processes can each read some row groups.

pyarrow reads the file in the calling thread: with pyarrow's own threads, a damaged file would abort the process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from glassformer.corpus.columns import one_line
from glassformer.corpus.files import READ_BYTES, opened
from glassformer.errors import DataError, MissingDependencyError, install_command, nearest, quoted

__all__ = ["count_rows", "group_rows", "group_starts", "is_parquet"]

_ROWS = 1000
"""Number of rows read at a time."""


def is_parquet(file: str) -> bool:
    """Return whether a file is a Parquet file, judging by the ending of its name."""
    return file.endswith(".parquet")


def group_starts(file: str) -> list[int]:
    """Return the position of the first byte of each row group.

    Raises:
        DataError: the file is missing or damaged.
        MissingDependencyError: pyarrow is not installed.
    """
    with _opened(file) as parquet:
        return _starts(parquet.metadata)


def group_rows(file: str, columns: Sequence[str], begin: int, end: int) -> Iterator[tuple[str, ...]]:
    """Yield the texts of some columns, row by row, from the row groups that start at the bytes `begin` to `end` - 1.

    "a.b" is field b of the column a. A null becomes a blank text, a line feed becomes U+2028, and bytes that are not
    UTF-8 become surrogates.

    Raises:
        DataError: the file is missing or damaged, or does not have the columns, or a column does not hold texts.
        MissingDependencyError: pyarrow is not installed.
    """
    with _opened(file) as parquet:
        paths = [_checked_path(file, column, parquet.schema_arrow) for column in columns]
        groups = [group for group, start in enumerate(_starts(parquet.metadata)) if begin <= start < end]
        for batch in parquet.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
            yield from zip(*(_texts(batch.column(name), inner) for name, *inner in paths), strict=True)


def count_rows(file: str) -> int:
    """Return the number of rows of a file, from the file's metadata.

    Raises:
        DataError: the file is missing or damaged.
        MissingDependencyError: pyarrow is not installed.
    """
    with _opened(file) as parquet:
        return int(parquet.metadata.num_rows)


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingDependencyError(f"{file} needs pyarrow: {install_command('parquet')}") from error
    with opened(file) as raw:
        try:
            with ParquetFile(raw, buffer_size=READ_BYTES) as parquet:
                yield parquet
        except (ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"cannot read {file}: {reason}; give a complete Parquet file") from error


def _starts(metadata: Any) -> list[int]:
    return [_start(metadata.row_group(group), metadata.num_columns) for group in range(metadata.num_row_groups)]


def _start(group: Any, columns: int) -> int:
    """Return the position of a row group's first byte; a column may begin with a dictionary page."""
    chunks = [group.column(column) for column in range(columns)]
    return int(min(min(one.dictionary_page_offset or one.data_page_offset, one.data_page_offset) for one in chunks))


def _checked_path(file: str, column: str, schema: Any) -> list[str]:
    """Check that a column exists and holds texts; return the names of the fields that lead to the column."""
    from pyarrow import types

    path, fields, names = column.split("."), schema, list[str](schema.names)
    for name in path:
        if names.count(name) != 1:
            raise DataError(
                f"{file}: expected a column {quoted(column)}{nearest(name, names)}, got {quoted(names)}; correct the "
                "name"
            )
        kind = fields.field(name).type
        fields, names = kind, [field.name for field in kind] if types.is_struct(kind) else []
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    if not any(is_text(kind.value_type if types.is_dictionary(kind) else kind) for is_text in texts):
        raise DataError(f"{file}: expected texts in the column {quoted(column)}, got {kind}; choose a different column")
    return path


def _texts(array: Any, path: list[str]) -> list[str]:
    from pyarrow import compute, large_binary

    # pyarrow creates these functions when it is imported, so mypy cannot see them.
    inner = compute.struct_field(array, path) if path else array  # type: ignore[attr-defined]
    values: list[bytes | None] = inner.cast(large_binary()).to_pylist()
    return [one_line((value or b"").decode("utf-8", "surrogateescape")) for value in values]
