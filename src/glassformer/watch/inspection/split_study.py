"""Measure the effect of each head on a split of a built-in task, for example to find the head that decides a pronoun's
gender:

for effect in study_heads(gf.Translator.load("runs/demo"), "coreference", kind="unequal"):
    show(effect.done, effect.total, effect.row())
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, takewhile
from statistics import fmean

from glassformer.bundle import Bundle
from glassformer.corpus.tasks import TASKS, Example
from glassformer.errors import ConfigError, nearest, quoted
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.edits import HeadSet
from glassformer.watch.inspection.forced import outputs
from glassformer.watch.inspection.studies import SETS, HeadEffect, head_study
from glassformer.watch.inspection.subject import Trained

__all__ = ["split_examples", "split_measure", "study_heads"]


def study_heads(
    trained: Trained,
    split: str,
    *,
    kind: str | None = None,
    limit: int | None = None,
    sets: Sequence[HeadSet] = SETS,
) -> Iterator[HeadEffect]:
    """Yield the result of `split_measure` on a split of the run's built-in task, for the whole model and without each
    head.

    `kind` selects examples of one kind. `limit` is the approximate number of examples, spread evenly over the split.

    Raises:
        ConfigError: the run was not trained on a built-in task, or the task lacks this split or kind.
    """
    examples = split_examples(trained.bundle, split, kind=kind, limit=limit)
    yield from head_study(trained.model, split_measure(trained.model, trained.bundle, examples), sets)


def split_examples(bundle: Bundle, split: str, *, kind: str | None = None, limit: int | None = None) -> list[Example]:
    """Return the examples of a split of a run's built-in task, keeping minimal pairs together.

    Raises:
        ConfigError: the run was not trained on a built-in task, or the task lacks this split or kind.
    """
    task, seed = bundle.configuration.data.task, bundle.configuration.run.seed
    if not task:
        raise ConfigError("the run was trained on a corpus, whose splits are unknown here: use split_measure")
    splits = TASKS[task](seed).splits
    if split not in splits:
        raise ConfigError(f"split: expected one of {', '.join(splits)}, got {quoted(split)}{nearest(split, splits)}")
    examples = [example for example in splits[split] if kind in (None, example.kind)]
    if not examples:
        kinds = sorted({example.kind for example in splits[split]})
        raise ConfigError(f"kind: expected one of {', '.join(kinds)} for the split {split}, got {quoted(kind)}")
    numbered = enumerate(examples)
    groups = [
        [example for _, example in group]
        for _, group in groupby(numbered, key=lambda each: (each[0] if each[1].pair is None else 0, each[1].pair))
    ]
    wanted = len(groups) if limit is None else max(1, min(len(groups), limit * len(groups) // len(examples)))
    chosen = [groups[place * len(groups) // wanted] for place in range(wanted)]
    return [example for group in chosen for example in group]


def split_measure(model: Transformer, bundle: Bundle, examples: Sequence[Example]) -> Callable[[], dict[str, float]]:
    """Return a function that measures the current state of a model on these examples.

    The function needs a few passes and no search. It returns:

    - "exact": share of the examples that greedy search translates word for word, in %;
    - "log_prob": mean log probability of the reference;
    - "pairs" (for minimal pairs): share of pairs with both members exact, in %;
    - "decided" (for minimal pairs): share of members whose right word, at the first difference of the two references,
      is more probable than the other member's word, in %;
    - "margin" (for minimal pairs): difference of the log probabilities of these two words, in nats.
    """
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    given = [
        ([*source.encode(one.source), source.eos_id], [*target.encode(one.target), target.eos_id]) for one in examples
    ]
    writable = [target.decode(ids) == one.target for (_, ids), one in zip(given, examples, strict=True)]
    partners = _partners(examples)
    swapped = [(given[one][0], given[other][1]) for one, other in partners]
    places = [_first_differing(given[one][1], given[other][1]) for one, other in partners]

    def measure() -> dict[str, float]:
        own = outputs(model, given)
        exact = [one.greedy and possible for one, possible in zip(own, writable, strict=True)]
        values = {"exact": 100 * fmean(exact), "log_prob": fmean(one.log_prob for one in own)}
        if not partners:
            return values
        margins = [
            own[one].token_log_probs[place] - other.token_log_probs[place]
            for (one, _), other, place in zip(partners, outputs(model, swapped), places, strict=True)
        ]
        values["pairs"] = 100 * fmean(exact[one] and exact[other] for one, other in partners)
        return {**values, "decided": 100 * fmean(margin > 0 for margin in margins), "margin": fmean(margins)}

    return measure


def _partners(examples: Sequence[Example]) -> list[tuple[int, int]]:
    """Return (index, index of the partner) for each member of a minimal pair with different references."""
    places: dict[int, list[int]] = {}
    for place, example in enumerate(examples):
        if example.pair is not None:
            places.setdefault(example.pair, []).append(place)
    pairs = [
        pair for pair in places.values() if len(pair) == 2 and len({examples[place].target for place in pair}) == 2
    ]
    return [both for one, other in pairs for both in ((one, other), (other, one))]


def _first_differing(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))
