"""The teachers of a student: the models whose outputs the student learns, and the choice among these outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Need
from glassformer.errors import ConfigError
from glassformer.evaluation.metrics import METRICS, sentence_scores
from glassformer.jobs.bulk import finished_settings, rescored_by
from glassformer.jobs.kept_settings import stored_weights
from glassformer.jobs.student_corpus import Pair, TeacherSearch
from glassformer.recipes.configuration import OF_SAMPLING, settings_of_outputs
from glassformer.recipes.toml import changed_settings
from glassformer.system.files import hash_of_file
from glassformer.system.machine import cores
from glassformer.translating.combination import Combination
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = ["Teacher", "nearest_first", "teachable"]


class Teacher:
    """A trained model, or an ensemble of trained models, and its search settings."""

    def __init__(
        self, runs: Sequence[Path], search: TeacherSearch, settings: Mapping[str, Any], translations: str = ""
    ) -> None:
        """Read the settings of the models.

        `translations` is a finished folder of `jobs.bulk`, whose search settings then apply, or "".

        Raises:
            ConfigError: a setting is impossible, or contradicts the search.
            CheckpointError: a model is missing or damaged.
        """
        self.runs, self.search = runs, search
        self.combination = Combination.named(runs[0])
        self.bundle = Bundle.load(self.combination.run)
        self.settings = changed_settings(
            "decoding", self.bundle.configuration.decoding, self.combination.settings | dict(settings)
        )
        if translations:
            there = finished_settings(translations)
            names = settings_of_outputs(self.settings)
            self.settings = changed_settings("decoding", self.settings, {name: there[name] for name in names})
        self._check_search(settings)

    @cached_property
    def hashes(self) -> list[str]:
        """The hashes of the models' weights."""
        return [hash_of_file(stored_weights(run)) for run in (*self.combination.folders, *self.runs[1:])]

    @cached_property
    def translator(self) -> Translator:
        """The models' translator, loaded at the first use, because it may never be needed."""
        needs: Sequence[Need] = ("sampling",) if self.search.sample else ()
        settings = asdict(self.settings)
        return Translator.load(*self.runs, engine="auto", workers=cores(), settings=settings, needs=needs)

    def identity(self) -> dict[str, Any]:
        """Return everything that decides the outputs, by name: the models and the search settings."""
        of_sampling = {name: getattr(self.settings, name) for name in OF_SAMPLING} if self.search.sample else {}
        return {
            "teachers": self.hashes,
            **rescored_by(self.combination),
            **settings_of_outputs(self.settings),
            **of_sampling,
            **asdict(self.search),
        }

    def translate(self, pairs: Sequence[Pair], left_out: Sequence[str], *, whole: bool = False) -> list[Translation]:
        """Return a translation of each source; the translation of a left-out source is empty.

        With `whole`, the models read each source as it is, as in a training.
        """
        sources = [source for (source, _), why in zip(pairs, left_out, strict=True) if not why]
        made = iter(self._outputs(sources, {"split": False, "recase": False} if whole else {}) if sources else ())
        return [Translation(text="") if why else next(made) for why in left_out]

    def _outputs(self, sources: Sequence[str], options: Mapping[str, Any]) -> list[Translation]:
        """Return one translation for each source, with the remaining samples or beam outputs as its alternatives."""
        how: dict[str, Any] = {"guards": False, "log_probs": False, **options}
        if not self.search.sample:
            n_best = self.settings.beam_size if self.search.best_of_reference else self.search.n_best
            return self.translator.translate(sources, n_best=n_best, **how)
        seeds = range(self.settings.seed, self.settings.seed + self.search.n_best)
        draws = [self.translator.translate(sources, sample=True, seed=seed, **how) for seed in seeds]
        return [replace(first, alternatives=tuple(others)) for first, *others in zip(*draws, strict=True)]

    def records(
        self, pairs: Sequence[Pair], first: int, translations: Sequence[Translation], left_out: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return the records of a block of lines; `first` is the index of the block's first line, from 0."""
        wanted = self.search
        outputs = [teachable(translation) for translation in translations]
        if wanted.best_of_reference:
            language = self.translator.bundle.configuration.data.target_language
            references = [reference for _, reference in pairs]
            outputs = nearest_first(outputs, references, wanted.best_of_reference, language)
        records = []
        rows = zip(pairs, translations, outputs, left_out, strict=True)
        for line, ((source, reference), translation, texts, why) in enumerate(rows, start=first + 1):
            if why:
                records.append({"line": line, "source": source, "target": "", "status": why})
                continue
            found = [(text, "ok") for text in texts[: wanted.n_best]] or [("", translation.status)]
            if wanted.keep_reference and reference.strip() and _is_text(reference):
                found = [one for one in found if one[0] != reference] + [(reference, "reference")]
            records += [{"line": line, "source": source, "target": text, "status": status} for text, status in found]
        return records

    def _check_search(self, settings: Mapping[str, Any]) -> None:
        size, wanted = self.settings.beam_size, self.search
        if wanted.sample and (name := "beam_size" if "beam_size" in settings else wanted.best_of_reference):
            raise ConfigError(f"{name} chooses among the outputs of a beam: leave out {name}, or leave out sampling")
        if wanted.n_best > size and not wanted.sample:
            raise ConfigError(
                f"n_best: expected at most beam_size = {size}, got {wanted.n_best}; raise beam_size or lower n_best"
            )
        if wanted.best_of_reference and size == 1:
            raise ConfigError("best_of_reference: expected beam_size > 1 (several outputs), got 1; raise beam_size")


def teachable(translation: Translation) -> list[str]:
    """Return the distinct texts of a translation and its alternatives, best first, without truncated or blank texts."""
    hypotheses = (translation, *translation.alternatives)
    return list(dict.fromkeys(one.text for one in hypotheses if one.status == "ok" and one.text.strip()))


def nearest_first(
    outputs: Sequence[list[str]], references: Sequence[str], metric: str, language: str = ""
) -> list[list[str]]:
    """Return each line's outputs, sorted by distance to the line's reference, nearest first; ties keep their order.

    The outputs of a line whose reference is blank or not valid Unicode keep their order. `metric` is a key of
    `evaluation.metrics.METRICS`, such as "bleu". `language` is the tag of the references' language.
    """
    usable = [bool(reference.strip()) and _is_text(reference) for reference in references]
    rows = [
        (place, text) for place, (texts, fits) in enumerate(zip(outputs, usable, strict=True)) for text in texts if fits
    ]
    if not rows:
        return list(outputs)
    scores = sentence_scores([text for _, text in rows], [references[place] for place, _ in rows], metric, language)
    sign = -1 if METRICS[metric].higher_is_better else 1
    ranked: list[list[str]] = [[] if fits else texts for texts, fits in zip(outputs, usable, strict=True)]
    for _, (place, text) in sorted(zip(scores, rows, strict=True), key=lambda one: sign * one[0]):
        ranked[place].append(text)
    return ranked


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
