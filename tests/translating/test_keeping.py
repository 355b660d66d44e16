"""Terms in translations of a model that writes random texts with random alignments."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.links import Link, word_spans
from glassformer.text.normalisation import normalise
from glassformer.text.settling import settled
from glassformer.text.terms import Terms, missing_terms, without_spans
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from glassformer.text.word_edges import is_apart
from glassformer.translating.keeping import TermKeeper
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from glassformer.translator import Translator
from translating.catalogues import CATALOGUES

EXAMPLES = [
    *(
        "https://a.org/b_(c)?d=1#e",
        "me@a.org",
        "%s",
        "%-5d",
        "%1$s",
        "%%",
        "%(n)d",
        "{}",
        "{0}",
        "{n!r:>10}",
        "{x + 1}",
    ),
    *("{n, number, percent}", "{n, plural, one {# a} other {# b}}", "$name", "${name}", "%PATH%", "%{name}", "%<n>.2f"),
    *(
        "#{a.b}",
        "$1",
        "%1",
        "%L2",
        "%n",
        "%1%",
        "%|1$s|",
        "{{ a.b }}",
        "{% if a %}",
        "@:a.b",
        '<x id="1"/>',
        "<b>",
        "&nbsp;",
    ),
    *(
        "%Y-%m-%d",
        ":smile:",
        "`git pull`",
        "__init__",
        "user_name",
        "C:\\a b\\c.d",
        "\\\\a\\b",
        "1,234.56",
        "1 000 000",
    ),
]
TERMS = Terms(glossary=Glossary.of({"cat": "matou", "big cat": "gros matou|fauve", "dog": "cabot|matou", "up": "up"}))
SOURCE = ["a", "the", "cat", "big", "cat", "dog", "up", "{x}", "{x}", "(100)", "%s", "1 000", ","]
TARGET = ["un", "le", "chat", "gros", "matou", "cabot", "up", "{x}", "100", "l'ami", "."]
LINES = [" ".join([*SOURCE, *TARGET])] * 3
SPACED = ["%d/%d", "{a}-{b}", "%s%d", "%dx%d", "%1%2", "{{ a. b }}"]
SEEDS = st.integers(0, 10**6)
TOKENIZER = train_tokenizers(LINES, LINES, TokenizerConfig(kind="words", vocab_size=100))[0]


class Model:
    """A model that writes the prefix and a random text, with random links; it places terms like the translator."""

    def __init__(self, seed, words):
        self.chance, self.words = Random(seed), words
        self.asked = []

    def begun(self, prefix):
        return TOKENIZER.decode(TOKENIZER.encode(prefix))

    def written(self, text, prefix):
        if not text.strip():
            return Translation(text="", status="blank")
        chance = self.chance
        target = " ".join([self.begun(prefix), *chance.choices(self.words, k=chance.randint(0, 6))]).strip()
        sides = word_spans(text), word_spans(target)
        pairs = {tuple(map(chance.choice, sides)) for _ in range(chance.randint(0, 9))} if all(sides) else ()
        links = tuple(Link(*pair) for pair in sorted(pairs))
        return Translation(text=target, tokens=(*TOKENIZER.split(target), "<eos>"), links=links)

    def __call__(self, asked):
        self.asked.append(asked)
        each = list(zip(asked.texts, asked.prefixes, strict=True))
        found = [self.written(*one) for one in each]
        found = [replace(one, alternatives=(self.written(*both),)) for one, both in zip(found, each, strict=True)]
        terms = {place: some for place, text in enumerate(asked.texts) if (some := asked.terms.of(text))}
        return TermKeeper(asked.within(), terms, TOKENIZER, self).kept(found)


class Plain(Model):
    """A model that writes the words of a text, in their order or in reverse order, but no span."""

    def __init__(self, step):
        super().__init__(0, [])
        self.step = step

    def written(self, text, prefix):
        if not text.strip():
            return Translation(text="", status="blank")
        target = " ".join(without_spans(text).split()[:: self.step])
        pairs = zip(word_spans(text)[:: self.step], word_spans(target), strict=False)
        links = () if Terms().of(text) else tuple(Link(*pair) for pair in pairs)
        return Translation(text=target, tokens=(*target.split(), "<eos>"), links=links)


PIECES = st.lists(
    st.builds(
        lambda around, span: around.replace("_", span),
        st.sampled_from(["_", "_", "(_)", "“_”", "_,", "_.", "_:", "=_", "(_", "_)", "#_"]),
        st.sampled_from([*EXAMPLES, *SPACED]),
    )
    | st.sampled_from(["cat", "the", "Total:", "(the", "end)", "dog,", "sees.", "l'ami", "été", "猫"]),
    min_size=1,
    max_size=8,
).map(" ".join)


@given(PIECES)
def test_words_in_their_order_give_the_text_itself(text):
    [one] = Plain(1)(request(text, terms=Terms()))
    assert one.text == text
    assert one.kept == ("placed" if Terms().of(text) else "")


@given(PIECES)
def test_words_in_another_order_leave_each_span_whole_once_and_in_order(text):
    [one] = Plain(-1)(request(text, terms=Terms()))
    terms, written = Terms().of(text), Terms().of(one.text)
    assert not missing_terms(terms, one.text)
    assert one.kept == ("placed" if terms else "")
    assert sorted(term.forms for term in written) == sorted(term.forms for term in terms)
    assert [one.forms for one in written if one.is_ordered] == [one.forms for one in terms if one.is_ordered]
    for term in written:
        assert is_apart(one.text, term.begin, term.end)


@pytest.mark.parametrize(("text", "stays"), CATALOGUES)
def test_strings_of_catalogues_keep_their_parts(text, stays):
    for line in text.splitlines():  # as the translator receives them
        assert [one.text for one in Plain(1)(request(line, terms=Terms()))] == [line]
    [backwards] = Plain(-1)(request(text, terms=Terms()))
    parts = [] if "plural" in stays or "select," in stays else stays.split("¦")
    assert all(backwards.text.count(part) >= parts.count(part) for part in parts)


@pytest.mark.parametrize("text", ["{name} joined", "Terms &amp; conditions", "您有%d条消息。", "set a_b to c_d"])
def test_spans_do_not_replace_a_text_whose_words_a_model_leaves_out(text):
    class Silent(Plain):
        def written(self, text, prefix):
            return Translation(text="", status="empty" if text.strip() else "blank")

    [one] = Silent(1)(request(text, terms=Terms()))
    assert (one.text, one.status, one.kept) == ("", "empty", "lost")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("%s has %d cats", "%d cats has %s", "%s cats has %d"),
        ("%1$s has %2$d cats", "%2$d cats has %1$s", "%2$d cats has %1$s"),
        ("{} of {:>3}", "{:>3} of {}", "{} of {:>3}"),
        ("run `git %s` in %d", "%d dans `git %s`", "`git %s` dans %d"),
        ("%d files at https://a.org/%s/x", "https://a.org/%s/x a %d", "%d a https://a.org/%s/x"),
        ('see <img alt="{}"> and {:>3}', '{:>3} et <img alt="{}">', '<img alt="{}"> et {:>3}'),
        ("%s: {n, plural, other {%d cats}}", "{n, plural, other {%d cats}} %s", "%s {n, plural, other {%d cats}}"),
        (
            "%s at https://a.org/%20d/%2f/%D0%BE",
            "https://a.org/%20d/%2f/%D0%BE: %s",
            "https://a.org/%20d/%2f/%D0%BE: %s",
        ),
        ("Total:%d", "Total: %d", "Total:%d"),
        ("Total: %d", "Total:%d", "Total: %d"),
        ("(`a` here)", "( `a` ici)", "(`a` ici)"),
        ("{a} {b}", "{a}{b}", "{a} {b}"),
        ("%dpx", "%d px", "%dpx"),
        ("the %s", "l'%s", "l'%s"),
    ],
)
def test_what_a_model_writes_itself_is_settled(source, target, expected):
    text, links = settled(source, Terms().of(source), target, [Link((0, 1), (0, len(target)))])
    assert text == expected
    assert links == [Link((0, 1), (0, len(expected)))]


@pytest.mark.parametrize(
    ("source", "target", "begun", "expected"),
    [
        ("%s has %d", "%d a %s", "%d", "%d a %s"),
        ("%s of %u has %d", "%d a %u %s", "%d", "%d a %s %u"),
        ("%s of %s has %d", "%s: %d %s", "%s", "%s: %s %d"),
        ("%s of %u has %d", "le %d a %u %s", "le", "le %s a %u %d"),
    ],
)
def test_no_placeholder_gets_lost_behind_a_prefix_that_has_one(source, target, begun, expected):
    terms = Terms().of(source)
    text, _ = settled(source, terms, target, [], len(begun))
    assert text == expected
    assert not missing_terms(terms, text)


def request(*texts, prefix="", terms=TERMS, links=True):
    search = Search(settings=DecodingConfig(beam_size=2), n_best=2)
    return Request(texts, [prefix] * len(texts), range(len(texts)), search, terms, links=links)


@pytest.mark.parametrize("address", ["https://a.org/x\u00ady", "https://a.org/e\u0301", "{e\u0301}"])
def test_a_span_that_the_model_writes_in_normal_form_is_placed_as_given(address):
    [one] = Model(1, ["le", normalise(address, "plain")])(request(f"the {address} cat"))
    assert one.kept == "placed"
    assert one.text.count(address) == 1


@given(st.lists(st.sampled_from(SOURCE), min_size=1, max_size=8), st.sampled_from(["", "un", "le {x}"]), SEEDS)
def test_every_term_arrives_whatever_the_model_writes_and_aligns(words, prefix, seed):
    text, model = " ".join(words), Model(seed, TARGET)
    [one] = model(request(text, prefix=prefix))
    terms, begun = TERMS.of(text), model.begun(prefix)
    for term in terms:
        assert any(form in one.text for form in term.forms)
    assert one.text.startswith(begun)
    wrong = missing_terms(terms, one.text)
    assert one.kept == ("lost" if wrong else one.kept if terms else "")
    for term in wrong:  # spans that the model wrote on its own, too often
        assert (term.kind, one.text.count(term.forms[0]) > text.count(term.forms[0])) == ("span", True)
    for other in one.alternatives:
        assert not missing_terms(terms, other.text)
    for link in (*one.links, *(link for other in one.alternatives for link in other.links)):
        assert link.source in word_spans(text)
    assert {link.target for link in one.links} <= {*word_spans(one.text)}


@given(st.lists(st.sampled_from(["cat", "{x}", "(100)", "%s", ","]), min_size=1, max_size=6), SEEDS)
def test_a_text_of_nothing_but_terms_is_copied(words, seed):
    text = " ".join(words)
    [one] = Model(seed, ["un"])(request(text))
    if TERMS.of(text):
        assert one.text == text.replace("cat", "matou")
        assert (one.kept, one.status, one.tokens) == ("placed", "ok", (*one.text.split(), "<eos>"))
        assert math.isnan(one.log_prob)
        assert [link.target for link in one.links] == word_spans(one.text)
        assert [link.source for link in one.links] == word_spans(text)


@given(SEEDS)
def test_spans_alone_go_behind_a_prefix(seed):
    [one] = Model(seed, ["un"])(request("{x} (100)", prefix="le {x}"))
    assert one.text.startswith("le {x}")
    assert one.text.count("{x}") == one.text.count("100") == 1
    assert one.kept == "placed"


@given(SEEDS)
def test_a_prefix_has_room_where_its_text_got_shorter(seed):
    model = Model(seed, ["un"])
    [*model(request("a {x} cat", prefix="un"))]
    lengths = [asked.search.settings.extra_length for asked in model.asked]
    assert lengths[0] == 50
    assert min(lengths[1:], default=51) > 50


@given(SEEDS)
def test_links_are_only_given_if_they_are_asked_for(seed):
    model = Model(seed, ["un"])
    [one, _] = model(request("a {x} cat", "{x}", links=False))
    assert not one.links
    assert not any(other.links for other in one.alternatives)


@pytest.mark.parametrize("span", ["https://example.org/a/b/c?d=e&f=100", "137", "{x.y.z}"])
def test_a_placed_span_changes_no_guard(span):
    """The guards compare what the model read, the text without the span, with what it wrote."""
    demo = Translator.load("demo")
    texts = ["The cat slept.", "The tired animal slept in the park.", "She read the book in the garden."]
    before = demo.translate(texts)
    after = demo.translate([f"{text} {span}" for text in texts])
    assert [one.kept for one in after] == ["placed"] * 3
    assert [one.reasons for one in after] == [one.reasons for one in before]
    [copied] = demo.translate([span])
    assert (copied.text, copied.status, copied.reasons) == (span, "ok", ())
