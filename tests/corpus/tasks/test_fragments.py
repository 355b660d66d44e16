import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpus.tasks.world.fragments import EMPTY, Fragment, arrange, idiom, join, linked

texts = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4).map(" ".join)


def shouted(texts):
    return [linked(text, text.upper()) for text in texts]


def origins(fragment):
    return [[i for i in range(len(fragment.english)) if bits >> i & 1] for bits in fragment.origins]


@given(st.lists(texts, max_size=5))
def test_joining_keeps_each_word_with_its_origin(texts):
    joined = join(*shouted(texts))
    for word, (origin,) in zip(joined.french, origins(joined), strict=True):
        assert joined.english[origin] == word.lower()


@given(st.permutations(range(4)), st.lists(texts, min_size=4, max_size=4))
def test_arranging_reorders_the_french_only(order, texts):
    parts = shouted(texts)
    arranged = arrange(*parts, order=order)
    assert arranged.english == join(*parts).english
    assert arranged.french == tuple(word for index in order for word in parts[index].french)
    for word, (origin,) in zip(arranged.french, origins(arranged), strict=True):
        assert arranged.english[origin] == word.lower()


def test_idioms_come_from_the_whole_expression():
    assert origins(idiom("next to", "à côté de")) == [[0, 1]] * 3


def test_words_may_come_from_any_position():
    assert origins(linked("did n't", "ne a pas", (1, 0, 1))) == [[1], [0], [1]]


def test_a_wrong_number_of_origins_is_noticed():
    with pytest.raises(AssertionError, match="2 words, but 1 origins"):
        linked("yesterday", "la veille")


def test_joining_nothing_gives_nothing():
    assert join() == join(EMPTY, EMPTY) == Fragment((), (), ())
