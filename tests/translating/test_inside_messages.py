"""The texts inside plurals and selections, translated by a model that writes capitals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link, word_spans
from glassformer.text.messages import MOST_LEVELS, as_message, as_text, branches, messages
from glassformer.text.spans import protected_spans
from glassformer.text.terms import Terms
from glassformer.translating.inside_messages import InsideMessages, messages_of
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from translating import catalogues


def in_capitals(text):
    """Return a text with its words in capitals and its spans unchanged."""
    begin, parts = 0, []
    for span in protected_spans(text):
        parts += [text[begin : span.begin].upper(), text[span.begin : span.end]]
        begin = span.end
    return "".join([*parts, text[begin:].upper()])


def model(asked):
    """Translate the texts of a request, messages included."""
    asked = asked._replace(sources=dict.fromkeys(range(len(asked.texts)), ()))

    def search(asked):
        for text in asked.texts:
            written = in_capitals(text)
            links = [Link(word, word) for word in word_spans(text)] if asked.links else []
            other = Translation(text=f"other {written}")
            yield Translation(
                text=written, links=tuple(links), alternatives=(other,) if asked.search.n_best > 1 else ()
            )

    inside = messages_of(asked)
    return InsideMessages(inside, model)(asked, search) if inside else search(asked)


def translated(*texts, **how):
    search = Search(settings=DecodingConfig(), n_best=how.pop("n_best", 1))
    request = Request(texts, [""] * len(texts), range(len(texts)), search, Terms(), **how)
    return [*model(request)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{n, plural, one {# file} other {# files}}", "{n, plural, one {# FILE} other {# FILES}}"),
        ("It has {n,plural,=0{no  file}other{# files}}.", "IT HAS {n,plural,=0{NO  FILE}other{# FILES}}."),
        ("{g, select, male {he has {n} cats} other {they}}", "{g, select, male {HE HAS {n} CATS} other {THEY}}"),
        (
            "{n, plural, offset:1\n  one { a }\n  other {{g, select, a {his} other {her}} cats}\n}",
            "{n, plural, offset:1\n  one { A }\n  other {{g, select, a {HIS} other {HER}} CATS}\n}",
        ),
        ("{n, selectordinal, one {#st} two {#nd} other {#th}} day", None),
        ("a {n, plural, one {#} other {}} b", "A {n, plural, one {#} other {}} B"),
        ("{n, plural, one {don''t} other {{x}''s cats}}", "{n, plural, one {DON''T} other {{x}''S CATS}}"),
        ("{n, plural, one {don't} other {it's ''a''}}", "{n, plural, one {DON'T} other {IT'S ''A''}}"),
        (
            "{n, plural, one {write '{' or '}'} other {a '{x}' b}}",
            "{n, plural, one {WRITE '{' OR '}'} other {A '{x}' B}}",
        ),
        ("{n, plural, one {a '{ b' c} other {'{isn''t}'}} d", "{n, plural, one {A '{ B' C} other {'{isn''t}'}} D"),
        ("{n, plural, other {it''s {g, select, a {don''t} other {can't}}}}", None),
        ("{n, plural, other {''{x}''}} a", "{n, plural, other {''{x}''}} A"),
        ("a {n, plural, one # file}", "A {n, plural, one # file}"),
        ("a {n, plural, one {# file", "A {N, PLURAL, ONE {# FILE"),
        ("a {n}", "A {n}"),
    ],
)
def test_only_the_texts_inside_are_translated(text, expected):
    [one] = translated(text)
    same = {
        "day": "{n, selectordinal, one {#ST} two {#ND} other {#TH}} DAY",
        "it''s": "{n, plural, other {IT''S {g, select, a {DON''T} other {CAN'T}}}}",
    }
    assert one.text == (expected or next(value for name, value in same.items() if name in text))


@pytest.mark.parametrize(("text", "stays"), catalogues.CATALOGUES)
def test_only_what_people_read_of_a_catalogue_is_translated(text, stays):
    assert translated(text)[0].text == catalogues.in_capitals(text, stays)


@pytest.mark.parametrize(
    ("source", "read", "written", "expected"),
    [
        ("don''t", "don't", "l'ami n'est", "l''ami n''est"),
        ("the {x}", "the {x}", "l'{x} d'un", "l''{x} d'un"),
        ("the # {x}", "the # {x}", "{x} d'# l'ami'", "{x} d''# l'ami''"),
        ("don''t write '{'", "don't write '{'", "n'écris pas '{'", "n''écris pas '{'"),
        ("a '{x}'", "a '{x}'", "l'a '{x}'", "l'a '{x}'"),
        ("{d, date, 'at' h}''s", "{d, date, 'at' h}'s", "l'{d, date, 'at' h}", "l''{d, date, 'at' h}"),
    ],
)
def test_apostrophes_of_a_translation_begin_no_quotation(source, read, written, expected):
    asked_for = []

    def model(asked):
        asked_for.extend(asked.texts)
        return iter([Translation(text=written) for _ in asked.texts])

    message = f"{{n, plural, other {{{source}}}}}"
    asked = Request([message], [""], [0], Search(settings=DecodingConfig()), Terms())
    [one] = InsideMessages({0: [message]}, model)(asked, lambda _: iter([Translation(text=message)]))
    assert asked_for == [read]
    assert one.text == f"{{n, plural, other {{{expected}}}}}"


@given(
    st.lists(st.sampled_from(["{", "}", "'", "''", "'{'", "{x}", "#", "a", " ", "{n, plural, other {"])).map("".join)
)
def test_a_text_that_stays_keeps_its_apostrophes(inside):
    message = f"{{n, plural, other {{{inside}}}}}"
    for text in (message[begin:end] for one in messages(message) for begin, end in branches(one)):
        assert as_message(as_text(text), text) == text


def test_equal_messages_and_alternatives_get_the_same_texts():
    message = "{n, plural, other {cats}}"
    [one, plain] = translated(f"a {message} {message}", "a cat", n_best=2)
    assert one.text == "A {n, plural, other {CATS}} {n, plural, other {CATS}}"
    assert [other.text for other in one.alternatives] == [f"other {one.text}"]
    assert plain.text == "A CAT"


def test_links_move_with_the_words_after_a_message():
    [one] = translated("a {n, plural, other {c}} b", links=True)
    assert [(one.text[slice(*link.target)], link.source) for link in one.links] == [("A", (0, 1)), ("B", (25, 26))]


def test_texts_inside_stay_where_they_are_not_wanted():
    text = "a {n, plural, other {cats}}"
    assert translated(text, messages=False)[0].text == "A {n, plural, other {cats}}"
    assert not messages_of(
        Request([text], [""], [0], Search(settings=DecodingConfig()), Terms(protect=False), sources={0: ()})
    )


def test_a_text_without_a_translation_stays():
    text = "{n, plural, one {x} other {y}}"

    def nothing(asked):
        return (replace(one, text="", status="too_long") for one in model(asked))

    asked = Request([text], [""], [0], Search(settings=DecodingConfig()), Terms())
    [one] = InsideMessages({0: [text]}, nothing)(asked, lambda _: iter([Translation(text=text)]))
    assert one.text == text


def test_deep_messages_stay():
    text = "cat"
    for _ in range(MOST_LEVELS):
        text = f"{{n, plural, other {{{text}}}}}"
    assert messages(text) == [text]
    assert branches(text) == []
    assert translated(text)[0].text == text
