"""The sentence sets of `benchmarks.terms`: spans and terms are inserted, found, and removed."""

from itertools import permutations

from benchmarks.terms import (
    KINDS,
    aligned_terms,
    frequent_translations,
    in_place_of_words,
    untranslated,
    with_spans,
    with_terms,
    without,
)

PAIRS = [
    ("the little cat sleeps.", "le petit chat dort."),
    ("a little house", "une petite maison"),
    ("cat cat", "chat"),
]


def test_each_text_has_one_span_and_without_it_is_the_text():
    sources = ["A cat sees a dog.", "Two words", "One"] * len(KINDS)
    marked = with_spans(sources)
    assert marked == with_spans(sources)
    for source, (text, span) in zip(sources, marked, strict=True):
        assert text.count(span) == 1
        assert without(text, span) == source


def test_terms_are_words_with_their_most_frequent_translation():
    first, second = {"white": "blanche", "green": "verte"}, {"house": "maison", "door": "porte"}
    pairs = [(f"{one} {two}", f"{first[one]} {second[two]}") for one in first for two in second] * 3
    assert aligned_terms(pairs) == first | second


def test_pairs_have_their_terms_as_often_in_the_reference():
    terms = {"cat": "chat", "little": "petit"}
    assert with_terms(PAIRS, terms) == PAIRS[:1]
    assert untranslated(PAIRS[:2], terms) == [
        ("the little cat sleeps.", "le little cat dort."),
        ("a little house", "une petite maison"),
    ]


def test_spans_stand_in_place_of_words_and_of_their_translations():
    words = {"cats": "chats", "dogs": "chiens", "mice": "souris", "sees": "voit"}
    pairs = [(" ".join(some), " ".join(map(words.__getitem__, some))) for some in permutations(words, 3)]
    made = in_place_of_words([*pairs, ("it", "on")])
    assert len(made) == len(pairs)
    for (source, target), (one, other, span) in zip(pairs, made, strict=True):
        place = source.split().index(next(word for word in source.split() if word not in one))
        assert one == source.replace(source.split()[place], span)
        assert other == target.replace(target.split()[place], span)


def test_translations_are_those_of_most_occurrences():
    known = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "man": "homme"}
    words = list(known)
    pairs = [
        (" ".join(some), " ".join(map(known.__getitem__, some)))
        for place in range(60)
        for some in [[words[place % 6], words[(place * 5 + 1) % 6], words[(place // 6) % 6]]]
    ]
    found = frequent_translations(pairs)
    assert found
    assert found.items() <= known.items()
