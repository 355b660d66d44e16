from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.characters import CharacterTokenizer
from glassformer.text.normalisation import normalise


def test_a_token_is_a_code_point_and_a_space_is_a_mark() -> None:
    assert CharacterTokenizer.split(" ae\u0301  😀 ") == ["a", "e", "\u0301", "▁", "😀"]


@given(st.text())
def test_joining_restores_every_text(text: str) -> None:
    assert CharacterTokenizer.join(CharacterTokenizer.split(text)) == normalise(text)


@given(st.lists(st.text(max_size=20), min_size=1))
def test_decoding_restores_every_text_covered_by_the_vocabulary(lines: list[str]) -> None:
    tokenizer = CharacterTokenizer.train(lines, 10_000)
    assert [tokenizer.decode(tokenizer.encode(line)) for line in lines] == [normalise(line) for line in lines]


def test_the_most_frequent_characters_are_kept() -> None:
    tokenizer = CharacterTokenizer.train(["aaabbc"], 6)
    assert tokenizer.tokens(range(len(tokenizer))) == ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b"]
    assert tokenizer.decode(tokenizer.encode("abc")) == "ab<unk>"
