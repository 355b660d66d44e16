"""Measure what a larger beam finds: how much more probable outputs, how much better ones, and at what price."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch

import glassformer as gf
from glassformer.corpus.tasks import Example
from glassformer.decoding.beam import beam_search
from glassformer.decoding.hypothesis import Hypothesis, length_penalty, max_length
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.evaluation.metrics import bleu
from glassformer.watch.inspection import outputs
from laboratory import arguments, say, trained, write
from quality import splits

SIZES = (1, 2, 4, 8, 16, 32)
ALPHAS = (0.0, 0.6)
WHERE = {
    "demo": ("test", "unseen-combinations", "coreference", "longer"),
    "short": ("test", "longer"),
}
"""The splits that each model translates; "short" has learned less."""
ROWS = 640
"""The number of hypotheses decoded side by side."""


class Counting(TransformerStep):
    """The model as a search sees it, counting the hypotheses that it continues."""

    def __init__(self, model: gf.Transformer, source: torch.Tensor) -> None:
        super().__init__(model, source)
        self.expanded = 0

    def advance(self, tokens: torch.Tensor, state: Any) -> Any:
        self.expanded += len(tokens)
        return super().advance(tokens, state)


def main() -> None:
    asked = arguments(__doc__)
    models: dict[str, Any] = {name: {split: {} for split in some} for name, some in WHERE.items()}
    for seed in asked.seeds:
        examples = splits(seed, asked.limit)
        for name, some in WHERE.items():
            translator = trained(name, seed)
            for split in some:
                for alpha in ALPHAS:
                    rows = study(translator, examples[split], alpha)
                    say(f"{name}, seed {seed}, {split}, α = {alpha}: {[row['exact'] for row in rows]}")
                    for row, size in zip(rows, SIZES, strict=True):
                        cell = models[name][split].setdefault(f"{alpha}", {}).setdefault(f"{size}", {})
                        for key, value in row.items():
                            cell.setdefault(key, []).append(value)
    write("beam", {"sizes": SIZES, "alphas": ALPHAS, "models": models}, asked)


def study(translator: gf.Translator, examples: Sequence[Example], alpha: float) -> list[dict[str, float]]:
    """Return the findings of each beam size on these examples, in %, nats per sentence and expansions per sentence."""
    sources, references = encoded(translator, examples)
    given = outputs(translator.model, list(zip(sources, references, strict=True)))
    of_reference = [one.log_prob for one in given]
    scores = [p / length_penalty(len(ids), alpha) for p, ids in zip(of_reference, references, strict=True)]
    rows, greedy = [], None
    for size in SIZES:
        found, expanded = search(translator, sources, size, alpha)
        greedy = greedy or found
        texts = [translator.bundle.target_tokenizer.decode(one.tokens) for one in found]
        right = [text == example.target for text, example in zip(texts, examples, strict=True)]
        wrong = [place for place, good in enumerate(right) if not good]
        missed = [place for place in wrong if scores[place] > found[place].score + 1e-4]
        better = [one.log_prob > other.log_prob + 1e-4 for one, other in zip(found, greedy, strict=True)]
        shares = {"exact": right, "more_probable_than_greedy": better}
        lengths = [len(one.tokens) - len(ids) for one, ids in zip(found, references, strict=True)]
        rows.append(
            {
                **{name: 100 * fmean(some) for name, some in shares.items()},
                "bleu": bleu(texts, [one.target for one in examples]).value,
                "search_errors": 100 * len(missed) / len(examples),
                "model_errors": 100 * (len(wrong) - len(missed)) / len(examples),
                "log_prob": fmean(one.log_prob for one in found),
                "log_prob_of_reference": fmean(of_reference),
                "longer_by": fmean(lengths),
                "expansions": expanded / len(examples),
            }
        )
    return rows


def encoded(translator: gf.Translator, examples: Sequence[Example]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the ids of sources and references, each with `<eos>`."""
    bundle, eos_id = translator.bundle, translator.model.config.eos_id
    sources = [[*bundle.source_tokenizer.encode(one.source), eos_id] for one in examples]
    return sources, [[*bundle.target_tokenizer.encode(one.target), eos_id] for one in examples]


def search(
    translator: gf.Translator, sources: Sequence[Sequence[int]], size: int, alpha: float
) -> tuple[list[Hypothesis], int]:
    """Return the best hypothesis for each source, and the total number of hypotheses that the model continued."""
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    best: dict[int, Hypothesis] = {}
    together, expanded = max(1, ROWS // size), 0
    for begin in range(0, len(order), together):
        places = order[begin : begin + together]
        batch = [sources[place] for place in places]
        step = Counting(translator.model, padded(translator.model, batch))
        extra = translator.bundle.configuration.decoding.extra_length
        lengths = [max_length(translator.model.config, len(ids), extra) for ids in batch]
        found = beam_search(step, beam_size=size, max_lengths=lengths, length_penalty=alpha)
        best |= {place: hypotheses[0] for place, hypotheses in zip(places, found, strict=True)}
        expanded += step.expanded
    return [best[place] for place in range(len(sources))], expanded


main()
