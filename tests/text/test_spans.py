"""Protected spans: every kind, whole, and what is text."""

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.spans import protected_spans

PAGE = Path(__file__).parents[2] / "docs" / "terms.md"


def found(text, *patterns):
    return [text[span.begin : span.end] for span in protected_spans(text, patterns)]


def examples():
    rows = PAGE.read_text(encoding="utf-8").split("| kind | examples |")[1].split("\n\n")[0].splitlines()[2:]
    for row in rows:
        cell = row.split(" | ")[1].removesuffix(" |")
        for one in re.finditer(r"`` (.+?) ``|`(.+?)`|<code>(.+?)</code>", cell):
            yield one[1] or one[2] or html.unescape(one[3])


EXAMPLES = [*examples()]


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("around", ["{}", "Have {} here", "({})", "Have {}, or not.", "Is it {}?", "“{}”", "这是{}。"])
def test_every_example_of_the_reference_is_whole(around, example):
    before, after = around.split("{}")
    assert found(before + example + after) == [example]


def test_the_reference_has_examples():
    assert len(EXAMPLES) > 50


@pytest.mark.parametrize(
    "text",
    [
        *("20% discount", "20%discount", "50%ig", "20 %ige", "5% of it", "50 %", "50%.", "%"),
        *("{two words}", "{a, b, c}", "{unclosed", "a < b > c", "A$AP", "US$ 5"),
        *("costs $50", "$1.5, $0", "$9,9", "US$5 or A$1", "$5 million", "a $3-billion plan", "$5m, $2k, $3bn", "$5-6"),
        *("$5–7", "$5 USD", "$$"),
        *("12 or 3", "at 12:30?"[:2], "std::vector::x", "#tag", "C#", "## A title", "R&D; and", "a & b;"),
        *("_word_ and ____", "don`t", r"line\nSecond line", "a@b", "@name", "a: b :c", "http://", "://"),
    ],
)
def test_text_is_no_span(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%d/%d files", ["%d/%d"]),
        ("see ⟦7⟧, ⟦x⟧ and ⟦12⟧", ["⟦7⟧"]),
        ("(`a` here)", ["`a`"]),
        ("Message:\n\n%(text)s\n", ["%(text)s"]),
        ("%dx%d px, %ds", ["%dx%d", "%d"]),
        ("{a}-{b}, {a} {b}", ["{a}-{b}", "{a}", "{b}"]),
        ("%1%2 and 100%%", ["%1%2", "100", "%%"]),
        ("%d%%", ["%d%%"]),
        ("%08.3f:a@b.de%08.3f", ["%08.3f", "a@b.de", "%08.3f"]),
        (
            "http://[::1]:80/, https://§.org, file:///etc http://...",
            ["http://[::1]:80/", "https://§.org", "file:///etc"],
        ),
        ("See https://a.org/(x), (https://a.org), https://a.org/{id}/%s!", None),
        (
            "请使用user_name变量和me@example.org的https://a.org/x。然后",
            ["user_name", "me@example.org", "https://a.org/x"],
        ),
        ("{{ a. B }} and {# note #} {x + 1}", ["{{ a. B }}", "{# note #}", "{x + 1}"]),
        ("You have {n, plural, one {# file} other {{m, select, a {x} other {y}} files}}.", None),
        ("{n, plural, one {a '}' b} other {c}} {x}", ["{n, plural, one {a '}' b} other {c}}", "{x}"]),
        ("{n, plural, one {a} and {x}", ["{a}", "{x}"]),
        ("{n, plural, one {a '{ b' c} other {l''{x}}} {y}", ["{n, plural, one {a '{ b' c} other {l''{x}}}", "{y}"]),
        ("{n, plural, one {l'{x}} other {d'{y}}} z", ["{n, plural, one {l'{x}} other {d'{y}}}"]),
        ("write '{' or '}', '{name}' or l'{x} d'un", ["'{'", "'}'", "{name}", "{x}"]),
        ("It # has", ["#"]),
        ("&brand-short.name; &x; R&D; &1x; & y;", ["&brand-short.name;", "&x;"]),
        ("$1 moved [[$2]] to ''$3'' ($4)", ["$1", "$2", "$3", "$4"]),
        ("$1 × $2 pixels, $1s, $3.", ["$1", "$2", "$1", "$3"]),
        ("$1$2: $1/$2, page$1", ["$1$2", "$1/$2", "$1"]),
        ("{{PLURAL:$1|page|pages}} of $1", ["{{PLURAL:$1|page|pages}}", "$1"]),
        ("$1,000 and $1 000 or $1.50", ["1,000", "1 000", "1.50"]),
        ("costs $5", ["$5"]),
    ],
)
def test_spans_in_texts(text, expected):
    if text.startswith("See"):
        expected = ["https://a.org/(x)", "https://a.org", "https://a.org/{id}/%s"]
    if text.startswith("You"):
        expected = [text[9:-1]]
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s {} {:>3} {!r} %d", [True] * 5),
        ("%1$s {0} {name} %(a)s %1 ${a}", [False] * 6),
        ("{x}/%s", [True]),
        ("`%s` {% if {} %}", [True, False]),
    ],
)
def test_only_placeholders_without_a_name_are_in_order(text, expected):
    assert [span.is_ordered for span in protected_spans(text)] == expected


def test_patterns_of_readers():
    assert found("ORD-17, [[Page name]] x", "ORD-*", "[[*]]") == ["ORD-17,", "[[Page name]]"]
    assert found("a.b {x}y", "{x}y", "a.b") == ["a.b", "{x}y"]
    assert found("<<a>> <<1\n>>", "<<*>>") == ["<<a>>"]
    assert found("(*) and ?", "(*)") == ["(*)"]
    assert found("aaaa", "") == []


@given(st.text("ab 1.,{}%<>/:@sx$_`\\#&;\n'*[]", max_size=40), st.lists(st.text("ab*{[", max_size=4), max_size=2))
def test_spans_are_in_order_and_within_the_text(text, patterns):
    spans = protected_spans(text, patterns)
    ends = [0, *(place for span in spans for place in (span.begin, span.end)), len(text)]
    assert ends == sorted(ends)
    assert all(span.begin < span.end for span in spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Loop%3A+Repeat", ["Loop%3A+Repeat"]),
        ("hello%20world is one", ["hello%20world"]),
        ("a %20s, %2d:%2d, %10d and 20%de", ["%20s", "%2d:%2d", "%10d"]),
        ("x=1, y=2 & z=3", []),
        ("Écran_d'accueil, Iphoria_IPhone_Hülle, So\u0308der_a", ["Écran_d", "Iphoria_IPhone_Hülle", "So\u0308der_a"]),
        ("我的user_name和a_b。", ["user_name", "a_b"]),
    ],
)
def test_what_is_encoded_or_named_stays_whole(text, expected):
    assert found(text) == expected
