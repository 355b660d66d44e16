"""Translations that no model should write: no page breaks, whatever the words are."""

from collections import Counter
from random import Random

import pytest

from glassformer.text.links import Link, word_spans
from glassformer.translating.markup.html_pages import html_units
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.scanning import HTML, XML, scanned
from glassformer.translating.markup.sentences import MarkedSentences
from glassformer.translating.markup.units import closings_of
from glassformer.translating.markup.xml_texts import xml_units
from glassformer.translating.translation import Translation
from translating.markup.pages import TEMPLATES, pages

ICON = '<i class="icon"></i>'
MENUS = (
    f"<p><a href=1>{ICON} cat</a> <a href=2>{ICON}on</a> <a href=3>{ICON}on</a></p>",
    f"<p>The <a href=5>\n{ICON} a</a> <a href=1>the</a>.</p>",
    f"<p><a href=5>\n{ICON} v w</a> <a href=1>x</a></p>",
    "<p><a 1>a</a> <a 2>b</a> <a 3>c</a> <a 4>d</a></p>",
    f"<p><a href=1>The cat</a> <span><a href=2>{ICON}</a> of</span></p>",
    f"<p><a href=1>The cat</a> <b><i><a href=2>{ICON}</a></i> of <u>the</u></b> <a href=3>park</a></p>",
    "<p><b>of</b> <i>the</i> <em><a href=1>cat</a></em> <u>sat</u></p>",
    "<p><a href=1>one <b>two</b> <i>three</i></a> <a href=2><b>four</b></a>, five</p>",
    "<p>" + "<b>of</b> " * 60 + "</p>",
    "<p>" + "<b>" * 60 + "deep</b>" + "</b>" * 59 + " <a href=1>link</a></p>",
    "<p>" + "".join(f"<a href={one}>word {one}</a> " for one in range(60)) + "</p>",
)
"""Texts with more tags than a translation may have words."""


def fewer(words, chance):
    return [word for word in words if chance.random() < 0.3]


def one(words, _):
    return ["z"] if words else []


def none(*_):
    return []


def other_order(words, chance):
    return chance.sample(words, len(words))


def for_ever(words, chance):
    return [chance.choice(words)] * 400 if words else []


def marks(*_):
    return ["…", "–", "!"]


TWINS = (fewer, one, none, other_order, for_ever, marks)


def translated(text, twin, chance):
    """Return a translation of a text into the words of a hostile twin of a model, with links to any words."""
    spans = word_spans(text)
    target = " ".join(twin([text[slice(*span)] for span in spans], chance))
    links = [Link(chance.choice(spans), span) for span in word_spans(target) if spans and chance.random() < 0.8]
    return Translation(text=target, status="ok" if target else "empty", links=tuple(links))


def links_of(text, syntax):
    """Return the number of links, of links without text, and of links inside a link."""
    tags = [*scanned(text, syntax)]
    links = [(begin, end) for begin, end in closings_of(tags).items() if tags[begin].name == "a"]
    texts = ["".join(text[t.begin : t.end] for t in tags[begin:end] if t.role == "text") for begin, end in links]
    inside = [(begin, end) for begin, end in links if any(other[0] < begin < other[1] for other in links)]
    return len(links), sum(not one.strip() for one in texts), len(inside)


def depth(text, syntax):
    """Return the greatest number of tags around a character."""
    deepest = now = 0
    tags = [*scanned(text, syntax)]
    closings = closings_of(tags)
    ends = {*closings.values()}
    for place in range(len(tags)):
        now += (place in closings) - (place in ends)
        deepest = max(deepest, now)
    return deepest


@pytest.mark.slow
@pytest.mark.parametrize(("read", "syntax"), [(html_units, HTML), (xml_units, XML)], ids=["html", "xml"])
@pytest.mark.parametrize("twin", TWINS)
def test_no_words_of_a_model_break_a_page(twin, read, syntax):
    chance, kept = Random(3), 0
    texts = [*MENUS, *pages(len(TEMPLATES))]
    for text in texts:
        found = MarkedSentences(MarkedText(text=text, units=tuple(read(text, "en"))), "en")
        written, lost = found.rebuilt([translated(one, twin, chance) for one in found.wanted])
        tags, before = (
            Counter((t.role, t.name) for t in scanned(some, syntax) if t.role != "text") for some in (written, text)
        )
        assert tags == before, text
        now, earlier = links_of(written, syntax), links_of(text, syntax)
        assert now[0] == earlier[0], text
        assert now[1] <= earlier[1], (text, written)
        assert now[2] <= earlier[2], (text, written)
        assert depth(written, syntax) <= depth(text, syntax) + 3, (text, written)
        kept += len(lost)
    assert kept < len(texts)


@pytest.mark.parametrize(("read", "syntax"), [(html_units, HTML), (xml_units, XML)], ids=["html", "xml"])
@pytest.mark.parametrize("icon", ["<a href='2'><i></i></a>", "<b><a href='2'><i></i></a></b>", "<a href='2'/>"])
def test_a_link_without_words_is_not_put_inside_a_link(read, syntax, icon):
    text = f"<a href='1'>The cat</a> <span>{icon} of</span>"
    found = MarkedSentences(MarkedText(text=text, units=tuple(read(text, "en"))), "en")
    [source] = found.wanted
    the, cat, of = (slice(*span) for span in word_spans(source))
    links = tuple(
        Link((word.start, word.stop), span) for word, span in ((the, (0, 2)), (cat, (3, 7)), (of, (3, 7)))
    )  # "of" has no word of its own
    written, _ = found.rebuilt([Translation(text="Le chat", status="ok", links=links)])
    assert links_of(written, syntax)[2] == 0, written
