"""Data diversification: train on a corpus and on the translations of its sources and of its targets.

    distillation.json          the runs
    forward-1/, forward-2/, …  the translations of the sources by each forward run (jobs/distillation.py)
    backward-1/, …             the translations of the targets by each backward run (jobs/distillation.py)
    corpus/00000.jsonl         the union: {source, target, origin}
    valid.*, test.*            pairs that no run was trained on
    student/                   the student's run, unless its configuration names another folder

Paper: Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation", Algorithm 1, with
one round.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.bundle import Bundle
from glassformer.corpus.doctor.duplicates import MEGABYTES, Repeats
from glassformer.errors import ConfigError
from glassformer.jobs.distillation import PART_LINES, distil
from glassformer.jobs.kept_settings import stored_weights
from glassformer.jobs.preparation import CorpusTexts
from glassformer.jobs.run_reports import ExaminedReport, OnProgress, ProgressReport
from glassformer.jobs.student_corpus import (
    CORPUS,
    StudentCorpus,
    TeacherSearch,
    check_place,
    distilled_pairs,
    keep_settings,
    texts_of_run,
    write_held_out,
    write_records,
)
from glassformer.system.files import clear_temporaries, hash_of_file
from glassformer.system.locks import locked

__all__ = ["DiversifiedCorpus", "diversify"]

_Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiversifiedCorpus(StudentCorpus):
    """A corpus and its translations in both directions."""

    pairs: Mapping[str, int]
    """Number of pairs by origin: "original", "forward" or "backward"; the student trains on all of them."""
    repeated: int
    """Number of pairs left out because an equal pair came earlier."""
    held_out: int
    """Number of pairs left out because they equal a validation or test pair."""
    untranslated: int
    """Number of lines without a translation, summed over all runs."""
    made: int
    """Number of lines translated by this call, without those of earlier calls, summed over all runs."""


def diversify(
    forward: Sequence[str | Path],
    backward: Sequence[str | Path],
    folder: str | Path,
    *,
    search: TeacherSearch | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    on_progress: OnProgress = lambda _: None,
) -> DiversifiedCorpus:
    """Translate a training corpus in both directions, and return the union of the corpus and the translations.

    The forward runs translate the sources of the corpus, and the backward runs translate the targets. The union has the
    original pairs, each source with its forward translations, and each target with its backward translations as
    sources. Each pair occurs once, and no pair equals a validation or test pair.

    `search` chooses the translations of each run, as in `distil`. `settings` maps names of decoding settings to values
    that override each run's settings. `data` names the current folder of the corpora. A second call translates only the
    lines that earlier calls did not translate.

    Raises:
        ConfigError: a setting is impossible, a run has the wrong direction, the runs hold out different pairs, or the
            folder is a run, or was made with different runs or settings.
        DataError: a corpus cannot be read.
        CheckpointError: a run is missing or damaged, or a file cannot be written.
    """
    if not forward or not backward:
        missing = "backward" if forward else "forward"
        raise ConfigError(f"{missing}: expected at least one run, got none; give the folder of a run")
    check_place(Path(folder))
    with locked(Path(folder)):
        for place in (Path(folder), Path(folder) / CORPUS):
            clear_temporaries(place)
        diversification = _Diversification(forward, backward, Path(folder), data, on_progress)
        return diversification.run(search or TeacherSearch(), settings or {})


class _Diversification:
    """The steps of a diversification; existing translations are not made again."""

    def __init__(
        self,
        forward: Sequence[str | Path],
        backward: Sequence[str | Path],
        folder: Path,
        data: str | Path | None,
        on_progress: OnProgress,
    ) -> None:
        directions = {"forward": forward, "backward": backward}
        self.runs = {
            f"{direction}-{number}": Path(run)
            for direction, runs in directions.items()
            for number, run in enumerate(runs, start=1)
        }
        self.folder, self.data, self.on_progress = folder, data, on_progress

    def run(self, search: TeacherSearch, settings: Mapping[str, Any]) -> DiversifiedCorpus:
        runs = [f"{name}: {hash_of_file(stored_weights(run))}" for name, run in self.runs.items()]
        keep_settings(self.folder, {"runs": runs})
        teacher = Bundle.load(self.runs["forward-1"])
        texts = {name: self._texts(name) for name in self.runs}
        held_out = {"valid": texts["forward-1"].valid, "test": texts["forward-1"].test}
        self._check_held_out(texts)
        write_held_out(self.folder, held_out, teacher.configuration.data)
        made = [
            distil(
                [run], self.folder / name, search=search, settings=settings, data=self.data, on_progress=self._of(name)
            )
            for name, run in self.runs.items()
        ]
        counts = self._write_union({pair for pairs in held_out.values() for pair in pairs})
        return DiversifiedCorpus(
            folder=self.folder,
            teacher=teacher,
            pairs={origin: counts[origin] for origin in ("original", "forward", "backward")},
            repeated=counts["repeated"],
            held_out=counts["held out"],
            untranslated=sum(sum(one.untranslated.values()) for one in made),
            made=sum(one.made for one in made),
        )

    def _texts(self, name: str) -> CorpusTexts:
        """Return the texts of a run's corpus; the split is kept in the folder in which `distil` looks for it."""
        return texts_of_run(Bundle.load(self.runs[name]), self.folder / name, self.data, self._of(name))

    def _of(self, name: str) -> OnProgress:
        """Return a function that reports the progress of a run under the run's name."""

        def report(one: ProgressReport | ExaminedReport) -> None:
            self.on_progress(replace(one, stage=f"{name}: {one.stage}") if isinstance(one, ProgressReport) else one)

        return report

    def _check_held_out(self, texts: Mapping[str, CorpusTexts]) -> None:
        """Raise an error for a run of the wrong direction, or a run that may have seen held-out pairs of other runs."""
        held_out = {name: {"valid": set(one.valid), "test": set(one.test)} for name, one in texts.items()}
        expected = held_out["forward-1"]
        for name, run in self.runs.items():
            found = held_out[name]
            turned = {split: _turned(pairs) for split, pairs in found.items()}
            same, opposite = (turned, found) if name.startswith("backward") else (found, turned)
            tests = same["test"], expected["test"]
            if same["valid"] == expected["valid"] and (not all(tests) or tests[0] == tests[1]):
                continue
            if opposite["valid"] == expected["valid"]:
                raise ConfigError(
                    f"{run} translates in the wrong direction for a {name.partition('-')[0]} run of "
                    f"{self.runs['forward-1']}: give forward runs as RUN, and runs of the opposite direction as "
                    "backward runs"
                )
            raise ConfigError(
                f"{run} holds out different pairs from {self.runs['forward-1']}: train all runs with the same "
                "validation and test files (data.valid_source, data.test_source)"
            )

    def _pairs(self) -> Iterator[tuple[str, _Pair]]:
        """Yield the origin and the texts of each original, forward and backward pair."""
        yield from (("original", pair) for pair in self._texts("forward-1").train)
        for name in self.runs:
            origin = name.partition("-")[0]
            for source, target in distilled_pairs(self.folder / name):
                yield origin, (source, target) if origin == "forward" else (target, source)

    def _write_union(self, held_out: set[_Pair]) -> Counter[str]:
        """Write the union; return the number of pairs by origin or, for pairs left out, by the reason."""
        counts: Counter[str] = Counter()

        def records() -> Iterator[dict[str, str]]:
            for (origin, pair), repeated in zip(self._pairs(), _repeats(self._pairs()), strict=True):
                kind = "held out" if pair in held_out else "repeated" if repeated else origin
                counts[kind] += 1
                if kind == origin:
                    yield {"source": pair[0], "target": pair[1], "origin": origin}

        write_records(self.folder / CORPUS / "00000.jsonl", records())
        return counts


def _turned(pairs: set[_Pair]) -> set[_Pair]:
    return {(target, source) for source, target in pairs}


def _repeats(pairs: Iterator[tuple[str, _Pair]]) -> NDArray[np.bool_]:
    """Return, for each pair, whether an equal pair came earlier."""
    count = 0
    with Repeats(MEGABYTES) as repeats:
        while some := list(islice(pairs, PART_LINES)):
            digests = b"".join(blake2b(json.dumps(pair).encode(), digest_size=16).digest() for _, pair in some)
            repeats.add(np.frombuffer(digests, np.uint64).reshape(-1, 2), np.arange(count, count + len(some)))
            count += len(some)
        return np.unpackbits(repeats.finish().packed(count), count=count).astype(bool)
