"""Lines in capitals are read as usual lines, and get translations in capitals."""

from dataclasses import replace

import pytest

from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.habits import Habits
from glassformer.text.links import Link, word_spans
from glassformer.text.terms import Terms
from glassformer.translating.recasing import RecasedText, recasing
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from glassformer.translator import Translator
from models import random_translator


def asked(text, *, glossary=None, links=True, **settings):
    search = Search(settings=DecodingConfig(**settings))
    terms = Terms(glossary=Glossary.of(glossary) if glossary else None)
    return Request([text], [""], [0], search, terms, links=links)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    source, target = "The cat sees a big black dog and sleeps . in London", "Le chat voit un grand chien noir et dort ."
    return random_translator(tmp_path_factory.mktemp("runs"), source, target)


LINES = ["The cat sees a dog .", "THE CAT SEES A DOG .", "the cat sees a dog .", "The Cat Sees A Dog ."]


def test_each_case_is_read_as_the_usual_line(translator):
    plain, capitals, lower, title = (one.text for one in translator.translate(LINES))
    assert capitals == plain.upper()
    assert lower == title == plain
    raw = translator.translate(LINES, recase=False)
    assert raw[0].text == plain
    assert raw[1].text != capitals


def test_without_a_table_the_tokenizer_knows_the_usual_spelling(translator):
    way = recasing(translator.bundle, Habits())
    assert way("A CAT IN LONDON", asked("")).usual == "A cat in London"


def test_a_table_is_read_when_the_first_unusual_line_comes(translator, tmp_path):
    file = tmp_path / "spellings.txt"
    way = recasing(replace(translator.bundle, spellings=file), Habits())
    assert way("A cat in London", asked("")) is None
    file.write_text("LoNdon\nCat\n")
    assert way("A CAT IN LONDON", asked("")).usual == "A Cat in LoNdon"
    replace(translator.bundle, folder=tmp_path / "copy", spellings=file).save(translator.model)
    assert (tmp_path / "copy" / "spellings.txt").read_bytes() == file.read_bytes()
    assert Translator.load(tmp_path / "copy").bundle.spellings == tmp_path / "copy" / "spellings.txt"


@pytest.mark.parametrize(
    ("habits", "recased"),
    [
        (Habits(), {"capitals", "lower", "title"}),
        (Habits(capitals=0.02), {"lower", "title"}),
        (Habits(with_capital=0.5), {"capitals", "title"}),
        (Habits(lower=0.02, title=0.02), {"capitals"}),
    ],
)
def test_lines_that_were_usual_in_the_training_stay(translator, habits, recased):
    way, cases = recasing(translator.bundle, habits), ("capitals", "lower", "title")
    assert {case for case, line in zip(cases, LINES[1:], strict=True) if way(line, asked(line))} == recased


def test_a_line_begins_with_a_capital_if_the_training_lines_do(translator):
    way = recasing(translator.bundle, Habits(first_capital=0.2))
    assert way("THE CAT SEES A DOG", asked("")).usual in ("the cat sees a dog", "The cat sees a dog")


def test_spans_and_terms_keep_their_letters_and_links_count_in_the_given_text():
    text, usual = "DIE STRASSE {x} IM HAUS", "Die Straße {x} im Haus"
    request = asked(text, glossary={"Haus": "Home"})
    one = RecasedText(text, usual, "de", to_capitals=True)
    target = "straße {x} the Home"
    pairs = {0: 0, 1: 0, 2: 1, 3: 2, 4: 3}
    links = [Link(word_spans(usual)[a], word_spans(target)[b]) for a, b in pairs.items()]
    found = one.restored([Translation(text=target, links=tuple(links))], request)
    assert found.text == "STRASSE {x} THE Home"
    words = [(text[slice(*link.source)], found.text[slice(*link.target)]) for link in found.links]
    assert words == [("DIE", "STRASSE"), ("STRASSE", "STRASSE"), ("{x}", "{x}"), ("IM", "THE"), ("HAUS", "Home")]


@pytest.mark.parametrize(
    ("source", "given", "read"),
    [
        ("the cat sleeps", "The Cat SLEEPS {X} in 5", "the cat sleeps {X} in 5"),
        ("THE CAT SLEEPS", "The cat", "THE CAT"),
        ("The cat sleeps", "The dog", None),
        ("1 2 3", "The dog", None),
    ],
)
def test_a_vocabulary_of_one_case_reads_each_line_in_this_case(tmp_path, source, given, read):
    way = recasing(random_translator(tmp_path, source=source).bundle, Habits())
    found = way(given, asked(given))
    assert (found and found.usual) == read
    if found:
        assert not found.to_capitals


def test_sampled_lines_stay(translator):
    request = asked(LINES[1])
    assert (
        recasing(translator.bundle, Habits())(LINES[1], request._replace(search=replace(request.search, sample=True)))
        is None
    )
