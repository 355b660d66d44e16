"""Prepare a corpus: check and split it, train its tokenizers, encode it, and keep the result on the disk.

    prepared/manifest.json       the corpus's files and settings, and the folder's contents
    prepared/kept.npy            one bit per line pair of the training files: whether it is used for training
    prepared/sample.jsonl        the first pairs, from which open settings are chosen
    prepared/valid.jsonl         the validation pairs, as text
    prepared/tokenizer/          the tokenizers
    prepared/train-00000.*.npy   the training pairs as ids (corpus/shards.py)

Each file is written only when it is complete, so that a second run does only the missing steps.
"""

import json
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from glassformer.bundle import TOKENIZER
from glassformer.corpus.batching import Examples
from glassformer.corpus.cleaning import CleaningConfig
from glassformer.corpus.doctor.duplicates import first_bits
from glassformer.corpus.doctor.examine import Examination, examine, examine_held_out
from glassformer.corpus.doctor.problems import ALWAYS_LEFT_OUT
from glassformer.corpus.encoding import PairEncoder, Part, encode, joined_parts
from glassformer.corpus.files import is_url
from glassformer.corpus.kept_pairs import KeptBlock, PairsWithSources, kept_blocks, kept_pairs, only
from glassformer.corpus.placeholder_pairs import PlaceholderPairs, frequent_translations
from glassformer.corpus.pool import processes_for
from glassformer.corpus.readers import Corpus, TextPairs
from glassformer.corpus.shards import SHARD, open_shards, save_array, write_shard
from glassformer.corpus.tasks import TASKS
from glassformer.errors import CheckpointError, ConfigError, DataError, quoted
from glassformer.jobs.manifest import MANIFEST, CorpusFile, Manifest
from glassformer.jobs.prepared_at_url import download, names_at, upload
from glassformer.jobs.run_reports import ExaminedReport, ProgressReport
from glassformer.jobs.starting_run import StartingRun
from glassformer.recipes.configuration import NOT_CONTENT, Configuration, DataConfig
from glassformer.recipes.corpora import corpora_of
from glassformer.recipes.defaults import describe_choice, fit
from glassformer.recipes.toml import changed_settings
from glassformer.settings import with_defaults
from glassformer.system.files import clear_temporaries, hash_of_bytes, hash_of_file, hash_of_folder, write_safely
from glassformer.system.locks import locked
from glassformer.system.pools import HERE, Pool
from glassformer.system.processes import Worker
from glassformer.system.storage import RemoteStorage, storage_of
from glassformer.text.normalisation import normalise
from glassformer.text.placeholders import has_placeholders
from glassformer.text.reversal import from_right_to_left
from glassformer.text.tokenizer import Tokenizer, TokenizerConfig, load_tokenizers, save_tokenizers, train_tokenizers

__all__ = [
    "PREPARED",
    "CorpusTexts",
    "Prepared",
    "prepare",
    "prepare_all",
    "prepared_folder",
    "read_texts",
    "read_valid_pairs",
]

PREPARED = "prepared"
"""The folder's name inside a run."""
TOKENIZER_PAIRS = 200_000
"""Maximum number of pairs to train tokenizers on; more would take longer and hardly improve the result."""
APART_PAIRS = 5_000
"""Below this number of pairs, training the tokenizers takes less time than starting another process."""
SAMPLE_PAIRS = 10_000
"""Number of pairs from which open settings are chosen."""
_KEPT, _SAMPLE, _VALID = "kept.npy", "sample.jsonl", "valid.jsonl"
_BITS_AT_ONCE = 1 << 16
_SECTIONS = {"data": DataConfig, "cleaning": CleaningConfig, "tokenizer": TokenizerConfig}
"""The sections whose settings decide the result."""

KeptBits = NDArray[np.uint8]
T = TypeVar("T")
OnProgress = Callable[[ProgressReport | ExaminedReport], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared corpus: the data that a job trains on and is validated with."""

    folder: Path
    configuration: Configuration
    """The job's configuration, with open settings chosen for the corpus."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: Examples
    """The training pairs, read from the disk as they are needed."""
    valid: Examples
    valid_pairs: list[tuple[str, str]]
    """The validation pairs as text, including pairs that are too long."""
    dropped: dict[str, int]
    """Number of pairs left out, by reason."""
    report: Mapping[str, Any] | None
    """What the corpus doctor found, as `prepare --check --json` prints it; None for a built-in task."""
    made: bool
    """True if this call made any part; False if it found all parts in the folder."""
    chosen: str
    """The settings that were left open and the values chosen for the corpus, in words; "" if none was open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTexts:
    """A job's corpus as text, checked and split as in its training."""

    train: Iterator[tuple[str, str]]
    """The training pairs, read from the files as they are needed."""
    pairs: int
    """Number of training pairs."""
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]
    """Empty where the configuration names no test files."""


def prepare(
    configuration: Configuration,
    on_progress: OnProgress = lambda _: None,
    *,
    whole: bool = False,
    pool: Pool | None = None,
) -> Prepared:
    """Return a configuration's corpus, prepared in `data.prepared` or the run's folder; finished parts are not redone.

    `whole`: another process of this job has just prepared the folder, which is read without a lock.
    `pool`: where lines are checked and encoded; by default, in `cleaning.workers` processes. All pools give the same
    folder, byte for byte.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
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
        with _alone_in(folder, on_progress):
            prepared = _at_url(configuration, folder, on_progress, pool)
    else:
        with nullcontext() if whole else _alone_in(folder, on_progress):
            prepared = _Preparation(configuration, folder, on_progress, pool=pool).run()
    if start:
        start.check_tokenizers(prepared.source_tokenizer, prepared.target_tokenizer, folder)
    return prepared


def prepared_folder(configuration: Configuration) -> Path:
    """Return the folder of a configuration's prepared corpus; for one at a URL, a folder of this machine's cache."""
    place = configuration.data.prepared
    if is_url(place):
        return _cache(configuration) / "prepared" / hash_of_bytes(place.rstrip("/").encode())
    return Path(place or Path(configuration.run.directory) / PREPARED)


def prepare_all(
    configuration: Configuration, folder: Path, on_progress: OnProgress = lambda _: None, *, whole: bool = False
) -> Examples:
    """Return a configuration's training pairs, prepared in this folder; none are held out for validation.

    `whole`: as in `prepare`.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    with nullcontext() if whole else _alone_in(folder, on_progress):
        return _Preparation(configuration, folder, on_progress, hold_out=False).run().train


def read_texts(configuration: Configuration, folder: Path, on_progress: OnProgress = lambda _: None) -> CorpusTexts:
    """Return a configuration's corpus as text; the split is computed once and kept in the folder.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus prepared with different settings.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    with _alone_in(folder, on_progress):
        return _Preparation(configuration, folder, on_progress).corpus_texts()


def read_valid_pairs(folder: Path) -> list[tuple[str, str]] | None:
    """Return the validation pairs of a prepared folder, as text; None if the folder has none yet.

    Raises:
        CheckpointError: the pairs cannot be read.
    """
    path = folder / _VALID
    try:
        return _read_pairs(path) if path.exists() else None
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"cannot read {path}: {error}; run `glassformer prepare` again") from error


class _Preparation:
    """The steps of a preparation; each writes its part of the folder and is skipped when that part exists."""

    def __init__(
        self,
        configuration: Configuration,
        folder: Path,
        on_progress: OnProgress,
        *,
        hold_out: bool = True,
        pool: Pool | None = None,
    ) -> None:
        self.configuration, self.folder, self.on_progress, self.hold_out = configuration, folder, on_progress, hold_out
        self.data, self._pool = configuration.data, pool
        self.corpora = self._corpora()
        self.manifest = self._manifest()
        self.made = False

    def run(self) -> Prepared:
        self._ensure_texts()
        configuration = fit(self.configuration, self.manifest.pairs, _read_pairs(self.folder / _SAMPLE))
        source, target = self._ensure_tokenizers(configuration)
        self._ensure_shards(configuration)
        valid_pairs = _read_pairs(self.folder / _VALID)
        sides = ([source for source, _ in valid_pairs], [target for _, target in valid_pairs])
        valid = encode(sides, source, target, self.data.max_length, _placeholders(source, target))
        too_long = sum(shard.too_long for shard in self.manifest.shards) + valid.too_long
        dropped = {**self.manifest.dropped, "longer than data.max_length": too_long}
        return Prepared(
            folder=self.folder,
            configuration=configuration,
            source_tokenizer=source,
            target_tokenizer=target,
            train=open_shards(self.folder, self.manifest.shards),
            valid=valid.encoded.examples(),
            valid_pairs=valid_pairs,
            dropped={reason: count for reason, count in dropped.items() if count},
            report=self.manifest.report,
            made=self.made,
            chosen=describe_choice(self.configuration, configuration, self.manifest.pairs),
        )

    def corpus_texts(self) -> CorpusTexts:
        self._ensure_texts()
        return CorpusTexts(
            train=self._training_pairs(),
            pairs=self.manifest.pairs,
            valid=_read_pairs(self.folder / _VALID),
            test=self._test_pairs(),
        )

    # The folder

    def _manifest(self) -> Manifest:
        """Return the folder's manifest if its corpus and settings match, or a new manifest for a new folder."""
        settings, there = _settings(self.configuration), Manifest.load(self.folder)
        names = [file for corpus in self.corpora.values() for file in (*corpus.source, *corpus.target)]
        files = self._known_files(names, there)
        if there is None:
            return Manifest(settings=settings, files=files)
        if problem := _difference(there, settings, files):
            problem = _difference(there, {**settings, **self._left_open(there, settings)}, files)
        if problem:
            raise ConfigError(
                f"{self.folder} holds a prepared corpus, but {problem}: choose another folder (run.directory or "
                "data.prepared), or delete that folder"
            )
        return replace(there, files=files)

    def _left_open(self, there: Manifest, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the folder's own value of each tokenizer setting that has the value chosen for this corpus.

        A run keeps chosen values, such as "unigram", and its folder what they were chosen for, such as "auto".
        """
        sample = self.folder / _SAMPLE
        if not sample.is_file() or hash_of_file(sample) != there.hashes.get(_SAMPLE):
            return {}
        section = "tokenizer."
        then = {name: there.settings[name] for name in settings if name.startswith(section) and name in there.settings}
        changes = {name.removeprefix(section): value for name, value in then.items()}
        before = replace(self.configuration, tokenizer=changed_settings("tokenizer", TokenizerConfig(), changes))
        chosen = _settings(fit(before, there.pairs, _read_pairs(sample)))
        return {name: value for name, value in then.items() if settings[name] == chosen[name]}

    def _corpora(self) -> Mapping[str, Corpus]:
        return corpora_of(self.data)

    def _known_files(self, names: Sequence[str], there: Manifest | None) -> tuple[CorpusFile, ...]:
        known = {file.name: file for file in there.files} if there else {}
        return tuple(CorpusFile.of(name, known) for name in names)

    def _save(self, **changes: Any) -> None:
        """Record a finished step in the manifest."""
        self.made, self.manifest = True, replace(self.manifest, **changes)
        self.manifest.save(self.folder)

    def _has(self, *names: str) -> bool:
        """Return whether these files exist and are unchanged."""
        paths = {name: self.folder / name for name in names}
        return all(
            path.is_file() and hash_of_file(path) == self.manifest.hashes.get(name) for name, path in paths.items()
        )

    # The texts

    def _ensure_texts(self) -> None:
        names = (_SAMPLE, _VALID, *(() if self.data.task else (_KEPT,)))
        if self.manifest.always_left_out != ALWAYS_LEFT_OUT or not self._has(*names):
            self._write_texts()

    def _write_texts(self) -> None:
        """Decide which pairs are for training; write the validation pairs and a sample."""
        report, dropped = None, {}
        if self.data.task:
            train, valid, _ = self._task
            pairs = len(train)
        else:
            examination = self._examined()
            report = examination.report.to_dict()
            dropped = {reason: finding.count for reason, finding in examination.report.dropped.items()}
            valid, kept = self._hold_out(examination.kept, dropped)
            pairs, _ = first_bits(kept, 0)
            self._check_kept(kept, pairs)
            save_array(self.folder / _KEPT, kept)
        _write_pairs(self.folder / _VALID, valid)
        _write_pairs(self.folder / _SAMPLE, list(islice(self._training_pairs(), SAMPLE_PAIRS)))
        names = [name for name in (_KEPT, _VALID, _SAMPLE) if (self.folder / name).exists()]
        hashes = {name: hash_of_file(self.folder / name) for name in names}
        self._save(
            always_left_out=ALWAYS_LEFT_OUT,
            report=report,
            dropped=dropped,
            pairs=pairs,
            valid_pairs=len(valid),
            hashes=hashes,
        )

    def _check_kept(self, kept: KeptBits, pairs: int) -> None:
        """Raise an error if the folder was prepared with different training pairs.

        They differ where this version of the corpus doctor leaves pairs out for other reasons than the version that
        prepared the folder, but a resumed training run must see the pairs that it began with.
        """
        content, before = BytesIO(), self.manifest.hashes.get(_KEPT)
        np.save(content, kept)
        if before and before != hash_of_bytes(content.getvalue()):
            raise ConfigError(
                f"{self.folder} holds a prepared corpus of {self.manifest.pairs} training pairs, but this version of "
                f"glassformer chooses {pairs} (`glassformer prepare --check` shows why): choose another run.directory "
                "and data.prepared, or use the version that prepared the folder"
            )

    @cached_property
    def _task(self) -> tuple[TextPairs, TextPairs, TextPairs]:
        """The built-in task's pairs for training, validation and testing."""
        if self.data.task not in TASKS:
            raise ConfigError(f"data.task: expected one of {', '.join(TASKS)}, got {quoted(self.data.task)}")
        splits = TASKS[self.data.task](self.configuration.run.seed).splits
        train, valid, test = (
            [(one.source, one.target) for one in splits[split]] for split in ("train", "valid", "test")
        )
        return train, valid, test

    def _test_pairs(self) -> list[tuple[str, str]]:
        if self.data.task:
            return list(self._task[2])
        if "test" not in self.corpora:
            return []
        corpus = self.corpora["test"]
        return list(kept_pairs(corpus, examine_held_out(corpus).kept))

    def _examined(self) -> Examination:
        corpus = self.corpora["train"]
        held_out = {split: files for split, files in self.corpora.items() if split != "train"}

        def on_read(done: int, total: int) -> None:
            self._say("checking the corpus", done, total, "bytes")

        examination = examine(corpus, self.configuration.cleaning, held_out, on_read, self.pool)
        self.on_progress(ExaminedReport(report=examination.report, corpus=corpus))
        if not examination.report.kept:
            raise DataError(
                f"{corpus.names}: none of the {examination.report.pairs} pairs can be used; see `glassformer prepare "
                "--check`, and make sure that it is the right file"
            )
        return examination

    def _hold_out(self, kept: KeptBits, dropped: dict[str, int]) -> tuple[TextPairs, KeptBits]:
        """Return the validation pairs, and bits that mark the training pairs; add the pairs left out to `dropped`."""
        if self.data.valid_source:
            examination = examine_held_out(self.corpora["valid"])
            found = examination.report.dropped.items()
            dropped |= {f"{reason} (validation)": finding.count for reason, finding in found}
            return list(kept_pairs(self.corpora["valid"], examination.kept)), kept
        if not self.hold_out:
            return [], kept
        places, pairs = self._chosen(kept)
        return pairs, _without(kept, places)

    def _chosen(self, kept: KeptBits) -> tuple[list[int], TextPairs]:
        """Return the indices of random pairs to hold out, and the pairs; pairs with the same source stay together."""
        corpus, (total, _) = self.corpora["train"], first_bits(kept, 0)
        count = min(self.data.valid_lines, total // 10)
        wanted = np.random.default_rng(self.configuration.run.seed).choice(total, size=count, replace=False)
        ascending = np.sort(wanted)
        pairs = self._pairs_at(kept_blocks(corpus, kept), ascending)
        sources = {place: normalise(source) for place, (source, _) in zip(ascending.tolist(), pairs, strict=True)}
        groups: dict[str, list[tuple[int, tuple[str, str]]]] = {sources[place]: [] for place in wanted.tolist()}
        for place, pair in self._with_sources(kept_blocks(corpus, kept), frozenset(groups)):
            groups[normalise(pair[0])].append((place, pair))
        held_out = _fitting(groups.values(), count)
        return sorted(place for place, _ in held_out), [pair for _, pair in held_out]

    def _with_sources(
        self, blocks: Iterable[KeptBlock], sources: frozenset[str]
    ) -> Iterator[tuple[int, tuple[str, str]]]:
        """Yield the pairs with these normalised sources, and their indices among all kept pairs."""
        first = 0
        with closing(self.pool.map(PairsWithSources(sources), blocks)) as found:
            for count, pairs in found:
                yield from ((first + place, pair) for place, pair in pairs)
                first += count

    def _pairs_at(self, blocks: Iterable[KeptBlock], places: NDArray[np.int64]) -> TextPairs:
        """Return the pairs at these ascending indices."""
        with closing(self.pool.map(KeptBlock.texts, only(blocks, places))) as texts:
            return [pair for sides in texts for pair in zip(*sides, strict=True)]

    def _training_blocks(self) -> Iterator[KeptBlock]:
        """Return the training pairs, in blocks."""
        if self.data.task:
            return iter([KeptBlock.of(self._task[0])])
        return kept_blocks(self.corpora["train"], np.load(self.folder / _KEPT))

    def _training_pairs(self) -> Iterator[tuple[str, str]]:
        return (pair for block in self._training_blocks() for pair in zip(*block.texts(), strict=True))

    @cached_property
    def pool(self) -> Pool:
        """Where lines are checked and encoded."""
        if self.data.task:
            return HERE
        return self._pool or processes_for(self.corpora["train"], self.configuration.cleaning.workers)

    # Tokens

    def _ensure_tokenizers(self, configuration: Configuration) -> tuple[Tokenizer, Tokenizer]:
        """Return the folder's tokenizers; if it has none, it first gets the run's, the starting run's, or new ones."""
        folder, of_run = self.folder / TOKENIZER, Path(configuration.run.directory) / TOKENIZER
        if not self.manifest.tokenizer or self.manifest.tokenizer != hash_of_folder(folder):
            if configuration.run.directory and of_run.is_dir():
                tokenizers = load_tokenizers(of_run)
            elif configuration.training.start_from:
                tokenizers = load_tokenizers(Path(configuration.training.start_from) / TOKENIZER)
            else:
                tokenizers = self._train_tokenizers(configuration.tokenizer)
            self._save_tokenizers(folder, tokenizers)
        return self._tokenizers()

    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the folder's tokenizers; the target's reverses its tokens if the configuration says so."""
        source, target = load_tokenizers(self.folder / TOKENIZER)
        return source, from_right_to_left(target) if self.data.reverse_target else target

    def _train_tokenizers(self, config: TokenizerConfig) -> tuple[Tokenizer, Tokenizer]:
        """Train tokenizers in a process that can be ended, because sentencepiece ignores signals while it trains."""
        self._say("training the tokenizer")
        pairs = self._tokenizer_pairs()
        sides = ([source for source, _ in pairs], [target for _, target in pairs])
        if len(pairs) < APART_PAIRS or self.configuration.cleaning.workers == 1:
            return train_tokenizers(*sides, config)
        with Worker(train_tokenizers, "trains the tokenizer") as worker:
            return worker.ask(*sides, config)

    def _save_tokenizers(self, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        """Write the tokenizers; forget shards made with different tokenizers."""
        try:
            save_tokenizers(folder, *tokenizers)
        except OSError as error:
            raise CheckpointError(f"cannot write {folder}: {error.strerror or error}") from error
        hash = hash_of_folder(folder)
        self._save(tokenizer=hash, shards=self.manifest.shards if hash == self.manifest.tokenizer else ())

    def _tokenizer_pairs(self) -> TextPairs:
        """Return the pairs to train tokenizers on: all pairs, or TOKENIZER_PAIRS random ones."""
        if self.manifest.pairs <= TOKENIZER_PAIRS:
            return list(self._training_pairs())
        wanted = np.random.default_rng(1).choice(self.manifest.pairs, TOKENIZER_PAIRS, replace=False)
        return self._pairs_at(self._training_blocks(), np.sort(wanted))

    def _ensure_shards(self, configuration: Configuration) -> None:
        """Write the missing and the damaged shards."""
        there = {shard.name: shard for shard in self.manifest.shards if shard.is_whole(self.folder)}
        names = [f"train-{number:05d}" for number in range(math.ceil(self.manifest.pairs / SHARD))]
        counts = {number: min(SHARD, self.manifest.pairs - number * SHARD) for number in range(len(names))}
        missing = {number: count for number, count in counts.items() if names[number] not in there}
        if not missing:
            return
        todo, done = sum(missing.values()), 0
        tokenizers = self._tokenizers()
        encoder = PairEncoder(*tokenizers, self.data.max_length, self._taught(tokenizers, configuration))
        blocks = _of_shards(self._training_blocks(), missing)
        with closing(self.pool.map(encoder, blocks)) as parts:
            for number, count in missing.items():
                some, end = list[Part](), done + count
                while done < end:
                    some.append(next(parts))
                    done += some[-1].encoded.pairs + some[-1].too_long
                    self._say("cutting into tokens", done, todo, "pairs")
                encoded, too_long = joined_parts(some)
                there[names[number]] = write_shard(self.folder, names[number], encoded, too_long=too_long)
                self._save(shards=tuple(there[name] for name in names if name in there))

    def _taught(self, tokenizers: tuple[Tokenizer, Tokenizer], configuration: Configuration) -> PlaceholderPairs | None:
        """Return what puts placeholder tokens into training pairs; None if the vocabularies have no such tokens."""
        found, share = _placeholders(*tokenizers), configuration.tokenizer.placeholders
        if found is None or not share:
            return found
        self._say("aligning words for placeholders")
        return replace(found, share=share, translations=frequent_translations(_read_pairs(self.folder / _SAMPLE)))

    def _say(self, stage: str, done: int = 0, total: int = 0, unit: str = "") -> None:
        self.on_progress(ProgressReport(stage=stage, done=done, total=total, unit=unit))


class _RemotePreparation(_Preparation):
    """A corpus that was downloaded: nothing is made, and this machine need not have the corpus files."""

    def _corpora(self) -> Mapping[str, Corpus]:
        """Return the corpora; none if this machine does not have their files."""
        try:
            return super()._corpora()
        except DataError:
            return {}

    def _known_files(self, names: Sequence[str], there: Manifest | None) -> tuple[CorpusFile, ...]:
        """Return the corpus files; if this machine does not have them, those that were prepared."""
        return super()._known_files(names, there) if names or there is None else there.files

    def _ensure_texts(self) -> None:
        pass

    def _ensure_tokenizers(self, configuration: Configuration) -> tuple[Tokenizer, Tokenizer]:  # noqa: ARG002
        return self._tokenizers()

    def _ensure_shards(self, configuration: Configuration) -> None:
        pass


def _at_url(configuration: Configuration, folder: Path, on_progress: OnProgress, pool: Pool | None) -> Prepared:
    """Return the corpus at the URL in `data.prepared`; if there is none, prepare it in `folder` and upload it."""
    data = configuration.data
    if data.replay_source:
        raise ConfigError(
            f"data.prepared: expected a folder, because data.replay_source adds to it, got {quoted(data.prepared)}"
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
    return replace(_RemotePreparation(configuration, folder, on_progress).run(), made=made)


def _cache(configuration: Configuration) -> Path:
    return Path(configuration.data.cache or "~/.cache/glassformer").expanduser()


def _settings(configuration: Configuration) -> dict[str, Any]:
    """Return the settings that decide the result of the preparation, with lists for tuples, as in JSON."""
    data = configuration.data
    without = {"data": (*NOT_CONTENT, "replay_share"), "cleaning": ("workers",), "tokenizer": ("sampling",)}
    flat = {
        name: value
        for section, names in without.items()
        for name, value in _flat_section(section, asdict(getattr(configuration, section)), names).items()
    }
    # Runs with different seeds may share a folder when the validation pairs come from files.
    return flat if data.valid_source else {**flat, "run.seed": configuration.run.seed}


def _flat_section(section: str, values: Mapping[str, Any], without: Container[str]) -> dict[str, Any]:
    return {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if name not in without
    }


def _difference(there: Manifest, settings: Mapping[str, Any], files: Sequence[CorpusFile]) -> str:
    """Return in words how a folder differs from these settings and files; "" if it does not."""
    then = dict(there.settings)
    for section, kind in _SECTIONS.items():
        then = with_defaults(then, kind, section=f"{section}.")
    for name, value in settings.items():
        if then.get(name) != value:
            return f"with {name} = {quoted(then.get(name))}, not {quoted(value)}"
    if len(files) != len(there.files):
        return f"of {len(there.files)} files, not {len(files)}"
    changed = [new.name for new, old in zip(files, there.files, strict=True) if new.hash != old.hash]
    return f"{changed[0]} has changed since" if changed else ""


def _fitting(groups: Iterable[Sequence[T]], count: int) -> list[T]:
    """Return the members of groups, skipping each group with which there would be more than `count` members."""
    members: list[T] = []
    for group in groups:
        if len(members) + len(group) <= count:
            members += group
    return members


def _without(kept: KeptBits, places: Sequence[int]) -> KeptBits:
    """Return the bits with some set bits cleared; `places` are their ascending indices among the set bits."""
    remaining, first = kept.copy(), 0
    for begin in range(0, len(kept), _BITS_AT_ONCE):
        bits = np.unpackbits(kept[begin : begin + _BITS_AT_ONCE])
        numbers = np.flatnonzero(bits)
        here = slice(*np.searchsorted(places, (first, first + len(numbers))))
        bits[numbers[np.array(places[here], np.int64) - first]] = 0
        remaining[begin : begin + _BITS_AT_ONCE] = np.packbits(bits)
        first += len(numbers)
    return remaining


def _of_shards(blocks: Iterable[KeptBlock], numbers: Container[int]) -> Iterator[KeptBlock]:
    """Yield the pairs that belong to the shards with these numbers; no block belongs to two shards."""
    first = 0
    for block in blocks:
        here = 0
        while here < block.pairs:
            number = (first + here) // SHARD
            end = min(block.pairs, (number + 1) * SHARD - first)
            if number in numbers:
                yield block if end - here == block.pairs else block.only(np.arange(here, end))
            here = end
        first += block.pairs


def _placeholders(source: Tokenizer, target: Tokenizer) -> PlaceholderPairs | None:
    """Return what puts placeholder tokens in place of spans that stand on both sides; None without such tokens."""
    return PlaceholderPairs(source, target) if has_placeholders(source) and has_placeholders(target) else None


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [(source, target) for source, target in map(json.loads, file)]


def _write_pairs(path: Path, pairs: TextPairs) -> None:
    text = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
    write_safely(path, lambda temporary: temporary.write_bytes(text.encode()))


@contextmanager
def _alone_in(folder: Path, on_progress: OnProgress) -> Iterator[None]:
    """Hold the folder's lock within the context; `on_progress` reports when another process holds it."""
    stage = f"waiting for another process that is preparing {folder}"
    with locked(folder, lambda: on_progress(ProgressReport(stage=stage, done=0, total=0, unit=""))):
        clear_temporaries(folder)
        yield
