"""A model's translations of validation sentences, and its attention in one of these translations."""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from glassformer.bundle import load_weights
from glassformer.evaluation.items import Items, default_metrics
from glassformer.evaluation.metrics import METRICS, Score, score_texts
from glassformer.translating.translation import Explanation, Translation
from glassformer.translator import Translator
from glassformer.watch.explorer.training_history import progress, snapshots_in, spread

__all__ = ["Early", "Output", "Outputs", "Piece", "at_snapshots", "example", "translated"]

MOST_SENTENCES = 300
"""Maximum number of sentences to translate; fewer are translated if MOST_SECONDS are over."""
MOST_SECONDS = 12.0
TRANSLATED_TOGETHER = 50
SHOWN_OUTPUTS = 5
"""Number of best outputs to show, and also of worst outputs."""
EXAMPLE = range(5, 16)
"""Preferred number of tokens of the sentence whose attention is drawn, so that the picture is informative but
readable."""

EARLY_SHOWN = 4
SENTENCES_SHOWN = 3
"""Number of snapshots of the training, and number of sentences that each snapshot translates."""

Piece = tuple[str, bool]
"""A piece of an output, and whether it differs from the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A sentence with its references and its output."""

    source: str
    references: tuple[str, ...]
    pieces: tuple[Piece, ...]
    """The output in pieces; pieces that are not in the reference are marked."""
    value: float
    """The sentence's score."""
    right: bool
    """Whether the output equals a reference."""
    probability: float
    """The probability that the model gives to the output, 0–1."""


@dataclass(frozen=True, slots=True)
class Early:
    """Sentences, and their greedy translations at some steps of the training."""

    sources: tuple[str, ...]
    texts: dict[int, tuple[str, ...]]
    """The translations of all sentences, by step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The translations of validation sentences."""

    items: Items
    texts: tuple[str, ...]
    """The translations, one per item."""
    scores: tuple[Score, ...]
    """Scores over all translations."""
    measure: str
    """The name of the metric that scores single sentences."""
    higher_is_better: bool
    values: tuple[float, ...]
    """The value of the metric `measure` for each sentence."""
    right: tuple[bool, ...]
    """Whether each output equals a reference."""
    log_probs: tuple[float, ...]
    """The log probability that the model gives to each output."""
    seconds: float = 0.0
    """The time that the translations took."""

    @property
    def differ(self) -> bool:
        """Whether some outputs have better scores than others."""
        return len(set(self.values)) > 1

    def hardest(self) -> list[Output]:
        """Return up to SHOWN_OUTPUTS outputs to which the model gives the lowest probabilities, lowest first."""
        places = sorted(range(len(self.values)), key=lambda place: self.log_probs[place])
        return [self._output(place) for place in places[:SHOWN_OUTPUTS]]

    def best(self) -> list[Output]:
        """Return up to SHOWN_OUTPUTS outputs, best score first. Ties are ordered by source length, longest first."""
        return [self._output(place) for place in self.ranked()[:SHOWN_OUTPUTS]]

    def worst(self) -> list[Output]:
        """Return up to SHOWN_OUTPUTS outputs with the worst scores, without outputs that are right."""
        return [self._output(place) for place in reversed(self.ranked()) if not self.right[place]][:SHOWN_OUTPUTS]

    def ranked(self) -> list[int]:
        """Return the indices of the sentences, best score first."""
        sign = -1 if self.higher_is_better else 1
        places = range(len(self.values))
        return sorted(places, key=lambda place: (sign * self.values[place], -len(self.items.sources[place])))

    def _output(self, place: int) -> Output:
        references, text = self.items.references[place], self.texts[place]
        return Output(
            source=self.items.sources[place],
            references=references,
            pieces=_compared(text, references, letters=self.measure == METRICS["cer"].name),
            value=self.values[place],
            right=self.right[place],
            probability=math.exp(self.log_probs[place]),
        )


def translated(translator: Translator, items: Items, *, seconds: float = MOST_SECONDS) -> Outputs:
    """Return greedy translations of the first items, with their scores; after `seconds`, no new batch is started."""
    begins = time.perf_counter()
    taken, found = 0.0, list[Translation]()
    for first in range(0, min(len(items.sources), MOST_SENTENCES), TRANSLATED_TOGETHER):
        sources = items.sources[first : min(first + TRANSLATED_TOGETHER, MOST_SENTENCES)]
        found += translator.translate(sources, beam_size=1, guards=False)
        if (taken := time.perf_counter() - begins) > seconds:
            break
    items, texts = items.first(len(found)), [one.text for one in found]
    names, language = default_metrics(items), translator.bundle.configuration.data.target_language
    line = METRICS["chrf" if "chrf" in names else names[-1]]
    counted = line.count(texts, items.references)
    right = METRICS["exact"].count(texts, items.references).lines[:, 0]
    return Outputs(
        items=items,
        texts=tuple(texts),
        scores=tuple(score_texts(texts, items.references, metrics=names, language=language)),
        measure=line.name,
        higher_is_better=line.higher_is_better,
        values=tuple(counted.values(counted.lines).tolist()),
        right=tuple(map(bool, right.tolist())),
        log_probs=tuple(one.log_prob for one in found),
        seconds=taken,
    )


def at_snapshots(translator: Translator, sources: Sequence[str]) -> Early | None:
    """Return translations of some of these sentences, from short to long, by a run's snapshots; None without snapshots.

    The last translation is by the run's own weights.
    """
    bundle = translator.bundle
    history, paths = progress(bundle.folder), snapshots_in(bundle.folder)
    steps = spread(list(paths), EARLY_SHOWN, history["step"])
    if not steps:
        return None
    ordered = sorted(dict.fromkeys(sources), key=len)
    shown = [ordered[len(ordered) * part // (2 * SENTENCES_SHOWN)] for part in range(1, 2 * SENTENCES_SHOWN, 2)]
    shown = list(dict.fromkeys(shown))
    model, texts = copy.deepcopy(translator.model), {}
    for step in steps:
        load_weights(model, paths[step])
        texts[step] = _greedy(Translator(bundle, model), shown)
    if history["step"]:
        texts[history["step"]] = _greedy(translator, shown)
    return Early(tuple(shown), texts)


def _greedy(translator: Translator, sources: Sequence[str]) -> tuple[str, ...]:
    return tuple(one.text for one in translator.translate(sources, beam_size=1, guards=False, log_probs=False))


def example(translator: Translator, outputs: Outputs) -> Explanation:
    """Return the explanation of the best translation among sentences of suitable length."""
    tokenizer = translator.bundle.source_tokenizer
    ranked = outputs.ranked()
    fitting = (place for place in ranked if len(tokenizer.encode(outputs.items.sources[place])) in EXAMPLE)
    place = next(fitting, min(ranked, key=lambda place: len(outputs.items.sources[place])))
    return translator.explain(outputs.items.sources[place], beam_size=1)


def _compared(text: str, references: Sequence[str], *, letters: bool) -> tuple[Piece, ...]:
    """Return a text in pieces that are alternately equal to the nearest reference and different from it."""
    cut = list if letters else str.split
    words = cut(text)
    matchers = [SequenceMatcher(a=cut(reference), b=words, autojunk=False) for reference in references]
    nearest = max(matchers, key=SequenceMatcher.ratio)
    joint = "" if letters else " "
    return tuple(
        (joint.join(words[start:end]), kind != "equal")
        for kind, _, _, start, end in nearest.get_opcodes()
        if end > start
    )
