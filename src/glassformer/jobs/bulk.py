"""Bulk translation: translate a large corpus, or score a large corpus of pairs, in parts, with any number of processes.

    bulk.json                         the models, the settings, and the names and sizes of the files
    parts/FILE-BEGIN-END.txt          a part: one line for each line that starts in the bytes BEGIN to END - 1 of a file
    parts/FILE-BEGIN-END.status.jsonl the status of each line of the part, in the format of `translate --status`
    parts/FILE-BEGIN-END.json         the part's record with hashes, written last to mark the part as complete
    manifest.json                     written by `finish_bulk`, after all checks

Each file appears only when it is complete, so a killed process leaves no incomplete part. Processes need no lock: two
processes that translate the same part write the same bytes.
"""

import hashlib
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any

from glassformer.bundle import SHORTLIST, Bundle
from glassformer.corpus.analogy import LEXICON
from glassformer.corpus.files import expand, stored_bytes
from glassformer.corpus.ranges import FileRange, check_column, count_texts, ranges_of
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import CheckpointError, ConfigError, DataError, shortened
from glassformer.evaluation.guards import GUARDS
from glassformer.jobs.kept_settings import difference_of_settings, stored_weights
from glassformer.jobs.options import PART_BYTES
from glassformer.jobs.run_reports import ProgressReport
from glassformer.recipes.configuration import DecodingConfig, settings_of_outputs
from glassformer.recipes.toml import changed_settings
from glassformer.settings import with_defaults
from glassformer.system.files import JSON_VERSION, hash_of_file, parse_json
from glassformer.system.machine import cores
from glassformer.system.storage import Storage, storage_of
from glassformer.text.glossary import Glossary
from glassformer.translating.combination import Combination
from glassformer.translating.translation import Translation, score_line, status_entry
from glassformer.translator import WINDOW, Translator

__all__ = [
    "BULK",
    "BulkJob",
    "BulkPart",
    "BulkSummary",
    "PartRecord",
    "bulk",
    "collected",
    "finish_bulk",
    "finished_settings",
    "finished_translations",
    "make_part",
    "names_and_sizes",
    "rescored_by",
]

BULK = "bulk.json"
"""The file that records how a folder's parts are made."""
_PARTS, _MANIFEST = "parts", "manifest.json"
_RECORD, _TEXT, _STATUS = _ENDS = ".json", ".txt", ".status.jsonl"
_NAME = re.compile(r"(?P<index>\d{6})-.*-(?P<begin>\d{13})-(?P<end>\d{13})")
_NAMED = 3
"""Maximum number of parts that an error names."""

_OnProgress = Callable[[ProgressReport], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPart:
    """A range of a file, which one process translates."""

    index: int
    """Index of the file among the job's files, from 0."""
    range: FileRange

    @property
    def name(self) -> str:
        """The name of the part's files without their ending; parts sorted by name are in the order of the lines."""
        file = re.sub(r"[^\w.-]", "_", self.range.file.rpartition("/")[2], flags=re.ASCII)
        return f"{self.index:06d}-{file[:100]}-{self.range.begin:013d}-{self.range.end:013d}"

    @property
    def bytes(self) -> int:
        """The size of the part's range in bytes."""
        return self.range.end - self.range.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """The record of a complete part: its size, statuses and hashes."""

    name: str
    lines: int
    statuses: Mapping[str, int]
    """Number of lines by status."""
    engine: str
    """Name of the engine that translated the part."""
    bytes: int
    """Size of the file of outputs in bytes."""
    sha256: str
    """Hash of the file of outputs."""
    status_sha256: str
    """Hash of the file of statuses."""

    @classmethod
    def parse(cls, text: bytes) -> "PartRecord":
        """Return the record in a JSON text.

        Raises:
            ValueError: the text is not a record.
        """
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(parse_json(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob:
    """The files to translate, the models and their settings, and the folder of the outputs."""

    runs: tuple[Path, ...]
    """A run, the runs of an ensemble, or a file that `tune` wrote."""
    files: tuple[str, ...]
    """Paths and URLs of existing files."""
    output: str
    """Path or URL of the folder for the outputs."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Decoding settings by name; they override the first run's settings."""
    column: str | None = None
    """The column to translate in TSV files (a name, or a number from 0), JSONL or Parquet files (a name)."""
    target_column: str | None = None
    """The column of targets to score as translations of the texts in `column`; None = translate the texts."""
    glossary: Glossary | None = None
    """Required translations of some terms."""
    part_bytes: int = PART_BYTES
    """Size of a part of an uncompressed file, in bytes."""
    engine: EngineName = "auto"
    quantization: Quantization | None = None
    device: str = "auto"
    """Where to compute; "auto" = a GPU, if the machine that translates the part has one."""

    @classmethod
    def of(cls, runs: Iterable[Path], inputs: Sequence[str], output: str, **options: Any) -> "BulkJob":
        """Return the job for files given as names, globs and URLs; `options` sets the other fields.

        Raises:
            ConfigError: a setting is impossible, or a file is given twice.
            DataError: a file does not exist, or a glob matches no file.
        """
        return cls(runs=tuple(runs), files=expand(inputs), output=output, **options)

    def __post_init__(self) -> None:
        """Check the files and the settings."""
        if self.part_bytes < 1:
            raise ConfigError(f"part_bytes: expected a positive integer, got {self.part_bytes}")
        [(file, times)] = Counter(self.files).most_common(1)
        if times > 1:
            raise ConfigError(f"{file} is given {times} times: name each file once")
        for file in self.files:
            for column in self.columns or (None,):
                check_column(file, column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns to read; empty for files of plain lines."""
        return tuple(column for column in (self.column, self.target_column) if column is not None)

    @property
    def storage(self) -> Storage:
        """The folder of the outputs."""
        return _storage(self.output)

    def parts(self, share: int = 1, shares: int = 1) -> list[BulkPart]:
        """Return one of `shares` shares of the parts: every `shares`-th part, beginning with part number `share`.

        The parts are in the order of the lines.

        Raises:
            ConfigError: the share does not exist.
        """
        if not 1 <= share <= shares:
            raise ConfigError(f"part: expected I/N with 1 ≤ I ≤ N, such as 1/4, got {share}/{shares}")
        files = enumerate(self.files)
        parts = (BulkPart(index=index, range=one) for index, file in files for one in ranges_of(file, self.part_bytes))
        return list(islice(parts, share - 1, None, shares))

    def missing(self, parts: Iterable[BulkPart]) -> list[BulkPart]:
        """Return the parts that are not complete."""
        names = self.storage.names(_PARTS)
        return [part for part in parts if not _is_there(part.name, names)]

    def keep_settings(self) -> None:
        """Write the settings into the output folder; refuse a folder made with different settings.

        Raises:
            ConfigError: the parts in that folder were made with different models, settings or files.
            CheckpointError: the folder cannot be read or written.
        """
        settings = self._identity()
        if BULK not in self.storage.names(""):
            _write_json(self.storage, BULK, settings)
        # Read even if just written: a process with different settings may have written the file at the same time.
        if difference := difference_of_settings(_settings(self.storage), settings):
            raise ConfigError(
                f"{self.output} holds parts that were translated with {difference}: choose another folder, or delete "
                f"{self.output}"
            )

    def translator(self, workers: int = 0) -> Translator:
        """Return the translator of the job, by default with one worker for each core that this process may use.

        For scoring, the default is one worker, in which PyTorch uses all cores.
        """
        first, *others = self.runs
        how: dict[str, Any] = {"engine": self.engine, "quantization": self.quantization, "device": self.device}
        return Translator.load(
            first, *others, settings=self.settings, workers=workers or (1 if self.target_column else cores()), **how
        )

    @property
    def decoding(self) -> DecodingConfig:
        """The decoding settings of the job."""
        combination = Combination.named(self.runs[0])
        changes = {**combination.settings, **self.settings}
        return changed_settings("decoding", Bundle.load(combination.run).configuration.decoding, changes)

    def _identity(self) -> dict[str, Any]:
        first, *others = self.runs
        combination, decoding = Combination.named(first), self.decoding
        guards, listed = combination.run / GUARDS, combination.run / SHORTLIST
        return {
            "runs": [hash_of_file(stored_weights(run)) for run in (*combination.folders, *others)],
            **rescored_by(combination),
            **settings_of_outputs(decoding),
            "candidates": [hash_of_file(listed)] if decoding.shortlist and listed.exists() else None,
            # Guards change outputs only if suspicious outputs are searched again.
            "guards": hash_of_file(guards) if decoding.retry and guards.exists() else None,
            "engine": self.engine,
            "quantization": self.quantization,
            "glossary": [hashlib.sha256(repr(self.glossary).encode()).hexdigest()] if self.glossary else None,
            "column": self.column,
            "target_column": self.target_column,
            "part_bytes": self.part_bytes,
            "files": names_and_sizes(self.files),
        }


def _is_there(part: str, names: Collection[str]) -> bool:
    return all(f"{part}{end}" in names for end in _ENDS)


def rescored_by(combination: Combination) -> dict[str, Any]:
    """Return the settings, apart from the models, that decide how outputs are rescored; empty for a single run."""
    if not combination.rescores:
        return {}
    lexicon = hash_of_file(combination.run / LEXICON) if combination.lexicon else None
    return {"weights": list(combination.weights.vector), "lexicon": lexicon}


@cache  # an object store remembers which folders exist, and each check costs a request
def _storage(place: str) -> Storage:
    return storage_of(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSummary:
    """A summary of what one command translated."""

    parts: int
    """Number of the command's parts, including the parts that were complete before the command."""
    made: int
    """Number of parts translated by this command."""
    statuses: Counter[str]
    """Number of lines translated by this command, by status."""


def bulk(job: BulkJob, share: int = 1, shares: int = 1, *, on_progress: _OnProgress = lambda _: None) -> BulkSummary:
    """Translate, in this process, the missing parts of one share of a job.

    If the lines of a part cannot be read, the other parts are still translated.

    Raises:
        ConfigError: a setting is impossible, the share does not exist, or the parts in the folder were made with
            different settings.
        DataError: files of some parts cannot be read.
        CheckpointError: a run is missing or damaged, or a file cannot be written.
    """
    parts = job.parts(share, shares)
    job.keep_settings()
    missing = job.missing(parts)
    return collected(job, _translated(job, missing), parts, missing, on_progress)


def _translated(job: BulkJob, parts: Sequence[BulkPart]) -> Iterator[tuple[BulkPart, PartRecord | DataError]]:
    if not parts:
        return  # avoids loading the model
    translator = job.translator()
    for part in parts:
        try:
            yield part, make_part(job, translator, part)
        except DataError as error:
            yield part, error


def collected(
    job: BulkJob,
    results: Iterable[tuple[BulkPart, PartRecord | DataError]],
    parts: Sequence[BulkPart],
    missing: Sequence[BulkPart],
    on_progress: _OnProgress,
) -> BulkSummary:
    """Report the progress of the missing parts as they are translated, in any order; return the summary.

    At the end, the files are removed that processes left which were killed while they wrote one of the parts.

    Raises:
        DataError: files of some parts could not be read.
    """
    statuses, failed, made = Counter[str](), list[DataError](), 0
    size, done, begun, started = sum(part.bytes for part in missing), 0, time.perf_counter(), time.time()
    for part, result in results:
        done += part.bytes
        if isinstance(result, DataError):
            failed.append(result)
            continue
        made += 1
        statuses.update(result.statuses)
        left = (time.perf_counter() - begun) / max(done, 1) * (size - done)
        on_progress(ProgressReport(stage="translating", done=done, total=size, unit="bytes", seconds_left=left))
    if failed:
        raise DataError(
            f"{len(failed)} of {len(parts)} parts failed, the other parts are complete; first error: {failed[0]}"
        )
    job.storage.clear(_PARTS, {f"{part.name}{end}" for part in parts for end in _ENDS}, before=started)
    return BulkSummary(parts=len(parts), made=made, statuses=statuses)


def make_part(job: BulkJob, translator: Translator, part: BulkPart) -> PartRecord:
    """Translate or score a part and write its files; return its record.

    Raises:
        DataError: the lines cannot be read.
        CheckpointError: a file cannot be written.
    """
    storage, path, statuses = job.storage, f"{_PARTS}/{part.name}", Counter[str]()
    with storage.writing(path + _STATUS) as status_file, storage.writing(path + _TEXT) as text_file:
        text, status = _Hashed(text_file), _Hashed(status_file)
        for number, (line, one) in enumerate(_outputs(job, translator, part.range), start=1):
            text.write(f"{line}\n".encode("utf-8", "surrogateescape"))
            status.write(status_entry(number, one).encode())
            statuses[one.status] += 1
    record = PartRecord(
        name=part.name,
        lines=statuses.total(),
        statuses=dict(statuses),
        engine=translator.engine.name,
        bytes=text.bytes,
        sha256=text.sha256,
        status_sha256=status.sha256,
    )
    _write_json(storage, path + _RECORD, asdict(record))
    return record


def _outputs(job: BulkJob, translator: Translator, lines: FileRange) -> Iterator[tuple[str, Translation]]:
    """Yield, for each line of a range, the text to write, and the translation or scored target."""
    if job.target_column is None:
        for translation in translator.stream(lines.texts(job.column), log_probs=False, glossary=job.glossary):
            yield translation.text, translation
        return
    rows = lines.rows(*job.columns)
    while pairs := [(source, target) for source, target in islice(rows, WINDOW)]:
        for scored in translator.score(pairs):
            yield score_line(scored), scored


class _Hashed:
    """A file whose written bytes are counted and hashed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.bytes, self._digest = file, 0, hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, text: bytes) -> None:
        self.file.write(text)
        self._digest.update(text)
        self.bytes += len(text)


# The end


def finish_bulk(job: BulkJob, *, on_progress: _OnProgress = lambda _: None) -> dict[str, Any]:
    """Check that the parts are complete and hold each line of the files once; write and return the manifest.

    The number of lines of each file is counted over the whole file, independently of the ranges. Damaged parts are
    renamed, so that the command that translates missing parts translates the damaged parts again.

    Raises:
        ConfigError: the parts were made with different settings.
        CheckpointError: parts are missing or damaged, parts do not belong to the job, or the manifest cannot be
            written.
        DataError: an input file cannot be read.
    """
    if BULK not in job.storage.names(""):
        raise CheckpointError(f"{job.output} has no {BULK}: run the same command without --finish first")
    job.keep_settings()
    records = _checked_records(job, on_progress)
    of_file: list[list[PartRecord]] = [[] for _ in job.files]
    for record in records:
        of_file[_place(record.name)[0]].append(record)
    files = [_checked_file(file, job.columns, some) for file, some in zip(job.files, of_file, strict=True)]
    statuses = Counter[str]()
    for record in records:
        statuses.update(record.statuses)
    engines = sorted({record.engine for record in records})
    if len(engines) > 1:  # the engines' beam searches differ in details, so no single command could repeat the result
        raise CheckpointError(
            f"{job.output}: expected parts of one engine, got parts of {' and '.join(engines)}; delete the folder, and "
            f"translate all parts with --engine {engines[0]}"
        )
    manifest = {"lines": statuses.total(), "statuses": dict(statuses), "engine": "".join(engines), "files": files}
    _write_json(job.storage, _MANIFEST, manifest)
    job.storage.clear(_PARTS)  # only now, because until all parts are complete, a process may still write here
    return manifest


def finished_settings(folder: str) -> dict[str, Any]:
    """Return the settings with which the translations of a folder were made, as bulk.json records them.

    Raises:
        CheckpointError: `finish_bulk` has not checked the folder, or the folder holds scores instead of translations.
    """
    storage = storage_of(folder)
    if not {BULK, _MANIFEST} <= storage.names(""):
        raise CheckpointError(f"{folder} has no {_MANIFEST}: run `glassformer bulk` with --finish first")
    settings = _settings(storage)
    if settings.get("target_column") is not None:
        raise CheckpointError(f"{folder}: expected translations, got scores; give a folder with translations")
    return settings


def names_and_sizes(files: Iterable[str]) -> list[list[str | int]]:
    """Return each file's name (without folders) and stored size, from which a later command recognises the file."""
    return [[file.rpartition("/")[2], stored_bytes(file)] for file in files]


def finished_translations(folder: str) -> Iterator[Translation]:
    """Yield the translation of each line of a folder that `finish_bulk` has checked, in order.

    The log probabilities are NaN, as with `Translator.stream(…, log_probs=False)`.

    Raises:
        CheckpointError: as for `finished_settings`, or a part has changed since `finish_bulk` checked it.
    """
    finished_settings(folder)
    storage = storage_of(folder)
    for file in _read_json(storage, _MANIFEST)["files"]:
        for part in file["parts"]:
            yield from _translations_of(storage, part["name"])


def _translations_of(storage: Storage, part: str) -> Iterator[Translation]:
    if not _whole(storage, part):
        raise CheckpointError(
            f"{storage.place}/{_PARTS}/{part}: expected the part that --finish has checked, got a different part; run "
            "`glassformer bulk` with --finish again"
        )
    texts, statuses = (_lines(storage, f"{_PARTS}/{part}{end}") for end in (_TEXT, _STATUS))
    for text, status in zip(texts, statuses, strict=True):
        yield Translation(text=text, log_prob=math.nan, score=math.nan, status=json.loads(status)["status"])


def _lines(storage: Storage, name: str) -> Iterator[str]:
    rest = b""
    for block in storage.read(name):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line.decode("utf-8", "surrogateescape") for line in lines)


def _checked_records(job: BulkJob, on_progress: _OnProgress) -> list[PartRecord]:
    """Compare each part's record with the part's files; return all records, in the order of the lines."""
    there, expected = job.storage.names(_PARTS), [part.name for part in job.parts()]
    stems = {name.removesuffix(_RECORD) for name in there if name.endswith(_RECORD)}
    if unknown := sorted(stems - set(expected)):
        raise CheckpointError(
            f"{job.output}/{_PARTS}: expected the parts of this command, got also {_listed(unknown)}; delete these "
            "files, and run the same command again"
        )
    records, missing, damaged = list[PartRecord](), list[str](), list[str]()
    for number, name in enumerate(expected, start=1):
        if not _is_there(name, there):
            missing.append(name)
            continue
        record = _whole(job.storage, name)
        if record:
            records.append(record)
        else:
            damaged.append(name)
            _put_aside(job.storage, name)
        on_progress(ProgressReport(stage="checking the parts", done=number, total=len(expected), unit="parts"))
    if missing or damaged:
        found = [f"{len(missing)} missing ({_listed(missing)})"] if missing else []
        if damaged:
            found.append(f"{len(damaged)} cut or altered ({_listed(damaged)}; renamed to *.damaged)")
        raise CheckpointError(
            f"{job.output}: expected {len(expected)} whole parts, got {' and '.join(found)}; run the same command "
            "without --finish to translate these parts, and then with --finish again"
        )
    return records


def _whole(storage: Storage, name: str) -> PartRecord | None:
    """Return the record of a part, or None if the part's files differ from the record."""
    path = f"{_PARTS}/{name}"
    try:
        record = PartRecord.parse(b"".join(storage.read(path + _RECORD)))
    except (OSError, ValueError):
        return None
    lines, hashes = Counter[str](), dict[str, str]()
    for end in (_TEXT, _STATUS):
        digest = hashlib.sha256()
        for block in storage.read(path + end):
            digest.update(block)
            lines[end] += block.count(b"\n")
        hashes[end] = digest.hexdigest()
    whole = hashes == {_TEXT: record.sha256, _STATUS: record.status_sha256}
    counted = lines[_TEXT] == lines[_STATUS] == record.lines == sum(record.statuses.values())
    return record if whole and counted and record.name == name else None


def _put_aside(storage: Storage, name: str) -> None:
    for end in (_RECORD, _STATUS, _TEXT):
        storage.rename(f"{_PARTS}/{name}{end}", f"{_PARTS}/{name}{end}.damaged")


def _checked_file(file: str, columns: Sequence[str], records: Sequence[PartRecord]) -> dict[str, Any]:
    """Check that a file's parts hold each line of the file once; return the file's entry in the manifest."""
    size = stored_bytes(file)
    ranges = [_place(record.name)[1:] for record in records]
    bounds = [(0, 0), *ranges, (size, size)]
    for (_, end), (begin, _) in pairwise(bounds):
        if begin != end:
            between = f"a gap from byte {end} to {begin}" if begin > end else f"an overlap at byte {begin}"
            raise CheckpointError(f"{file}: expected parts that cover it, got {between}; translate the file again")
    lines, written = count_texts(file, *columns), sum(record.lines for record in records)
    if lines != written:
        raise CheckpointError(
            f"{file}: expected {lines} translated lines, as many as the file has, got {written}; the file has changed "
            "since its translation: delete the output folder, and translate the file again"
        )
    parts, first = list[dict[str, Any]](), 1
    for record, (begin, end) in zip(records, ranges, strict=True):
        parts.append({**asdict(record), "begin": begin, "end": end, "first_line": first})
        first += record.lines
    return {"name": file, "bytes": size, "lines": lines, "parts": parts}


def _place(name: str) -> tuple[int, int, int]:
    """Parse a part's name; return the index of the file, and the begin and the end of the range in bytes."""
    found = _NAME.fullmatch(name)
    assert found
    return int(found["index"]), int(found["begin"]), int(found["end"])


def _listed(names: Sequence[str]) -> str:
    more = "" if len(names) <= _NAMED else f" and {len(names) - _NAMED} more"
    return f"{', '.join(map(shortened, names[:_NAMED]))}{more}"


def _settings(storage: Storage) -> dict[str, Any]:
    """Return the settings with which the parts of a folder were made."""
    return with_defaults(_read_json(storage, BULK), DecodingConfig)


def _read_json(storage: Storage, name: str) -> dict[str, Any]:
    try:
        content = parse_json(b"".join(storage.read(name)))
        if isinstance(content, dict):
            return content
    except (OSError, ValueError):
        pass
    raise CheckpointError(f"{storage.place}/{name} is damaged: delete the folder, and run the same command again")


def _write_json(storage: Storage, name: str, content: Mapping[str, Any]) -> None:
    text = json.dumps({"format_version": JSON_VERSION, **content}, ensure_ascii=False, indent=1)
    with storage.writing(name) as file:
        file.write(f"{text}\n".encode())
