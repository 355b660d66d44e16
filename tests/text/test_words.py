import doctest
from pathlib import Path
from string import printable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text import words
from glassformer.text.normalisation import normalise
from glassformer.text.vocabulary import SPECIALS, Vocabulary
from glassformer.text.words import WordTokenizer, join_words, split_words
from profiles import scaled

# Pieces of difficult sentences: tokens that join to their neighbours, with and without spaces, and any characters.
piece = st.sampled_from(
    [
        *"'’.,!?;:()«»“” \t▁-\"",
        "\u00a0",
        "n't",
        "'s",
        "'ll",
        "l'",
        "qu'",
        "Jusqu'",
        "J'",
        "did",
        "animal",
        "dogs",
        "İ",
        "ſ'",
    ]
)
tricky = st.lists(piece | st.text(max_size=2), max_size=12).map("".join)


@scaled(500)
@given(tricky | st.text() | st.text(printable))
def test_joining_restores_every_text(text: str) -> None:
    assert join_words(split_words(text)) == normalise(text)


@scaled(200)
@given(tricky)
def test_no_token_is_empty_or_contains_a_space(text: str) -> None:
    assert all(token and not any(character.isspace() for character in token) for token in split_words(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The animal didn't cross.", ["The", "animal", "did", "n't", "cross", "."]),
        ("It couldn't've", ["It", "could", "n't", "'ve"]),
        ("the river's edge", ["the", "river", "'s", "edge"]),
        ("the dogs' bone, here!", ["the", "dogs", "'", "bone", ",", "here", "!"]),
        ("L'animal n'a pas", ["L'", "animal", "n'", "a", "pas"]),
        ("parce qu'il était", ["parce", "qu'", "il", "était"]),
        ("qu'aujourd'hui", ["qu'", "aujourd'hui"]),
        ("J'ai traversé la rivière à la nage.", ["J'", "ai", "traversé", "la", "rivière", "à", "la", "nage", "."]),
        ("au bord de l'eau", ["au", "bord", "de", "l'", "eau"]),
        ("la chauve-souris", ["la", "chauve-souris"]),
        ("aujourd'hui quelqu'un", ["aujourd'hui", "quelqu'un"]),
        ("o'clock", ["o'clock"]),
        ("(the U.S., 3.5)", ["(", "the", "U.S", ".", ",", "3.5", ")"]),
        ("Wait...", ["Wait", ".", ".", "."]),
        ("«Non»", ["«", "Non", "»"]),
    ],
)
def test_words_are_split_by_the_rules(text: str, tokens: list[str]) -> None:
    assert split_words(text) == tokens
    assert join_words(tokens) == text


@pytest.mark.parametrize(
    "text",
    [
        "The animal didn't cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
        "I swam across the river to get to the other bank.",
        "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis.",
        "La souris s'est assise au bord de la rivière, jusqu'à ce qu'aujourd'hui vienne.",
    ],
)
def test_sentences_of_the_built_in_corpus_need_no_marks_and_are_restored(text: str) -> None:
    tokens = split_words(text)
    assert join_words(tokens) == text
    assert not any("▁" in token for token in tokens)


def test_an_elided_word_at_the_end_of_a_prefix_is_the_same_token_as_within_a_sentence() -> None:
    assert split_words("parce qu'")[-1] in split_words("parce qu'il dort")


def test_an_unusual_space_is_marked_on_the_second_token() -> None:
    assert split_words("Qui est-ce ?") == ["Qui", "est-ce", "▁?"]
    assert split_words("l' animal") == ["l'", "▁animal"]


def test_symbols_between_spaces_are_tokens() -> None:
    assert split_words("K AE1 T") == ["K", "AE1", "T"]
    assert split_words("t͡ʃ ʼ a") == ["t͡ʃ", "ʼ", "a"]


def test_typographic_apostrophes_split_like_plain_ones_and_are_kept() -> None:
    assert split_words("L’animal didn’t") == ["L’", "animal", "did", "n’t"]
    assert join_words(["L’", "animal", "did", "n’t"]) == "L’animal didn’t"


def test_typographic_apostrophes_are_read_as_plain_ones_if_unknown() -> None:
    plain = WordTokenizer.train(["L'animal didn't"], 100)
    both = WordTokenizer.train(["L'animal L’animal"], 100)
    assert plain.encode("L’animal didn’t") == plain.encode("L'animal didn't")
    assert both.decode(both.encode("L’animal L'animal")) == "L’animal L'animal"


@given(st.lists(st.sampled_from(["l'", "chat", ".", "n't", "▁.", "(", "did", "<unk>"])))
def test_any_sequence_of_tokens_can_be_joined(tokens: list[str]) -> None:
    assert normalise(join_words(tokens)) == join_words(tokens)


def test_the_letters_of_a_special_token_in_a_text_are_an_unknown_word() -> None:
    tokenizer = WordTokenizer.train(["a word"], 100)
    assert tokenizer.encode("a <eos> <pad> <unk> word") == [4, 3, 3, 3, 5]


def test_texts_without_an_end_are_followed_by_padding(tmp_path: Path) -> None:
    WordTokenizer(Vocabulary((*SPECIALS, "a")), with_eos=False).save(tmp_path / "source")
    tokenizer = WordTokenizer.load(tmp_path / "source")
    assert (tokenizer.eos_id, tokenizer.encode("a a")) == (0, [4, 4])
    assert tokenizer.to_dict()["with_eos"] is False


def test_words_keep_their_case() -> None:
    tokenizer = WordTokenizer.train(["The the THE"], 100)
    assert tokenizer.decode(tokenizer.encode("THE The the")) == "THE The the"


def test_the_examples_of_the_documentation_run() -> None:
    assert doctest.testmod(words).failed == 0
