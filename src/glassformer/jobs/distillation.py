"""Knowledge distillation: train a student on a teacher's translations.

    distillation.json          the teachers and their search settings
    texts/                     the record of the pairs that the teacher was trained on (jobs/preparation.py)
    corpus/00000.jsonl         the student's corpus: at least one record per line, {line, source, target, status}
    corpus/labelled.jsonl      the pairs that the teacher was trained on, if `labelled` is set
    valid.*, test.*            pairs that the teacher was not trained on, with their original references
    student/                   the student's run, unless its configuration names another folder

Each file appears only when it is complete, so a second call makes only the missing files.

Paper: Kim & Rush 2016, "Sequence-Level Knowledge Distillation", §3.2 (the best hypothesis of the beam)
and §3.3 (the hypothesis of the beam nearest to the reference).
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.corpus.files import format_of
from glassformer.corpus.readers import Corpus, PairReader
from glassformer.errors import ConfigError, quoted, shortened
from glassformer.evaluation.metrics import metrics_named
from glassformer.jobs.bulk import finished_settings, finished_translations, names_and_sizes
from glassformer.jobs.evaluation import corpus_of
from glassformer.jobs.prepared.folder import valid_pairs_of_run
from glassformer.jobs.prepared.manifest import CorpusFile
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.jobs.student_corpus import (
    CORPUS,
    Pair,
    StudentCorpus,
    TeacherSearch,
    check_place,
    keep_settings,
    texts_of_run,
    write_held_out,
    write_records,
)
from glassformer.jobs.teacher import Teacher
from glassformer.system.files import clear_temporaries
from glassformer.system.locks import locked
from glassformer.text.normalisation import normalise

__all__ = ["PART_LINES", "DistilledCorpus", "distil"]

PART_LINES = 1000
"""Number of lines per corpus file, and the most lines that must be translated again after a run was killed."""
_LABELLED = "labelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledCorpus(StudentCorpus):
    """A corpus translated by a teacher."""

    lines: int
    """Number of lines to translate; each has at least one record."""
    pairs: int
    """Number of records with a translation; the student trains on these records."""
    labelled: int
    """Number of the teacher's training pairs that the student also trains on."""
    untranslated: dict[str, int]
    """Number of lines without a translation, by reason."""
    made: int
    """Number of lines translated by this call, without those of earlier calls."""


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
    """Translate a corpus with a trained model, or with an ensemble of trained models; return the distilled corpus.

    The first teacher may be a file that `tune` wrote; the combination of models in this file then translates the
    corpus.

    Without `source`, the corpus is the first teacher's training corpus, and `data` names the corpus's current folder.
    With `source`, the corpus is the files `source` and `target`. The source lines have no references if `target` is
    missing and `source` does not hold both sides (.tsv, .jsonl). Lines of `source` whose normalised text is a
    validation source of the teacher are left out.

    With `labelled`, the student also trains on the first teacher's own training pairs (self-training). In this case,
    only `source` is translated, without the lines that are sources of the teacher's training, validation or test pairs.

    `settings` maps names of decoding settings to values that override the first teacher's settings. A second call
    translates only the lines that earlier calls did not translate.

    `translations` is a finished folder of `jobs.bulk` that holds the teachers' translations of `source`. If it is
    given, nothing is translated, and the decoding settings are the settings of that folder.

    Raises:
        ConfigError: a setting is impossible, the teachers' target vocabularies differ, the folder is a run, the corpus
            in the folder was made with different settings, or `translations` was made by different models or from
            different files.
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
        teacher = Teacher(list(map(Path, teachers)), search, settings or {}, translations)
        return _Distillation(teacher, folder, translations, labelled, on_progress).run(data, source, target)


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
        raise ConfigError("target: expected `source` as well, got none; give both or neither")
    if labelled and not source:
        raise ConfigError("labelled: expected `source` as well (a file without references), got none; give a source")
    if source and data is not None and not labelled:
        raise ConfigError(
            f"data: expected either data or source, got data {quoted(str(data))} and source {quoted(source)}; leave "
            "out source to translate the teacher's own corpus, or leave out data to translate the source file"
        )


def _check_given(source: str, search: TeacherSearch, settings: Mapping[str, Any]) -> None:
    """Raise an error for arguments that have no effect when the translations are given."""
    if not source:
        raise ConfigError("translations: expected `source` as well, got none; give the file that was translated")
    chosen = {"n_best": search.n_best > 1, "best_of_reference": search.best_of_reference, "sample": search.sample}
    for name, value in {**chosen, **settings}.items():
        if value:
            raise ConfigError(f"{name} has no effect with translations; leave out {name} or translations")


class _Distillation:
    """The steps of a distillation: each step writes one part of the folder, and is skipped if this part exists."""

    def __init__(
        self, teacher: Teacher, folder: Path, translations: str, labelled: bool, on_progress: OnProgress
    ) -> None:
        self.teacher, self.folder, self.translations = teacher, folder, translations
        self.labelled, self.on_progress = labelled, on_progress

    def run(self, data: str | Path | None, source: str, target: str) -> DistilledCorpus:
        corpus = self._given_corpus(source, target) if source else None
        if corpus is not None and self.translations:
            self._check_translations(corpus)
        self._keep_settings(corpus)
        whole = corpus is None or self.labelled
        texts = texts_of_run(self.teacher.bundle, self.folder, data, self.on_progress) if whole else None
        if texts:
            held_out = {"valid": texts.valid, "test": texts.test}
        else:
            kept = valid_pairs_of_run(self.teacher.combination.run, self.teacher.bundle.configuration)
            held_out = {"valid": kept or []}
        write_held_out(self.folder, held_out, self.teacher.bundle.configuration.data)
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
            teacher=self.teacher.bundle,
            labelled=texts.pairs if texts and self.labelled else 0,
            lines=lines,
            pairs=counts["ok"] + counts["reference"],
            untranslated=untranslated,
            made=made,
        )

    def _given_corpus(self, source: str, target: str) -> Corpus:
        """Return the corpus of the given files; without a target file, the source lines are both sides of the pairs."""
        alone = not target and format_of(source) == "lines"
        if alone and (self.teacher.search.best_of_reference or self.teacher.search.keep_reference):
            raise ConfigError(
                f"{shortened(source)} has no references, which best_of_reference and keep_reference need: give target, "
                "or leave these settings out"
            )
        return corpus_of(source, source if alone else target or None, self.teacher.bundle.configuration)

    def _check_translations(self, corpus: Corpus) -> None:
        """Raise an error unless the given translations are the teachers' translations of the source files."""
        there = finished_settings(self.translations)
        if there.get("runs") != self.teacher.hashes:
            raise ConfigError(
                f"{self.translations} holds translations by different models: give the runs that made the translations"
            )
        if there.get("files") != names_and_sizes(corpus.source):
            raise ConfigError(
                f"{self.translations} holds translations of different files: give the translated files as source"
            )

    def _keep_settings(self, corpus: Corpus | None) -> None:
        files = [] if corpus is None else [CorpusFile.of(name, {}) for name in (*corpus.source, *corpus.target)]
        settings = {
            **self.teacher.identity(),
            "labelled": self.labelled,
            "files": [file.hash for file in files],
            "lines_of_a_part": PART_LINES,
        }
        keep_settings(self.folder, settings)

    def _write_labelled(self, pairs: Iterable[Pair]) -> dict[str, str]:
        """Write the teacher's training pairs; map each normalised source to the reason for not translating it."""
        path, pairs = self.folder / CORPUS / f"{_LABELLED}.jsonl", list(pairs)
        if not path.exists():
            write_records(path, [{"source": one, "target": other, "status": _LABELLED} for one, other in pairs])
        return _sources({_LABELLED: pairs})

    def _translated(self, pairs: Iterator[Pair], lines: int, known: Mapping[str, str]) -> tuple[Counter[str], int]:
        """Write the missing parts of the corpus.

        Return the number of records in all parts, by status, and the number of lines that this call translated.
        `known` maps the normalised source of each line to leave out to the reason for leaving it out.
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
                left_out = [known.get(normalise(source, "plain"), "") for source, _ in part]
                translations = translations or self.teacher.translate(part, left_out, whole=self.labelled)
                records = self.teacher.records(part, first, translations, left_out)
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


def _count(corpus: Corpus) -> int:
    reader = PairReader(corpus)
    lines = sum(block.lines for block in reader)
    reader.check()
    return lines


def _sources(pairs: Mapping[str, Sequence[Pair]]) -> dict[str, str]:
    """Return a mapping from the normalised source of each pair to the name under which `pairs` lists the pair."""
    return {normalise(source, "plain"): name for name, some in pairs.items() for source, _ in some}


def _pairs(corpus: Corpus, *, references: bool) -> Iterator[Pair]:
    """Yield all pairs of a corpus; bytes that are not UTF-8 become surrogates."""
    for block in PairReader(corpus):
        sides = (text.decode(errors="surrogateescape").split("\n")[:-1] for text in (block.source, block.target))
        for source, target in zip(*sides, strict=True):
            yield source, target if references else ""


def _statuses(path: Path, first: int, count: int) -> Counter[str] | None:
    """Return the number of records in a part, by status, or None if the part is missing or damaged."""
    try:
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        whole = {record["line"] for record in records} == set(range(first + 1, first + 1 + count))
        return Counter(str(record["status"]) for record in records) if whole else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
