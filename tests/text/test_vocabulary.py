import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import CheckpointError, CheckpointVersionError, VocabularyError
from glassformer.text.vocabulary import SPECIALS, UNK_ID, Vocabulary
from glassformer.text.words import WordTokenizer

tokens = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3).filter(
    lambda text: text.split() == [text]
)
sentences = st.lists(st.lists(tokens))


def test_the_special_tokens_come_first() -> None:
    vocabulary = Vocabulary.build([["a"]])
    assert vocabulary.tokens == ("<pad>", "<bos>", "<eos>", "<unk>", "a")
    assert [vocabulary.id(token) for token in SPECIALS] == [0, 1, 2, 3]


def test_tokens_are_sorted_by_frequency_and_then_by_code_point() -> None:
    vocabulary = Vocabulary.build([["b", "é", "z", "Z"], ["b"], ["z"]])
    assert vocabulary.tokens[4:] == ("b", "z", "Z", "é")


def test_the_rarest_tokens_are_left_out() -> None:
    lines = [["a", "a", "a", "b", "b", "c"]]
    assert Vocabulary.build(lines, max_size=6).tokens[4:] == ("a", "b")
    assert Vocabulary.build(lines, min_count=3).tokens[4:] == ("a",)


def test_words_that_look_like_special_tokens_are_skipped() -> None:
    assert Vocabulary.build([["<unk>", "<eos>", "word"]]).tokens == (*SPECIALS, "word")


@given(sentences, st.randoms(use_true_random=False))
def test_the_order_of_sentences_and_tokens_does_not_matter(lines: list[list[str]], random) -> None:
    shuffled = [random.sample(line, len(line)) for line in random.sample(lines, len(lines))]
    assert Vocabulary.build(lines) == Vocabulary.build(shuffled)


@given(sentences)
def test_id_and_token_are_inverse(lines: list[list[str]]) -> None:
    vocabulary = Vocabulary.build(lines)
    assert [vocabulary.id(vocabulary.token(id)) for id in range(len(vocabulary))] == list(range(len(vocabulary)))
    assert all(token in vocabulary for line in lines for token in line)


def test_unknown_tokens_have_the_id_of_unk() -> None:
    vocabulary = Vocabulary.build([["known"]])
    assert vocabulary.id("unknown") == UNK_ID
    assert "unknown" not in vocabulary


@pytest.mark.parametrize("id", [-1, 5, 1000])
def test_an_id_out_of_range_is_an_error_that_names_the_range(id: int) -> None:
    with pytest.raises(VocabularyError, match=rf"{id} is not in a vocabulary of 5 tokens, ids 0 to 4"):
        Vocabulary.build([["a"]]).token(id)


def test_a_repeated_token_is_named() -> None:
    with pytest.raises(VocabularyError, match="'again'"):
        Vocabulary((*SPECIALS, "again", "once", "again"))


def test_a_vocabulary_without_special_tokens_is_refused() -> None:
    with pytest.raises(VocabularyError, match="begins with"):
        Vocabulary(("a", "b", "c", "d", "e"))


@pytest.mark.parametrize(("token", "reason"), [("a b", "white space"), ("\u3000", "white space"), ("\ud800", "half a")])
def test_a_token_that_no_tokenizer_makes_is_refused(token: str, reason: str) -> None:
    with pytest.raises(VocabularyError, match=reason):
        Vocabulary.build([[token]])


@pytest.mark.slow
@given(sentences)
def test_saved_and_loaded_vocabularies_are_equal(tmp_path_factory: pytest.TempPathFactory, lines) -> None:
    stem = tmp_path_factory.mktemp("vocabulary") / "joint"
    vocabulary = Vocabulary.build(lines)
    WordTokenizer(vocabulary).save(stem)
    assert WordTokenizer.load(stem).vocabulary == vocabulary


def test_the_file_has_its_format_version(tmp_path: Path) -> None:
    WordTokenizer(Vocabulary.build([["é"]])).save(tmp_path / "v")
    text = (tmp_path / "v.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"format_version": 1, "tokens": [*SPECIALS, "é"]}
    assert "é" in text


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("not JSON", CheckpointError),
        ("[]", CheckpointError),
        ('{"tokens": []}', CheckpointError),
        ('{"format_version": 1}', CheckpointError),
        ('{"format_version": 1, "tokens": [1]}', CheckpointError),
        ('{"format_version": 2, "tokens": []}', CheckpointVersionError),
        ('{"format_version": 1, "tokens": []}', VocabularyError),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, content: str, error: type[Exception]) -> None:
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(error):
        WordTokenizer.load(tmp_path / "v")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.json"):
        WordTokenizer.load(tmp_path / "nowhere")
