"""Analogies with a training lexicon: properties for all lexicons, and the results in a toy language."""

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.analogy import Lexicon, save_lexicon
from glassformer.errors import CheckpointError
from glassformer.text.reversal import from_right_to_left
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from profiles import scaled

VOWELS, CONSONANTS = "aeiou", "bdfgklmnprstvz"
ENDINGS = {"": [], "s": ["S"], "ing": ["I", "NG"], "er": ["ER"]}
PREFIXES = {"": [], "un": ["U", "N"], "re": ["R", "I"]}


def toy(count: int, seed: int) -> dict[str, str]:
    """Return words of a language with endings and beginnings, in which a plural is voiced after a voiced consonant."""
    chance, words = random.Random(seed), {}
    while len(words) < count:
        stem = "".join(chance.choice(CONSONANTS) + chance.choice(VOWELS) for _ in range(chance.randint(1, 3)))
        stem += chance.choice(CONSONANTS)
        for begin, first in PREFIXES.items():
            for end, last in ENDINGS.items():
                sounds = [*first, *stem.upper(), *(["Z"] if end == "s" and stem[-1] in "bdgvz" else last)]
                if chance.random() < 0.5:
                    words[begin + stem + end] = " ".join(sounds)
    return words


def phones(texts):
    return train_tokenizers(texts, texts, TokenizerConfig(kind="words", vocab_size=100))[0]


TOY = toy(3000, 1)
TOKENIZER = phones(TOY.values())
words = st.text(alphabet="abcs", min_size=1, max_size=8)
targets = st.lists(st.sampled_from(["A", "B", "K", "S"]), min_size=1, max_size=6).map(" ".join)


def test_most_of_a_toy_language_follows_by_analogy():
    pairs = list(TOY.items())
    random.Random(2).shuffle(pairs)
    train, held_out = pairs[300:], pairs[:300]
    lexicon = Lexicon(train, TOKENIZER)
    found = [(list(lexicon.analogies(word).items()), target) for word, target in held_out]
    right = sum(bool(some) and some[0][0] == target for some, target in found)
    among = sum(target in [one for one, _ in some[:5]] for some, target in found)
    assert right >= 0.85 * len(held_out)
    assert among >= 0.9 * len(held_out)
    sure = [some[0][0] == target for some, target in found if some and some[0][1] > 0.8]
    unsure = [some[0][0] == target for some, target in found if some and some[0][1] < 0.5]
    assert sum(sure) / len(sure) > sum(unsure) / max(len(unsure), 1)


def test_an_ending_depends_on_the_sound_before_it():
    lexicon = Lexicon(((word, target) for word, target in TOY.items() if "robab" not in word), TOKENIZER)
    assert not lexicon.words.keys() & {"robab", "robak"}
    more = Lexicon([*TOY.items(), ("robab", "R O B A B"), ("robak", "R O B A K")], TOKENIZER)
    assert next(iter(more.analogies("robabs"))) == "R O B A B Z"
    assert next(iter(more.analogies("robaks"))) == "R O B A K S"
    assert next(iter(more.analogies("unrobak"))) == "U N R O B A K"


def test_a_compound_has_the_sounds_of_its_parts():
    lexicon = Lexicon([("book", "B U K"), ("shelf", "SH E L F"), ("keeper", "K I P ER")], TOKENIZER)
    assert dict(lexicon.analogies("bookshelf")) == {"B U K SH E L F": pytest.approx(0.5)}
    # with one K, although "book" ends and "keeper" begins with it
    assert list(lexicon.analogies("bookkeeper")) == ["B U K I P ER"]


@scaled(50)
@given(st.lists(st.tuples(words, targets), max_size=40), words)
def test_confidences_are_probabilities_in_descending_order(pairs, word):
    lexicon = Lexicon(pairs, TOKENIZER)
    found = lexicon.analogies(word)
    confidences = list(found.values())
    assert all(0 < one < 1 for one in confidences)
    assert sum(confidences) < 1
    assert confidences == sorted(confidences, reverse=True)
    assert all(text for text in found)


@scaled(30)
@given(st.lists(st.tuples(words, targets), max_size=40), words, st.randoms())
def test_the_order_of_the_pairs_does_not_matter_to_confidences(pairs, word, chance):
    distinct = list(dict(pairs).items())
    shuffled = chance.sample(distinct, len(distinct))
    one, other = (Lexicon(some, TOKENIZER).analogies(word) for some in (distinct, shuffled))
    assert one == pytest.approx(other)


def test_a_word_is_not_its_own_analogy():
    lexicon = Lexicon([("robak", "R O B A K")], TOKENIZER)
    assert not lexicon.analogies("robak")
    assert not lexicon.analogies("")


def test_a_lexicon_of_the_mirrored_language_gives_mirrored_targets():
    mirrored = Lexicon(((word[::-1], " ".join(target.split()[::-1])) for word, target in TOY.items()), TOKENIZER)
    lexicon = Lexicon(TOY.items(), TOKENIZER)
    for word in list(TOY)[:50]:
        found = lexicon.analogies(word)
        expected = {" ".join(target.split()[::-1]): value for target, value in mirrored.analogies(word[::-1]).items()}
        assert found == pytest.approx(expected)


def test_a_run_that_writes_from_right_to_left_has_the_same_lexicon():
    pairs = list(TOY.items())[:500]
    forward = Lexicon(pairs, TOKENIZER)
    back = Lexicon(pairs, from_right_to_left(TOKENIZER))
    for word in list(TOY)[500:550]:
        assert back.analogies(word) == forward.analogies(word)


def test_targets_without_spaces_are_cut_into_letters():
    stems = ("robo", "lak-", "moto", "fibu", "puda", "gase")
    pairs = [(stem + end, stem + end.upper()) for stem in stems for end in ("", "ing")]
    config = TokenizerConfig(kind="characters", vocab_size=60, joint=False)
    _, tokenizer = train_tokenizers(*zip(*pairs, strict=True), config)
    assert list(Lexicon([*pairs, ("kidu", "kidu")], tokenizer).analogies("kiduing")) == ["kiduING"]


def test_a_lexicon_is_stored_in_the_same_bytes_and_loaded(tmp_path):
    pairs = [*list(TOY.items())[:200], ("two", "T U"), ("two", "T O")]
    for name in ("one", "other"):
        save_lexicon(tmp_path / name, pairs)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    loaded, made = Lexicon.load(tmp_path / "one", TOKENIZER), Lexicon(pairs, TOKENIZER)
    assert loaded.words == made.words
    assert loaded.words["two"] == (("T", "U"), ("T", "O"))


@pytest.mark.parametrize(
    "content",
    [b"", b"nothing", gzip.compress(b"word without target\n"), gzip.compress(b"a\tb\n")[:-6]],
    ids=["empty", "not gzip", "no target", "truncated"],
)
def test_a_damaged_lexicon_is_one_clear_error(tmp_path, content):
    path = tmp_path / "lexicon.tsv.gz"
    path.write_bytes(content)
    if content == b"":
        assert not Lexicon.load(path, TOKENIZER).words
        return
    with pytest.raises(CheckpointError, match="damaged"):
        Lexicon.load(path, TOKENIZER)
