"""Terms that are placed in a finished translation, at the aligned words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.glossary import Glossary
from glassformer.text.links import Link, word_spans
from glassformer.text.placing import copied, placed, stripped
from glassformer.text.terms import Terms, missing_terms, written_forms

ENTRIES = {"cat": "matou", "big cat": "gros matou|fauve", "dog": "cabot|matou", "sees": "sees", "old": "l'ancien"}
BOTH = Terms(glossary=Glossary.of(ENTRIES))
SOURCE_WORDS = [
    "a",
    "cat",
    "big",
    "cat",
    "dog,",
    "(sees)",
    "old",
    "{x}",
    "{x}",
    "(100)",
    "%s.",
    "x100y",
    "1 000",
    "猫{x}在",
    "ที่%s",
]
TARGET_WORDS = [
    "un",
    "chat",
    "gros",
    "matou",
    "l'ami",
    "cabot,",
    "(fauve)",
    "猫在睡觉。",
    "ที่นี่",
    "—",
    "{x}",
    "100",
    "sees",
]


def linked(source, target, pairs):
    """Return links between the words of two texts, given by their indices."""
    sources, targets = word_spans(source), word_spans(target)
    return [Link(sources[one], targets[other]) for one, other in pairs]


def diagonal(source, target):
    return linked(source, target, [(place, place) for place in range(len(target.split()))])


def with_spans(source, target, pairs=None):
    """Return the translation of a source without its spans, with the spans in it, and its links."""
    spans = Terms().of(source)
    without = stripped(source, spans)
    links = diagonal(without.text, target) if pairs is None else linked(without.text, target, pairs)
    return placed(without, spans, spans, target, links)


def with_terms(source, target, pairs, glossary, begun=0):
    """Return the translation of a source, with the glossary terms that were missing in it."""
    terms = Terms(glossary=Glossary.of(glossary)).of(source)
    links = linked(source, target, pairs)
    return placed(stripped(source, []), missing_terms(terms, target), terms, target, links, begun)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat {x} sleeps.", "The cat sleeps."),
        ("{x} sleeps.", "sleeps."),
        ("The cat sees {x}.", "The cat sees."),
        ("The cat sees {x}", "The cat sees"),
        ("See ({x}), and “{y}”.", "See, and."),
        ("{x}{y} a {z} {w} b", "a b"),
        ("a1000b", "a b"),
        ("Terms&nbsp;apply, v{x}.y", "Terms apply, v .y"),
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
        ("The ({x}) cat, {y}.", "Le chat,.", "Le ({x}) chat, {y}."),
        ("a {z} {w} b", "A B", "A {z} {w} B"),
        ("The <b>big</b> cat.", "Le gros chat.", "Le <b>gros</b> chat."),
        ("A <b>cat</b>.", "Un chat.", "Un <b>chat</b>."),
        ("The cat{x} sleeps", "Le chat dort", "Le chat{x} dort"),
        ("a www.b.org{x} b", "A B", "A www.b.org{x} B"),
    ],
)
def test_spans_go_to_the_words_aligned_to_their_neighbours(source, target, expected):
    text, links = with_spans(source, target)
    assert text == expected
    for span in Terms().of(source):
        [to] = [link.target for link in links if link.source == (span.begin, span.end)]
        assert span.forms[0] in text[slice(*to)]


def test_spans_follow_words_that_changed_their_order():
    source, target = "The white {x} cat sees 1000 dogs.", "Le chat blanc voit chiens."
    text, links = with_spans(source, target, [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)])
    assert text == "Le {x} chat blanc voit 1000 chiens."
    words = {source[slice(*link.source)]: text[slice(*link.target)] for link in links}
    assert words == {"{x}": "{x}", "1000": "1000", "The": "Le", "cat": "chat", "white": "blanc", "sees": "voit"} | {
        "dogs.": "chiens."
    }


def test_a_span_goes_beside_the_nearest_aligned_word():
    assert with_spans("the old {x} big cat", "le chat", [(0, 0), (3, 1)])[0] == "le {x} chat"
    assert with_spans("the {x} old big cat", "le chat", [(0, 0), (3, 1)])[0] == "le {x} chat"
    assert with_spans("the {x} old big cat", "chat le", [(0, 1), (3, 0)])[0] == "chat le {x}"
    assert with_spans("the {x} cat", "chat", [])[0] == "chat {x}"


def test_a_span_that_the_translation_contains_anyway_is_not_doubled():
    assert with_spans("the {x} cat", "le chat {x}", [(0, 0), (1, 1)])[0] == "le chat {x}"
    assert with_spans("the {x} cat {x}", "le chat {x}", [(0, 0), (1, 1)])[0].count("{x}") == 2


@given(st.lists(st.sampled_from(["a", "b", "{x}", "{y}", "100", "(200)"]), min_size=1, max_size=8), st.data())
def test_no_span_and_no_word_is_lost(words, data):
    source = " ".join(words)
    terms = Terms().of(source)
    without = stripped(source, terms)
    target = without.text.upper()
    count = len(target.split())
    chosen = data.draw(st.permutations(range(count)))
    pairs = sorted(zip(chosen, range(count), strict=True), key=lambda pair: pair[1])[: data.draw(st.integers(0, count))]
    text, links = placed(without, terms, terms, target, linked(without.text, target, pairs))
    assert not missing_terms(terms, text)
    assert [word for word in text.split() if word.isalpha()] == target.split()
    assert len(links) == len(without.gaps) + len(pairs)
    for one, other in links:
        assert source[slice(*one)].strip("()").lower() == text[slice(*other)].strip("()").lower() or one not in [
            (term.begin, term.end) for term in terms
        ]


def test_terms_replace_the_words_aligned_to_them():
    source, target = "The friend sees the big cat.", "L'ami voit le gros chat."
    glossary = {"big cat": "matou", "friend": "copain", "sees": "sees"}
    text, links = with_terms(source, target, [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)], glossary)
    assert text == "L'copain sees le matou."
    assert {(source[slice(*one)], text[slice(*other)]) for one, other in links} == {
        ("friend", "copain"),
        ("big cat", "matou"),
        ("sees", "sees"),
        ("the", "le"),
    }


GLOSSARY = {"cat": "matou", "dog": "cabot"}


def test_a_term_without_an_aligned_word_goes_beside_the_nearest_one():
    assert with_terms("a cat sleeps", "un dort", [(0, 0), (2, 1)], GLOSSARY)[0] == "un matou dort"
    assert with_terms("cat and a dog", "un chat", [(0, 1), (2, 0)], GLOSSARY)[0] == "un cabot matou"
    assert with_terms("cat", "chat", [], GLOSSARY)[0] == "chat matou"
    assert with_terms("cat", "", [], GLOSSARY)[0] == "matou"


def test_a_term_with_the_word_of_another_goes_beside_it():
    assert with_terms("cat dog", "chat", [(0, 0), (1, 0)], GLOSSARY)[0] == "matou cabot"
    assert with_terms("the cat dog.", "le matou.", [(0, 0), (1, 1), (2, 1)], GLOSSARY)[0] == "le matou cabot."


def test_the_term_at_a_form_that_is_there_is_not_placed():
    pairs = [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert with_terms("a cat, a cat", "un chat, un matou", pairs, GLOSSARY)[0] == "un matou, un matou"
    assert with_terms("a cat, a cat", "un matou, un chat", pairs, GLOSSARY)[0] == "un matou, un matou"


def test_a_longer_form_is_not_taken_apart():
    glossary = {"cat": "chat", "big dog": "gros molosse"}
    pairs = [(0, 1), (1, 0), (2, 0)]
    assert with_terms("big dog cat", "molosse gros molosse", pairs, glossary)[0] == "chat gros molosse"


def test_terms_replace_words_of_scripts_without_spaces():
    pairs = [(0, 0), (1, 0), (2, 2), (2, 3)]
    assert with_terms("the cat sleeps", "猫在睡觉。", pairs, {"cat": "喵喵"})[0] == "喵喵在睡觉。"
    assert with_terms("the cat sleeps", "猫在睡觉。", [(2, 2)], {"cat": "喵喵"})[0] == "猫在喵喵睡觉。"
    assert with_terms("the cat sleeps", "แมวนอน", [(1, 0), (1, 1), (2, 2)], {"cat": "เหมียว"})[0] == "เหมียวนอน"
    assert (
        with_terms("那只猫睡觉", "the cat sleeps", [(0, 0), (2, 1), (3, 2), (4, 2)], {"猫": "kitty"})[0]
        == "the kitty sleeps"
    )


def test_a_word_with_particles_is_not_replaced():
    pairs = [(0, 0), (1, 0), (2, 1)]
    assert with_terms("the cat sleeps", "고양이가 잔다.", pairs, {"cat": "야옹이"})[0] == "고양이가 야옹이 잔다."


@pytest.mark.parametrize(
    ("source", "target", "pairs", "expected"),
    [
        ("The cat {x} sleeps.", "猫在睡觉。", [(1, 0), (2, 2), (2, 3)], "猫在 {x} 睡觉。"),
        ("The cat sees {x}.", "猫看到。", [(1, 0), (2, 1), (2, 2)], "猫看到 {x}。"),
        ("猫{x}睡觉。", "cat sleeps now.", [(0, 0), (1, 1)], "cat {x} sleeps now."),
        ("文件{x}已删除", "ファイルは削除", [(0, 0), (1, 0), (3, 2), (4, 3)], "ファイル{x}は削除"),
        ("文件（{x}）已删除", "ファイルは削除", [(0, 0), (1, 0), (3, 2), (4, 3)], "ファイル（{x}）は削除"),
        ("ที่{x}นี่", "here now", [(0, 0), (1, 1)], "here {x} now"),
        ("ที่{x}นี่", "这里", [(0, 0), (1, 1)], "这{x}里"),
        ("版本v{x}已删除", "v is gone", [(2, 0), (3, 1), (4, 2)], "v{x} is gone"),
    ],
)
def test_spans_beside_scripts_without_spaces(source, target, pairs, expected):
    assert with_spans(source, target, pairs)[0] == expected


def test_terms_are_placed_behind_the_beginning_that_an_output_must_have():
    pairs = [(0, 0), (1, 1), (2, 2)]
    assert with_terms("a cat sleeps", "un chat dort", pairs, GLOSSARY, len("un ch"))[0] == "un chat matou dort"
    assert with_terms("a cat sleeps", "un chat, dort", pairs, GLOSSARY, len("un ch"))[0] == "un chat matou, dort"
    assert with_terms("a cat sleeps", "un chat dort", pairs, GLOSSARY, len("un "))[0] == "un matou dort"
    assert with_terms("cat, a dog", "un chat", [(0, 0)], GLOSSARY, len("un chat"))[0] == "un chat matou cabot"


def test_a_text_is_copied_with_the_forms_of_its_terms():
    source = "{x}, cat (100)"
    text, links = copied(source, BOTH.of(source))
    assert text == "{x}, matou (100)"
    assert {(source[slice(*one)], text[slice(*other)]) for one, other in links} == {
        ("{x},", "{x},"),
        ("cat", "matou"),
        ("(100)", "(100)"),
    }


def drawn(draw):
    """Draw a source, its terms, a translation of the source without the terms, links, and the length of the prefix."""
    source = " ".join(draw(st.lists(st.sampled_from(SOURCE_WORDS), min_size=1, max_size=8)))
    terms = BOTH.of(source)
    rest = stripped(source, [term for term in terms if term.kind == "span"] if draw(st.booleans()) else [])
    target = " ".join(draw(st.lists(st.sampled_from(TARGET_WORDS), max_size=8)))
    sides = (word_spans(rest.text), word_spans(target))
    pairs = draw(st.sets(st.tuples(*map(st.sampled_from, sides)))) if all(sides) else []
    return source, terms, rest, target, tuple(Link(*pair) for pair in pairs), draw(st.integers(0, len(target)))


@given(st.data())
def test_missing_terms_arrive_behind_the_beginning_whatever_is_aligned(data):
    source, terms, rest, target, links, begun = drawn(data.draw)
    missing = [*rest.gaps] or missing_terms(terms, target)
    text, found = placed(rest, missing, terms, target, links, begun)
    assert text.startswith(target[:begun])
    for term in terms:
        stands, before = ([form for form in term.forms if form in one] for one in (text, target))
        assert stands if term in missing else len(stands) >= len(before)
        if term.kind == "span":  # a surplus span of the translation stays
            wanted = sum(one.forms == term.forms for one in terms)
            count = sum(one.form in term.forms for one in written_forms(terms, target))
            assert sum(one.form in term.forms for one in written_forms(terms, text)) == max(wanted, count)
    lost = {(term.forms, term.kind) for term in missing_terms(terms, text)}
    known = {(term.forms, term.kind) for term in missing_terms(terms, target) if term not in missing}
    assert not lost - known or {kind for _, kind in lost - known} == {"span"}
    for one, other in found:
        assert 0 <= one[0] < one[1] <= len(source)
        assert 0 <= other[0] < other[1] <= len(text)
