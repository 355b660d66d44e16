"""Read a prepared folder that has all its parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.bundle import SPELLINGS
from glassformer.corpus.batching import Examples
from glassformer.corpus.encoding import encode
from glassformer.corpus.shards import open_shards
from glassformer.jobs.prepared.folder import VALID_FILE, PreparedFolder
from glassformer.jobs.prepared.tokenizers import read_tokenizers
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.defaults import describe_choice
from glassformer.text.habits import Habits
from glassformer.text.tokenizer import Tokenizer

__all__ = ["TOO_LONG", "Prepared", "read_prepared"]

TOO_LONG = "longer than data.max_length"
"""The reason for which pairs with too many tokens are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared corpus: the data for training and validation."""

    folder: Path
    configuration: Configuration
    """The job's configuration, with open settings chosen for the corpus."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    habits: Habits | None
    """How the training sources are written; None if an older version prepared the corpus."""
    spellings: Path | None
    """The file of the words of the sources that are usually not in lower case; None as above."""
    train: Examples
    """The training pairs, read from the disk when they are needed."""
    valid: Examples
    valid_pairs: list[tuple[str, str]]
    """The validation pairs as text, including pairs that are too long."""
    dropped: dict[str, int]
    """Number of pairs left out, by reason."""
    findings: Mapping[str, Any] | None
    """The corpus doctor's findings, as `prepare --check --json` prints them; None for a built-in task."""
    made: bool
    """True if this call made any part; False if it found all parts in the folder."""
    chosen: str
    """The settings that were left open and the values chosen for the corpus, in words; "" if none was open."""


def read_prepared(folder: PreparedFolder, given: Configuration, fitted: Configuration) -> Prepared:
    """Return a folder's corpus.

    `given` is the user's configuration. `fitted` is the same configuration with values chosen for open settings.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    manifest, (source, target) = folder.manifest, read_tokenizers(folder, fitted)
    valid_pairs = folder.pairs(VALID_FILE)
    sides = ([source for source, _ in valid_pairs], [target for _, target in valid_pairs])
    valid = encode(sides, source, target, fitted.data.max_length)
    too_long = sum(shard.too_long for shard in manifest.shards) + valid.too_long
    dropped = {**manifest.dropped, TOO_LONG: too_long}
    return Prepared(
        folder=folder.path,
        configuration=fitted,
        source_tokenizer=source,
        target_tokenizer=target,
        habits=None if manifest.habits is None else Habits.from_json(manifest.habits),
        spellings=folder.path / SPELLINGS if SPELLINGS in manifest.hashes else None,
        train=open_shards(folder.path, manifest.shards),
        valid=valid.encoded.examples(),
        valid_pairs=valid_pairs,
        dropped={reason: count for reason, count in dropped.items() if count},
        findings=manifest.findings,
        made=folder.made,
        chosen=describe_choice(given, fitted, manifest.pairs),
    )
