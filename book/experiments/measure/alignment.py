"""Measure how well cross-attention shows which source words a target word comes from, by the grammar's own links."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import glassformer as gf
from glassformer.corpus.tasks import Example
from glassformer.text.words import split_words
from laboratory import arguments, say, trained, write
from quality import splits

SENTENCES = 500
STEPS = ("writes", "reads")
"""Which step's weights count for a target word: the step that writes it, or the next step, which reads it."""
KINDS = {
    "article": "le la l' les un une des de d' du au aux",
    "negation": "n' ne pas",
    "pronoun": "il elle ils elles",
    "auxiliary": "a ont est sont ai avons avait avaient avais était étaient étais avions étions été",
    "full stop": ".",
}
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words.split()}

Weights = dict[str, Tensor]
"""Attention of one sentence by source of alignment: (T + 1, S), a row for each step; the last row writes <eos>."""


def main() -> None:
    asked = arguments(__doc__)
    limit = asked.limit or SENTENCES
    results: dict[str, list[Any]] = {"heads": [], "baselines": [], "best": [], "kinds": [], "places": []}
    for seed in asked.seeds:
        translator, examples = trained("demo", seed), splits(seed, limit)
        chosen = choose(translator, examples["valid"])
        kinds, places = Tally(), Tally()
        scores = {step: Scores() for step in STEPS}
        baselines = Scores()
        for example in examples["test"]:
            words, weights = split_words(example.source), attention(translator, example)
            for step in STEPS:
                for name, rows in weights.items():
                    looks = [int(place) for place in rows.argmax(-1)]
                    scores[step].add(name, looked(looks, example, step), example)
            S, T = len(words), len(example.origins)
            baselines.add("diagonal", [round(place * (S - 1) / max(1, T - 1)) for place in range(T)], example)
            baselines.add_uniform("uniform", S, example)
            for what, (name, step) in {"best head": chosen, "mean": ("mean", chosen[1])}.items():
                looks = looked([int(place) for place in weights[name].argmax(-1)], example, step)
                for target, (place, bits) in enumerate(zip(looks, example.origins, strict=True)):
                    kind = kind_of(split_words(example.target)[target])
                    kinds.add((what, kind), "right" if right(place, bits) else "wrong")
                    places.add((what, kind), where(place, bits, words))
        results["heads"].append({step: scores[step].values() for step in STEPS})
        results["baselines"].append(baselines.values())
        results["best"].append({"name": chosen[0], "step": chosen[1], **scores[chosen[1]].values()[chosen[0]]})
        results["kinds"].append(kinds.shares())
        results["places"].append(places.shares())
        say(f"seed {seed}: {results['best'][-1]}, {results['baselines'][-1]}")
    write("alignment", {"sentences": limit, **results}, asked)


def choose(translator: gf.Translator, examples: Sequence[Example]) -> tuple[str, str]:
    """Return the head and the step with the fewest errors, on sentences that the results do not use."""
    scores = {step: Scores() for step in STEPS}
    for example in examples:
        for name, rows in attention(translator, example).items():
            for step in STEPS:
                scores[step].add(name, looked([int(place) for place in rows.argmax(-1)], example, step), example)
    errors = {
        (name, step): value["aer"] for step in STEPS for name, value in scores[step].values().items() if ".head" in name
    }
    return min(errors, key=errors.__getitem__)


@torch.no_grad()
def attention(translator: gf.Translator, example: Example) -> Weights:
    """Return the weights of cross-attention over the reference, for each head and as means over heads and layers."""
    bundle, model = translator.bundle, translator.model
    source = [*bundle.source_tokenizer.encode(example.source), model.config.eos_id]
    target = [model.config.bos_id, *bundle.target_tokenizer.encode(example.target)]
    with gf.record(model, "decoder.layers.*.cross_attention.*") as trace:
        model(torch.tensor([source]), torch.tensor([target]))
    found: Weights = {}
    layers, contents = [], []
    for number, layer in enumerate(model.decoder.layers):
        point = f"decoder.layers.{number}.cross_attention"
        weights, value = trace[f"{point}.weights"][0], trace[f"{point}.value"][0]
        found |= {f"layer {number}.head {head}": rows for head, rows in enumerate(weights)}
        found[f"layer {number}"] = weights.mean(0)
        layers.append(found[f"layer {number}"])
        contents.append(weighted_contents(layer.cross_attention, weights, value))
        found[f"layer {number}, contents"] = contents[-1]
    found["mean"] = torch.stack(layers).mean(0)
    found["mean, contents"] = torch.stack(contents).mean(0)
    return found


def weighted_contents(attention: torch.nn.Module, weights: Tensor, value: Tensor) -> Tensor:
    """Return the length of the vector that each key adds to each query's stream: weight · value · W_O, summed over heads."""
    heads, _, width = value.shape
    mixed = attention.output_projection.weight.view(-1, heads, width)  # (D, H·W) -> (D, H, W)
    given = torch.einsum("hsw,dhw->hsd", value, mixed)
    return torch.einsum("hts,hsd->tsd", weights, given).norm(dim=-1)


def looked(looks: Sequence[int], example: Example, step: str) -> list[int]:
    """Return where each target word looks, given where each step looks."""
    words = len(example.origins)
    return list(looks[:words] if step == "writes" else looks[1 : words + 1])


def right(place: int, bits: int) -> bool:
    """Return whether a source position is among a word's origins."""
    return bool(bits >> place & 1)


def kind_of(word: str) -> str:
    """Return what kind of target word it is; most are "content": nouns, verbs, adjectives, prepositions."""
    return KIND_OF.get(word.lower(), "content")


def where(place: int, bits: int, words: Sequence[str]) -> str:
    """Return where a target word looks, seen from its origins."""
    first, last = (bits & -bits).bit_length() - 1, bits.bit_length() - 1
    if right(place, bits):
        return "origin"
    if place == len(words):
        return "<eos>"
    if words[place] == ".":
        return "full stop"
    if last < place <= last + 2:
        return "next two words"
    return "two words before" if first - 2 <= place < first else "elsewhere"


class Scores:
    """Counts for the alignment error rates of several ways to align."""

    def __init__(self) -> None:
        self.counts: dict[str, list[float]] = {}

    def add(self, name: str, looks: Sequence[int], example: Example) -> None:
        """Count one sentence in which each word looks at one place."""
        hits = [right(place, bits) for place, bits in zip(looks, example.origins, strict=True)]
        sure = [hit and bits.bit_count() == 1 for hit, bits in zip(hits, example.origins, strict=True)]
        self._count(name, sum(hits), sum(sure), example)

    def add_uniform(self, name: str, places: int, example: Example) -> None:
        """Count what to expect when each word looks at every place equally."""
        shares = [bits.bit_count() / places for bits in example.origins]
        sure = [1 / places for bits in example.origins if bits.bit_count() == 1]
        self._count(name, sum(shares), sum(sure), example)

    def values(self) -> dict[str, dict[str, float]]:
        """Return for each way "right", the share of words that look at an origin, and "aer", both in %."""
        return {
            name: {
                "right": 100 * hits / words,
                "aer": 100 * (1 - (hits + sure) / (words + all_sure)),
            }
            for name, (hits, sure, words, all_sure) in self.counts.items()
        }

    def _count(self, name: str, hits: float, sure: float, example: Example) -> None:
        all_sure = sum(bits.bit_count() == 1 for bits in example.origins)
        before = self.counts.get(name, [0.0] * 4)
        now = (hits, sure, len(example.origins), all_sure)
        self.counts[name] = [a + b for a, b in zip(before, now, strict=True)]


class Tally:
    """Counts of things under headings."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], dict[str, int]] = {}

    def add(self, heading: tuple[str, ...], what: str) -> None:
        """Count one thing."""
        under = self.counts.setdefault(heading, {})
        under[what] = under.get(what, 0) + 1

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the shares under each heading, in %, and the number seen."""
        return {
            ": ".join(heading): {
                "seen": sum(under.values()),
                **{what: 100 * count / sum(under.values()) for what, count in sorted(under.items())},
            }
            for heading, under in self.counts.items()
        }


main()
