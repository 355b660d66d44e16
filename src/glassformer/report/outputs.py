"""What a model makes of its validation sentences, and where it looked for one of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from glassformer.evaluation.items import Items, default_metrics
from glassformer.evaluation.metrics import METRICS, Score, evaluate
from glassformer.translator import Explanation, Translator

__all__ = ["Output", "Outputs", "Piece", "example", "translated"]

MOST = 300
"""Sentences that are translated at most; fewer where that would take longer than SECONDS."""
SECONDS = 12.0
TOGETHER = 50
SHOWN = 5
"""The best and the worst that are shown, of each so many."""
EXAMPLE = range(5, 16)
"""Tokens that a sentence should have whose attention is drawn: enough to see something, few enough to read."""

Piece = tuple[str, bool]
"""A part of an output, and whether it differs from the reference there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A sentence, what is right, and what came out."""

    source: str
    references: tuple[str, ...]
    pieces: tuple[Piece, ...]
    """The output in pieces, those that are not in the reference marked."""
    value: float
    """Of the measure of single sentences."""
    right: bool
    """Whether it equals a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The translations of validation sentences."""

    items: Items
    texts: tuple[str, ...]
    """The translations, as many."""
    scores: tuple[Score, ...]
    """Of all of them together."""
    measure: str
    """The name of what single sentences are measured by."""
    higher_is_better: bool
    values: tuple[float, ...]
    """That measure for each sentence."""
    right: tuple[bool, ...]
    """Whether each equals a reference."""

    def best(self) -> list[Output]:
        """Return the sentences that came out best, of equally good ones the longest."""
        return [self._output(place) for place in self.ranked()[:SHOWN]]

    def worst(self) -> list[Output]:
        """Return the sentences that came out worst; none that is right."""
        return [self._output(place) for place in reversed(self.ranked()) if not self.right[place]][:SHOWN]

    def ranked(self) -> list[int]:
        """Return the numbers of the sentences in the order of how good they came out, the best first."""
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
        )


def translated(translator: Translator, items: Items) -> Outputs:
    """Return greedy translations of the first items, with their scores."""
    ends = time.perf_counter() + SECONDS
    texts: list[str] = []
    for first in range(0, min(len(items.sources), MOST), TOGETHER):
        sources = items.sources[first : min(first + TOGETHER, MOST)]
        texts += [one.text for one in translator.translate(sources, beam_size=1)]
        if time.perf_counter() > ends:
            break
    items = items.first(len(texts))
    names = default_metrics(items)
    line = METRICS["chrf" if "chrf" in names else names[-1]]
    counted = line.count(texts, items.references)
    right = METRICS["exact"].count(texts, items.references).lines[:, 0]
    return Outputs(
        items=items,
        texts=tuple(texts),
        scores=tuple(evaluate(texts, items.references, metrics=names)),
        measure=line.name,
        higher_is_better=line.higher_is_better,
        values=tuple(counted.values(counted.lines).tolist()),
        right=tuple(map(bool, right.tolist())),
    )


def example(translator: Translator, outputs: Outputs) -> Explanation:
    """Return how a sentence of suitable length was translated: of those, the best."""
    tokenizer = translator.bundle.source_tokenizer
    ranked = outputs.ranked()
    fitting = (place for place in ranked if len(tokenizer.encode(outputs.items.sources[place])) in EXAMPLE)
    place = next(fitting, min(ranked, key=lambda place: len(outputs.items.sources[place])))
    return translator.explain(outputs.items.sources[place], beam_size=1)


def _compared(text: str, references: Sequence[str], *, letters: bool) -> tuple[Piece, ...]:
    """Return a text in runs that the nearest reference has too, and runs that it has not."""
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
