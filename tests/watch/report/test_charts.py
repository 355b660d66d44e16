"""The pictures of a report."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.recipes.configuration import DecodingConfig
from glassformer.translating.translation import Explanation, Translation
from glassformer.watch.report import charts
from glassformer.watch.report.history import History
from profiles import scaled


@pytest.mark.slow
def test_each_curve_of_a_log_is_drawn_once(log):
    titles = [chart.title for chart in charts.training_curves(History.of(log(100, waited=0.1, padding=0.1)))]
    assert titles == [
        "Loss per target token",
        "BLEU",
        "Learning rate",
        "Gradient norm",
        "Speed",
        "Waiting for data",
        "Padding",
    ]


@pytest.mark.slow
def test_curves_have_a_description(log):
    loss, metric, *_ = charts.training_curves(History.of(log(100)))
    assert "training loss from 1.1 at step 5 to 0.0949 at step 100" in loss.picture.alt
    assert "the kept weights have 0.050, at step 100" in loss.picture.alt
    assert "kept: 50.0" in metric.picture.svg


@pytest.mark.slow
def test_curves_missing_in_the_log_are_not_drawn(log):
    titles = [chart.title for chart in charts.training_curves(History.of(log(15)))]
    assert titles == ["Loss per target token", "Learning rate", "Gradient norm", "Speed"]
    assert list(charts.training_curves(History.of([]))) == []


@pytest.mark.slow
def test_a_long_log_makes_an_equally_small_picture(log):
    sizes = [len(next(charts.training_curves(History.of(log(steps, every=1)))).picture.svg) for steps in (1500, 6000)]
    assert sizes[1] < 1.5 * sizes[0]


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60))
def test_each_sentence_is_in_one_range_of_lengths(sizes):
    ranges = list(charts.length_ranges(np.array(sizes)))
    assert np.all(sum(rows.astype(int) for *_, rows in ranges) == 1)
    for low, high, rows in ranges:
        assert rows.any()
        assert all(low <= size <= high for size in np.array(sizes)[rows])


@pytest.mark.slow
@scaled(20)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=50))
def test_every_length_is_in_the_histogram(sizes):
    chart = charts.length_chart((np.array(sizes), np.array(sizes[::-1])), "pairs")
    assert f"at most {max(sizes)}." in chart.picture.alt


def test_attention_describes_where_each_word_looks():
    explanation = Explanation(
        text="a b",
        translation=Translation(text="c d", tokens=("c", "d", "<eos>")),
        settings=DecodingConfig(),
        source=("a", "b", "<eos>"),
        attention=((0.8, 0.1, 0.1), (0.0, 0.9, 0.1), (0.0, 0.0, 1.0)),
        attention_layer="decoder.layers.1.cross_attention",
    )
    colours, lines = charts.attention_charts(explanation)
    told = "Attention of decoder layer 1, cross-attention: c looks at a, d looks at b, <eos> looks at <eos>"
    assert colours.picture.alt == lines.picture.alt == told


@pytest.mark.slow
def test_an_endless_output_is_truncated():
    explanation = Explanation(
        text="a",
        translation=Translation(text="c", tokens=("c",) * 51),
        settings=DecodingConfig(),
        source=("a", "<eos>"),
        attention=((0.5, 0.5),) * 51,
        attention_layer="decoder.layers.1.cross_attention",
    )
    assert all("The first 30 of 51 tokens" in chart.caption for chart in charts.attention_charts(explanation))
