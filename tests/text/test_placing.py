"""Terms that are placed in a finished translation, at the aligned words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.glossary import Glossary
from glassformer.text.links import Link, word_spans
from glassformer.text.placing import placed_spans, replaced_terms, stripped
from glassformer.text.terms import Terms, missing_terms


def linked(source, target, pairs):
    """Return links between the words of two texts, given by their indices."""
    sources, targets = word_spans(source), word_spans(target)
    return [Link(sources[one], targets[other]) for one, other in pairs]


def diagonal(source, target):
    return linked(source, target, [(place, place) for place in range(len(target.split()))])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat {x} sleeps.", "The cat sleeps."),
        ("{x} sleeps.", "sleeps."),
        ("The cat sees {x}.", "The cat sees."),
        ("The cat sees {x}", "The cat sees"),
        ("See ({x}), and “{y}”.", "See, and."),
        ("{x}{y} a {z} {w} b", "a b"),
        ("a1000b", "ab"),
        ("{x}", ""),
    ],
)
def test_a_stripped_source_reads_as_if_the_spans_were_not_there(text, expected):
    assert stripped(text, Terms().of(text)).text.strip() == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("The cat {x} sleeps.", "Le chat dort.", "Le chat {x} dort."),
        ("{x} sleeps.", "dort.", "{x} dort."),
        ("The cat sees {x}.", "Le chat voit.", "Le chat voit {x}."),
        ("The cat sees {x}", "Le chat voit", "Le chat voit {x}"),
        ("The ({x}) cat, {y}.", "Le chat,.", "Le ({x}) chat {y},."),
        ("a {z} {w} b", "A B", "A {z} {w} B"),
        ("The <b>big</b> cat.", "Le gros chat.", "Le <b>gros</b> chat."),
        ("A <b>cat</b>.", "Un chat.", "Un <b>chat</b>."),
        ("The cat{x} sleeps", "Le chat dort", "Le chat{x} dort"),
    ],
)
def test_spans_go_to_the_words_aligned_to_their_neighbours(source, target, expected):
    without = stripped(source, Terms().of(source))
    text, links = placed_spans(without, target, diagonal(without.text, target))
    assert text == expected
    for span in Terms().of(source):
        [to] = [link.target for link in links if link.source == (span.begin, span.end)]
        assert span.forms[0] in text[slice(*to)]


def test_spans_follow_words_that_changed_their_order():
    source = "The white {x} cat sees 1000 dogs."
    without = stripped(source, Terms().of(source))
    target = "Le chat blanc voit chiens."
    text, links = placed_spans(without, target, linked(without.text, target, [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)]))
    assert text == "Le {x} chat blanc voit 1000 chiens."
    words = {source[slice(*link.source)]: text[slice(*link.target)] for link in links}
    assert words == {"{x}": "{x}", "1000": "1000", "The": "Le", "cat": "chat", "white": "blanc", "sees": "voit"} | {
        "dogs.": "chiens."
    }


@given(st.lists(st.sampled_from(["a", "b", "{x}", "{y}", "100", "(200)"]), min_size=1, max_size=8), st.data())
def test_no_span_and_no_word_is_lost(words, data):
    source = " ".join(words)
    terms = Terms().of(source)
    without = stripped(source, terms)
    target = without.text.upper()
    count = len(target.split())
    chosen = data.draw(st.permutations(range(count)))
    pairs = sorted(zip(chosen, range(count), strict=True), key=lambda pair: pair[1])[: data.draw(st.integers(0, count))]
    text, links = placed_spans(without, target, linked(without.text, target, pairs))
    assert not missing_terms(terms, text)
    assert [word for word in text.split() if word.isalpha()] == target.split()
    assert len(links) == len(without.gaps) + len(pairs)
    for one, other in links:
        assert source[slice(*one)].strip("()").lower() == text[slice(*other)].strip("()").lower() or one not in [
            (term.begin, term.end) for term in terms
        ]


def test_terms_replace_the_words_aligned_to_them():
    glossary = Glossary.of({"big cat": "matou", "friend": "copain", "sees": "sees"})
    source, target = "The friend sees the big cat.", "L'ami voit le gros chat."
    terms = Terms(glossary=glossary).of(source)
    links = linked(source, target, [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)])
    made = replaced_terms(target, links, terms)
    assert made
    text, links = made
    assert text == "L'copain sees le matou."
    assert {(source[slice(*one)], text[slice(*other)]) for one, other in links} >= {
        ("friend", "copain"),
        ("big cat", "matou"),
        ("the", "le"),
    }


def test_terms_without_words_of_their_own_are_not_placed():
    terms = Terms(glossary=Glossary.of({"cat": "matou", "dog": "cabot"})).of("cat dog")
    assert replaced_terms("chat", linked("cat dog", "chat", [(0, 0)]), terms) is None
    both = [Link(one, (0, 4)) for one in word_spans("cat dog")]
    assert replaced_terms("chat", both, terms) is None
