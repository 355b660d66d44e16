"""Prepare a corpus: check and split it, train its tokenizers, encode it, and keep the result on the disk.

The package `prepared` has a module for each step, and describes the folder of the result.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from glassformer.corpus.batching import Examples
from glassformer.corpus.files import is_url
from glassformer.corpus.readers import Corpus
from glassformer.errors import ConfigError, DataError, quoted
from glassformer.jobs.prepared.at_url import download, names_at, upload
from glassformer.jobs.prepared.folder import VALID_FILE, alone_in, prepared_folder
from glassformer.jobs.prepared.manifest import MANIFEST
from glassformer.jobs.prepared.matching import matching_folder
from glassformer.jobs.prepared.reading import TOO_LONG, Prepared, read_prepared
from glassformer.jobs.prepared.shards import ensure_shards
from glassformer.jobs.prepared.texts import SplitTexts
from glassformer.jobs.prepared.tokenizers import ensure_tokenizers
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.jobs.starting_run import StartingRun
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.corpora import corpora_of
from glassformer.system.pools import Pool
from glassformer.system.storage import RemoteStorage, storage_of

__all__ = ["CorpusTexts", "prepare", "prepare_all", "read_texts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTexts:
    """A corpus as text, checked and split as for training."""

    train: Iterator[tuple[str, str]]
    """The training pairs, read from the files as they are needed."""
    pairs: int
    """Number of training pairs."""
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]
    """The test pairs; empty if the configuration names no test files."""


def prepare(
    configuration: Configuration,
    on_progress: OnProgress = lambda _: None,
    *,
    whole: bool = False,
    pool: Pool | None = None,
) -> Prepared:
    """Prepare a configuration's corpus in `data.prepared` or in the run's folder, and return the prepared corpus.

    Parts that are already finished are not made again.

    Args:
        configuration: the configuration, which names the corpus.
        on_progress: receives reports on the progress.
        whole: whether the folder is complete because another process of this job has just prepared it; it is then read
            without a lock.
        pool: the processes that check and encode lines; by default, `cleaning.workers` local processes. The contents of
            the folder do not depend on the pool.

    Raises:
        ConfigError: a setting is impossible, all pairs are too long, or the folder holds a corpus prepared with
            different settings.
        DataError: the corpus cannot be read, or no pair of it can be used.
        CheckpointError: a file cannot be written.
        VocabularyError: the corpus gives no vocabulary.
    """
    if not configuration.run.directory and not configuration.data.prepared:
        raise ConfigError("run.directory: expected a folder, got nothing; set it to the folder for this run")
    configuration.data.check_corpus()
    start = StartingRun.of(configuration)
    configuration = start.adapted(configuration) if start else configuration
    folder = prepared_folder(configuration)
    if is_url(configuration.data.prepared):
        with alone_in(folder, on_progress):
            prepared = _at_url(configuration, folder, on_progress, pool)
    else:
        with nullcontext() if whole else alone_in(folder, on_progress):
            prepared = _Preparation(configuration, folder, on_progress, pool=pool).run()
    if start:
        start.check_tokenizers(prepared.source_tokenizer, prepared.target_tokenizer, folder)
    _check_lengths(prepared)
    return prepared


def _check_lengths(prepared: Prepared) -> None:
    """Raise an error if each pair for training, or each pair for validation, is too long."""
    for use, examples, count in (
        ("training", prepared.train, prepared.dropped.get(TOO_LONG, 0)),
        ("validation", prepared.valid, len(prepared.valid_pairs)),
    ):
        if count and not len(examples):
            raise ConfigError(
                f"data.max_length: expected a maximum that keeps {use} pairs, got "
                f"{prepared.configuration.data.max_length}, but each of them is longer; delete {prepared.folder}, and "
                "raise data.max_length or choose other pairs"
            )


def prepare_all(
    configuration: Configuration, folder: Path, on_progress: OnProgress = lambda _: None, *, whole: bool = False
) -> Examples:
    """Prepare a configuration's corpus in a folder, without holding out validation pairs; return the training pairs.

    `whole`: as in `prepare`.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    with nullcontext() if whole else alone_in(folder, on_progress):
        return _Preparation(configuration, folder, on_progress, holds_out=False).run().train


def read_texts(configuration: Configuration, folder: Path, on_progress: OnProgress = lambda _: None) -> CorpusTexts:
    """Return a configuration's corpus as text. The split is computed once and kept in `folder`.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    with alone_in(folder, on_progress):
        return _Preparation(configuration, folder, on_progress).corpus_texts()


class _Preparation:
    """The steps of a preparation: each step writes one part of the folder, and is skipped if this part exists."""

    def __init__(
        self,
        configuration: Configuration,
        path: Path,
        on_progress: OnProgress,
        *,
        holds_out: bool = True,
        pool: Pool | None = None,
    ) -> None:
        self.configuration, self.on_progress = configuration, on_progress
        corpora = corpora_of(configuration.data)
        self.folder = matching_folder(path, configuration, _files(corpora))
        self.texts = SplitTexts(self.folder, configuration, corpora, on_progress, holds_out=holds_out, pool=pool)

    def run(self) -> Prepared:
        self.texts.ensure()
        fitted = self.folder.fitted(self.configuration)
        ensure_tokenizers(self.folder, fitted, self.texts, self.on_progress)
        ensure_shards(self.folder, fitted, self.texts, self.on_progress)
        return read_prepared(self.folder, self.configuration, fitted)

    def corpus_texts(self) -> CorpusTexts:
        self.texts.ensure()
        return CorpusTexts(
            train=self.texts.training_pairs(),
            pairs=self.folder.manifest.pairs,
            valid=self.folder.pairs(VALID_FILE),
            test=self.texts.test_pairs(),
        )


def _at_url(configuration: Configuration, folder: Path, on_progress: OnProgress, pool: Pool | None) -> Prepared:
    """Download the prepared corpus from the URL in `data.prepared`; first make and upload a corpus that is missing."""
    data = configuration.data
    if data.replay_source:
        raise ConfigError(
            "data.prepared: expected a local folder because data.replay_source is set, got "
            f"{quoted(data.prepared)}; name a folder on this machine"
        )
    storage = storage_of(data.prepared)
    assert isinstance(storage, RemoteStorage)

    def saying(stage: str) -> Callable[[int, int], object]:
        return lambda done, total: on_progress(ProgressReport(stage=stage, done=done, total=total, unit="bytes"))

    made = MANIFEST not in names_at(storage)
    if made:
        _Preparation(configuration, folder, on_progress, pool=pool).run()
        upload(storage, folder, saying("uploading"))
    download(storage, folder, saying("downloading"))
    return replace(_downloaded(configuration, folder), made=made)


def _downloaded(configuration: Configuration, path: Path) -> Prepared:
    """Return a downloaded prepared corpus. This machine does not need the original corpus files."""
    try:
        names = _files(corpora_of(configuration.data))
    except DataError:
        names = None
    folder = matching_folder(path, configuration, names)
    return read_prepared(folder, configuration, folder.fitted(configuration))


def _files(corpora: Mapping[str, Corpus]) -> list[str]:
    return [file for corpus in corpora.values() for file in (*corpus.source, *corpus.target)]
