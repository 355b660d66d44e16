"""The English–French corpus: the grammar's sentences in disjoint splits, reproducible from a seed.

Some combinations of words never occur in training: adjectives with nouns, subjects with a verb and a place, animals
with places. A digest of the seed and the words decides which combinations, so the choice depends on nothing else. The
animal and the street of the classic sentence never occur together in training, whatever the seed.

>>> task = english_french(seed=1, train=100, valid=10, test=10, unseen=10, pairs=4, senses=2, longer=4)
>>> {name: len(examples) for name, examples in task.splits.items()}  # doctest: +NORMALIZE_WHITESPACE
{'train': 100, 'valid': 10, 'test': 10, 'unseen-combinations': 10, 'coreference': 16, 'senses': 56, 'longer': 4}
"""

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import cycle

from glassformer.corpus.tasks.draw import Draw, Table
from glassformer.corpus.tasks.example import Example, Task
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS, members
from glassformer.corpus.tasks.world.classic import CLASSIC
from glassformer.corpus.tasks.world.coreference import PAIRS, minimal_pair
from glassformer.corpus.tasks.world.fragments import Fragment
from glassformer.corpus.tasks.world.grammar import RULES, Rule, coherent, sentence

__all__ = ["LONGER", "SHORTEST", "TRAINED", "english_french", "held_back", "novelty"]

SHORTEST = 4
LONGER, TRAINED = range(23, 31), range(SHORTEST, 23)
"""Number of words per sentence, in either language and with the full stop: in the split "longer", and elsewhere."""

_SHARES = {"adjective": 0.08, "place": 0.12, "meeting": 0.16}
_ANIMAL_KINDS, _PLACE_KINDS = {"pet", "beast"}, {"place", "building", "waters"}


@cache
def held_back(seed: int, kind: str, words: tuple[str, ...]) -> bool:
    """Return whether these words never occur together in a training sentence.

    `kind` is "adjective" (adjective, noun), "place" (subject, verb, place) or "meeting" (animal, place).
    """
    digest = blake2b(f"{seed} {kind} {' '.join(words)}".encode(), digest_size=4).digest()
    return words == ("animal", "street") or int.from_bytes(digest, "big") < _SHARES[kind] * 2**32


def novelty(seed: int, draw: Draw) -> set[str]:
    """Return the kinds of held-back word combinations that the sentence just drawn contains."""
    kinds = {
        kind
        for words in draw.combinations
        if held_back(seed, kind := "adjective" if len(words) == 2 else "place", words)
    }
    animals = [noun.english for noun in draw.nouns if noun.kind in _ANIMAL_KINDS]
    places = [noun.english for noun in draw.nouns if noun.kind in _PLACE_KINDS] if animals else []
    if any(held_back(seed, "meeting", (animal, place)) for animal in animals for place in places):
        kinds.add("meeting")
    return kinds


def english_french(
    seed: int = 1,
    train: int = 120_000,
    valid: int = 500,
    test: int = 1_000,
    *,
    unseen: int = 1_000,
    pairs: int = 300,
    senses: int = 25,
    longer: int = 300,
) -> Task:
    """Return the corpus: "train", "valid" and "test" from the same distribution, and four challenge splits.

    - "unseen-combinations" has word combinations that never occur in training (of the kind "adjective" or "place").
    - "coreference" has `pairs` minimal pairs of the kind "unequal" (the two nouns have different genders, so the
      pronoun changes) and as many of the kind "equal".
    - "senses" has `senses` minimal pairs for each ambiguous word; the kind is the word.
    - "longer" has sentences longer than all training sentences.

    In the other splits, the kind of an example is the name of the grammar's rule.
    """
    taken = {example.source for example in CLASSIC}
    challenges = {
        "unseen-combinations": _take(unseen, _unseen(seed), taken),
        "coreference": _coreference(seed, pairs, taken),
        "senses": _senses(seed, senses, taken),
        "longer": _take(longer, _longer(seed), taken),
    }
    trained = _trained(seed)
    test_split, valid_split, train_split = (_take(size, trained, taken) for size in (test, valid, train))
    return Task(splits={"train": train_split, "valid": valid_split, "test": test_split, **challenges})


def _take(size: int, examples: Iterator[Example], taken: set[str]) -> list[Example]:
    """Return the next `size` examples whose sources are not in `taken`, and add their sources to `taken`."""
    split: list[Example] = []
    while len(split) < size:
        example = next(examples)
        if example.source not in taken:
            taken.add(example.source)
            split.append(example)
    return split


_RULE_TABLE = Table(*((rule, rule.share) for rule in RULES))
_SINGLE = Table(*((rule, rule.share) for rule in RULES if rule.name != "sense"))
"""All rules except "sense". This rule draws a sentence for each meaning but returns only one sentence, so a word
combination that never occurs in training might be in a sentence that is not returned."""
_CHAIN = Table(*((rule, rule.share) for rule in RULES if rule.name == "chain"))


def _drawn(seed: int, name: str, rules: Table[Rule]) -> Iterator[tuple[Fragment, str, set[str]]]:
    """Yield coherent sentences, each with the name of its rule and the kinds of its held-back combinations."""
    draw = Draw(f"{seed} {name}")
    while True:
        draw.forget()
        rule = draw.pick(rules)
        fragment = rule.draw(draw)
        if coherent(draw):
            yield fragment, rule.name, novelty(seed, draw)


def _trained(seed: int) -> Iterator[Example]:
    """Yield sentences of ordinary length without held-back combinations."""
    for fragment, rule, new in _drawn(seed, "trained", _RULE_TABLE):
        if not new and (example := _sized(fragment, rule)):
            yield example


def _unseen(seed: int) -> Iterator[Example]:
    """Yield sentences with a held-back combination: adjective and noun, or subject, verb and place, but not both."""
    for fragment, _, new in _drawn(seed, "unseen", _SINGLE):
        if new in ({"adjective"}, {"place"}) and (example := _sized(fragment, min(new))):
            yield example


def _longer(seed: int) -> Iterator[Example]:
    """Yield sentences longer than all training sentences, in both languages, but without held-back combinations."""
    for fragment, rule, new in _drawn(seed, "longer", _CHAIN):
        if not new and (example := _sized(fragment, rule, LONGER)):
            yield example


def _sized(fragment: Fragment, kind: str, lengths: range = TRAINED, pair: int | None = None) -> Example | None:
    """Return the sentence as an example if its lengths fit, otherwise None.

    The lengths in both languages must be in `lengths`, with at least `SHORTEST` space-separated words.
    """
    example = sentence(fragment, kind, pair)
    sizes = len(fragment.english) + 1, len(example.origins)
    spaces = min(example.source.count(" "), example.target.count(" "))
    return example if spaces >= SHORTEST - 1 and all(size in lengths for size in sizes) else None


_Pairs = Iterator[tuple[Fragment, Fragment]]


def _coreference(seed: int, pairs: int, taken: set[str]) -> list[Example]:
    """Return the minimal pairs with unequal genders, then the pairs with equal genders."""
    unequal = _take_pairs(pairs, _coreference_pairs(seed, equal=False), "unequal", 0, taken)
    return unequal + _take_pairs(pairs, _coreference_pairs(seed, equal=True), "equal", pairs, taken)


def _senses(seed: int, pairs: int, taken: set[str]) -> list[Example]:
    """Return the minimal pairs of every ambiguous word."""
    return [
        example
        for index, word in enumerate(AMBIGUOUS)
        for example in _take_pairs(pairs, _sense_pairs(seed, word), word, index * pairs, taken)
    ]


def _take_pairs(size: int, pairs: _Pairs, kind: str, number: int, taken: set[str]) -> list[Example]:
    """Return the next `size` minimal pairs whose members are in no other split, numbered from `number`."""
    split: list[Example] = []
    while len(split) < 2 * size:
        both = [_sized(member, kind, pair=number + len(split) // 2) for member in next(pairs)]
        examples = [example for example in both if example and example.source not in taken]
        if len(examples) == 2:
            taken.update(example.source for example in examples)
            split += examples
    return split


def _coreference_pairs(seed: int, equal: bool) -> _Pairs:
    """Yield minimal pairs, each about an animal and a place that never occur together in training."""
    draw = Draw(f"{seed} coreference {equal}")
    unmet = [(animal, place) for animal, place in PAIRS if held_back(seed, "meeting", (animal.english, place.english))]
    for animal, place in cycle(pair for pair in unmet if (pair[0].gender == pair[1].gender) == equal):
        draw.forget()
        pair = minimal_pair(draw, animal, place)
        if novelty(seed, draw) == {"meeting"}:
            yield pair


def _sense_pairs(seed: int, word: str) -> _Pairs:
    """Yield pairs of sentences about two meanings of a word, without held-back combinations."""
    draw = Draw(f"{seed} {word}")
    while True:
        draw.forget()
        meant = list(members(draw, word))
        first = meant.pop(draw.choose(range(len(meant))))
        if coherent(draw) and not novelty(seed, draw):
            yield first, draw.choose(meant)
