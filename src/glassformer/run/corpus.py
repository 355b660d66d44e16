"""A job's corpus made ready: checked, split, its tokenizers trained, cut into tokens, and kept on the disk.

    prepared/manifest.json       what it was made from, and what it holds
    prepared/kept.npy            one bit for each pair of lines of the training files: whether it is trained on
    prepared/sample.jsonl        the first pairs, by which open settings are chosen
    prepared/valid.jsonl         the validation pairs, as text
    prepared/tokenizer/          the tokenizers
    prepared/train-00000.*.npy   the training pairs as ids (text/shards.py)

Each step is written when it is whole, so that a second run does only what is missing.
"""

import json
import logging
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from glassformer.bundle import TOKENIZER
from glassformer.errors import CheckpointError, ConfigError, DataError
from glassformer.machine import cores
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.defaults import chosen, fit
from glassformer.run.lock import LOCK, remove_if_empty
from glassformer.run.manifest import CorpusFile, Manifest
from glassformer.run.reports import ExaminedReport, ProgressReport
from glassformer.tasks import TASKS
from glassformer.text.batching import Examples
from glassformer.text.cleaning import CleaningConfig
from glassformer.text.corpus import Corpus, kept_pairs
from glassformer.text.doctor import Examination, examine
from glassformer.text.duplicates import first_bits
from glassformer.text.encoding import PART, POOL_PAIRS, Part, Texts, encode, encode_all
from glassformer.text.normalisation import normalise
from glassformer.text.shards import SHARD, Encoded, Shard, open_shards, save_array, write_shard
from glassformer.text.storage import clear_temporaries, hash_of_file, write_safely
from glassformer.text.tokenizer import Tokenizer, TokenizerConfig, load_tokenizers, save_tokenizers, train_tokenizers
from glassformer.text.workers import Worker

__all__ = ["PREPARED", "CorpusTexts", "Prepared", "prepare", "read_texts", "read_valid_pairs"]

PREPARED = "prepared"
"""The folder's name in a run."""
TOKENIZER_PAIRS = 200_000
"""Pairs at most from which tokenizers learn: more make training them slow, and hardly better."""
APART_PAIRS = 5_000
"""From fewer, tokenizers have learnt before another process would have started."""
SAMPLE = 10_000
"""Pairs by which open settings are chosen."""
UNCLEANED = CleaningConfig(
    max_characters=0, max_ratio=0, duplicates="keep", copies="keep", control_characters="keep", leakage="warn"
)
"""Validation pairs are never left out, but for those with a blank side."""
_KEPT, _SAMPLE, _VALID = "kept.npy", "sample.jsonl", "valid.jsonl"
_BITS_AT_ONCE = 1 << 16

_log = logging.getLogger(__name__)

Bits = NDArray[np.uint8]
Pairs = Sequence[tuple[str, str]]
T = TypeVar("T")
OnProgress = Callable[[ProgressReport | ExaminedReport], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a job trains on and is validated with."""

    folder: Path
    configuration: Configuration
    """The job's, with what it left open chosen for the corpus."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: Examples
    """Read from the disk as they are needed."""
    valid: Examples
    valid_pairs: list[tuple[str, str]]
    """The validation pairs as text, too long ones as well."""
    dropped: dict[str, int]
    """Pairs that are left out, by reason."""
    report: Mapping[str, Any] | None
    """What the corpus doctor found, as `prepare --check --json` prints it; None for a built-in task."""
    made: bool
    """Whether something had to be made for it: not when all was there already."""
    chosen: str
    """What the configuration left open and the corpus decided, in words; "" if it left nothing open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTexts:
    """A job's corpus as text, checked and split as its training sees it."""

    train: Iterator[tuple[str, str]]
    """The training pairs, read from the files as they are needed."""
    pairs: int
    """How many training pairs there are."""
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]
    """Empty where the configuration names no test files."""


def prepare(configuration: Configuration, on_progress: OnProgress = lambda _: None) -> Prepared:
    """Return a configuration's corpus, made ready in `data.prepared` or the run's folder; what is there is not redone.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus that was prepared otherwise.
        DataError: the corpus cannot be read.
        CheckpointError: something could not be written.
        VocabularyError: the corpus makes no vocabulary.
    """
    if not configuration.run.directory and not configuration.data.prepared:
        raise ConfigError("run.directory is missing: say in which folder the run shall be kept")
    folder = Path(configuration.data.prepared or Path(configuration.run.directory) / PREPARED)
    with _alone(folder, on_progress):
        clear_temporaries(folder)
        return _Preparation(configuration, folder, on_progress).run()


def read_texts(configuration: Configuration, folder: Path, on_progress: OnProgress = lambda _: None) -> CorpusTexts:
    """Return a configuration's corpus as text; which pairs are for what is found out once, and kept in the folder.

    Raises:
        ConfigError: a setting is impossible, or the folder holds a corpus that was prepared otherwise.
        DataError: the corpus cannot be read.
        CheckpointError: something could not be written.
    """
    with _alone(folder, on_progress):
        clear_temporaries(folder)
        return _Preparation(configuration, folder, on_progress).corpus_texts()


def read_valid_pairs(folder: Path) -> list[tuple[str, str]] | None:
    """Return the validation pairs of a folder with a prepared corpus, as text; None when it has none yet.

    Raises:
        CheckpointError: they cannot be read.
    """
    path = folder / _VALID
    try:
        return _read_pairs(path) if path.exists() else None
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}): prepare makes it again") from error


class _Preparation:
    """The steps, each of which leaves its part in the folder and is passed over when that is there."""

    def __init__(self, configuration: Configuration, folder: Path, on_progress: OnProgress) -> None:
        self.configuration, self.folder, self.on_progress = configuration, folder, on_progress
        self.data = configuration.data
        self.corpora = _named_corpora(configuration)
        self.manifest = self._manifest()
        self.made = False

    def run(self) -> Prepared:
        self._need_texts()
        configuration = fit(self.configuration, self.manifest.pairs, _read_pairs(self.folder / _SAMPLE))
        source, target = self._tokenizers(configuration)
        self._shards()
        valid_pairs = _read_pairs(self.folder / _VALID)
        sides = ([source for source, _ in valid_pairs], [target for _, target in valid_pairs])
        valid = encode(sides, source, target, self.data.max_length)
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
            chosen=chosen(self.configuration, configuration, self.manifest.pairs),
        )

    def corpus_texts(self) -> CorpusTexts:
        self._need_texts()
        return CorpusTexts(
            train=_flat(self._training_texts()),
            pairs=self.manifest.pairs,
            valid=_read_pairs(self.folder / _VALID),
            test=self._test_pairs(),
        )

    # The folder

    def _manifest(self) -> Manifest:
        """Return the folder's manifest if it is of this corpus and these settings, or a new one."""
        settings, there = _settings(self.configuration), Manifest.load(self.folder)
        known = {file.name: file for file in there.files} if there else {}
        names = [file for corpus in self.corpora.values() for file in (*corpus.source, *corpus.target)]
        files = tuple(CorpusFile.of(name, known) for name in names)
        if there is None:
            return Manifest(settings=settings, files=files)
        problem = _difference(there, settings, files)
        if problem:
            raise ConfigError(
                f"{self.folder} holds a prepared corpus, but {problem}: choose another folder (run.directory or "
                "data.prepared), or delete that one"
            )
        return replace(there, files=files)

    def _save(self, **changes: Any) -> None:
        """Write down what was just made."""
        self.made, self.manifest = True, replace(self.manifest, **changes)
        self.manifest.save(self.folder)

    def _has(self, *names: str) -> bool:
        """Return whether these files are there, as they were written."""
        paths = {name: self.folder / name for name in names}
        return all(
            path.is_file() and hash_of_file(path) == self.manifest.hashes.get(name) for name, path in paths.items()
        )

    # The texts

    def _need_texts(self) -> None:
        if not self._has(_SAMPLE, _VALID, *(() if self.data.task else (_KEPT,))):
            self._texts()

    def _texts(self) -> None:
        """Find out which pairs are for training, and write those for validation, and a sample."""
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
            save_array(self.folder / _KEPT, kept)
        _write_pairs(self.folder / _VALID, valid)
        _write_pairs(self.folder / _SAMPLE, list(islice(_flat(self._training_texts()), SAMPLE)))
        names = [name for name in (_KEPT, _VALID, _SAMPLE) if (self.folder / name).exists()]
        hashes = {name: hash_of_file(self.folder / name) for name in names}
        self._save(report=report, dropped=dropped, pairs=pairs, valid_pairs=len(valid), hashes=hashes)

    @cached_property
    def _task(self) -> tuple[Pairs, Pairs, Pairs]:
        """The built-in task's pairs for training, for validation and for testing."""
        if self.data.task not in TASKS:
            raise ConfigError(f"data.task = {self.data.task!r}: expected one of {', '.join(TASKS)}")
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
        return list(_flat(kept_pairs(corpus, examine(corpus, UNCLEANED).kept)))

    def _examined(self) -> Examination:
        corpus, held_out = self.corpora["train"], {**self.corpora}
        del held_out["train"]

        def on_read(done: int, total: int) -> None:
            self._say("checking the corpus", done, total, "bytes")

        examination = examine(corpus, self.configuration.cleaning, held_out, on_read)
        self.on_progress(ExaminedReport(report=examination.report, corpus=corpus))
        if not examination.report.kept:
            raise DataError(
                f"{corpus.names}: no pair is left of {examination.report.pairs} (see `glassformer prepare --check`): "
                "is it the right file?"
            )
        return examination

    def _hold_out(self, kept: Bits, dropped: dict[str, int]) -> tuple[Pairs, Bits]:
        """Return the validation pairs, and the bits of those for training; add to the reasons what is left out."""
        if self.data.valid_source:
            examination = examine(self.corpora["valid"], UNCLEANED)
            found = examination.report.dropped.items()
            dropped |= {f"{reason} (validation)": finding.count for reason, finding in found}
            return list(_flat(kept_pairs(self.corpora["valid"], examination.kept))), kept
        places, pairs = self._chosen(kept)
        return pairs, _without(kept, places)

    def _chosen(self, kept: Bits) -> tuple[list[int], Pairs]:
        """Return random pairs to hold out, of a source with several targets all or none, and their places."""
        corpus, (total, _) = self.corpora["train"], first_bits(kept, 0)
        count = min(self.data.valid_lines, total // 10)
        wanted = np.random.default_rng(self.configuration.run.seed).choice(total, size=count, replace=False)
        ascending = np.sort(wanted)
        sources = {
            place: normalise(source)
            for place, (source, _) in zip(ascending.tolist(), _at(kept_pairs(corpus, kept), ascending), strict=True)
        }
        groups: dict[str, list[tuple[int, tuple[str, str]]]] = {sources[place]: [] for place in wanted.tolist()}
        for place, pair in enumerate(_flat(kept_pairs(corpus, kept))):
            if (source := normalise(pair[0])) in groups:
                groups[source].append((place, pair))
        held_out = _fitting(groups.values(), count)
        return sorted(place for place, _ in held_out), [pair for _, pair in held_out]

    def _training_texts(self) -> Iterable[Texts]:
        """Return the pairs for training, in blocks."""
        if self.data.task:
            train = self._task[0]
            return [([source for source, _ in train], [target for _, target in train])]
        return kept_pairs(self.corpora["train"], np.load(self.folder / _KEPT))

    # Tokens

    def _tokenizers(self, configuration: Configuration) -> tuple[Tokenizer, Tokenizer]:
        """Return the folder's tokenizers; where there are none yet, the run's if it has some, or newly trained ones."""
        folder, of_run = self.folder / TOKENIZER, Path(configuration.run.directory) / TOKENIZER
        if not self.manifest.tokenizer or self.manifest.tokenizer != _hash_of_folder(folder):
            if configuration.run.directory and of_run.is_dir():
                tokenizers = load_tokenizers(of_run)
            else:
                tokenizers = self._new_tokenizers(configuration.tokenizer)
            self._keep_tokenizers(folder, tokenizers)
        return load_tokenizers(folder)

    def _new_tokenizers(self, config: TokenizerConfig) -> tuple[Tokenizer, Tokenizer]:
        """Train tokenizers, in a process that can be ended: while sentencepiece learns, it hears of no signal."""
        self._say("training the tokenizer")
        pairs = self._tokenizer_pairs()
        sides = ([source for source, _ in pairs], [target for _, target in pairs])
        if len(pairs) < APART_PAIRS or self.configuration.cleaning.workers == 1:
            return train_tokenizers(*sides, config)
        with Worker(train_tokenizers, "trains the tokenizer") as worker:
            return worker.ask(*sides, config)

    def _keep_tokenizers(self, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        """Write the tokenizers; shards of other ones are forgotten."""
        try:
            save_tokenizers(folder, *tokenizers)
        except OSError as error:
            raise CheckpointError(f"cannot write {folder}: {error.strerror or error}") from error
        hash = _hash_of_folder(folder)
        self._save(tokenizer=hash, shards=self.manifest.shards if hash == self.manifest.tokenizer else ())

    def _tokenizer_pairs(self) -> Pairs:
        """Return the pairs from which tokenizers learn: all, or as many random ones as are enough."""
        if self.manifest.pairs <= TOKENIZER_PAIRS:
            return list(_flat(self._training_texts()))
        wanted = np.random.default_rng(1).choice(self.manifest.pairs, TOKENIZER_PAIRS, replace=False)
        return _at(self._training_texts(), np.sort(wanted))

    def _shards(self) -> None:
        """Write the shards that are missing or damaged."""
        there = {shard.name: shard for shard in self.manifest.shards if shard.is_whole(self.folder)}
        names = [f"train-{number:05d}" for number in range(math.ceil(self.manifest.pairs / SHARD))]
        counts = {number: min(SHARD, self.manifest.pairs - number * SHARD) for number in range(len(names))}
        missing = {number: count for number, count in counts.items() if names[number] not in there}
        if not missing:
            return
        todo, done = sum(missing.values()), 0
        workers = self.configuration.cleaning.workers or cores() if todo >= POOL_PAIRS else 1
        texts = _of_shards(self._training_texts(), missing)
        with closing(encode_all(texts, self.folder / TOKENIZER, self.data.max_length, workers)) as parts:
            for number, count in missing.items():
                some: list[Part] = []
                for part in islice(parts, math.ceil(count / PART)):
                    some.append(part)
                    done += part.encoded.pairs + part.too_long
                    self._say("cutting into tokens", done, todo, "pairs")
                there[names[number]] = self._shard(names[number], some)
                self._save(shards=tuple(there[name] for name in names if name in there))

    def _shard(self, name: str, parts: Sequence[Part]) -> Shard:
        encoded = Encoded.joined([part.encoded for part in parts])
        return write_shard(self.folder, name, encoded, too_long=sum(part.too_long for part in parts))

    def _say(self, stage: str, done: int = 0, total: int = 0, unit: str = "") -> None:
        self.on_progress(ProgressReport(stage=stage, done=done, total=total, unit=unit))


def _settings(configuration: Configuration) -> dict[str, Any]:
    """Return the settings that decide what is prepared, as JSON would give them back."""
    data = configuration.data
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "cleaning", "tokenizer")}
    without = {"data": ("directory", "prepared"), "cleaning": ("memory", "workers"), "tokenizer": ("sampling",)}
    flat = {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for section, values in sections.items()
        for name, value in values.items()
        if name not in without[section]
    }
    # Where validation files are given, runs of several seeds may share a folder.
    return flat if data.valid_source else {**flat, "run.seed": configuration.run.seed}


def _difference(there: Manifest, settings: Mapping[str, Any], files: Sequence[CorpusFile]) -> str:
    """Return in words in what a folder differs from these settings and files, "" if it does not."""
    for name, value in settings.items():
        if there.settings.get(name) != value:
            return f"with {name} = {there.settings.get(name)!r}, not {value!r}"
    if len(files) != len(there.files):
        return f"of {len(there.files)} files, not {len(files)}"
    changed = [new.name for new, old in zip(files, there.files, strict=True) if new.hash != old.hash]
    return f"{changed[0]} has changed since then" if changed else ""


def _named_corpora(configuration: Configuration) -> dict[str, Corpus]:
    """Return the corpora that a configuration names files for: "train", "valid", "test"."""
    data, corpora = configuration.data, {}
    for name, prefix in (("train", ""), ("valid", "valid_"), ("test", "test_")):
        source, target = getattr(data, f"{prefix}source"), getattr(data, f"{prefix}target")
        if source:
            columns = (None, None) if target else (data.source_column, data.target_column)
            corpora[name] = Corpus.of(source, target, data.directory, *columns)
    return corpora


def _flat(blocks: Iterable[Texts]) -> Iterator[tuple[str, str]]:
    return (pair for source, target in blocks for pair in zip(source, target, strict=True))


def _at(blocks: Iterable[Texts], places: NDArray[np.int64]) -> Pairs:
    """Return the pairs at these places, which ascend."""
    pairs, first = [], 0
    for source, target in blocks:
        begin, end = np.searchsorted(places, (first, first + len(source)))
        pairs += [(source[place], target[place]) for place in (places[begin:end] - first).tolist()]
        first += len(source)
    return pairs


def _fitting(groups: Iterable[Sequence[T]], count: int) -> list[T]:
    """Return the members of as many groups, taken in their order, as do not go beyond a count together."""
    members: list[T] = []
    for group in groups:
        if len(members) + len(group) <= count:
            members += group
    return members


def _without(kept: Bits, places: Sequence[int]) -> Bits:
    """Return the bits without those that are set at these places, counted among the set ones, which ascend."""
    remaining, first = kept.copy(), 0
    for begin in range(0, len(kept), _BITS_AT_ONCE):
        bits = np.unpackbits(kept[begin : begin + _BITS_AT_ONCE])
        numbers = np.flatnonzero(bits)
        here = slice(*np.searchsorted(places, (first, first + len(numbers))))
        bits[numbers[np.array(places[here], np.int64) - first]] = 0
        remaining[begin : begin + _BITS_AT_ONCE] = np.packbits(bits)
        first += len(numbers)
    return remaining


def _of_shards(blocks: Iterable[Texts], numbers: Container[int]) -> Iterator[Texts]:
    """Yield of all pairs those that belong to the shards with these numbers."""
    first = 0
    for source, target in blocks:
        here = 0
        while here < len(source):
            number = (first + here) // SHARD
            end = min(len(source), (number + 1) * SHARD - first)
            if number in numbers:
                yield source[here:end], target[here:end]
            here = end
        first += len(source)


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [(source, target) for source, target in map(json.loads, file)]


def _write_pairs(path: Path, pairs: Pairs) -> None:
    text = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
    write_safely(path, lambda temporary: temporary.write_bytes(text.encode()))


def _hash_of_folder(folder: Path) -> str:
    digest = xxhash.xxh3_128()
    for path in sorted(folder.glob("*")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _alone(folder: Path, on_progress: OnProgress) -> Iterator[None]:
    """Hold the folder's lock, once no other process prepares it; a folder into which nothing comes is removed again."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, thread_local=False)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            stage = f"waiting for another process that prepares {folder}"
            on_progress(ProgressReport(stage=stage, done=0, total=0, unit=""))
            lock.acquire()
    except NotImplementedError:
        _log.warning("%s is on a file system without locks: make sure that only one process prepares it", folder)
    except OSError as error:
        raise CheckpointError(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()
        remove_if_empty(made)
