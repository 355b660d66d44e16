"""Examine and clean a corpus, and split it: kept.npy, valid.jsonl and sample.jsonl."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from io import BytesIO
from itertools import islice

import numpy as np

from glassformer.bundle import SPELLINGS
from glassformer.corpus.doctor.duplicates import first_bits
from glassformer.corpus.doctor.examine import Examination, examine, examine_held_out
from glassformer.corpus.doctor.problems import ALWAYS_LEFT_OUT
from glassformer.corpus.kept_pairs import KeptBlock, kept_blocks, kept_pairs, texts_at
from glassformer.corpus.pool import processes_for
from glassformer.corpus.readers import Corpus, TextPairs
from glassformer.corpus.shards import save_array
from glassformer.corpus.tasks import TASKS
from glassformer.errors import ConfigError, DataError, quoted
from glassformer.jobs.prepared.folder import KEPT_FILE, SAMPLE_FILE, VALID_FILE, PreparedFolder
from glassformer.jobs.prepared.held_out import KeptBits, hold_out
from glassformer.jobs.run_reports import ExaminedReport, OnProgress, ProgressReport
from glassformer.jobs.starting_run import StartingRun
from glassformer.recipes.configuration import Configuration
from glassformer.system.files import hash_of_bytes, hash_of_file, write_safely
from glassformer.system.pools import HERE, Pool
from glassformer.text.habits import HABIT_PAIRS, Habits
from glassformer.text.recasing import Spellings

__all__ = ["SplitTexts"]

SAMPLE_PAIRS = 10_000
"""Number of pairs in the sample from which open settings are chosen."""


class SplitTexts:
    """The texts of a corpus, cleaned and split into training and validation pairs. The split is kept in the folder."""

    def __init__(
        self,
        folder: PreparedFolder,
        configuration: Configuration,
        corpora: Mapping[str, Corpus],
        on_progress: OnProgress,
        *,
        holds_out: bool = True,
        pool: Pool | None = None,
    ) -> None:
        self.folder, self.configuration, self.corpora, self.on_progress = folder, configuration, corpora, on_progress
        self.data, self._holds_out, self._pool = configuration.data, holds_out, pool

    def ensure(self) -> None:
        """Clean and split the corpus, unless the folder already has the split and its files are undamaged.

        Raises:
            ConfigError: the folder was prepared with different training pairs, or the task is unknown.
            DataError: the corpus cannot be read, or none of its pairs can be used.
            CheckpointError: a file cannot be written.
        """
        of_version = {SPELLINGS} & self.folder.manifest.hashes.keys()  # older versions did not write it
        names = (SAMPLE_FILE, VALID_FILE, *of_version, *(() if self.data.task else (KEPT_FILE,)))
        if self.folder.manifest.always_left_out != ALWAYS_LEFT_OUT or not self.folder.has(*names):
            self._write()

    def training_blocks(self) -> Iterator[KeptBlock]:
        """Return the training pairs, in blocks."""
        if self.data.task:
            return iter([KeptBlock.of(self._task[0])])
        return kept_blocks(self.corpora["train"], np.load(self.folder.path / KEPT_FILE))

    def training_pairs(self) -> Iterator[tuple[str, str]]:
        """Return the training pairs, read from the files when they are needed."""
        return (pair for block in self.training_blocks() for pair in zip(*block.texts(), strict=True))

    def some_pairs(self, count: int, most: int) -> TextPairs:
        """Return all training pairs, `count` in number, or `most` random ones if these are fewer."""
        if count <= most:
            return list(self.training_pairs())
        wanted = np.random.default_rng(1).choice(count, most, replace=False)
        return texts_at(self.training_blocks(), np.sort(wanted), self.pool)

    def test_pairs(self) -> list[tuple[str, str]]:
        """Return the test pairs; an empty list if the configuration names no test files."""
        if self.data.task:
            return list(self._task[2])
        if "test" not in self.corpora:
            return []
        corpus = self.corpora["test"]
        return list(kept_pairs(corpus, examine_held_out(corpus).kept))

    @cached_property
    def pool(self) -> Pool:
        """The processes that check and encode lines."""
        if self.data.task:
            return HERE
        return self._pool or processes_for(self.corpora["train"], self.configuration.cleaning.workers)

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

    def _write(self) -> None:
        """Clean and split the corpus; write the bits of the training pairs, the validation pairs and a sample."""
        findings, dropped = None, {}
        if self.data.task:
            train, valid, _ = self._task
            pairs = len(train)
        else:
            examination = self._examined()
            findings = examination.findings.to_dict()
            dropped = {reason: finding.count for reason, finding in examination.findings.dropped.items()}
            valid, kept = self._hold_out(examination.kept, dropped)
            pairs, _ = first_bits(kept, 0)
            self._check_kept(kept, pairs)
            save_array(self.folder.path / KEPT_FILE, kept)
        habits = self._habits(pairs)
        self.folder.write_pairs(VALID_FILE, valid)
        self.folder.write_pairs(SAMPLE_FILE, list(islice(self.training_pairs(), SAMPLE_PAIRS)))
        paths = {name: self.folder.path / name for name in (KEPT_FILE, VALID_FILE, SAMPLE_FILE, SPELLINGS)}
        hashes = {name: hash_of_file(path) for name, path in paths.items() if path.exists()}
        self.folder.save(
            always_left_out=ALWAYS_LEFT_OUT,
            habits=habits.to_json(),
            findings=findings,
            dropped=dropped,
            pairs=pairs,
            valid_pairs=len(valid),
            hashes=hashes,
        )

    def _habits(self, pairs: int) -> Habits:
        """Return how the training sources are written; write their usual spellings, with those of the starting run."""
        some, language = self.some_pairs(pairs, HABIT_PAIRS), self.data.source_language
        spellings = Spellings.of((source for source, _ in some), language)
        start = StartingRun.of(self.configuration)
        if start and (known := start.bundle.spellings):
            spellings = spellings.joined(known.read_text(encoding="utf-8").splitlines())
        text = "".join(f"{form}\n" for form in spellings.forms)
        write_safely(self.folder.path / SPELLINGS, lambda path: path.write_bytes(text.encode()))
        return Habits.of(some, language, spellings)

    def _examined(self) -> Examination:
        corpus = self.corpora["train"]
        held_out = {split: files for split, files in self.corpora.items() if split != "train"}

        def on_read(done: int, total: int) -> None:
            self.on_progress(ProgressReport(stage="checking the corpus", done=done, total=total, unit="bytes"))

        examination = examine(corpus, self.configuration.cleaning, held_out, on_read, self.pool, self.data.languages)
        self.on_progress(ExaminedReport(findings=examination.findings, corpus=corpus))
        if not examination.findings.kept:
            raise DataError(
                f"{corpus.names}: none of the {examination.findings.pairs} pairs can be used; see `glassformer prepare "
                "--check` for the reasons, and check that the file is the right one"
            )
        return examination

    def _hold_out(self, kept: KeptBits, dropped: dict[str, int]) -> tuple[TextPairs, KeptBits]:
        """Return the validation pairs and the bits of the training pairs; count the left-out pairs in `dropped`."""
        if self.data.valid_source:
            examination = examine_held_out(self.corpora["valid"])
            found = {reason: finding.count for reason, finding in examination.findings.dropped.items()}
            if not examination.findings.kept:
                reasons = ", ".join(f"{count} {reason}" for reason, count in found.items())
                raise DataError(
                    f"{self.corpora['valid'].names}: expected validation pairs, got {reasons or 'no pairs'}; correct "
                    "the files, or leave out data.valid_source, and pairs of the training data are held out"
                )
            dropped |= {f"{reason} (validation)": count for reason, count in found.items()}
            return list(kept_pairs(self.corpora["valid"], examination.kept)), kept
        if not self._holds_out:
            return [], kept
        return hold_out(self.corpora["train"], kept, self.data.valid_lines, self.configuration.run.seed, self.pool)

    def _check_kept(self, kept: KeptBits, pairs: int) -> None:
        """Raise an error if the folder was prepared with different training pairs.

        The training pairs differ if another version of the corpus doctor prepared the folder, and left out other pairs
        than this version does. A resumed training run must continue with the pairs that it began with.
        """
        content, before = BytesIO(), self.folder.manifest.hashes.get(KEPT_FILE)
        np.save(content, kept)
        if before and before != hash_of_bytes(content.getvalue()):
            raise ConfigError(
                f"{self.folder.path} holds a prepared corpus of {self.folder.manifest.pairs} training pairs, but this "
                f"version of glassformer chooses {pairs} (`glassformer prepare --check` shows why): choose another "
                "run.directory and data.prepared, or use the version that prepared the folder"
            )
