"""The folder of a prepared corpus: its path, its pairs as text, and its manifest, which records the finished steps."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.corpus.files import is_url
from glassformer.corpus.readers import TextPairs
from glassformer.errors import CheckpointError
from glassformer.jobs.prepared.manifest import Manifest
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.defaults import fit
from glassformer.system.files import clear_temporaries, hash_of_bytes, hash_of_file, write_safely
from glassformer.system.locks import locked

__all__ = [
    "KEPT_FILE",
    "PREPARED",
    "SAMPLE_FILE",
    "VALID_FILE",
    "PreparedFolder",
    "alone_in",
    "prepared_folder",
    "read_valid_pairs",
    "valid_pairs_of_run",
]

PREPARED = "prepared"
"""The folder's name inside a run."""
KEPT_FILE, SAMPLE_FILE, VALID_FILE = "kept.npy", "sample.jsonl", "valid.jsonl"
"""The names of the files that are made from the corpus's text."""


class PreparedFolder:
    """The folder of a prepared corpus, with its manifest. The manifest is written again after each step."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.made = False
        """Whether a part was made since this object was created."""

    def save(self, **changes: Any) -> None:
        """Record a finished step in the manifest.

        Raises:
            CheckpointError: the manifest cannot be written.
        """
        self.made, self.manifest = True, replace(self.manifest, **changes)
        self.manifest.save(self.path)

    def has(self, *names: str) -> bool:
        """Return whether files of the folder exist and have the hashes that the manifest lists."""
        paths = {name: self.path / name for name in names}
        return all(
            path.is_file() and hash_of_file(path) == self.manifest.hashes.get(name) for name, path in paths.items()
        )

    def write_pairs(self, name: str, pairs: TextPairs) -> None:
        """Write pairs as text, completely or not at all.

        Raises:
            CheckpointError: the file cannot be written.
        """
        text = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
        write_safely(self.path / name, lambda temporary: temporary.write_bytes(text.encode()))

    def pairs(self, name: str) -> list[tuple[str, str]]:
        """Return the pairs of a file, as text."""
        return _read_pairs(self.path / name)

    def fitted(self, configuration: Configuration) -> Configuration:
        """Return a configuration in which settings that were left open are chosen for the folder's corpus."""
        return fit(configuration, self.manifest.pairs, self.pairs(SAMPLE_FILE))


def prepared_folder(configuration: Configuration) -> Path:
    """Return the folder of a configuration's prepared corpus; for a corpus at a URL, a folder in the local cache."""
    place = configuration.data.prepared
    if is_url(place):
        return _cache(configuration) / "prepared" / hash_of_bytes(place.rstrip("/").encode())
    return Path(place or Path(configuration.run.directory) / PREPARED)


def read_valid_pairs(folder: Path) -> list[tuple[str, str]] | None:
    """Return the validation pairs of a prepared folder, as text, or None if the pairs are not yet written.

    Raises:
        CheckpointError: the pairs cannot be read.
    """
    path = folder / VALID_FILE
    try:
        return _read_pairs(path) if path.exists() else None
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; run `glassformer prepare` again") from error


def valid_pairs_of_run(run: Path, configuration: Configuration) -> list[tuple[str, str]] | None:
    """Return the validation pairs of a run, as text, or None if the run did not keep them.

    They are in the prepared folder that the run shares with other runs (`data.prepared`), or in the run's own.

    Raises:
        CheckpointError: the pairs cannot be read.
    """
    shared = (prepared_folder(configuration),) if configuration.data.prepared else ()
    found = map(read_valid_pairs, (*shared, run / PREPARED))
    return next((pairs for pairs in found if pairs is not None), None)


@contextmanager
def alone_in(folder: Path, on_progress: OnProgress) -> Iterator[None]:
    """Hold the folder's lock within the context; `on_progress` reports when another process holds the lock."""
    stage = f"waiting for another process that is preparing {folder}"
    with locked(folder, lambda: on_progress(ProgressReport(stage=stage))):
        clear_temporaries(folder)
        yield


def _cache(configuration: Configuration) -> Path:
    return Path(configuration.data.cache or "~/.cache/glassformer").expanduser()


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [(source, target) for source, target in map(json.loads, file)]
