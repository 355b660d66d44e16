"""Lines with several sentences: each is translated by itself, and the line has all that its sentences have."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.engine import Search
from glassformer.decoding.hypothesis import penalty_of
from glassformer.evaluation.guards import Confidence
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.links import Link, word_spans
from glassformer.text.terms import Terms
from glassformer.translating.joining import joining
from glassformer.translating.request import Request
from glassformer.translating.rewriting import rewriting, rewritten_texts
from glassformer.translating.translation import Translation
from models import random_translator

SENTENCES = st.lists(
    st.sampled_from(
        ["The cat sleeps.", "Who is Dr. Smith?", "See https://a.org/b.c now!", "It costs 1.5 euros.", "Go!"]
    ),
    min_size=2,
    max_size=5,
)
GAPS = st.lists(st.sampled_from([" ", "  ", "\t", "\u00a0"]), min_size=4, max_size=4)


def asked(*texts, glossary=None, links=False, sample=False, prefix=""):
    search = Search(settings=DecodingConfig(length_penalty=0.7), sample=sample)
    terms = Terms(glossary=Glossary.of(glossary) if glossary else None)
    return Request(texts, [prefix] * len(texts), range(len(texts)), search, terms, links=links)


def capitals(request):
    """Translate each text into capitals; it has an alternative if it has an "a"."""
    for text in request.texts:
        links = tuple(Link(one, one) for one in word_spans(text))
        one = Translation(
            text=text.upper(), log_prob=-1.5, tokens=("x", "<eos>"), token_log_probs=(-1.0, -0.5), links=links
        )
        yield replace(one, alternatives=(replace(one, text=text.lower(), log_prob=-3.0),) if "a" in text else ())


def joined(request, language="en", below=capitals):
    found = rewritten_texts(joining(language), request)
    return [*rewriting(found, request, below)], found


@given(SENTENCES, GAPS)
def test_a_line_has_the_translations_of_its_sentences_and_its_own_white_space(sentences, gaps):
    line = "".join(a + b for a, b in zip(sentences, [*gaps, ""], strict=False)).strip()
    [one], found = joined(asked(line, links=True))
    assert one.text == line.upper()
    for place in found:
        assert [*found[place].parts] == [text for text in sentences if text]
        assert one.links == tuple(Link(word, word) for word in word_spans(line))
        assert one.tokens == ("x", "<eos>") * len(sentences)
        assert one.log_prob == pytest.approx(sum(one.token_log_probs)) == -1.5 * len(sentences)
        assert one.score == one.log_prob / penalty_of(len(one.tokens), asked().search.settings)


@pytest.mark.parametrize(
    ("line", "language", "parts"),
    [
        ("The cat sleeps. The dog eats.", "", ["The cat sleeps.", "The dog eats."]),
        ("他睡觉。她吃饭。", "zh", ["他睡觉。", "她吃饭。"]),
        ("1. The cat sleeps. 2. The dog eats.", "en", None),
        ("The cat sleeps.", "en", []),
        ("Dr. Smith sleeps.", "en", []),
        ("See a.b. and {x. Y}.", "en", []),
        ("", "en", []),
        ("... ! ?", "en", []),
        ("half \ud800. A pair.", "en", []),
    ],
)
def test_a_line_is_divided_where_its_language_ends_a_sentence(line, language, parts):
    found = rewritten_texts(joining(language), asked(line))
    if parts is None:
        assert all(any(map(str.isalpha, part)) for part in found[0].parts)
    else:
        assert [part for one in found.values() for part in one.parts] == parts


def test_sentences_of_a_script_without_spaces_get_a_space_in_other_scripts():
    def english(request):
        return (Translation(text="He sleeps.") for _ in request.texts)

    [one], _ = joined(asked("他睡觉。她吃饭。"), "zh", english)
    assert one.text == "He sleeps. He sleeps."


def test_a_term_across_the_end_of_a_sentence_keeps_the_line_whole():
    line = "Is it true? The answer is no."
    assert joined(asked(line))[1]
    assert not joined(asked(line, glossary={"true? The answer": "X"}))[1]


def test_a_line_with_a_prefix_and_a_sampled_line_stay_whole():
    line = "The cat sleeps. The dog eats."
    assert not joined(asked(line, prefix="le"))[1]
    assert not joined(asked(line, sample=True))[1]


def test_alternatives_join_the_alternatives_of_the_same_rank():
    [one], _ = joined(asked("A cat. Go on."))
    assert [other.text for other in one.alternatives] == ["a cat. GO ON."]
    assert one.alternatives[0].log_prob == -4.5


def test_a_line_is_judged_by_its_worst_sentence():
    def judged(request):
        yield Translation(text="a", kept="output", confidence=Confidence(exact=0.9, close=None))
        yield Translation(text="b", status="suspicious", reasons=("loop", "copy"), kept="lost", retry="beam")
        yield Translation(text="c", status="suspicious", reasons=("copy",), confidence=Confidence(exact=0.4, close=0.7))

    [one], _ = joined(asked("A cat sleeps. A dog eats. It goes."), below=judged)
    assert (one.text, one.status, one.reasons, one.kept, one.retry) == (
        "a b c",
        "suspicious",
        ("loop", "copy"),
        "lost",
        "beam",
    )
    assert one.confidence == Confidence(exact=0.4, close=0.7)


@pytest.mark.parametrize("status", ["too_long", "empty", "undecodable"])
def test_a_line_with_an_untranslated_sentence_is_not_translated(status):
    def missing(request):
        yield Translation(text="a")
        yield Translation(text="", status=status)

    [one], _ = joined(asked("A cat sleeps. A dog eats."), below=missing)
    assert (one.text, one.status) == ("", status)


def test_a_translator_joins_what_it_says_of_each_sentence(tmp_path):
    translator = random_translator(tmp_path)
    parts = ["the cat sees.", "a big dog.", "the dog sleeps."]
    lines = [" ".join(parts), parts[0], f"{parts[2]}  {parts[1]}"]
    whole, alone = translator.translate(lines, n_best=2, links=True), translator.translate(parts, n_best=2)
    assert whole[0].text == " ".join(one.text for one in alone)
    assert whole[0].log_prob == pytest.approx(math.fsum(one.log_prob for one in alone))
    assert whole[1].text == alone[0].text
    assert whole[2].text == f"{alone[2].text}  {alone[1].text}"
    assert [one.text for one in translator.stream(lines)] == [one.text for one in whole]
    assert translator.translate(lines, split=False)[1].text == whole[1].text
    assert translator.translate(lines, split=False)[0].text != whole[0].text
