"""The aligner finds the known links of toy languages without a trained model."""

import random

from glassformer.corpus.word_alignment import align_words

WORDS = [f"w{consonant}{vowel}" for consonant in "bcdfgklm" for vowel in "aeiou"]
TRANSLATIONS = {word: word[::-1] for word in WORDS}


def sentences(count=200, seed=1):
    """Return sentences of different words."""
    chance = random.Random(seed)
    return [chance.sample(WORDS, chance.randint(1, 9)) for _ in range(count)]


def test_a_copy_is_aligned_with_the_diagonal():
    assert align_words([(one, one) for one in sentences()]) == [list(range(len(one))) for one in sentences()]


def test_words_in_the_same_order_are_aligned_with_the_diagonal():
    pairs = [(one, [TRANSLATIONS[word] for word in one]) for one in sentences()]
    assert align_words(pairs) == [list(range(len(one))) for one in sentences()]


def test_words_in_reverse_order_are_aligned_inversely():
    """The prior for the diagonal does not outweigh the evidence of words that occur together."""
    pairs = [(one, [TRANSLATIONS[word] for word in reversed(one)]) for one in sentences()]
    links = align_words(pairs)
    right = [found == list(range(len(one)))[::-1] for (one, _), found in zip(pairs, links, strict=True)]
    assert all(right)


def test_a_number_is_linked_to_itself_whatever_is_around_it():
    [links] = align_words([(["in", "1984,", "he", "wrote"], ["il", "écrivit", "en", "(1984)"])])
    assert links[3] == 1


def test_a_word_without_a_source_has_no_link():
    """In all pairs, the target begins with a word that belongs to no source word."""
    pairs = [(one, ["euh", *(TRANSLATIONS[word] for word in one)]) for one in sentences()]
    links = align_words(pairs)
    assert sum(found[0] is None for found in links) >= 0.9 * len(links)
    assert all(found[1:] == list(range(len(one))) for (one, _), found in zip(pairs, links, strict=True))


def test_empty_sides_have_no_links():
    assert align_words([]) == []
    assert align_words([([], []), ([], ["x"]), (["x"], [])]) == [[], [None], []]
