"""What a vocabulary has no sign for is found as whole characters and whole words."""

from itertools import pairwise
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.characters import CharacterTokenizer
from glassformer.text.signs import Signs
from glassformer.text.subwords import SentencePieceTokenizer
from glassformer.text.words import WordTokenizer

ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
LINES = ["The cat sleeps in the park.", "A dog, a cafe; fünf-fold 12 3", "the quick brown fox jumps over a lazy dog's"]
CHARACTERS = Signs(CharacterTokenizer.train(LINES, 100))
SUBWORDS = Signs(SentencePieceTokenizer.train("bpe", LINES, 60))


def parts(text, signs=CHARACTERS):
    return [text[slice(*span)] for span in signs.lacking(text)]


@pytest.mark.parametrize("signs", [CHARACTERS, SUBWORDS, Signs(WordTokenizer.train(LINES, 100))])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sleeps.", []),
        ("fu\u0308nf \u00ad cats\u2011dogs", []),  # the normalisation makes known letters of it
        ("The cat 👍", ["👍"]),
        ("👩\u200d👩\u200d👧 sleeps", ["👩\u200d👩\u200d👧"]),
        (f"in 🇫🇷🇩🇪, {ENGLAND}", ["🇫🇷🇩🇪", ENGLAND]),
        ("❤️ 👍🏽👍🏽 cat", ["❤️", "👍🏽👍🏽"]),
        ("1\ufe0f\u20e3 cat", []),  # the model can read the 1
        ("the Łódź cat", ["Łódź"]),
        ("Šíša's dog", ["Šíša"]),
        ("cat Москва-cat", ["Москва"]),
        ("cat 北京cat", ["北京"]),
        ("“cat”", ["“", "”"]),
        ("\u200d\ufe0f \u0301", []),  # nothing to be seen
        ("a\u030b", []),
    ],
)  # fmt: skip
def test_what_has_no_sign_is_found_whole(signs, text, expected):
    assert parts(text, signs) == expected


def test_a_vocabulary_with_bytes_has_signs_for_everything():
    signs = Signs(SentencePieceTokenizer.train("bpe", LINES, 400, byte_fallback=True))
    assert parts("Łódź 👩\u200d👩\u200d👧", signs) == []


def _joined(left, right):
    return all(character.isalpha() and character < "\u0e00" for character in (left, right))


@given(st.text(alphabet=st.sampled_from("abz ,ü\u0308éŁ1²👍🇫❤\ufe0f\u200d北กิ\u00ad_'"), max_size=30))
def test_parts_are_in_order_and_touch_nothing_of_their_words(text):
    spans = CHARACTERS.lacking(text)
    assert all(end < begin for (_, end), (begin, _) in pairwise(spans))
    for begin, end in spans:
        assert not _joined(text[begin - 1 : begin], text[begin])
        assert not _joined(text[end - 1], text[end : end + 1])
        assert any(character not in CHARACTERS.known for character in normalize("NFC", text[begin:end]))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cafe", "cafe"),
        ("café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("ßá", "ssa"),
        ("Ňz", "nz"),
        ("ﬁx", "fix"),
        ("жa", "жa"),
        ("fünf", "fünf"),
    ],
)
def test_letters_get_base_letters_if_these_have_signs(word, expected):
    assert CHARACTERS.based(word) == expected


@pytest.mark.parametrize("unit", ["Ж", "👍", "\u0301", "👍\u200d", "é", "a👍", "Жa ", "\U0001f3fb"])
def test_time_grows_with_the_length_only(unit, monkeypatch):
    steps = []
    judged = Signs._is_lacking
    monkeypatch.setattr(Signs, "_is_lacking", lambda self, cluster: steps.append(len(cluster)) or judged(self, cluster))
    signs = Signs(CharacterTokenizer.train(LINES, 100))
    text = unit * (20_000 // len(unit))
    signs.lacking(text), signs.based(text)
    assert sum(steps) <= len(text)
