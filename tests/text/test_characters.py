import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.characters import CharacterTokenizer
from glassformer.text.normalisation import Normalisation, normalise
from glassformer.text.vocabulary import SPECIALS, Vocabulary


def test_a_token_is_a_code_point_and_a_space_is_a_mark() -> None:
    assert CharacterTokenizer.train([], 9).split(" ae\u0301  😀 ") == ["a", "é", "▁", "😀"]
    tokenizer = CharacterTokenizer(Vocabulary((*SPECIALS, "\u0301")))
    assert tokenizer.split(" ae\u0301  😀 ") == ["a", "e", "\u0301", "▁", "😀"]


@pytest.mark.parametrize("normalisation", ["plain", "spaces"])
@given(text=st.text())
def test_joining_restores_every_text(normalisation: Normalisation, text: str) -> None:
    tokenizer = CharacterTokenizer(Vocabulary(SPECIALS), normalisation=normalisation)
    assert tokenizer.join(tokenizer.split(text)) == normalise(text, normalisation)


@given(st.lists(st.text(max_size=20), min_size=1))
def test_decoding_restores_every_text_covered_by_the_vocabulary(lines: list[str]) -> None:
    tokenizer = CharacterTokenizer.train(lines, 10_000)
    assert [tokenizer.decode(tokenizer.encode(line)) for line in lines] == [normalise(line, "plain") for line in lines]


def test_the_most_frequent_characters_are_kept() -> None:
    tokenizer = CharacterTokenizer.train(["aaabbc"], 6)
    assert tokenizer.tokens(range(len(tokenizer))) == ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b"]
    assert tokenizer.decode(tokenizer.encode("abc")) == "ab<unk>"
