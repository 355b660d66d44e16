"""Pairs of tags in plain texts stand around the words that they belong to."""

from dataclasses import replace

import pytest

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link, word_spans
from glassformer.text.terms import Terms
from glassformer.translating.markup.reading import MOST_NESTED
from glassformer.translating.reading import status_of
from glassformer.translating.request import Request
from glassformer.translating.rewriting import rewriting, rewritten_texts
from glassformer.translating.tagging import tagged
from glassformer.translating.translation import MOST_CHARACTERS, Translation


def asked(*texts, prefix="", protect=True, links=False):
    search, terms = Search(settings=DecodingConfig()), Terms(protect=protect)
    return Request(texts, [prefix] * len(texts), range(len(texts)), search, terms, links=links)


def backwards(request):
    """Translate each text into its words in capitals, in reverse order."""
    for text in request.texts:
        words = word_spans(text)
        target = " ".join(text[slice(*word)].upper() for word in reversed(words))
        links = [Link(one, other) for one, other in zip(reversed(words), word_spans(target), strict=True)]
        other = Translation(text=f"{target} 2", links=tuple(links))
        yield Translation(text=target, links=tuple(links) if request.links else (), alternatives=(other,))


def tagged_texts(request):
    return rewritten_texts(tagged, request)


def translated(request, below):
    """Translate like the layers: texts without pairs of tags are passed directly to the next layer."""
    found = tagged_texts(request)
    return rewriting(found, request, below) if found else below(request)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the <0>black cat</0> sleeps", "SLEEPS <0>CAT BLACK</0> THE"),
        ("<bold>the</bold> cat", "CAT <bold>THE</bold>"),
        ("a <0>b <1>c</1></0> d", "D <0><1>C</1> B</0> A"),
        ('<a href="x y">cat</a> a', 'A <a href="x y">CAT</a>'),
        ("  <b>the cat</b>", "  <b>CAT THE</b>"),
        ("a cat", "CAT A"),
        ("a <b> c", "C <B> A"),
        ("a < b </b> c", "C </B> B < A"),
        ("a <b></b> c", "<b></b> C A"),
        ("<b> </b>", "</B> <B>"),
        ("`<b>a</b>` c", "C `<B>A</B>`"),
    ],
)
def test_a_pair_goes_around_its_words(text, expected):
    [one, between] = translated(asked(text, "x y"), backwards)
    assert (one.text, between.text) == (expected, "Y X")


def test_a_text_whose_placeholders_cannot_be_kept_in_order_stays():
    """No word follows %d, so the pair of tags has no place; such an alternative is left out."""
    text = 'see %d <a href="%s">here</a>'
    last, first = Translation(text="SEE HERE %d", kept="output"), Translation(text="%d SEE HERE", kept="output")
    [lost] = translated(asked(text), lambda _: iter([replace(last, alternatives=(first,))]))
    [kept] = translated(asked(text), lambda _: iter([replace(first, alternatives=(last,))]))
    assert (lost.text, lost.kept, lost.alternatives) == (text, "lost", ())
    assert (kept.text, kept.kept, kept.alternatives) == ('%d <a href="%s">SEE HERE</a>', "output", ())


def test_alternatives_have_the_tags_too():
    [one] = translated(asked("a <b>cat</b>"), backwards)
    assert [other.text for other in one.alternatives] == ["<b>CAT</b> A 2"]
    assert not one.links


def test_links_connect_the_words_of_the_texts_with_tags():
    text = "the <b>black</b> cat"
    [one] = translated(asked(text, links=True), backwards)
    pairs = [(text[slice(*link.source)], one.text[slice(*link.target)]) for link in one.links]
    assert pairs == [("cat", "CAT"), ("<b>black</b>", "<b>BLACK</b>"), ("the", "THE")]


@pytest.mark.parametrize("request_", [asked("<b>a</b> c", prefix="x"), asked("<b>a</b> c", protect=False)])
def test_a_text_with_a_prefix_or_without_protection_keeps_its_tags_as_words(request_):
    assert tagged_texts(request_) == {}


def test_a_text_without_a_translation_stays_without_one():
    [one] = translated(
        asked("<b>a</b>"), lambda request: iter([Translation(text="", status="too_long") for _ in request.texts])
    )
    assert (one.text, one.status) == ("", "too_long")


def test_a_text_that_nests_too_many_tags_is_translated_as_it_is():
    depth = MOST_NESTED + 1
    deep = "x " + "<b>" * depth + "a cat" + "</b>" * depth
    assert tagged_texts(asked(deep)) == {}
    assert [*tagged_texts(asked(deep.replace("<b>", "", 1)))] == [0]


def test_a_text_with_too_many_characters_is_not_read():
    long = "<b>a</b> " * 20_000
    assert tagged_texts(asked(long)) == {}
    assert status_of(long) == "too_long"
    assert status_of(long[:MOST_CHARACTERS]) == "ok"


def test_tags_beside_fewer_words_do_not_nest():
    """What once ended a model: hundreds of tags and one word."""
    text = "<b>of</b> " * 1000
    [one] = translated(asked(text), lambda _: iter([Translation(text="z")]))
    assert (one.kept, one.text.count("<b>"), one.text.count("</b>")) == ("", 1000, 1000)
    assert "<b><b>" not in one.text


def test_a_text_whose_links_find_no_word_stays():
    text = "".join(f"<a {place}>{word}</a> " for place, word in enumerate("abcd"))
    [one] = translated(asked(text), lambda _: iter([Translation(text="z")]))
    assert (one.kept, one.text) == ("lost", text)
