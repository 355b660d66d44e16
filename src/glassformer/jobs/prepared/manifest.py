"""The manifest of a prepared corpus: the folder's contents, and the files and settings that they were made from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from glassformer.corpus.files import is_url, local_file, reading, stored_bytes
from glassformer.corpus.shards import Shard
from glassformer.errors import CheckpointVersionError
from glassformer.system.files import hash_of_file, read_json, write_json, write_safely

__all__ = ["MANIFEST", "CorpusFile", "Manifest"]

MANIFEST = "manifest.json"
"""The name of the manifest's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """A file of a corpus."""

    name: str
    bytes: int
    """Size in bytes, as stored: for a compressed file, the compressed size."""
    changed: int
    """Time of the last change, in nanoseconds; 0 = unknown."""
    hash: str
    """xxh3 (128 bits) of the bytes; for a remote file, the identity that its file system reports."""

    @classmethod
    def of(cls, name: str, known: "Mapping[str, CorpusFile]") -> "CorpusFile":
        """Return a file's entry. If a `known` entry has the same name, size and time, the file is not read again.

        Unlike `Fingerprint`, this ignores inode and ctime, because both change when a corpus is copied.

        Raises:
            DataError: the file cannot be read.
        """
        size = stored_bytes(name)
        with reading(name):
            if is_url(name):
                return cls(name=name, bytes=size, changed=0, hash=_remote_hash(name))
            file, before = local_file(name), known.get(name)
            changed = file.stat().st_mtime_ns
            if before and (before.bytes, before.changed) == (size, changed):
                return before
            return cls(name=name, bytes=size, changed=changed, hash=hash_of_file(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of manifest.json. The file is rewritten after each step, so a second run does only missing steps."""

    settings: Mapping[str, Any]
    """All settings that decide the folder's contents, by "section.field"."""
    files: tuple[CorpusFile, ...] = ()
    """The files of the corpus."""
    always_left_out: tuple[str, ...] = ()
    """Names of problems for which pairs are left out, whatever the settings."""
    findings: Mapping[str, Any] | None = None
    """The corpus doctor's findings, as `prepare --check --json` prints them; None for a built-in task."""
    habits: Mapping[str, Any] | None = None
    """How the training sources are written (`Habits.to_json`); None in folders of older versions."""
    pairs: int = 0
    """Number of training pairs, including pairs that are left out later because they have too many tokens."""
    valid_pairs: int = 0
    """Number of validation pairs."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of pairs left out of training and validation, by reason, except pairs with too many tokens, which
    `Shard` counts."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """xxh3 (128 bits) of each file of the folder except shards and tokenizers, by the file's name."""
    tokenizer: str = ""
    """Hash of the tokenizers' files; "" until the tokenizers are trained."""
    shards: tuple[Shard, ...] = ()
    """The shards written so far: training pairs as ids."""

    def save(self, folder: Path) -> None:
        """Write the manifest into a folder.

        Raises:
            CheckpointError: the manifest cannot be written.
        """
        write_safely(folder / MANIFEST, lambda path: write_json(path, asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> "Manifest | None":
        """Return the manifest of a folder; None if it is missing or cannot be read.

        Raises:
            CheckpointVersionError: a newer glassformer wrote the manifest.
        """
        if not (folder / MANIFEST).exists():
            return None
        from pydantic import TypeAdapter

        try:
            values = read_json(folder / MANIFEST)
            del values["format_version"]
            manifest: Manifest = TypeAdapter(cls).validate_python(values)
        except CheckpointVersionError:
            raise
        except ValueError:  # includes CheckpointError, and pydantic's ValidationError
            return None
        return manifest


def _remote_hash(url: str) -> str:
    from fsspec.core import url_to_fs

    files, path = url_to_fs(url)
    return str(files.ukey(path))
