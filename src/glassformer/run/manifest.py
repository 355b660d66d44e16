"""What a folder with a prepared corpus holds, and from what it was made."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, CheckpointVersionError
from glassformer.text.files import is_url, reading, stored_bytes
from glassformer.text.shards import Shard
from glassformer.text.storage import hash_of_file, read_json, write_json, write_safely

__all__ = ["MANIFEST", "CorpusFile", "Manifest"]

MANIFEST = "manifest.json"
"""Its name in the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """A file that a corpus was read from."""

    name: str
    bytes: int
    """Its size as it is stored."""
    changed: int
    """When it was last changed, in nanoseconds; 0 = unknown."""
    hash: str
    """xxh3 (128 bits) of its bytes; of a remote file what its file system takes for its identity."""

    @classmethod
    def of(cls, name: str, known: "Mapping[str, CorpusFile]") -> "CorpusFile":
        """Return what a file is like; one that looks as it is `known` by its name is not read for its hash.

        Raises:
            DataError: it cannot be read.
        """
        size = stored_bytes(name)
        with reading(name):
            if is_url(name):
                return cls(name=name, bytes=size, changed=0, hash=_remote_hash(name))
            changed, before = Path(name).stat().st_mtime_ns, known.get(name)
            if before and (before.bytes, before.changed) == (size, changed):
                return before
            return cls(name=name, bytes=size, changed=changed, hash=hash_of_file(Path(name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """manifest.json: written anew after each step, so that a second run does only what is missing."""

    settings: Mapping[str, Any]
    """All settings that decide what is in the folder, by "section.field"."""
    files: tuple[CorpusFile, ...] = ()
    """The files of the corpus."""
    report: Mapping[str, Any] | None = None
    """What the corpus doctor found, as `prepare --check --json` prints it; None for a built-in task."""
    pairs: int = 0
    """Pairs for training, before those that are too long in tokens are left out."""
    valid_pairs: int = 0
    """Pairs for validation."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Pairs that are left out of training and validation files, by reason; those too long in tokens are the shards'."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """xxh3 (128 bits) of the folder's files that are no shards and no tokenizers, by name."""
    tokenizer: str = ""
    """Hash of the tokenizers' files; "" until they are trained."""
    shards: tuple[Shard, ...] = ()
    """The training pairs as ids: those shards that are there."""

    def save(self, folder: Path) -> None:
        """Write it into the folder.

        Raises:
            CheckpointError: it could not be written.
        """
        write_safely(folder / MANIFEST, lambda path: write_json(path, asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> "Manifest | None":
        """Return the manifest of a folder; None when it has none, or one that cannot be read.

        Raises:
            CheckpointVersionError: a newer glassformer wrote it.
        """
        if not (folder / MANIFEST).exists():
            return None
        try:
            values = read_json(folder / MANIFEST)
            del values["format_version"]
            files = tuple(CorpusFile(**file) for file in values.pop("files"))
            shards = tuple(map(_shard, values.pop("shards")))
            return cls(**values, files=files, shards=shards)
        except CheckpointVersionError:
            raise
        except (CheckpointError, TypeError, KeyError):
            return None


def _shard(values: Mapping[str, Any]) -> Shard:
    lists: dict[str, Any] = {name: tuple(values[name]) for name in ("sizes", "hashes")}
    return Shard(**{**values, **lists})


def _remote_hash(url: str) -> str:
    from fsspec.core import url_to_fs

    files, path = url_to_fs(url)
    return str(files.ukey(path))
