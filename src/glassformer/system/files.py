"""Write files completely or not at all, write JSON with a format version, and read files that may be damaged."""

import json
import math
import os
import re
import shlex
import shutil
import stat
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import xxhash

from glassformer.errors import CheckpointError, CheckpointVersionError, DataError, quoted, remedy, shortened

__all__ = [
    "JSON_VERSION",
    "check_regular",
    "check_width",
    "clear_temporaries",
    "hash_of_bytes",
    "hash_of_file",
    "hash_of_folder",
    "parse_json",
    "parse_toml",
    "read_any_json",
    "read_bytes",
    "read_json",
    "remove",
    "sync",
    "unwritable",
    "write_json",
    "write_safely",
]

JSON_VERSION = 1
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks with which UTF-16 begins; UTF-32 begins with the first one, or with two zero bytes."""
LARGEST = 1 << 26
"""Maximum size in bytes of a configuration, a tokenizer or another small file of a model."""
LARGEST_TOML = 10**6
"""Maximum number of characters of a configuration; tomllib reads one million in one to four seconds."""
MOST_PARTS = 16
"""Maximum number of parts of a key, such as `a.b`, because tomllib's time grows with the square of their number."""
LONGEST_NUMBER = 1000
"""Maximum number of characters of a key or a number; Python does not print integers of more than 4 300 digits."""
_BUFFER = 1 << 22

_PART = r"""(?:[\w-]++|"(?!"")(?:[^"\\\n]|\\.)*+"|'(?!'')[^'\n]*+')"""
_KEY = re.compile(
    rf"""
    \#[^\n]*+
    | \"{{3}}(?:[^"\\]|\\.|"(?!""))*+"{{3,5}}
    | '{{3}}(?:[^']|'(?!''))*+'{{3,5}}
    | {_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{0,{MOST_PARTS - 1}}}+(?P<more>[ \t]*+\.[ \t]*+{_PART})?
    | ["'].*+
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
"""A comment, a string of several lines, a key (or a value), or a string without an end, which lasts to the end of the
text. Group `more` is the part by which a key is too long."""


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` and the format version as readable UTF-8 JSON."""
    text = json.dumps({"format_version": JSON_VERSION, **content}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a file written by `write_json`.

    Raises:
        CheckpointError: the file is missing, too large, or not a JSON object with a format version.
        CheckpointVersionError: a newer glassformer wrote the file.
    """
    content = read_any_json(path)
    version = content.get("format_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise CheckpointError(f"{path}: expected a JSON object with a format_version; copy the file again")
    if version > JSON_VERSION:
        raise CheckpointVersionError(
            f"{path}: expected at most format version {JSON_VERSION}, got {version}; upgrade glassformer"
        )
    return dict(content)


def read_any_json(path: Path) -> Any:
    """Return the value in a small JSON file of a model, which another program may have written.

    Raises:
        CheckpointError: the file is missing, too large, or not JSON.
    """
    try:
        return parse_json(read_bytes(path))
    except CheckpointError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text, which may be damaged or malicious.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_toml(text: str | bytes) -> dict[str, Any]:
    """Return the values of a TOML text, which may be damaged or malicious.

    Raises:
        ValueError: the text is not TOML, is nested too deeply or too long, or has a key of too many parts or a
            number of too many digits.
    """
    if len(text) > LARGEST_TOML:
        raise ValueError(f"expected at most {LARGEST_TOML} characters, got more")
    decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
    for found in _KEY.finditer(decoded):
        if found["more"]:
            problem = f"expected keys of at most {MOST_PARTS} parts, got {quoted(found[0])}"
        elif len(found[0]) > LONGEST_NUMBER and found[0][0] not in "\"'#":
            problem = f"expected keys and numbers of at most {LONGEST_NUMBER} characters, got more"
        else:
            continue
        line = decoded.count("\n", 0, found.start()) + 1
        raise ValueError(f"line {line}: {problem}")
    try:
        return tomllib.loads(decoded)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def check_width(name: str, beginning: bytes) -> None:
    """Check that a text does not begin as UTF-16 does, whose line ends are not those of UTF-8.

    `name` is the path of a file, or "stdin".

    Raises:
        DataError: the text begins with a byte order mark of UTF-16.
    """
    if beginning.startswith(_WIDE_MARKS):
        mark = beginning[:2].hex(" ").upper()
        file = "" if name == "stdin" else f"{shlex.quote(name)} > converted"
        raise DataError(
            f"{name}: expected UTF-8, got UTF-16 (it begins with the bytes {mark}); convert it, for example: "
            f"iconv -f UTF-16 -t UTF-8 {file}".rstrip()
        )


def read_bytes(path: Path) -> bytes:
    """Return the content of a small file of a model: a configuration, a tokenizer, a state.

    Raises:
        CheckpointError: the path is not a regular file, or the file is too large for a file of this kind.
        OSError: the file is missing or cannot be read.
    """
    check_regular(path)
    if (size := path.stat().st_size) > LARGEST:
        raise CheckpointError(f"{path}: expected at most {LARGEST} bytes, got {size}; copy the file again")
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Raise an error for a folder, a pipe, a device or a socket. Reading a pipe, a device or a socket might never end.

    For a symbolic link, the link's target is checked. A missing file raises no error.

    Raises:
        CheckpointError: the path exists and is not a regular file, or the file may not be read.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return  # opening the file later reports that it is missing
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(mode):
        raise CheckpointError(f"{path}: expected a regular file, got {_kind(mode)}; copy the file again")
    try:
        path.open("rb").close()  # safetensors calls a file missing that may not be read
    except OSError as error:
        raise _unreadable(path, error) from error


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"cannot read {path}: {_reason(error)}; {remedy(error, 'copy the file again')}")


def _reason(error: Exception) -> str:
    """Return an error's reason without the path, because the caller's message already names the path."""
    return (isinstance(error, OSError) and error.strerror) or shortened(str(error))


def unwritable(path: object, error: Exception, kept: str = "") -> CheckpointError:
    """Return the error for a file or folder that cannot be written: the reason, what is `kept`, and what to do."""
    advice = remedy(error, "make sure that there is space and that you may write there")
    return CheckpointError(f"cannot write {path}: {_reason(error)}; {kept and f'{kept}: '}{advice}, and try again")


def write_safely(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name, and rename the complete file to `path`, which is therefore never incomplete.

    Raises:
        CheckpointError: the file cannot be written, for example because the disk is full; the previous file is kept.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise unwritable(path, error, "the previous file is kept") from error


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents, as far as possible; do nothing if the path does not exist."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def clear_temporaries(folder: Path, of: Container[str] | None = None, before: float = math.inf) -> None:
    """Remove the temporary files that killed processes left in a folder.

    With `of`, only temporaries of files with these names are removed; with `before`, only those that were last written
    before this time (seconds since 1970).
    """
    for path in folder.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if (of is None or path.name[1:].rsplit(".", 2)[0] in of) and path.stat().st_mtime < before:
                remove(path)


def hash_of_file(path: Path) -> str:
    """Return the xxh3 hash (128 bits) of a file, as hexadecimal digits."""
    return _hash(_blocks(path))


def hash_of_bytes(content: bytes) -> str:
    """Return the hash that a file with this content would have."""
    return _hash([content])


def hash_of_folder(folder: Path) -> str:
    """Return the xxh3 hash (128 bits) of the names and contents of a folder's files, as hexadecimal digits."""
    paths = sorted(path for path in folder.glob("*") if path.is_file())
    return _hash(block for path in paths for block in chain([path.name.encode() + b"\0"], _blocks(path)))


def _hash(blocks: Iterable[bytes]) -> str:
    digest = xxhash.xxh3_128()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BUFFER):
            yield block
