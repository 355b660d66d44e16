"""The pictures of a report."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model.alignment import Alignment
from glassformer.recipes.configuration import DecodingConfig
from glassformer.translating.translation import Explanation, Translation
from glassformer.watch.pictures import curves
from glassformer.watch.report import charts
from glassformer.watch.report.history import History
from profiles import scaled


@pytest.mark.slow
def test_each_curve_of_a_log_is_drawn_once(log):
    history = History.of(log(100, waited=0.1, padding=0.1))
    assert [chart.title for chart in charts.training_curves(history)] == ["Loss per target token", "Greedy BLEU"]
    health = ["Learning rate", "Gradient norm", "Speed", "Waiting for data", "Padding"]
    assert [chart.title for chart in charts.health_curves(history)] == health


@pytest.mark.slow
def test_curves_have_a_description(log):
    loss, metric, *_ = charts.training_curves(History.of(log(100)))
    assert "training loss from 1.8 at step 5 to 0.09 at step 100" in loss.picture.alt
    assert "the kept weights have 0.050, at step 100" in loss.picture.alt
    assert "kept: 50.0" in metric.picture.svg


@pytest.mark.slow
def test_curves_missing_in_the_log_are_not_drawn(log):
    assert [chart.title for chart in charts.training_curves(History.of(log(15)))] == ["Loss per target token"]
    assert [chart.title for chart in charts.health_curves(History.of(log(15)))] == [
        "Learning rate",
        "Gradient norm",
        "Speed",
    ]
    assert [*charts.training_curves(History.of([])), *charts.health_curves(History.of([]))] == []


@pytest.mark.slow
def test_the_floor_of_the_training_loss_is_the_loss_of_the_best_possible_model(log):
    """If the logits equal the smoothed target, the loss equals the floor that the chart shows."""
    smoothing, vocabulary = 0.1, 50
    target = torch.full((vocabulary,), smoothing / vocabulary, dtype=torch.float64)
    target[7] += 1 - smoothing
    loss = torch.nn.functional.cross_entropy(target.log()[None], torch.tensor([7]), label_smoothing=smoothing)
    chart, *_ = charts.training_curves(History.of(log(100)), smoothing, vocabulary)
    assert f"the training loss cannot fall below {loss:.3f}" in chart.picture.alt
    assert f"lowest possible in training: {loss:.3f}" in chart.picture.svg
    plain, *_ = charts.training_curves(History.of(log(100)))
    assert "lowest possible" not in plain.picture.svg


@pytest.mark.parametrize(("losses", "log"), [((9.0, 3.0, 1.0), True), ((2.0, 1.5, 1.0), False), ((9.0, 0.0), False)])
def test_the_loss_has_a_logarithmic_axis_if_it_falls_far(losses, log, monkeypatch):
    drawn = {}
    monkeypatch.setattr(charts, "curves", lambda *one, **how: drawn.update(how) or curves(*one, **how))
    list(charts.training_curves(History.of([{"type": "step", "step": s, "loss": v} for s, v in enumerate(losses)])))
    assert drawn["log"] is log


@pytest.mark.parametrize(
    ("alignment", "words"),
    [
        (Alignment(layer=1, heads=(2,), agreement=0.9, pairs=50), "decoder layer 1, head 2 (both counted from 0)"),
        (Alignment(layer=0, heads=(0, 3), agreement=0.9, pairs=50), "for 90 % of the words in 50 validation pairs"),
        (
            Alignment(layer=0, heads=(0, 3), shift=1, pairs=50),
            "the mean of heads 0, 3 (both counted from 0), at the step",
        ),
        (Alignment(layer=1, heads=(0, 1)), "have not been compared"),
    ],
)
def test_the_page_names_the_heads_whose_attention_it_shows(alignment, words):
    assert words in charts.shown_heads(alignment)


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
