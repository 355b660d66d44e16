"""Projected tags: no tag is lost or invented, no link loses its text, and tags stay nested, whatever the links are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.links import Link, word_spans
from glassformer.text.spans import ordered_spans
from glassformer.text.word_edges import is_combining
from glassformer.translating.markup.projection import MOST_GUESTS, detagged, retagged
from glassformer.translating.markup.units import Chunk, closings_of, has_words, unit_of
from profiles import scaled

TEXT = st.sampled_from(
    [
        "one ",
        "two",
        " three.",
        "(",
        " ",
        "four five six ",
        "\n",
        "é,",
        "seven eight",
        "黑猫",
        "睡觉。",
        "（",
        "กีฬาที่",
        "コーヒーを",
    ]
)
CHUNK = TEXT.map(lambda text: Chunk("text", text)) | st.builds(
    lambda role, name, number, parts: Chunk(role, f"<{role}-{name}-{number}>", name=name, parts=parts),
    st.sampled_from(["open", "close", "point", "point", "point", "point"]),
    st.sampled_from("ab"),
    st.integers(0, 3),
    st.booleans(),
)
PAIR = st.deferred(
    lambda: st.builds(
        lambda name, inner: [
            Chunk("open", f"<{name}>", name=name),
            Chunk("text", "in"),
            *inner,
            Chunk("close", f"</{name}>", name=name),
        ],
        st.sampled_from("abc"),
        UNITS,
    )
)
UNITS = st.lists(PAIR | CHUNK.map(lambda chunk: [chunk]), max_size=5).map(
    lambda many: [one for some in many for one in some]
)


def within_a_unit(chunks):
    """Return the chunks of a translation unit made of a text and some chunks."""
    document, placed = "", []
    for chunk in [Chunk("text", "First "), *chunks, Chunk("text", "last")]:
        placed.append(chunk._replace(begin=len(document), end=len(document) + len(chunk.text)))
        document += chunk.text
    return [*unit_of(document, placed).chunks]


def put_back(chunks, target, links=()):
    """Return the chunks of a target, with the tags of these chunks."""
    return retagged(detagged(chunks), target, links)


def nested(chunks):
    """Return the pairs of tags by their texts."""
    return sorted((chunks[begin].text, chunks[end].text) for begin, end in closings_of(chunks).items())


def paired(chunks):
    """Return the indices of the tags that have a partner."""
    closings = closings_of(chunks)
    return {*closings, *closings.values()}


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks)


def plain_of(chunks):
    return "".join(chunk.text for chunk in chunks if chunk.role == "text")


@given(UNITS, st.lists(TEXT, max_size=8).map("".join), st.data())
@scaled(120)
def test_tags_are_kept_and_nested_and_around_words_for_any_links(chunks, target, data):
    target, chunks = f"{target} word", within_a_unit(chunks)
    links = []
    if sources := word_spans(detagged(chunks).text):
        links = [
            Link(data.draw(st.sampled_from(sources)), one) for one in word_spans(target) if data.draw(st.booleans())
        ]
    found = put_back(chunks, target, links)
    if found is None:  # links without a word
        assert sum(chunk.name == "a" for chunk in chunks) >= 2
        return
    marks = [[chunk.text for chunk in some if chunk.role != "text"] for some in (chunks, found)]
    assert sorted(marks[0]) == sorted(marks[1])
    assert "".join(plain_of(found).split()) == "".join(target.split())
    assert not any(is_combining(chunk.text[:1]) for chunk in found if chunk.role == "text")
    if all(chunk.role in ("text", "point") or place in paired(chunks) for place, chunk in enumerate(chunks)):
        assert nested(found) == nested(chunks)
        links = [pair for pair in closings_of(found).items() if found[pair[0]].name == "a"]
        assert all(has_words(plain_of(found[begin:end])) for begin, end in links)
        assert has_nested_links(chunks) or not has_nested_links(found)
        assert depth(found) <= depth(chunks) * (1 + MOST_GUESTS)


def has_nested_links(chunks) -> bool:
    links = [pair for pair in closings_of(chunks).items() if chunks[pair[0]].name == "a"]
    return any(one[0] < other[0] < one[1] for one in links for other in links)


def depth(chunks) -> int:
    """Return the greatest number of tags around a character."""
    pairs = closings_of(chunks).items()
    return max((sum(begin < place < end for begin, end in pairs) for place in range(len(chunks))), default=0)


@given(UNITS)
@scaled(120)
def test_a_text_that_stays_keeps_each_tag_at_its_letter(chunks):
    chunks = within_a_unit(chunks)
    plain = detagged(chunks)
    found = put_back(chunks, plain.text.upper())
    assert [chunk.text for chunk in found if chunk.role != "text"] == [one.text for one in chunks if one.role != "text"]
    written = "".join(
        "".join(chunk.raws.get(place, one) for place, one in enumerate(chunk.text)) if chunk.role == "text" else "|"
        for chunk in found
    )
    expected = "".join(chunk.text if chunk.role == "text" else "|" for chunk in chunks)
    assert written.lower() == expected.lower()


def pair(name, text):
    tag = name.split()[0]
    return [Chunk("open", f"<{name}>", name=tag), Chunk("text", text), Chunk("close", f"</{tag}>", name=tag)]


def aligned(source, target, pairs):
    """Return the links between words, by their texts."""
    sources = {source[slice(*span)]: span for span in word_spans(source)}
    targets = {target[slice(*span)]: span for span in word_spans(target)}
    return [Link(sources[one], targets[other]) for one, other in pairs]


@pytest.mark.parametrize(
    ("chunks", "target", "pairs", "expected"),
    [
        (
            [Chunk("text", "the "), *pair("b", "black"), Chunk("text", " cat.")],
            "le chat noir.",
            [("the", "le"), ("cat.", "chat"), ("black", "noir.")],
            "le chat <b>noir</b>.",
        ),
        (
            [Chunk("text", "it is "), *pair("b", "black"), Chunk("text", ".")],
            "il est noir.",
            [("it", "il"), ("black.", "noir.")],
            "il est <b>noir</b>.",
        ),
        (pair("b", "black") + pair("i", "bird"), "merle", [("blackbird", "merle")], "<b><i>merle</i></b>"),
        (pair("a", "black") + pair("a", "bird"), "un merle", [("blackbird", "merle")], "<a>un</a> <a>merle</a>"),
        (
            [*pair("a", "one two three"), Chunk("text", " "), *pair("a", "four")],
            "un (deux) trois",
            [("one", "un"), ("two", "(deux)"), ("three", "trois")],
            "<a>un (deux)</a> <a>trois</a>",
        ),
        (
            [*pair("a", "four"), Chunk("text", " "), *pair("a", "one two three")],
            "un (deux) trois",
            [("one", "un"), ("two", "(deux)"), ("three", "trois")],
            "<a>un</a> <a>(deux) trois</a>",
        ),
        (
            [*pair("b", "so"), Chunk("text", " "), *pair("a", "very"), Chunk("text", " big")],
            "enorme",
            [("so", "enorme"), ("very", "enorme")],
            "<a><b>enorme</b></a>",
        ),
        (
            [*pair("b", "one"), Chunk("text", " "), *pair("i", "two"), Chunk("text", " "), *pair("u", "three")],
            "zwei",
            [("two", "zwei")],
            "<b></b><i>zwei</i><u></u>",
        ),
        (
            [Chunk("text", "rug"), *pair("b", "mat"), Chunk("text", " here")],
            "ici tapis",
            [("rugmat", "tapis"), ("here", "ici")],
            "ici <b>tapis</b>",
        ),
        (
            [Chunk("text", "use "), Chunk("point", "{x}"), Chunk("text", " here now")],
            "ici main utilise",
            [("use", "utilise"), ("here", "ici"), ("now", "main")],
            "{x} ici main utilise",
        ),
        (
            [Chunk("text", "the word"), Chunk("point", "[1]"), Chunk("text", " is short")],
            "court est le mot",
            [("the", "le"), ("word", "mot"), ("is", "est"), ("short", "court")],
            "court est le mot[1]",
        ),
        (
            [Chunk("text", "a cat "), Chunk("point", "<b no>X</b>", parts=True), Chunk("text", ", here")],
            "un ici chat",
            [("a", "un"), (",", "ici"), ("cat", "chat")],
            "un <b no>X</b> ici chat",
        ),
        (
            [Chunk("text", "very "), *pair("a", "good"), Chunk("text", " cat")],
            "bon chat",
            [("very", "bon"), ("cat", "chat")],
            "bon <a>chat</a>",
        ),
        (
            [Chunk("text", "the "), *pair("b", "black"), Chunk("text", " cat.")],
            "黑猫。",
            [("black", "黑"), ("cat.", "猫。")],
            "<b>黑</b>猫。",
        ),
        (
            [Chunk("text", "我看见"), *pair("a", "黑"), Chunk("text", "猫。")],
            "I see the black cat.",
            [("我", "I"), ("看", "see"), ("黑", "black"), ("猫。", "cat.")],
            "I see the <a>black</a> cat.",
        ),
        (
            [*pair("a", "black"), *pair("a", "bird")],
            "ที่นี่",
            [("blackbird", "ที่"), ("blackbird", "นี่")],
            "<a>ที่</a><a>นี่</a>",
        ),
        (
            [Chunk("text", "Code"), Chunk("point", "<br>", parts=True), Chunk("text", "two")],
            "UN DEUX",
            [("Code", "UN"), ("two", "DEUX")],
            "UN<br>DEUX",
        ),
    ],
)
def test_a_tag_follows_its_words(chunks, target, pairs, expected):
    links = aligned(detagged(chunks).text, target, pairs)
    assert text_of(put_back(chunks, target, links)) == expected


@pytest.mark.parametrize("target", ["merle", "{merle}", "https://a.org/merle", "a", "(merle)"])
def test_two_links_of_one_word_leave_the_text_untranslated(target):
    chunks = pair("a", "black") + pair("a", "bird")
    assert put_back(chunks, target, aligned("blackbird", target, [("blackbird", target)])) is None


@pytest.mark.parametrize(
    ("chunks", "target", "pairs", "expected"),
    [
        (
            [Chunk("text", "%d files in "), *pair('a href="%s"', "here")],
            "ici sont %d fichiers",
            [("%d", "%d"), ("files", "fichiers"), ("here", "ici")],
            'ici sont %d <a href="%s">fichiers</a>',
        ),
        (
            [Chunk("text", "In "), *pair('a href="%s"', "here"), Chunk("text", " are %d files")],
            "%d Dateien sind hier",
            [("%d", "%d"), ("files", "Dateien"), ("here", "hier")],
            '<a href="%s">%d</a> Dateien sind hier',
        ),
        (
            [*pair('a href="%s"', "cats"), Chunk("text", " and "), *pair('b title="{}"', "dogs")],
            "chiens et chats",
            [("cats", "chats"), ("and", "et"), ("dogs", "chiens")],
            '<a href="%s">chiens</a> et <b title="{}">chats</b>',
        ),
        (
            [Chunk("text", "use "), Chunk("point", "<code>%s</code>"), Chunk("text", " as %d now")],
            "%d maintenant utilise",
            [("as", "utilise"), ("%d", "%d"), ("now", "maintenant")],
            "<code>%s</code> %d maintenant utilise",
        ),
        (
            [Chunk("text", "%d files "), *pair('a href="%1$s"', "here")],
            "ici sont %d",
            [("%d", "%d"), ("here", "ici")],
            '<a href="%1$s">ici</a> sont %d',
        ),
    ],
)
def test_tags_that_programs_fill_by_their_order_keep_it(chunks, target, pairs, expected):
    links = aligned(detagged(chunks).text, target, pairs)
    assert text_of(put_back(chunks, target, links)) == expected


def test_a_text_whose_placeholders_cannot_be_kept_in_order_has_no_place_for_tags():
    chunks = [Chunk("text", "%d files in "), *pair('a href="%s"', "here")]
    target = "ici sont %d"
    assert put_back(chunks, target, aligned("%d files in here", target, [("here", "ici"), ("%d", "%d")])) is None


ORDERED_TEXTS = ("%d", "%s", "{}", "(%d)", "one", "two", "three", "%1$s")
ORDERED = st.deferred(
    lambda: st.lists(
        st.sampled_from(ORDERED_TEXTS).map(lambda text: [Chunk("text", text)])
        | st.sampled_from(["<code>%s</code>", "<img alt='{}'>", "<br>"]).map(lambda text: [Chunk("point", text)])
        | st.builds(
            lambda attribute, inner: [
                Chunk("open", f"<b{attribute}>", name="b"),
                Chunk("text", "in"),
                *inner,
                Chunk("close", "</b>", name="b"),
            ],
            st.sampled_from(["", " title='%s'", " title='%d'", " id='{}'"]),
            ORDERED,
        ),
        max_size=4,
    ).map(lambda many: [one for some in many for one in [*some, Chunk("text", " ")]])
)


@given(ORDERED, st.data())
@scaled(300)
def test_ordered_placeholders_keep_their_order_for_any_links(chunks, data):
    chunks = within_a_unit(chunks)
    source = detagged(chunks).text
    target = ""
    for span in ["", *(span for _, span in ordered_spans(source))]:
        words = data.draw(st.lists(st.sampled_from(["un", "deux,", "(trois)", "vier"]), max_size=3))
        target += " ".join(["", span, *words])
    target = f"{target.strip()} word"
    links = [
        Link(data.draw(st.sampled_from(word_spans(source))), one)
        for one in word_spans(target)
        if data.draw(st.booleans())
    ]
    found = put_back(chunks, target, links)
    assert found is None or filled(found) == filled(chunks)


def filled(chunks):
    """Return the placeholders that a program fills by their order, each with its original index."""
    order, text = [], ""
    for chunk in chunks:
        if chunk.role == "text":
            text += chunk.text
        elif ordered_spans(chunk.text):
            order += [*(span for _, span in ordered_spans(text)), (chunk.begin, chunk.text)]
            text = ""
    return [*order, *(span for _, span in ordered_spans(text))]


def test_without_links_tags_go_by_position():
    assert text_of(put_back([*pair("b", "black"), Chunk("text", " cats sleep")], "schwarze Katzen schlafen")) == (
        "<b>schwarze</b> Katzen schlafen"
    )


def test_letters_that_stay_keep_what_the_document_writes():
    chunks = [Chunk("text", "the café is", raws={7: "&eacute;", 8: "\n "}), *pair("b", " old")]
    target = "le café est vieux"
    links = aligned("the café is old", target, [("the", "le"), ("café", "café"), ("is", "est"), ("old", "vieux")])
    [begin, *_] = put_back(chunks, target, links)
    assert begin.raws == {6: "&eacute;"}
