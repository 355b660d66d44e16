"""The kinds of words and the page of `benchmarks.errors`."""

import pytest
from benchmarks.results import read

from benchmarks import errors
from glassformer.corpus.analogy import Lexicon
from glassformer.evaluation.items import Items
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers

PAIRS = [("book", "B U K"), ("shelf", "SH E L F"), ("readers", "R I D ER Z"), ("cat", "K A T")]
PAIRS += [
    (f"{word}{end}", f"X {after}")
    for word in ("aaaa", "bbbb", "cccc", "dddd", "eeee")
    for end, after in (("o", "O"), ("i", "I"))
]
CONFIG = TokenizerConfig(kind="words", vocab_size=50)
TOKENIZER = train_tokenizers([], [target for _, target in PAIRS], CONFIG)[0]
LEXICON = Lexicon(PAIRS, TOKENIZER)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("books", "extends a known word"),
        ("reader", "within a known word"),
        ("catshelf", "compound"),
        ("zyx", "no analogy"),
        ("ca", "no analogy"),
    ],
)
def test_the_kind_of_a_word_is_what_the_lexicon_knows(word, kind):
    assert errors.kind_of(word, LEXICON, errors.beginnings(LEXICON)) == kind


def test_an_exchanged_ending_is_another_analogy():
    more = Lexicon([*PAIRS, ("fffo", "X O"), ("ffffo", "F O")], TOKENIZER)
    assert errors.kind_of("ffffi", more, errors.beginnings(more)) == "other analogy"


def test_a_word_is_wrong_if_no_output_among_the_first_is_right():
    items = Items.of([("a", "A"), ("a", "AA"), ("b", "B")], group=True)
    outputs = [["X", "AA"], ["X", "Y"]]
    assert errors.all_wrong(outputs, items) == [True, True]
    assert errors.all_wrong(outputs, items, 2) == [False, True]
    assert errors.wrong_share([True, False]) == 50.0
    found = errors.groups(["one", "one", "two"], ["one", "two", "three"], {"run": [True, False, True]})
    assert found == {
        "one": {"share": pytest.approx(200 / 3), "run": 50.0},
        "two": {"share": pytest.approx(100 / 3), "run": 100.0},
    }


def test_the_committed_figures_are_on_the_page():
    figures = read("errors")
    text = errors.markdown(figures)
    for one in figures["gains"].values():
        assert f"{one['wrong']:.2f} %" in text
    assert sum(row["share"] for row in figures["kinds"].values()) == pytest.approx(100)
    assert sum(row["share"] for row in figures["confidence"].values()) == pytest.approx(100)
