import pytest

from glassformer.corpus.tasks.world.english import an, english_plural, english_text


@pytest.mark.parametrize(
    ("one", "more"),
    [("cat", "cats"), ("fox", "foxes"), ("bench", "benches"), ("dress", "dresses"), ("cherry", "cherries"),
     ("boy", "boys"), ("horse", "horses")],
)  # fmt: skip
def test_plurals_are_regular(one, more):
    assert english_plural(one) == more


def test_a_becomes_an_before_a_vowel():
    assert [an(word) for word in ("old", "umbrella", "house")] == ["an", "an", "a"]


def test_contractions_and_punctuation_are_written_without_a_space():
    words = ("Yesterday", ",", "the", "girl", "'s", "cat", "did", "n't", "move", ".")
    assert english_text(words) == "Yesterday, the girl's cat didn't move."
