"""Measure what is lost when a part of the Transformer is left out: √d_k, the positions, the embedding's √d_model."""

from statistics import fmean

import torch

import glassformer as gf
from glassformer.corpus.tasks import Example
from laboratory import VARIANTS, arguments, curve, say, trained, write
from quality import per_seed, quality, splits

MODELS = ("short", "no-scale", "no-positions", "no-embedding-scale", "one-head", "one-head-no-scale")
SENTENCES = 100
"""The number of sentences over which sharpness is averaged."""


def main() -> None:
    asked = arguments(__doc__)
    found: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in MODELS}
    for seed in asked.seeds:
        examples = splits(seed, asked.limit)
        for name in MODELS:
            found[name].append(study(name, trained(name, seed), examples))
            say(f"{name}, seed {seed}: {found[name][-1]['exact']}")
    models = {name: {**per_seed(found[name]), "curve": [curve(name, seed) for seed in asked.seeds]} for name in MODELS}
    write("parts", {"models": models}, asked)


def study(name: str, translator: gf.Translator, examples: dict[str, list[Example]]) -> dict[str, dict[str, float]]:
    """Return the quality of a variant, and how sharp its attention is: untrained ("start") and trained ("end")."""
    torch.manual_seed(translator.bundle.configuration.run.seed)
    start = gf.Translator(translator.bundle, gf.Transformer(translator.bundle.model_config).eval())
    sharpness = {}
    for when, one in (("start", start), ("end", translator)):
        with VARIANTS[name].change(one.model):
            sharpness[when] = largest_weight(one, examples["test"][:SENTENCES])
    with VARIANTS[name].change(translator.model):
        return {**quality(translator, examples), "largest_weight": sharpness}


@torch.no_grad()
def largest_weight(translator: gf.Translator, examples: list[Example]) -> float:
    """Return the largest weight of a row of the encoder's self-attention, averaged over rows, heads and layers."""
    weights = []
    for one in examples:
        ids = [*translator.bundle.source_tokenizer.encode(one.source), translator.model.config.eos_id]
        with gf.record(translator.model, "encoder.layers.*.self_attention.weights") as trace:
            translator.model.encode(torch.tensor([ids]))
        weights += [trace[name].amax(-1).mean().item() for name in trace]
    return fmean(weights)


main()
