"""How well models translate the splits of the built-in corpus, for several experiments."""

from collections import Counter
from collections.abc import Sequence

import glassformer as gf
from glassformer.corpus.tasks import Example, english_french
from glassformer.watch.inspection.split_study import split_measure

SPLITS = ("test", "unseen-combinations", "coreference", "senses")


def splits(seed: int, limit: int | None = None) -> dict[str, list[Example]]:
    """Return the splits of a seed's corpus, except the training split, each cut to `limit` sentences."""
    return {name: some[:limit] for name, some in english_french(seed, train=0).splits.items()}


def pairs_of(examples: Sequence[Example], kind: str | None = None) -> list[Example]:
    """Return the examples of one kind whose partner in a minimal pair is also among `examples`."""
    chosen = [one for one in examples if kind in (None, one.kind)]
    members = Counter(one.pair for one in chosen)
    return [one for one in chosen if members[one.pair] == 2]


def quality(translator: gf.Translator, examples: dict[str, list[Example]]) -> dict[str, dict[str, float]]:
    """Return the shares of sentences and of whole minimal pairs that a model translates exactly, in %.

    "exact" is by split. "pairs" has the pairs of "coreference" whose two nouns differ in gender, and the pairs of
    "senses". "decided" is the share of their sentences that prefer the right word where the two references part.
    """
    model, bundle = translator.model, translator.bundle
    found = {name: split_measure(model, bundle, examples[name])() for name in SPLITS}
    exact = {name: values["exact"] for name, values in found.items()}
    unequal = split_measure(model, bundle, pairs_of(examples["coreference"], "unequal"))()
    both = {"coreference": unequal, "senses": found["senses"]}
    return {
        "exact": exact,
        "pairs": {name: values["pairs"] for name, values in both.items()},
        "decided": {name: values["decided"] for name, values in both.items()},
    }


def per_seed(found: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Return one list over the seeds for each number."""
    first = found[0]
    return {what: {name: [one[what][name] for one in found] for name in first[what]} for what in first}
