import re
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from glassformer.corpus.tasks import CLASSIC, TASKS, Task, english_french
from glassformer.corpus.tasks.world.ambiguous import AMBIGUOUS
from glassformer.corpus.tasks.world.coreference import PAIRS
from glassformer.corpus.tasks.world.english import english_plural
from glassformer.corpus.tasks.world.phrases import ADJECTIVES_OF
from glassformer.corpus.tasks.world.splits import LONGER, TRAINED, held_back
from glassformer.text.words import split_words

SMALL = {"valid": 41, "test": 43, "unseen": 60, "pairs": 23, "senses": 2, "longer": 11}


@pytest.fixture(scope="module")
def task() -> Task:
    return english_french(1, 3_000, **SMALL)


@pytest.fixture(scope="module")
def cut(task) -> dict[str, list[tuple[list[str], list[str]]]]:
    return {
        name: [(split_words(example.source), split_words(example.target)) for example in split]
        for name, split in task.splits.items()
    }


def paired(examples):
    pairs = defaultdict(list)
    for example in examples:
        pairs[example.pair].append(example)
    return list(pairs.values())


@pytest.mark.slow
def test_splits_have_the_requested_sizes(task):
    sizes = {name: len(split) for name, split in task.splits.items()}
    assert sizes == {
        "train": 3_000, "valid": 41, "test": 43, "unseen-combinations": 60, "coreference": 92,
        "senses": 2 * 2 * len(AMBIGUOUS), "longer": 11,
    }  # fmt: skip


def test_splits_share_no_sentence_and_exclude_the_classics(task):
    sources = Counter(example.source for split in task.splits.values() for example in split)
    assert max(sources.values()) == 1
    assert not set(sources) & {example.source for example in CLASSIC}


def test_every_english_sentence_has_one_french_translation(task):
    translations = {}
    for split in task.splits.values():
        for example in split:
            assert translations.setdefault(example.source, example.target) == example.target


def test_splits_are_the_same_for_the_same_seed_only():
    first, again, other = (english_french(seed, 60, **SMALL).splits for seed in (1, 1, 2))
    assert first == again
    assert all(first[name] != other[name] for name in first)


def test_the_first_sentences_do_not_depend_on_the_size_of_training(task):
    fewer = english_french(1, 100, **SMALL).splits
    assert fewer["train"] == task.splits["train"][:100]
    assert fewer["test"] == task.splits["test"]


def test_sentences_have_the_lengths_of_their_split(task, cut):
    for name, sentences in cut.items():
        lengths = LONGER if name == "longer" else TRAINED
        assert all(len(words) in lengths for both in sentences for words in both), name
    for split in task.splits.values():
        assert all(4 <= len(text.split()) <= 30 for example in split for text in (example.source, example.target))
    assert LONGER.start > max(len(words) for both in cut["train"] for words in both)


def test_minimal_pairs_of_coreference_differ_in_one_english_word(task):
    for tired, wide in paired(task.splits["coreference"]):
        assert tired.kind == wide.kind
        differences = [
            pair for pair in zip(tired.source.split(), wide.source.split(), strict=True) if pair[0] != pair[1]
        ]
        assert len(differences) == 1
        assert ("elle" in tired.target) == ("elle" in wide.target) or tired.kind == "unequal"


def test_pronouns_flip_in_pairs_of_unequal_gender_only(task):
    kinds = Counter()
    for pair in paired(task.splits["coreference"]):
        pronouns = {"elle" if "qu'elle" in example.target else "il" for example in pair}
        assert len(pronouns) == {"unequal": 2, "equal": 1}[pair[0].kind]
        kinds[pair[0].kind] += 1
    assert kinds == {"unequal": 23, "equal": 23}


def test_held_out_pairs_of_animals_and_places_never_meet_in_training(cut):
    unmet = [(a.english, p.english) for a, p in PAIRS if held_back(1, "meeting", (a.english, p.english))]
    assert 0.1 < len(unmet) / len(PAIRS) < 0.2
    assert ("animal", "street") in unmet
    for words, _ in cut["train"] + cut["valid"] + cut["test"]:
        present = set(words)
        assert not [pair for pair in unmet if pair[0] in present and pair[1] in present], words


def test_held_out_adjectives_never_precede_their_noun_in_training(cut):
    unseen = {
        (adjective.english, form)
        for noun, fitting in ADJECTIVES_OF.items()
        for adjective in fitting
        if held_back(1, "adjective", (adjective.english, noun.english))
        for form in (noun.english, noun.plural or english_plural(noun.english))
    }
    assert len(unseen) > 100
    for words, _ in cut["train"]:
        assert not unseen & set(pairwise(words)), words


def test_unseen_combinations_are_of_both_kinds(task):
    kinds = Counter(example.kind for example in task.splits["unseen-combinations"])
    assert set(kinds) == {"adjective", "place"}
    assert min(kinds.values()) > 10


def test_members_of_a_sense_pair_share_the_ambiguous_word(task):
    pairs = paired(task.splits["senses"])
    assert Counter(pair[0].kind for pair in pairs) == dict.fromkeys(AMBIGUOUS, 2)
    for first, second in pairs:
        assert first.kind == second.kind
        assert all(first.kind in split_words(example.source) for example in (first, second))


def test_the_table_of_tasks_contains_the_grammar():
    assert TASKS["english-french"] is english_french


@pytest.mark.long
def test_every_word_occurs_often_in_training_and_no_word_of_the_challenges_is_unknown():
    splits = english_french().splits
    train, rest = splits.pop("train"), [*CLASSIC, *(example for split in splits.values() for example in split)]
    for side in ("source", "target"):
        counts = Counter(word for example in train for word in cut_quickly(getattr(example, side)))
        assert min(counts.values()) >= 10
        assert sum(count >= 50 for count in counts.values()) > 0.95 * len(counts)
        assert not {word for example in rest for word in cut_quickly(getattr(example, side))} - set(counts)
    translations = {}
    for example in [*train, *rest]:
        assert translations.setdefault(example.source, example.target) == example.target


def cut_quickly(text):
    return re.sub(r"(n't|'s|[.,])", r" \1", text).replace("'", "' ").split()
