"""Knowledge distillation: train a student on a teacher's translations.

    distillation.json          the teachers and their search settings
    texts/                     the split that says which pairs the teacher was trained on (jobs/preparation.py)
    corpus/00000.jsonl         the student's corpus: at least one record per line, {line, source, target, status}
    corpus/labelled.jsonl      the pairs that the teacher was trained on, if wanted
    valid.*, test.*            pairs that the teacher was not trained on, with their original references
    student/                   the student's run, unless its configuration names another folder

Each file is written only when it is complete, so that a second call makes only the missing files.

Paper: Kim & Rush 2016, "Sequence-Level Knowledge Distillation", §3.2 (the best hypothesis of the beam)
and §3.3 (the hypothesis of the beam nearest to the reference).
"""

import glob
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.bundle import TOKENIZER, WEIGHTS, Bundle
from glassformer.corpus.files import format_of
from glassformer.corpus.readers import Corpus, PairReader
from glassformer.decoding.engine import Need
from glassformer.errors import CheckpointError, ConfigError, quoted, shortened
from glassformer.evaluation.metrics import METRICS, metrics_named, sentence_scores
from glassformer.jobs.bulk import finished_settings, finished_translations, names_and_sizes, rescored_by
from glassformer.jobs.evaluation import corpus_of
from glassformer.jobs.kept_settings import difference_of_settings, stored_weights
from glassformer.jobs.preparation import CorpusTexts, read_texts
from glassformer.jobs.prepared.folder import PREPARED, read_valid_pairs
from glassformer.jobs.prepared.manifest import CorpusFile
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.recipes.configuration import (
    OF_SAMPLING,
    Configuration,
    DataConfig,
    DecodingConfig,
    settings_of_outputs,
)
from glassformer.recipes.toml import changed_settings, load
from glassformer.settings import with_defaults
from glassformer.system.files import clear_temporaries, hash_of_file, read_json, remove, write_json, write_safely
from glassformer.system.locks import locked
from glassformer.system.machine import cores
from glassformer.text.normalisation import normalise
from glassformer.text.tokenizer import save_tokenizers
from glassformer.translating.combination import Combination
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = [
    "CORPUS",
    "DISTILLATION",
    "PART_LINES",
    "DistilledCorpus",
    "StudentCorpus",
    "TeacherSearch",
    "check_place",
    "distil",
    "distilled_pairs",
    "keep_settings",
    "nearest_first",
    "prepare_student",
    "reason_without_output",
    "teachable",
    "texts_of_run",
    "write_held_out",
    "write_records",
]

DISTILLATION = "distillation.json"
"""The file that records how a folder's corpus was made."""
PART_LINES = 1000
"""Lines per file of the corpus; a killed run loses at most this many."""
CORPUS = "corpus"
"""The name of the folder of the corpus's files."""
_TEXTS, _STUDENT, _LABELLED = "texts", "student", "labelled"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherSearch:
    """The choice of the hypotheses of a teacher's beam that become the student's corpus."""

    n_best: int = 1
    """Number of different translations kept per source."""
    best_of_reference: str = ""
    """A metric, such as "bleu", by which the hypotheses nearest to the reference are kept; "" keeps the hypotheses with
    the highest scores."""
    keep_reference: bool = False
    """Whether the reference is kept as an additional translation."""
    sample: bool = False
    """Whether the n_best translations are drawn at random instead of searched for; equal ones count once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentCorpus:
    """A folder with a corpus that models have made for a student."""

    folder: Path
    teacher: Bundle
    """The bundle of the first model, whose tokenizer the student uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledCorpus(StudentCorpus):
    """A corpus translated by a teacher."""

    lines: int
    """Number of lines to translate; each has at least one record."""
    pairs: int
    """Number of records with a translation, which the student trains on."""
    labelled: int
    """Number of the teacher's training pairs, if the student trains on them, too."""
    untranslated: dict[str, int]
    """Number of lines without a translation, by reason."""
    made: int
    """Number of lines translated by this call rather than an earlier one."""


def distil(
    teachers: Sequence[str | Path],
    folder: str | Path,
    *,
    search: TeacherSearch | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    source: str = "",
    target: str = "",
    translations: str = "",
    labelled: bool = False,
    on_progress: OnProgress = lambda _: None,
) -> DistilledCorpus:
    """Translate a corpus with a trained model, or an ensemble of several, and return the distilled corpus.

    The first teacher may be a file that `tune` wrote: its combination of several models then translates.

    The corpus is the first teacher's training corpus (`data` names its current folder) or, if `source` is given, the
    files `source` and `target`. Without `target`, the source lines have no references, unless `source` has both sides
    (.tsv, .jsonl). Lines of `source` whose normalised text is a validation source of the teacher are left out.

    With `labelled`, the student also trains on the first teacher's training pairs as they are (self-training). Then
    only `source` is translated, and its lines that are sources of the teacher's training, validation or test pairs are
    left out.

    `settings` are decoding settings by name; they take the place of the first teacher's own. A second call translates
    only the lines that the first one did not reach.

    `translations` is a finished folder of `jobs.bulk` with the teachers' translations of `source`: nothing is
    translated then, and the decoding settings are those of that folder.

    Raises:
        ConfigError: a setting is impossible, the teachers' target vocabularies differ, the folder is a run, its corpus
            was made with different settings, or the translations are of different models or files.
        DataError: the corpus cannot be read.
        CheckpointError: a teacher is missing or damaged, or a file cannot be written.
    """
    search, folder = search or TeacherSearch(), Path(folder)
    _check(teachers, folder, search, source, target, data, labelled)
    if translations:
        _check_given(source, search, settings or {})
    with locked(folder):
        for place in (folder, folder / CORPUS):
            clear_temporaries(place)
        distillation = _Distillation(
            list(map(Path, teachers)), folder, search, settings or {}, translations, labelled, on_progress
        )
        return distillation.run(data, source, target)


def prepare_student(
    corpus: StudentCorpus, config: str | Path, overrides: Iterable[str] = (), *, new_tokenizer: bool = False
) -> Configuration:
    """Return the configuration that trains a student on a corpus; put the tokenizer into the student's run.

    `config` is a recipe or file. Its [data] is replaced by the corpus, and its [tokenizer] by the teacher's unless
    `new_tokenizer` is true. The student's run lies in the corpus's folder unless "run.directory=…" is among the
    overrides.

    Raises:
        ConfigError: a setting is unknown or impossible, or an override contradicts the teacher's tokenizer.
        CheckpointError: the tokenizer cannot be written.
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


def texts_of_run(bundle: Bundle, folder: Path, data: str | Path | None, on_progress: OnProgress) -> CorpusTexts:
    """Return the corpus that a run was trained on, checked and split as in its training; the split is kept in `folder`.

    `data` names the current folder of the corpus; by default, it is the one of the training.

    Raises:
        ConfigError: the folder holds the split of a different corpus.
        DataError: the corpus cannot be read.
        CheckpointError: a file cannot be written.
    """
    configuration = bundle.configuration
    if data is not None:
        configuration = replace(configuration, data=replace(configuration.data, directory=str(data)))
    return read_texts(configuration, folder / _TEXTS, on_progress)


def check_place(folder: Path) -> None:
    """Refuse the folder of a run as the folder of a corpus.

    Raises:
        ConfigError: the folder is a run.
    """
    if (folder / WEIGHTS).exists() and not (folder / DISTILLATION).exists():  # a student's run may lie in it
        raise ConfigError(f"{folder} is a run: choose a different folder for the distilled corpus")


def keep_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings with which a corpus is made into its folder; refuse a folder made with different settings.

    Raises:
        ConfigError: the folder was made with different settings.
        CheckpointError: the settings cannot be read or written.
    """
    path = folder / DISTILLATION
    if not path.exists():
        write_safely(path, lambda temporary: write_json(temporary, dict(settings)))
        return
    there = with_defaults(read_json(path), DecodingConfig, TeacherSearch)
    if difference := difference_of_settings(there, settings):
        raise ConfigError(
            f"{folder} holds a corpus that was distilled with {difference}: choose another folder, or delete "
            "that folder"
        )


def write_held_out(folder: Path, held_out: Mapping[str, Sequence[Pair]], data: DataConfig) -> None:
    """Write pairs that no model was trained on, by name, each in one file or in two, like the corpus of `data`.

    The number of files decides whether lines with the same source form one item, as in a dictionary (see `Items`).

    Raises:
        CheckpointError: a file cannot be written.
    """
    for name, pairs in held_out.items():
        if not pairs:
            continue
        if not data.task and not data.target:
            write_records(folder / f"{name}.jsonl", ({"source": one, "target": other} for one, other in pairs))
            continue
        for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            _write_lines(folder / f"{name}.{side}", (f"{line}\n" for line in texts))


def distilled_pairs(folder: Path) -> Iterator[Pair]:
    """Yield each source of a distilled corpus with each of its translations."""
    for path in sorted((folder / CORPUS).glob("*.jsonl")):
        with path.open(encoding="utf-8", newline="\n") as file:
            records = map(json.loads, file)
            yield from ((record["source"], record["target"]) for record in records if record["status"] == "ok")


def _check(
    teachers: Sequence[str | Path],
    folder: Path,
    search: TeacherSearch,
    source: str,
    target: str,
    data: str | Path | None,
    labelled: bool,
) -> None:
    """Raise an error for impossible arguments before any model is loaded."""
    if not teachers:
        raise ConfigError("teachers: expected at least one run, got none; give the folder of a run")
    check_place(folder)
    if search.n_best < 1:
        raise ConfigError(f"n_best: expected a positive integer, got {search.n_best}")
    if search.best_of_reference:
        metrics_named([search.best_of_reference])
    if target and not source:
        raise ConfigError("target: expected source to be given, too, got none; give both or neither")
    if labelled and not source:
        raise ConfigError("labelled: expected source, a file without labels, to be given, too; give it")
    if source and data is not None and not labelled:
        raise ConfigError(
            f"data: expected either data or source, got data {quoted(str(data))} and source {quoted(source)}; data "
            "names the teacher's own corpus, source replaces it: leave one of them out"
        )


def _check_given(source: str, search: TeacherSearch, settings: Mapping[str, Any]) -> None:
    """Raise an error for arguments that do not fit translations that exist."""
    if not source:
        raise ConfigError("translations: expected source, the file that was translated, to be given, too; give it")
    chosen = {"n_best": search.n_best > 1, "best_of_reference": search.best_of_reference, "sample": search.sample}
    for name, value in {**chosen, **settings}.items():
        if value:
            raise ConfigError(f"{name} has no effect on translations that exist: leave it or the translations out")


class _Distillation:
    """The steps of a distillation; each writes its part of the folder and is skipped when that part exists."""

    def __init__(
        self,
        teachers: list[Path],
        folder: Path,
        search: TeacherSearch,
        settings: Mapping[str, Any],
        translations: str,
        labelled: bool,
        on_progress: OnProgress,
    ) -> None:
        self.teachers, self.folder, self.search = teachers, folder, search
        self.labelled, self.on_progress = labelled, on_progress
        self.combination = Combination.named(teachers[0])
        self.bundle = Bundle.load(self.combination.run)
        self.settings = changed_settings(
            "decoding", self.bundle.configuration.decoding, self.combination.settings | dict(settings)
        )
        self.translations = translations
        if translations:
            there = finished_settings(translations)
            names = settings_of_outputs(self.settings)
            self.settings = changed_settings("decoding", self.settings, {name: there[name] for name in names})
        self._check_search(settings)

    @cached_property
    def translator(self) -> Translator:
        """The teachers' translator, loaded only when a line has to be translated."""
        needs: Sequence[Need] = ("sampling",) if self.search.sample else ()
        settings = asdict(self.settings)
        return Translator.load(*self.teachers, engine="auto", workers=cores(), settings=settings, needs=needs)

    def run(self, data: str | Path | None, source: str, target: str) -> DistilledCorpus:
        corpus = self._given_corpus(source, target) if source else None
        if corpus is not None and self.translations:
            self._check_translations(corpus)
        self._keep_settings(corpus)
        whole = corpus is None or self.labelled
        texts = texts_of_run(self.bundle, self.folder, data, self.on_progress) if whole else None
        if texts:
            held_out = {"valid": texts.valid, "test": texts.test}
        else:
            held_out = {"valid": read_valid_pairs(self.combination.run / PREPARED) or []}
        write_held_out(self.folder, held_out, self.bundle.configuration.data)
        if corpus:
            lines, pairs = _count(corpus), _pairs(corpus, references=corpus.source != corpus.target)
        elif texts and not self.labelled:
            lines, pairs = texts.pairs, texts.train
        else:
            lines, pairs = 0, iter(())
        known = _sources(held_out) if corpus else {}
        if texts and self.labelled:
            known |= self._write_labelled(texts.train)
        counts, made = self._translated(pairs, lines, known)
        untranslated = {status: count for status, count in counts.items() if status not in ("ok", "reference")}
        return DistilledCorpus(
            folder=self.folder,
            teacher=self.bundle,
            labelled=texts.pairs if texts and self.labelled else 0,
            lines=lines,
            pairs=counts["ok"] + counts["reference"],
            untranslated=untranslated,
            made=made,
        )

    def _check_search(self, settings: Mapping[str, Any]) -> None:
        size, wanted = self.settings.beam_size, self.search
        if wanted.sample and (name := "beam_size" if "beam_size" in settings else wanted.best_of_reference):
            raise ConfigError(f"{name} chooses among the outputs of a beam: leave it out, or leave out sampling")
        if wanted.n_best > size and not wanted.sample:
            raise ConfigError(
                f"n_best: expected at most beam_size = {size}, got {wanted.n_best}; raise beam_size or lower n_best"
            )
        if wanted.best_of_reference and size == 1:
            raise ConfigError("best_of_reference: expected beam_size > 1 to choose among, got 1; raise beam_size")

    def _given_corpus(self, source: str, target: str) -> Corpus:
        """Return the corpus of the given files; source lines without a target file become both sides."""
        alone = not target and format_of(source) == "lines"
        if alone and (self.search.best_of_reference or self.search.keep_reference):
            raise ConfigError(
                f"{shortened(source)} has no references, which best_of_reference and keep_reference need: give target, "
                "or leave these settings out"
            )
        return corpus_of(source, source if alone else target or None, self.bundle.configuration)

    def _check_translations(self, corpus: Corpus) -> None:
        """Raise an error unless the given translations are the teachers' translations of the source files."""
        there = finished_settings(self.translations)
        if there.get("runs") != self._hashes:
            raise ConfigError(
                f"{self.translations} holds translations of different models: give the runs that made them"
            )
        if there.get("files") != names_and_sizes(corpus.source):
            raise ConfigError(
                f"{self.translations} holds translations of different files: give the translated files as source"
            )

    @cached_property
    def _hashes(self) -> list[str]:
        return [hash_of_file(stored_weights(run)) for run in (*self.combination.folders, *self.teachers[1:])]

    def _keep_settings(self, corpus: Corpus | None) -> None:
        files = [] if corpus is None else [CorpusFile.of(name, {}) for name in (*corpus.source, *corpus.target)]
        settings = {
            "teachers": self._hashes,
            "labelled": self.labelled,
            **rescored_by(self.combination),
            **settings_of_outputs(self.settings),
            **({name: getattr(self.settings, name) for name in OF_SAMPLING} if self.search.sample else {}),
            **asdict(self.search),
            "files": [file.hash for file in files],
            "lines_of_a_part": PART_LINES,
        }
        keep_settings(self.folder, settings)

    def _write_labelled(self, pairs: Iterable[Pair]) -> dict[str, str]:
        """Write the teacher's training pairs; return their sources, each with the reason to translate it no more."""
        path, pairs = self.folder / CORPUS / f"{_LABELLED}.jsonl", list(pairs)
        if not path.exists():
            write_records(path, [{"source": one, "target": other, "status": _LABELLED} for one, other in pairs])
        return _sources({_LABELLED: pairs})

    def _translated(self, pairs: Iterator[Pair], lines: int, known: Mapping[str, str]) -> tuple[Counter[str], int]:
        """Write the missing parts; return the number of records of all parts by status, and of lines translated now.

        `known` gives the reason to leave out a line, by its normalised source.
        """
        counts: Counter[str] = Counter()
        paths = {
            first: self.folder / CORPUS / f"{first // PART_LINES:05d}.jsonl" for first in range(0, lines, PART_LINES)
        }
        there = {first: _statuses(path, first, min(PART_LINES, lines - first)) for first, path in paths.items()}
        missing = sum(min(PART_LINES, lines - first) for first, statuses in there.items() if statuses is None)
        given = finished_translations(self.translations) if self.translations else iter(())
        made, begun = 0, time.perf_counter()
        if missing:
            self._say(lines - missing, lines)
        for first, path in paths.items():
            part, statuses = list(islice(pairs, PART_LINES)), there[first]
            translations = list(islice(given, len(part)))
            if statuses is None:
                left_out = [known.get(normalise(source), "") for source, _ in part]
                translations = translations or self._translate(part, left_out)
                records = self._part(part, first, translations, left_out)
                write_records(path, records)
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

    def _translate(self, pairs: Sequence[Pair], left_out: Sequence[str]) -> list[Translation]:
        """Return a translation of each source, which is empty where the source is left out."""
        sources = [source for (source, _), why in zip(pairs, left_out, strict=True) if not why]
        made = iter(self._outputs(sources) if sources else ())
        return [Translation(text="") if why else next(made) for why in left_out]

    def _outputs(self, sources: Sequence[str]) -> list[Translation]:
        """Return a translation of each source; the other samples, or outputs of the beam, are its alternatives."""
        how: dict[str, Any] = {"guards": False, "log_probs": False}
        if not self.search.sample:
            n_best = self.settings.beam_size if self.search.best_of_reference else self.search.n_best
            return self.translator.translate(sources, n_best=n_best, **how)
        seeds = range(self.settings.seed, self.settings.seed + self.search.n_best)
        draws = [self.translator.translate(sources, sample=True, seed=seed, **how) for seed in seeds]
        return [replace(first, alternatives=tuple(others)) for first, *others in zip(*draws, strict=True)]

    def _part(
        self, pairs: Sequence[Pair], first: int, translations: Sequence[Translation], left_out: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return the records of a block of lines; `first` is the index of its first line, from 0."""
        wanted = self.search
        outputs = [teachable(translation) for translation in translations]
        if wanted.best_of_reference:
            outputs = nearest_first(outputs, [reference for _, reference in pairs], wanted.best_of_reference)
        records = []
        rows = zip(pairs, translations, outputs, left_out, strict=True)
        for line, ((source, reference), translation, texts, why) in enumerate(rows, start=first + 1):
            if why:
                records.append({"line": line, "source": source, "target": "", "status": why})
                continue
            found = [(text, "ok") for text in texts[: wanted.n_best]] or [("", reason_without_output(translation))]
            if wanted.keep_reference and reference.strip() and _is_text(reference):
                found = [one for one in found if one[0] != reference] + [(reference, "reference")]
            records += [{"line": line, "source": source, "target": text, "status": status} for text, status in found]
        return records


def _count(corpus: Corpus) -> int:
    reader = PairReader(corpus)
    lines = sum(block.lines for block in reader)
    reader.check()
    return lines


def _sources(pairs: Mapping[str, Sequence[Pair]]) -> dict[str, str]:
    """Return the normalised sources of named pairs, each with the name of its pairs."""
    return {normalise(source): name for name, some in pairs.items() for source, _ in some}


def _pairs(corpus: Corpus, *, references: bool) -> Iterator[Pair]:
    """Yield all pairs of a corpus; bytes that are not UTF-8 become surrogates."""
    for block in PairReader(corpus):
        sides = (text.decode(errors="surrogateescape").split("\n")[:-1] for text in (block.source, block.target))
        for source, target in zip(*sides, strict=True):
            yield source, target if references else ""


def teachable(translation: Translation) -> list[str]:
    """Return the distinct texts of a translation and its alternatives, best first, without truncated or blank texts."""
    hypotheses = (translation, *translation.alternatives)
    return list(dict.fromkeys(one.text for one in hypotheses if one.status == "ok" and one.text.strip()))


def reason_without_output(translation: Translation) -> str:
    """Return why a line has no output: the translation's status, or "empty" where the model wrote nothing."""
    return "empty" if translation.status == "ok" else translation.status


def nearest_first(outputs: Sequence[list[str]], references: Sequence[str], metric: str) -> list[list[str]]:
    """Return each line's outputs, sorted by distance to its reference, nearest first; ties keep their order.

    The outputs of a line whose reference is blank or not valid Unicode keep their order. `metric` is a key of
    `evaluation.metrics.METRICS`, such as "bleu".
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
    """Return the number of records of a part by status; None if the part is missing or damaged."""
    try:
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        whole = {record["line"] for record in records} == set(range(first + 1, first + 1 + count))
        return Counter(str(record["status"]) for record in records) if whole else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSONL, completely or not at all.

    Raises:
        CheckpointError: the file cannot be written.
    """
    _write_lines(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    def write(temporary: Path) -> None:
        # Surrogates cannot be written as UTF-8; the lines that hold them have no translation anyway.
        with temporary.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(lines)

    write_safely(path, write)


# The student


def _data_overrides(folder: Path) -> list[str]:
    """Return the overrides, as `--set` takes them, that point a configuration's [data] to the corpus in a folder."""
    values = {
        "task": "",
        "directory": "",
        "prepared": "",
        "source": f"{glob.escape(str(folder / CORPUS))}/*.jsonl",
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
    """Return a value as TOML, whose strings, numbers, booleans and lists of strings are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _check_tokenizer(given: dict[str, Any], teachers: dict[str, Any]) -> None:
    """Refuse settings that the teacher's tokenizer would override, except `sampling`, which the student may choose."""
    for name, value in teachers.items():
        if name != "sampling" and given[name] != value:
            raise ConfigError(
                f"tokenizer.{name}: expected {quoted(value)} as in the teacher's tokenizer, which the student "
                f"uses, got {quoted(given[name])}; leave the setting out, or ask for a new tokenizer"
            )


def _give_tokenizer(teacher: Bundle, run: Path) -> None:
    """Copy the teacher's tokenizer into the student's run for its training, unless the run already has one."""
    if (run / TOKENIZER).exists():
        return
    temporary = run / f".{TOKENIZER}.tmp"
    remove(temporary)
    try:
        save_tokenizers(temporary, teacher.source_tokenizer, teacher.target_tokenizer)
        temporary.replace(run / TOKENIZER)
    except OSError as error:
        raise CheckpointError(f"cannot write {run / TOKENIZER}: {error.strerror or error}") from error
