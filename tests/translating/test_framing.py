"""Marks around a line stay where they are, and the model reads the line without them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link, word_spans
from glassformer.text.terms import Terms
from glassformer.translating.framing import within_marks
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from models import random_translator


def asked(*texts, split=True, links=True):
    search = Search(settings=DecodingConfig(split=split))
    return Request(texts, [""] * len(texts), range(len(texts)), search, Terms(), links=links)


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("- The cat sleeps.", "The cat sleeps."),
        ("• the cat", "the cat"),
        ("1. The cat.", "The cat."),
        (" 12)  The cat. ", "The cat."),
        ("(a) The cat.", "The cat."),
        ("b) The cat.", "The cat."),
        ('"The cat sleeps."', "The cat sleeps."),
        ("„Die Katze schläft.“", "Die Katze schläft."),
        ("- «Le chat dort.»", "Le chat dort."),
        ("「猫が寝る。」", "猫が寝る。"),
        ("'The dog.'", "The dog."),
    ],
)
def test_marks_are_set_aside(line, inner):
    assert within_marks(line, asked(line)).parts == [inner]


@pytest.mark.parametrize(
    "line",
    [
        "The cat sleeps.",
        "A. Smith sleeps.",
        "-5 degrees",
        "1.5 cats",
        "2024. ",
        "1. ",
        "- 5",
        '"The cat" and "the dog"',
        '"The cat',
        "the dogs'",
        '""',
        " the cat ",
        "",
        "- \ud800 cat",
    ],
)
def test_other_lines_stay_whole(line):
    assert within_marks(line, asked(line)) is None


def test_without_the_setting_each_line_stays_whole():
    assert within_marks("- The cat.", asked("", split=False)) is None


@given(
    st.sampled_from(["", "- ", "1. ", "(b)  ", " • "]),
    st.sampled_from(["", '"', "“”", "„“", "«»"]),
    st.lists(st.sampled_from(["cat", "dog,", "sees", "3.5", "l'eau"]), min_size=1, max_size=5),
)
def test_links_count_in_the_whole_line(mark, quotes, words):
    inner = " ".join(words)
    line = f"{mark}{quotes[:1]}{inner}{quotes[-1:]}"
    found = within_marks(line, asked(line))
    target = " ".join(reversed(words)).upper()
    pairs = zip(reversed(word_spans(inner)), word_spans(target), strict=True)
    one = Translation(text=target, links=tuple(Link(*pair) for pair in pairs))
    if found:
        [part] = found.parts
        assert part == inner
        whole = found.restored([replace(one, alternatives=(one,))], asked(line))
        assert whole.text == line.replace(inner, target)
        assert whole.alternatives[0].links == whole.links
        sources, targets = word_spans(line), word_spans(whole.text)
        assert {link.target for link in whole.links} == {*targets}
        for link in whole.links:
            letters = [text.strip('-•"“”„«»') for text in (line[slice(*link.source)], whole.text[slice(*link.target)])]
            assert letters[0].upper() == letters[1].upper()
            assert link.source in sources
    else:
        assert not any(map(str.isalpha, inner)) or not (mark or quotes)


def test_a_translator_writes_the_marks_of_the_line(tmp_path):
    translator = random_translator(tmp_path)
    lines = [
        "the cat sees.",
        "- the cat sees.",
        '"the cat sees."',
        "1. the cat sees. 2. a dog sleeps.",
        "a dog sleeps.",
    ]
    plain, dash, quoted, both, second = (one.text for one in translator.translate(lines))
    assert (dash, quoted, both) == (f"- {plain}", f'"{plain}"', f"1. {plain} 2. {second}")
    assert translator.translate(lines[2:3], split=False)[0].text != quoted
