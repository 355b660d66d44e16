"""Sequence-level knowledge distillation: a teacher's translations are the corpus of a smaller, faster student.

    distillation.json          the teachers and how they searched
    texts/                     which pairs the teacher was trained on (run/corpus.py)
    corpus/00000.jsonl         what the student reads: at least one record for each line, {line, source, target, status}
    valid.*, test.*            what the teacher was not trained on, with its real references
    student/                   the student's run, unless it is told otherwise

Each file is written when it is whole, so that a second run does only what is missing.

Paper: Kim & Rush 2016, "Sequence-Level Knowledge Distillation", §3.2 (the beam's best) and §3.3 (of the beam's
hypotheses the one nearest to the reference).
"""

import glob
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.bundle import TOKENIZER, WEIGHTS, Bundle
from glassformer.errors import CheckpointError, ConfigError
from glassformer.evaluation.metrics import METRICS, chosen, sentence_scores
from glassformer.machine import cores
from glassformer.recipes.configuration import Configuration
from glassformer.recipes.toml import load
from glassformer.run.corpus import PREPARED, CorpusTexts, OnProgress, read_texts, read_valid_pairs
from glassformer.run.evaluation import corpus_of
from glassformer.run.lock import locked
from glassformer.run.manifest import CorpusFile
from glassformer.run.reports import ProgressReport
from glassformer.text.corpus import Corpus, PairReader
from glassformer.text.files import format_of
from glassformer.text.storage import clear_temporaries, hash_of_file, read_json, remove, write_json, write_safely
from glassformer.text.tokenizer import save_tokenizers
from glassformer.translator import Translation, Translator

__all__ = ["DISTILLATION", "DistilledCorpus", "Search", "distil", "prepare_student"]

DISTILLATION = "distillation.json"
"""The file that says how a folder's corpus was made."""
PART = 1000
"""Lines of a file of the corpus: as many as are lost when a run is killed."""
_CORPUS, _TEXTS, _STUDENT = "corpus", "texts", "student"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the teacher's beam is searched for, and what of it becomes the student's corpus."""

    beam_size: int | None = None
    """Hypotheses followed side by side; None = as in the teacher's configuration."""
    length_penalty: float | None = None
    """α of the length penalty; None = as in the teacher's configuration."""
    n_best: int = 1
    """How many different translations of each source are kept."""
    best_of_reference: str = ""
    """A metric, such as "bleu": those hypotheses of the beam are kept that are nearest to the reference by it; "" =
    those of the highest score."""
    keep_reference: bool = False
    """Whether the reference is kept beside them, as one more translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledCorpus:
    """What a teacher has made of a corpus."""

    folder: Path
    teacher: Bundle
    """The first teacher's."""
    lines: int
    """Lines that were to be translated; each has a record, or several."""
    pairs: int
    """Records with a translation: what the student trains on."""
    untranslated: dict[str, int]
    """Lines without one, counted by the reason."""
    made: int
    """Lines that were translated now, and not there already."""


def distil(
    teachers: Sequence[str | Path],
    folder: str | Path,
    *,
    search: Search | None = None,
    data: str | Path | None = None,
    source: str = "",
    target: str = "",
    on_progress: OnProgress = lambda _: None,
) -> DistilledCorpus:
    """Translate a corpus by a trained model, or by the ensemble of several, and keep it in a folder.

    The corpus is that which the first teacher was trained on (`data` says where it lies now), or, where `source` is
    given, those files; without `target` they have no references, unless they hold both sides. What was translated by an
    earlier call is not done again.

    Raises:
        ConfigError: a setting is impossible, the teachers write with different tokens, or the folder is a run, or was
            made otherwise.
        DataError: the corpus cannot be read.
        CheckpointError: a teacher is missing or damaged, or something could not be written.
    """
    search, folder = search or Search(), Path(folder)
    _check(teachers, folder, search, source, target, data)
    with locked(folder):
        for place in (folder, folder / _CORPUS):
            clear_temporaries(place)
        return _Distillation(list(map(Path, teachers)), folder, search, on_progress).run(data, source, target)


def prepare_student(
    corpus: DistilledCorpus, config: str | Path, overrides: Iterable[str] = (), *, new_tokenizer: bool = False
) -> Configuration:
    """Return the configuration with which a student trains on a distilled corpus, and put the tokenizer into its run.

    It is that of a recipe or a file, whose [data] and [tokenizer] give way to the distilled corpus and the teacher's;
    with `new_tokenizer` the file's [tokenizer] holds. The run is kept in the distilled folder unless
    "run.directory=…" is among the overrides.

    Raises:
        ConfigError: a setting is unknown or impossible, or an override contradicts the teacher's tokenizer.
        CheckpointError: the tokenizer could not be written.
    """
    teachers = corpus.teacher.configuration.tokenizer
    changes = [*_data_overrides(corpus.folder), f"run.directory={_toml(str(corpus.folder / _STUDENT))}"]
    if not new_tokenizer:
        changes += [f"tokenizer.{name}={_toml(value)}" for name, value in asdict(teachers).items() if value is not None]
    configuration = load(config, [*changes, *overrides])
    if not new_tokenizer:
        _check_tokenizer(asdict(configuration.tokenizer), asdict(teachers))
        _give_tokenizer(corpus.teacher, Path(configuration.run.directory))
    return configuration


def _check(
    teachers: Sequence[str | Path],
    folder: Path,
    search: Search,
    source: str,
    target: str,
    data: str | Path | None,
) -> None:
    """Refuse what cannot be, before any model is loaded."""
    if not teachers:
        raise ConfigError("distil: expected at least one teacher, got none: give the folder of a run")
    if (folder / WEIGHTS).exists() and not (folder / DISTILLATION).exists():  # a student's run may be there
        raise ConfigError(f"{folder} is a run: choose another folder for the distilled corpus")
    if search.n_best < 1:
        raise ConfigError(f"n_best = {search.n_best}: expected a number of at least 1")
    if search.best_of_reference:
        chosen([search.best_of_reference])
    if target and not source:
        raise ConfigError(f"target = {target!r} without source: give both, or neither")
    if source and data is not None:
        raise ConfigError(
            f"data = {str(data)!r} says where the teacher's own corpus lies, and source = {source!r} takes its place: "
            "leave one of them out"
        )


class _Distillation:
    """The steps, each of which leaves its part in the folder and is passed over when that is there."""

    def __init__(self, teachers: list[Path], folder: Path, search: Search, on_progress: OnProgress) -> None:
        self.teachers, self.folder, self.on_progress = teachers, folder, on_progress
        self.bundle = Bundle.load(teachers[0])
        decoding = self.bundle.configuration.decoding
        self.search = replace(
            search,
            beam_size=decoding.beam_size if search.beam_size is None else search.beam_size,
            length_penalty=decoding.length_penalty if search.length_penalty is None else search.length_penalty,
        )
        self._check_search()

    @cached_property
    def translator(self) -> Translator:
        """The teachers, loaded once there is something to translate."""
        return Translator.load(*self.teachers, workers=cores())

    def run(self, data: str | Path | None, source: str, target: str) -> DistilledCorpus:
        corpus = self._given_corpus(source, target) if source else None
        self._keep_settings(corpus)
        if corpus is None:
            texts = self._own_texts(data)
            lines, pairs = texts.pairs, texts.train
            held_out = {"valid": texts.valid, "test": texts.test}
        else:
            lines, pairs = _count(corpus), _pairs(corpus, references=corpus.source != corpus.target)
            held_out = {"valid": read_valid_pairs(self.teachers[0] / PREPARED) or []}
        for name, some in held_out.items():
            self._write_held_out(name, some)
        counts, made = self._translated(pairs, lines)
        untranslated = {status: count for status, count in counts.items() if status not in ("ok", "reference")}
        return DistilledCorpus(
            folder=self.folder,
            teacher=self.bundle,
            lines=lines,
            pairs=counts["ok"] + counts["reference"],
            untranslated=untranslated,
            made=made,
        )

    def _check_search(self) -> None:
        size, wanted = self.search.beam_size or 1, self.search
        if wanted.n_best > size:
            raise ConfigError(f"n_best = {wanted.n_best}, but the beam has only {size} hypotheses: raise beam_size")
        if wanted.best_of_reference and size == 1:
            raise ConfigError("best_of_reference chooses among a beam's hypotheses, and beam_size = 1: raise it")

    def _given_corpus(self, source: str, target: str) -> Corpus:
        """Return the corpus of files of both sides; of files of source lines alone, one in which they are both."""
        alone = not target and format_of(source) == "lines"
        if alone and (self.search.best_of_reference or self.search.keep_reference):
            raise ConfigError(f"{source} has no references to keep or to be near to: give target, or leave that out")
        return corpus_of(source, source if alone else target or None, self.bundle.configuration)

    def _keep_settings(self, corpus: Corpus | None) -> None:
        """Write down how the folder is made; refuse one that was made otherwise."""
        files = [] if corpus is None else [CorpusFile.of(name, {}) for name in (*corpus.source, *corpus.target)]
        settings = {
            "teachers": [hash_of_file(_weights(teacher)) for teacher in self.teachers],
            **asdict(self.search),
            "files": [file.hash for file in files],
            "lines_of_a_part": PART,
        }
        path = self.folder / DISTILLATION
        if not path.exists():
            write_safely(path, lambda temporary: write_json(temporary, settings))
            return
        there = read_json(path)
        for name, value in settings.items():
            if there.get(name) != value:
                hashes = isinstance(value, list)  # which say nothing to who reads them
                difference = f"other {name}" if hashes else f"{name} = {there.get(name)!r}, not {value!r}"
                raise ConfigError(
                    f"{self.folder} holds a corpus that was distilled with {difference}: choose another folder, or "
                    "delete that one"
                )

    def _own_texts(self, data: str | Path | None) -> CorpusTexts:
        configuration = self.bundle.configuration
        if data is not None:
            configuration = replace(configuration, data=replace(configuration.data, directory=str(data)))
        return read_texts(configuration, self.folder / _TEXTS, self.on_progress)

    def _write_held_out(self, name: str, pairs: Sequence[Pair]) -> None:
        """Write pairs that the teacher was not trained on, in one file or in two, as its own corpus is.

        That decides whether lines with the same source are one item, as in a dictionary (see `Items`).
        """
        data = self.bundle.configuration.data
        if not pairs:
            return
        if not data.task and not data.target:
            _write_records(self.folder / f"{name}.jsonl", [{"source": one, "target": other} for one, other in pairs])
            return
        for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            _write_bytes(self.folder / f"{name}.{side}", "".join(f"{line}\n" for line in texts).encode())

    def _translated(self, pairs: Iterator[Pair], lines: int) -> tuple[Counter[str], int]:
        """Write the parts that are missing; return how many records of all have which status, and the lines made."""
        counts: Counter[str] = Counter()
        paths = {first: self.folder / _CORPUS / f"{first // PART:05d}.jsonl" for first in range(0, lines, PART)}
        there = {first: _statuses(path, first, min(PART, lines - first)) for first, path in paths.items()}
        missing = sum(min(PART, lines - first) for first, statuses in there.items() if statuses is None)
        made, begun = 0, time.perf_counter()
        if missing:
            self._say(lines - missing, lines)
        for first, path in paths.items():
            part, statuses = list(islice(pairs, PART)), there[first]
            if statuses is None:
                records = self._part(part, first)
                _write_records(path, records)
                statuses = Counter(record["status"] for record in records)
                made += len(part)
                left = (time.perf_counter() - begun) / made * (missing - made)
                self._say(lines - missing + made, lines, left)
            counts += statuses
        return counts, made

    def _say(self, done: int, lines: int, left: float = 0.0) -> None:
        self.on_progress(
            ProgressReport(stage="translating", done=done, total=lines, unit="sentences", seconds_left=left)
        )

    def _part(self, pairs: Sequence[Pair], first: int) -> list[dict[str, Any]]:
        """Return the records of some lines, the first of which has this number, from 0."""
        wanted = self.search
        translations = self.translator.translate(
            [source for source, _ in pairs],
            beam_size=wanted.beam_size,
            length_penalty=wanted.length_penalty,
            n_best=(wanted.beam_size or 1) if wanted.best_of_reference else wanted.n_best,
        )
        outputs = [_outputs(translation) for translation in translations]
        if wanted.best_of_reference:
            outputs = _nearest_first(outputs, [reference for _, reference in pairs], wanted.best_of_reference)
        records = []
        rows = zip(pairs, translations, outputs, strict=True)
        for line, ((source, reference), translation, texts) in enumerate(rows, start=first + 1):
            found = [(text, "ok") for text in texts[: wanted.n_best]] or [("", _reason(translation))]
            if wanted.keep_reference and reference.strip() and _is_text(reference):
                found = [one for one in found if one[0] != reference] + [(reference, "reference")]
            records += [{"line": line, "source": source, "target": text, "status": status} for text, status in found]
        return records


def _count(corpus: Corpus) -> int:
    reader = PairReader(corpus)
    lines = sum(block.lines for block in reader)
    reader.check()
    return lines


def _pairs(corpus: Corpus, *, references: bool) -> Iterator[Pair]:
    """Yield the pairs of a corpus, all of them; bytes that are no UTF-8 become surrogates."""
    for block in PairReader(corpus):
        sides = (text.decode(errors="surrogateescape").split("\n")[:-1] for text in (block.source, block.target))
        for source, target in zip(*sides, strict=True):
            yield source, target if references else ""


def _outputs(translation: Translation) -> list[str]:
    """Return the different texts of a translation and its alternatives, best first; what was cut is none."""
    hypotheses = (translation, *translation.alternatives)
    return list(dict.fromkeys(one.text for one in hypotheses if one.status == "ok" and one.text.strip()))


def _reason(translation: Translation) -> str:
    """Return why there is no output: the translation's status, or that the model wrote nothing."""
    return "empty" if translation.status == "ok" else translation.status


def _nearest_first(outputs: Sequence[list[str]], references: Sequence[str], metric: str) -> list[list[str]]:
    """Return each line's outputs, those nearest to its reference first; equally near ones stay in their order.

    Where there is no reference, so do all of them.
    """
    usable = [bool(reference.strip()) and _is_text(reference) for reference in references]
    rows = [
        (place, text) for place, (texts, fits) in enumerate(zip(outputs, usable, strict=True)) for text in texts if fits
    ]
    if not rows:
        return list(outputs)
    scores = sentence_scores([text for _, text in rows], [references[place] for place, _ in rows], metric)
    sign = -1 if METRICS[metric].higher_is_better else 1
    ranked: list[list[str]] = [[] if fits else texts for texts, fits in zip(outputs, usable, strict=True)]
    for _, (place, text) in sorted(zip(scores, rows, strict=True), key=lambda one: sign * one[0]):
        ranked[place].append(text)
    return ranked


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _statuses(path: Path, first: int, count: int) -> Counter[str] | None:
    """Return how many records of a part have which status; None if it is missing, or not what it should be."""
    try:
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        whole = {record["line"] for record in records} == set(range(first + 1, first + 1 + count))
        return Counter(str(record["status"]) for record in records) if whole else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write_records(path: Path, records: Sequence[dict[str, Any]]) -> None:
    # What is no text cannot be written as it is; such lines have no translation anyway.
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode(errors="replace")
    _write_bytes(path, text)


def _write_bytes(path: Path, text: bytes) -> None:
    write_safely(path, lambda temporary: temporary.write_bytes(text))


def _weights(teacher: Path) -> Path:
    path = teacher / WEIGHTS
    if not path.exists():
        raise CheckpointError(f"{path} does not exist: train the run to its first validation, or copy the file")
    return path


# The student


def _data_overrides(folder: Path) -> list[str]:
    """Return what makes a configuration's [data] that of the distilled corpus, as `--set` takes it."""
    values = {
        "task": "",
        "directory": "",
        "prepared": "",
        "source": f"{glob.escape(str(folder / _CORPUS))}/*.jsonl",
        "target": "",
        "source_column": "source",
        "target_column": "target",
    }
    for name in ("valid", "test"):
        both, source, target = (folder / f"{name}.{ending}" for ending in ("jsonl", "source", "target"))
        values[f"{name}_source"] = str(both if both.exists() else source) if both.exists() or source.exists() else ""
        values[f"{name}_target"] = str(target) if target.exists() else ""
    return [f"data.{name}={_toml(value)}" for name, value in values.items()]


def _toml(value: Any) -> str:
    """Return a value as TOML, which has text, numbers, booleans and lists of text as JSON has them."""
    return json.dumps(value, ensure_ascii=False)


def _check_tokenizer(given: dict[str, Any], teachers: dict[str, Any]) -> None:
    """Refuse settings that the teacher's tokenizer would overrule; how often its text is cut anew is the student's."""
    for name, value in teachers.items():
        if name != "sampling" and given[name] != value:
            raise ConfigError(
                f"tokenizer.{name} = {given[name]!r} has no effect: the student uses the teacher's tokenizer, where it "
                f"is {value!r}: leave it out, or ask for a new tokenizer"
            )


def _give_tokenizer(teacher: Bundle, run: Path) -> None:
    """Put the teacher's tokenizer into a run that has none yet: training uses what it finds there."""
    if (run / TOKENIZER).exists():
        return
    temporary = run / f".{TOKENIZER}.tmp"
    remove(temporary)
    try:
        save_tokenizers(temporary, teacher.source_tokenizer, teacher.target_tokenizer)
        temporary.replace(run / TOKENIZER)
    except OSError as error:
        raise CheckpointError(f"cannot write {run / TOKENIZER}: {error.strerror or error}") from error
