"""How the report tries other spellings of the validation sentences."""

import pytest

from glassformer.evaluation.items import Items
from glassformer.evaluation.variants import VARIANTS
from glassformer.jobs.variants import evaluate_variants
from glassformer.translator import Translator
from glassformer.watch.report.variants import FEWEST_LINES, MOST_LINES, tried

ITEMS = Items.of([("The cat slept.", "Le chat dormait."), ("The dog ran.", "Le chien courait.")] * 150, group=False)


@pytest.fixture(scope="module")
def translator():
    return Translator.load("demo")


@pytest.mark.slow
def test_the_results_are_those_of_evaluate(translator):
    found = tried(translator, ITEMS, training=0, a_line=30 / 1.5 / (len(VARIANTS) + 1) / 40.5)
    assert (found.lines, found.measure) == (40, "BLEU")
    assert [*found.results] == [*evaluate_variants(translator, ITEMS.first(40), "bleu", beam_size=1)]
    assert {one.name for one in found.results} == {*VARIANTS} - {
        "soft hyphens",
        "accents as signs of their own",
        "non-breaking hyphens",
    }


@pytest.mark.parametrize(
    ("training", "a_line", "lines"),
    [
        (10, 0.01, 4),  # a tenth of the training
        (10_000, 0.01, 133),  # half a minute
        (0, 0.01, 133),
        (10_000, 0.000_1, MOST_LINES),
    ],
)
def test_the_time_decides_how_many_lines_are_tried(translator, monkeypatch, training, a_line, lines):
    monkeypatch.setattr("glassformer.watch.report.variants.FEWEST_LINES", lines + 1)
    found = tried(translator, ITEMS, training=training, a_line=a_line)
    assert (found.lines, found.results) == (lines, ())
    assert FEWEST_LINES > 4


def test_no_variant_begins_after_the_time(translator, monkeypatch):
    monkeypatch.setattr("glassformer.watch.report.variants.MOST_TRIED_SECONDS", 0.01)
    found = tried(translator, ITEMS.first(20), training=0, a_line=1e-6)
    assert [one.name for one in found.results] == ["capitals"]
