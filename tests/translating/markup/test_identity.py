"""A translation that changes nothing, or only the case of letters, leaves each tag and each space at its letter."""

import html
import re
from collections import Counter
from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.links import Link, word_spans
from glassformer.text.spans import protected_spans
from glassformer.translating.markup.html_pages import html_units
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.scanning import HTML, scanned
from glassformer.translating.markup.sentences import MarkedSentences
from glassformer.translating.markup.units import closings_of
from glassformer.translating.markup.xml_texts import xml_units
from glassformer.translating.translation import Translation
from profiles import scaled
from translating.markup.pages import TEMPLATES, UNSPACED, pages
from translating.markup.web import WEB, XML, in_capitals_outside_tags

READERS = pytest.mark.parametrize("read", [html_units, xml_units])


def sentences(text, read=html_units):
    return MarkedSentences(MarkedText(text=text, units=tuple(read(text, "en"))), "en")


def translated(text, render, read=html_units):
    found = sentences(text, read)
    return found.rebuilt([Translation(text=render(one)) for one in found.wanted])[0]


def in_capitals(text):
    """Return a text in capitals, except letters whose capital has a different length or another small letter."""
    return "".join(
        one.upper() if len(one.upper()) == 1 and one.upper().casefold() == one.casefold() else one for one in text
    )


def check(text, read):
    assert translated(text, str, read) == text
    changed = translated(text, in_capitals, read)
    # If a letter that was written as an entity changes, the new letter is written as itself.
    assert html.unescape(changed).casefold() == html.unescape(text).casefold()
    assert changed.count("<") == text.count("<")


@pytest.mark.slow
@READERS
def test_no_text_of_2400_changes(read):
    assert len(TEMPLATES) >= 150
    assert len({*pages()}) > 2000
    for text in pages():
        check(text, read)


@READERS
@pytest.mark.parametrize("texts", UNSPACED.values(), ids=UNSPACED)
def test_no_text_of_a_script_without_spaces_changes(texts, read):
    for text in pages(len(TEMPLATES), texts=texts):
        check(text, read)


@READERS
@pytest.mark.parametrize("texts", UNSPACED.values(), ids=UNSPACED)
def test_tags_in_scripts_without_spaces_stay_whole_wherever_words_go(texts, read):
    """The words are in a different order, some are left out and some are added, with matching links."""
    chance, kept = Random(2), 0
    for text in pages(len(TEMPLATES), texts=texts):
        found = sentences(text, read)
        renderings = [shuffled(one, chance) for one in found.wanted]
        written, lost = found.rebuilt(renderings)
        kept += len(lost)
        tags, before = ([one for one in scanned(some, HTML) if one.role != "text"] for some in (written, text))
        assert Counter((one.role, one.name) for one in tags) == Counter((one.role, one.name) for one in before)
        assert len(closings_of(tags)) == len(closings_of(before))
        assert not re.search(rf">[{MARKS}]", written)
    assert kept <= 4  # units with more links than words that are left


MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
"""Marks that are combined with Thai letters."""


def shuffled(text, chance):
    """Return a translation with the words of a text in a different order, without some words and with new words."""
    words = word_spans(text)
    places = chance.sample(range(len(words)), chance.randint(1, len(words)))
    parts = [text[slice(*words[place])] for place in places]
    others = [place for place in range(len(parts)) if chance.random() < 0.2]
    for place in others:
        parts[place] = chance.choice(["新", "ใหม่", "new "])
    ends = [*accumulate(map(len, parts), initial=0)]
    target = "".join(parts)
    aligned = zip(places, pairwise(ends), strict=True)
    links = [Link(words[place], span) for number, (place, span) in enumerate(aligned) if number not in others]
    return Translation(text=target, links=tuple(links))


@pytest.mark.parametrize(
    ("text", "capitals", "read"), [*((*one, html_units) for one in WEB), *((*one, xml_units) for one in XML)]
)
def test_texts_of_programs_change_only_where_people_read(text, capitals, read):
    def written(text):
        spans = [(one.begin, one.end) for one in protected_spans(text)]
        outside = zip([0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(text)], strict=True)
        rest = [*(text[slice(*span)] for span in spans), ""]
        return "".join(text[begin:end].upper() + span for (begin, end), span in zip(outside, rest, strict=True))

    assert translated(text, str, read) == text
    assert translated(text, written, read) == (capitals or in_capitals_outside_tags(text))


SPACE = st.sampled_from(["", "", " ", "\n ", "&nbsp;", "  "])
TEXTS = ("The cat", "slept", "it", "word.", "(see", "x)", ",", ": ", "&amp;", "caf&eacute;", "2", "é")
POINTS = ("<br>", "<img alt='a cat'>", "<!-- c -->", "<i></i>", "<code>x</code>", "<wbr>", "<rt>r</rt>")
KEPT = ("<sup>[1]</sup>", "<b translate=no>Keep</b>")
LEAF = st.sampled_from([*TEXTS, *POINTS, *KEPT])
NAME = st.sampled_from(["a", "b", "i", "span", "sup", "sub", "ruby", "em", "p", "div", "label", "x-y", "0", "1"])
TREE = st.recursive(
    LEAF,
    lambda inner: st.builds(
        lambda name, parts: f"<{name}>{''.join(space + part for space, part in parts)}</{name}>",
        NAME,
        st.lists(st.tuples(SPACE, inner), max_size=4),
    ),
    max_leaves=12,
)


@READERS
@given(st.lists(st.tuples(TREE, SPACE), max_size=6).map(lambda parts: "".join(map("".join, parts))))
@scaled(150)
def test_no_tree_changes(read, text):
    check(text, read)


@READERS
@given(st.lists(st.sampled_from([*"<>/a='\" b&;#?1", "!--", "-->"])).map("".join))
@scaled(150)
def test_anything_can_be_read(read, text):
    assert translated(text, str, read) == text
    translated(text, lambda one: f"{one} more", read)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("slept<sup>2</sup> well", ["slept well"]),
        ("word.<sup><a>[1]</a></sup> The end", ["word.", "The end"]),
        ("word.<sup>[<i>citation needed</i>]</sup>", ["word.", "[citation needed]"]),
        ("<a>Home</a><a>The cat</a>", ["Home", "The cat"]),
        ("rug<b>mat</b>", ["rugmat"]),
        ("H<sub>2</sub>O", ["H2O"]),
        ("one<br>two", ["one two"]),
        ("Tom & Jerry", ["Tom & Jerry"]),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", ["漢"]),
        ("the <b translate=no>X <i translate=yes>old</i></b> cat", ["the cat", "old"]),
        ("a <b class='x notranslate'>Cat</b> b", ["a b"]),
        ("a <i lang=la>felis</i> b <i lang=en-GB>c</i>", ["a b c"]),
        ('<meta name=description content="a cat">', ["a cat"]),
        ("<input type=submit value=Go><input value=x aria-label=Name>", ["Go", "Name"]),
        ("<title>a <b> c</title><script>x</script>", ["a <b> c"]),
        ("<p>one<p>two", ["one", "two"]),
    ],
)
def test_what_a_model_reads_of_a_page(text, wanted):
    assert sentences(text).wanted == wanted


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        ("a <x>b</x> c", {}, ["a b c"]),
        ("a <x>b</x> c", {"ignored": ["x"]}, ["a c"]),
        ("a <x>b</x> c", {"splitting": ["x"]}, ["a", "b", "c"]),
        ("<d><t>a</t><c><p>b <i>c</i></p><p>d</p></c></d>", {}, ["a", "b c", "d"]),
        ("<d><t>a</t> <c>b</c></d>", {"outline": False}, ["a b"]),
        ("<d><t>a</t> <c>b</c></d>", {"joining": ["t", "c"]}, ["a b"]),
        ("<g id='1'>a</g> <g id='2'>b</g>", {}, ["a b"]),
        ("a <bpt i='1'>{b}</bpt>b<ept i='1'>{/b}</ept> c", {}, ["a b c"]),
        ("<Title>a</Title><![CDATA[b]]><?c d?>", {}, ["a"]),
    ],
)
def test_what_a_model_reads_of_xml(text, options, wanted):
    units = xml_units(text, "en", **options)
    assert MarkedSentences(MarkedText(text=text, units=tuple(units)), "en").wanted == wanted


@pytest.mark.parametrize(
    ("text", "wanted", "target", "expected"),
    [
        ("Die &brandShortName; Seite", "Die &brandShortName; Seite", "page &brandShortName;", "page &brandShortName;"),
        ("Das &amp;xy; und &xy;", "Das &xy; und &xy;", "&xy; and &xy;", "&amp;xy; and &xy;"),
        (
            "AT&amp;T &copyrightHolder;",
            "AT&T &copyrightHolder;",
            "&copyrightHolder; AT&T",
            "&copyrightHolder; AT&amp;T",
        ),
        ("Caf&eacute; &a-b.c:d;", "Café &a-b.c:d;", "&a-b.c:d; café", "&a-b.c:d; café"),
    ],
)
def test_names_that_only_a_document_knows_stay_without_links(text, wanted, target, expected):
    found = sentences(text, xml_units)
    assert found.wanted == [wanted]
    assert found.rebuilt([Translation(text=target)])[0] == expected


def test_html_reads_names_without_their_end_as_browsers_do():
    assert sentences("<p>&copyrightHolder; &noentity; &x;</p>").wanted == ["©rightHolder; &noentity; &x;"]


def test_paired_codes_stay_a_pair_around_their_words():
    text = "the <bpt i='1'/>cat<ept i='1'/> sleeps"
    document = sentences(text, xml_units)
    links = (Link((0, 3), (0, 2)), Link((4, 7), (3, 7)), Link((8, 14), (8, 12)))
    [written, _] = document.rebuilt([Translation(text="le chat dort", links=links)])
    assert written == "le <bpt i='1'/>chat<ept i='1'/> dort"


@pytest.mark.parametrize(
    ("text", "target", "pairs", "expected"),
    [
        (
            "{% if x %}<b>yes</b>{% else %}no{% endif %}",
            "{% if x %}{% else %}{% endif %}",
            [(0, 0), (1, 1)],
            "<b>{% if x %}{% else %}{% endif %}</b>",
        ),
        (
            "see <b>this</b> {{ cart.name }} now",
            "maintenant {{ cart.name }}",
            [(1, 2), (5, 0)],
            "maintenant <b>{{ cart.name }}</b>",
        ),
        (
            "see <b>this</b> {n, plural, one {# item} other {# items}}",
            "{n, plural, one {# item} other {# items}}",
            [(1, 7)],
            "<b>{n, plural, one {# item} other {# items}}</b>",
        ),
        ("下载<a>这里</a>{filename}，me@example.org", "{filename}me@example.org", [(0, 0)], None),
    ],
)
def test_no_tag_cuts_a_placeholder(text, target, pairs, expected):
    document = sentences(text)
    words = word_spans(document.wanted[0]), word_spans(target)
    links = [Link(words[0][one], words[1][other]) for one, other in pairs]
    [written, _] = document.rebuilt([Translation(text=target, links=tuple(links))])
    assert written == (expected or "<a>{filename}me@example.org</a>")


def test_an_empty_output_replaces_nothing():
    assert translated("H<sub>2</sub>O <b>x</b>", lambda _: "", html_units) == "H<sub>2</sub>O <b>x</b>"


BEGINNINGS = ["<a ", "<!--", "</a", "<![", "<b>a</b>", "<a>a</a>", "<br>a", '<a b="', "<a b=", "&a", "<i>,</i>"]


@pytest.mark.slow
@pytest.mark.parametrize("begin", BEGINNINGS)
def test_a_long_text_takes_seconds(begin):
    """The text would take minutes if the time grew with the square of the length."""
    text = begin * (100_000 // len(begin))
    assert translated(text, str) == text


@READERS
@pytest.mark.parametrize(
    "text",
    [
        "<li><a href='/'>home</a> &nbsp;›&nbsp; </li>",
        "<p>family&nbsp; </p>",
        "<p>on deck.&#160;\n</p>",
        "<p> &nbsp;home</p>",
        "<p>\n&#160; home &#160;\n</p>",
        "<p>\u00a0 home \u00a0</p>",
        "<p>home&nbsp;<b>cat</b> &nbsp;</p>",
    ],
)
def test_spaces_at_the_ends_of_a_unit_stay_as_they_are_written(text, read):
    check(text, read)


DTD = """<?xml version="1.0"?>
<!DOCTYPE a [
  <!-- it's > not ]> the end -->
  <?it's a > ]> part ?>
  <!ENTITY x SYSTEM "a>b]">
  <!ENTITY y '"<b>cat</b>'>
] >
<a>the cat</a>"""


@pytest.mark.parametrize(
    "text", [DTD, '<!DOCTYPE a PUBLIC "-//a>b[//EN" "c"><a>the cat</a>', "<!DOCTYPE a><a>the cat</a>"]
)
def test_a_document_type_is_no_text(text):
    assert sentences(text, xml_units).wanted == ["the cat"]
    check(text, xml_units)


def test_a_document_type_without_its_end_is_no_text_either():
    assert sentences("<!DOCTYPE a [ <!ENTITY", xml_units).wanted == []
