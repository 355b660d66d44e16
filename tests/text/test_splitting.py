import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.splitting import PIECE, sentence_spans, split_sentences

LANGUAGES = st.sampled_from(["en", "fr", "de", "es", "ja", "hi", "ar", "hy", "zh-Hans", "pt-BR", "xx", ""])


@given(
    text=st.text(st.characters(blacklist_categories=[])) | st.text("aA.?! \n\r\"'“”()。…\u2028é1😀"), language=LANGUAGES
)
def test_joined_sentences_are_the_text(text: str, language: str) -> None:
    assert "".join(split_sentences(text, language)) == text


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    text = "Dr. Smith came at 3.5 metres. He left.  Why? Nobody knows…"
    assert split_sentences(text, "en-GB") == [
        "Dr. Smith came at 3.5 metres. ",
        "He left.  ",
        "Why? ",
        "Nobody knows…",
    ]
    german = ["Am 3. Mai kam er z. B. nach Hause. ", "Dann ging er."]
    assert split_sentences("".join(german), "de") == german
    assert split_sentences("これは文です。これも。", "ja") == ["これは文です。", "これも。"]


def test_a_long_text_has_the_sentences_that_its_parts_have() -> None:
    sentences = [f"The cat of Mr. {'very ' * (number % 40)}black slept 3.5 hours. " for number in range(400)]
    text = "".join(sentences)
    assert len(text) > 10 * PIECE
    assert split_sentences(text, "en") == sentences


def test_a_sentence_may_be_longer_than_what_is_split_at_once() -> None:
    sentences = ["Why? ", "word " * PIECE + "end. ", "Yes. "]
    assert split_sentences("".join(sentences), "en") == sentences


@pytest.mark.slow
def test_splitting_takes_time_that_grows_with_the_text() -> None:
    def seconds(text: str) -> float:
        def once() -> float:
            began = time.process_time()
            split_sentences(text, "en")
            return time.process_time() - began

        return min(once() for _ in range(5))

    for unit in ("\u201c", "(", "a. ", "'a. ", "!? "):
        assert seconds(unit * 80_000) < 8 * max(seconds(unit * 20_000), 0.002), unit


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("1. The cat. 2. The dog.", ["1. The cat.", "2. The dog."]),
        ("5. 6. The cat", ["5. 6. The cat"]),
        ("The cat. 5.", ["The cat.", "5."]),
        ("12. 5.", ["12. 5."]),
        ("5.\nThe cat", ["5.", "The cat"]),
        ("... !", []),
    ],
)
def test_a_part_without_a_letter_belongs_to_the_sentence_after_it(text, sentences):
    assert [text[begin:end] for begin, end in sentence_spans(text, "en")] == sentences
