"""Patterns that read a user's text take linear time; the other patterns never read foreign text."""

import ast
import html
import re
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.evaluation import signals
from glassformer.system import files
from glassformer.text import casing, glossary, links, messages, recasing, signs, spans, splitting, word_edges
from glassformer.text.glossary import Glossary
from glassformer.text.normalisation import normalise
from glassformer.text.terms import Terms, missing_terms
from glassformer.translating import framing
from glassformer.translating.documents.document import Document
from glassformer.translating.documents.sentences import DocumentSentences
from glassformer.translating.markup import html_pages, reading, scanning, xml_texts

SRC = Path(gf.__file__).parent
SIZE = 1000
BOUND = 8
"""Largest allowed ratio of times for a text four times as long; it is about 4 for a linear pattern, 16 for a quadratic.
"""
LEAST = 0.5e-3
"""Times below this number of seconds are noise."""

SPANS = [
    *("%", "%(", "%(a", "%0", "%1", "%1$", "%1%", "%A", "%|", "%{", "%<a", "%.", "%-", "%s/", "%n"),
    *(
        "{",
        "{{",
        "{%",
        "{a",
        "{a,plural,",
        "{a, select, b {",
        "{a, number ",
        "{a b",
        "{}",
        "{a}/",
        "'{",
        "'}",
        "'{ a",
        "'",
        "}",
        "{ ",
    ),
    *(
        "$",
        "$1",
        "$a",
        "${",
        "$(",
        "$t(",
        "#",
        "#{",
        "#a",
        "&",
        "&a",
        "&#",
        "&#x",
        "@:",
        "@.a:",
        "@",
        ":",
        ":a",
        ":a:b",
    ),
    *("http://", "http://a", "http://a.", "www.", "mailto:", "a@", "a@a.", "a.", "a-", "a://", "a-://", "://"),
    *("C:\\", "\\a", "\\\\a", "..\\", "a\\", "%a%\\", "C:\\a A", "C:\\a A ", "<a", "</", "<a ", "<a/", "`", "``"),
    *("_", "_a", "a_", "__", "0", "1.", "1 000", " 000", "1,", "1'", "⟦", "⟦0⟧", ".", ")", "a", "a ", " ", "(", "`a "),
]
"""Beginnings of the worst cases for spans."""
OF_SPANS = [lambda n, one=one: one * n for one in SPANS]
OF_SPANS += [lambda n, one=one, end=end: one + end * n for one in SPANS for end in "a0 .%{"]


def repeated(*texts: str) -> list:
    return [lambda n, one=one: one * n for one in texts]


REPORTED = [
    *("a.a-", "http://a(", "[](", "{a, plural, other {x}}", "{0,choice,", "%@a", "a_", ":a", "1.1,", "\t \n"),
    *("👩\u200d", "中。", "中", "Mr. ", "' \" ", 'a "b. ', "<0>a</0> ", "word%s", "&amp", "<!-- -", "\u3000"),
]
"""Texts that made other programs slow, according to reports of their users."""
EXAMPLES = [
    *(
        lambda n, one=one, end=end: one + end * n
        for one, end in [("%", "0"), ("http://a", "."), ("{{", "a"), ("$", "a")]
    ),
    *(lambda n, one=one: one * n for one in REPORTED),
    *(lambda n: "http://somesite.com" + "-" * n, lambda n: "a" + ".a" * n + "!", lambda n: "a+" * n + "@" + "b-" * n),
    *(lambda n: "(" * n + ")" * n, lambda n: "{" * n + "}" * n, lambda n: "." * n + "a", lambda n: "e" + "\u0301" * n),
    *(lambda n: "%@" + "a" * n, lambda n: " ".join(f"{{{number}}}" for number in range(n // 2))),
    *(lambda n: "a." * n + "@", lambda n: "a" + " " * n + "\n", lambda n: "a " * n + "\n", lambda n: "%s %d " * n),
]


def sentences(name: str, text: str) -> list[str]:
    """Return the sentences of a file with a text."""
    return DocumentSentences(Document.read(name, text.encode()), "en").wanted


GLOSSARY = Glossary.of({"Straße": "street", f"{'straße ' * 20}x": "y", "ß": "z"})

TAGS = [
    *repeated("<", "<a", "</", "</a", "<!--", "<!", "<?", "<a b=", '<a b="', "<a b='", "<a b=c ", "&", "&a", "&#"),
    *repeated("<p>a<b>", "<b>a</b>", "<a>a</a>", "<br>a", "<1", "<1 ", "<1>", "<a =", "<![CDATA[", "<sup>[1]</sup>"),
    *(
        lambda n, one=one, end=end: one + end * n
        for one in ("<a", "<1", "<a b", "<a b=")
        for end in ("b", " ", "=", "/")
    ),
]

USER = {
    "files._KEY": (
        lambda text: [*files._KEY.finditer(text)],
        repeated(
            *("a.", "a", "a ", ". ", "-", "#", "#\n", "'", '"', "''", '""', "'''", '"""', "'a'.", '"".', '"\\', '""""'),
            *("'''a''\\", '"""a""\\', '"""a\\"', "a=1\n", " ", "\\"),
        ),
    ),
    "casing._GREEK_ACCENTS": (casing._GREEK_ACCENTS.findall, repeated("\u0301", "α", "α\u0301", "a\u0301")),
    "glossary._UNIT": (glossary._UNIT.findall, repeated("a", " ", "a ", ".")),
    "html_pages._CHARSET": (html_pages._CHARSET.search, [*repeated("<meta ", "<meta charset", "<meta charset ")]),
    "html_pages._UNQUOTED": (html_pages._UNQUOTED.fullmatch, repeated("a", "/", "a/")),
    "links.re.compile": (
        links.word_spans,
        repeated("a", " ", "a ", "▁", "(", "(a", "猫", "(猫", "猫。", "ア", "เ", "เก", "ក្", "ー"),
    ),
    "messages._APOSTROPHES": (lambda text: messages.as_message(text, text), repeated("'", "'{", "''", "a'", "'a ")),
    "messages._BRANCH": (
        lambda text: messages.branches(f"{{n, plural, {text}}}"),
        [lambda n: "a" + " " * n, *repeated("a {}", "a", " ", "offset:1 ", "a{", "{a}")],
    ),
    "messages._HEADER": (messages.messages, repeated("{n, plural, ", "{n", "{ ", "{n,plural,other{")),
    "reading._WRITTEN": (reading._WRITTEN.findall, repeated("&", "&a", "&#", "&#1", "&#x", " ", "& ")),
    "scanning._ATTRIBUTE": (
        scanning._ATTRIBUTE.findall,
        [lambda n: " a" + " " * n, *repeated(" a", "a ", ' a="', " a='", "/a", " a=", '"', " a = ", "a", '"a')],
    ),
    "scanning._DOCTYPE": (
        lambda text: [*scanning.scanned(f"<!DOCTYPE {text}", scanning.XML)],
        repeated(
            "<!DOCTYPE[>", "<!DOCTYPE [", "<!DOCTYPE>", "[", "<", "'", '"', "<!--", "<!-", "-", "<?", "?", "]", "a"
        ),
    ),
    "scanning._HTML_TAG": (lambda text: [*scanning.scanned(text, scanning.HTML)], TAGS),
    "scanning._NUMBERED": (lambda text: [*scanning.scanned(text, scanning.HTML)], TAGS),
    "scanning._STRICT_TAG": (lambda text: [*scanning.scanned(text, scanning.PLAIN)], TAGS),
    "scanning._TAG_NAME_END": (scanning._TAG_NAME_END.match, repeated("<a", "<")),
    "scanning._XML_TAG": (lambda text: [*scanning.scanned(text, scanning.XML)], TAGS),
    "scanning.re.compile": (
        lambda text: [*scanning.scanned(f"<title>{text}", scanning.HTML)],
        repeated("</", "</title", "</title>", "<title>", "</title><title>"),
    ),
    "signals._NUMBER": (signals._NUMBER.findall, [lambda n: "1" + "." * n, *repeated("1.", "1..", "1", ".")]),
    "signals._WORD": (signals._WORD.findall, repeated("a", " ", "a ")),
    "spans._BEGIN": (spans._BEGIN.findall, OF_SPANS),
    "spans._BRACE": (spans._BRACE.findall, repeated("{", "'{", "'", "'{'", "''", "'{''", "'{a")),
    "spans._FILLED": (spans._FILLED.findall, repeated("%", "%s", "%d.", "{", "{}")),
    "spans._IN_ORDER": (spans._IN_ORDER.findall, repeated("{", "{}", "{:")),
    "spans._JOINT": (spans._JOINT.findall, repeated("/", "a", "/x")),
    "spans._PERHAPS": (spans._PERHAPS.search, repeated(":", "a", "w", "www")),
    "spans._PROSE": (spans._PROSE.search, [lambda n: "aa" + " " * n, *repeated("a", "aa ", "aa, ", "a1")]),
    "spans._TYPED": (spans._TYPED.match, [lambda n: "a" + " " * n, *repeated("a", " ", "a,")]),
    "spans.re.compile": (
        lambda text: spans.protected_spans(text, ["a*b*a*c", "{{*}}", "%*", "<*>*!"]),
        [*OF_SPANS, *repeated("a", "ab", "{{", "{{a", "%", "% ", "<", "<>")],
    ),
    "spans.re.split": (lambda text: spans._linear(text), repeated("*", "a*", "a")),
    "framing._LIST_MARK": (framing._LIST_MARK.match, repeated(" ", "1", "(", "-", "- ")),
    "splitting._MAY_END": (splitting._MAY_END.search, [lambda n: "." + "'" * n, *repeated(".", ".'", "'", ".)")]),
    "normalisation.re.compile": (
        lambda text: normalise(text, "plain"),
        repeated("\u200b", "a\u200b", "\u200bก", "e\u0301", "\u0301", "\u00ad", "\u0301\u0323", "ก\u200b"),
    ),
    "signs._EXTENDING": (
        lambda text: [*signs._clusters(text)],
        repeated("👍\U0001f3fb", "\U0001f3fb", "\u0301", "\u200d"),
    ),
    "recasing._ACCENTS": (lambda text: recasing.lowered(text, "el"), repeated("α\u0301", "\u0301", "a\u0301")),
    "recasing._ODD": (recasing._ODD.search, repeated("a", "\u00ad")),
    "recasing._NO_CASE": (recasing._NO_CASE.search, repeated("a", "ა")),
    "recasing._QUOTED": (recasing._QUOTED.search, repeated('!"', '!" ', " ", '"')),
    "recasing._TONOS": (lambda text: recasing.in_capitals(text, "el"), repeated("α\u0301", "\u0301", "ά")),
    "recasing._WORD": (
        lambda text: recasing.case_of(text, recasing.Spellings(["Cat"]).usual),
        repeated("a", "A ", "Cat ", "cat ", "a\u0301", "A", "5 ", "\u0301"),
    ),
    "splitting._CLAUSE_END": (splitting.clause_spans, [lambda n: "," + " " * n, *repeated(", ", " ", "，", "， ")]),
    "word_edges._HANGUL": (word_edges._HANGUL.findall, repeated("한", "a")),
    "word_edges._UNSPACED": (word_edges._UNSPACED.findall, repeated("中", "a")),
    "others: a .txt file": (lambda text: sentences("a.txt", text), EXAMPLES),
    "others: a .html file": (lambda text: sentences("a.html", "<p>" + text), EXAMPLES),
    "others: the terms of a glossary": (
        lambda text: [*GLOSSARY.terms(text)],
        repeated("ß", "e\u0301", "\u0301", "α\u0301", "ß ", "İ", "straße ", "straße straße a ", "ss", "中"),
    ),
    "others: terms": (lambda text: missing_terms(Terms().of(text), text), EXAMPLES),
    "others: the units of a page": (html_pages.html_units, TAGS),
    "others: the units of an XML text": (xml_texts.xml_units, TAGS),
    "others: html.unescape": (html.unescape, repeated("&", "&a", "&#", "&#1", "&#x", "&amp")),
    "others: sentencex": (
        lambda text: list(splitting.sentence_spans(20 * text, "en")),
        repeated("“", "' ", "a. ", " ", ".", "a", "(", "a ", '"', ". ", "?"),
    ),
    "others: textwrap": (
        lambda text: textwrap.wrap(text, 40, break_long_words=False, break_on_hyphens=False),
        repeated("a", " ", "a ", "-", "a-", "--"),
    ),
}
"""The patterns and other people's programs that read a user's text: their use of the text, and their worst cases."""

OWN = {
    *("bulk._NAME", "bulk.re.sub", "checking.re.search", "comparison.re.sub", "configuration._LANGUAGE"),
    *(
        "description.re.findall",
        "marked.re.finditer",
        "examples.re.fullmatch",
        "explore._PORT",
        "fast_tokenizer.CODE",
    ),
    *("fit._WORD", "fit._WITHOUT_SPACES", "function_words._WORD"),
    *("figure.re.sub", "files._SETTING", "parts.re.fullmatch"),
    *("picture.re.findall", "picture.re.search", "picture.re.sub", "state_dicts.re.match", "subwords._SIZES"),
    *("verification._PROGRAM_NEEDS", "weights.re.match", "weights.re.search", "bundle.re.search"),
    *("weight_files._CLASS", "weight_files._PART", "variants._LONG_WORD"),
}
"""Patterns that never read a user's text, or that read each character once (a line end, a run of one class)."""


def seconds(call, text: str) -> float:
    begin = time.process_time()
    call(text)
    return time.process_time() - begin


@pytest.mark.slow
@pytest.mark.parametrize("name", USER)
def test_time_grows_with_the_text(name):
    call, worst = USER[name]
    for text in worst:
        small, large = text(SIZE), text(4 * SIZE)
        ratios = []
        # CPU time, the best of up to five; most patterns are quick enough at once. The two times of a ratio are
        # measured one after the other, because a core is twice as fast while the other thread on it is idle.
        for _ in range(5):
            many = seconds(call, large)
            few = seconds(call, small) if many > BOUND * LEAST else 0
            ratios.append(many / max(few, LEAST))
            if ratios[-1] <= BOUND:
                break
        assert min(ratios) <= BOUND, (name, small[:20], ratios)


def uses(file: Path) -> Iterator[str]:
    """Yield the name of each use of `re` in a file: its module's, and the constant's or the function's."""
    constants: dict[ast.AST, str] = {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper():
            constants[node.value] = ast.unparse(node.targets[0])
        if isinstance(node, ast.Call) and re.fullmatch(r"(re|regex)\.(?!escape)[a-z]+", name := ast.unparse(node.func)):
            yield f"{file.stem}.{constants.get(node, name)}"


def test_every_pattern_is_listed():
    found = {name for file in SRC.rglob("*.py") for name in uses(file)}
    assert found == {name for name in USER if not name.startswith("others: ")} | OWN
