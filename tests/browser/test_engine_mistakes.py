"""The classic mistakes: the page makes each as PyTorch does, and it shows first where it is known to."""

from itertools import combinations
from typing import Any

import pytest
import torch

from browser.engine import PageEngine, halved, payload_of, python_trace
from glassformer.inspection.mistakes import MISTAKES, pad_to_one_length, plant

SOURCE, TARGET = [4, 9, 5, 17, 3, 2], [1, 7, 20, 5, 11]
PADDING = "target_padding_mask"

each_mistake = pytest.mark.parametrize("mistake", MISTAKES)
NORMS = ("post", "pre")


def assert_equal_points(got: dict[str, Any], expected: dict[str, Any], what: object) -> None:
    assert set(got) == set(expected), what
    differences = {name: (got[name] - expected[name]).abs().max().item() for name in got}
    assert not {name: one for name, one in differences.items() if not one <= 1e-4}, what


def padded(source: list[int], target: list[int]) -> list[list[int]]:
    both = pad_to_one_length(torch.tensor([source]), torch.tensor([target]), 0)
    return [ids[0].tolist() for ids in both]


@each_mistake
def test_each_mistake_is_pytorchs_at_every_point(page, make_model, mistake):
    for norm in NORMS:
        model = halved(make_model, norm=norm)
        engine = PageEngine(page, payload_of(model))
        for source, target in ((SOURCE, TARGET), ([4, 2], TARGET), ([4, 0, 5, 2, 0], [1, 0, 4])):
            with plant(model, mistake):
                expected = python_trace(model, source, target)
            assert_equal_points(engine.trace(source, target, mistakes=[mistake]), expected, norm)


@each_mistake
def test_each_mistake_shows_first_where_it_is_known_to(page, make_model, mistake):
    sentence = padded(SOURCE, TARGET) if mistake == PADDING else [SOURCE, TARGET]
    for norm in NORMS:
        model = halved(make_model, norm=norm)
        first = PageEngine(page, payload_of(model)).first_difference(*sentence, mistakes=[mistake])
        assert first == MISTAKES[mistake].first(model.config)


@pytest.mark.slow
def test_two_mistakes_at_once_are_pytorchs(page, make_model):
    for norm in NORMS:
        model = halved(make_model, norm=norm, positions="halves", encoder_layers=1, decoder_layers=1)
        engine = PageEngine(page, payload_of(model))
        for both in combinations(MISTAKES, 2):
            with plant(model, *both):
                expected = python_trace(model, SOURCE, TARGET)
            assert_equal_points(engine.trace(SOURCE, TARGET, mistakes=list(both)), expected, (norm, both))


def test_where_no_mistake_can_be_seen_none_is(page, make_model):
    model = halved(make_model, positions="learned", heads=1, d_k=11)
    engine = PageEngine(page, payload_of(model))
    unseen = [one for one in MISTAKES.values() if one.first(model.config) is None]
    assert [one.id for one in unseen] == ["scale_d_model", "doubled_exponent", "no_transpose"]
    assert [engine.first_difference(SOURCE, TARGET, mistakes=[one.id]) for one in unseen] == [None] * 3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "positions": "halves"},
        {"heads": 1, "d_k": 11, "positions": "learned"},
        {"d_model": 1, "d_k": 1, "norm": "pre"},
        {"d_k": 1, "positions": "none"},
    ],
)
def test_the_page_and_python_know_the_same_mistakes(page, make_model, settings):
    model = halved(make_model, **settings)
    PageEngine(page, payload_of(model))
    known = page.evaluate("module.MISTAKES.map(({ id, first }) => [id, first(engine.config)])")
    assert dict(known) == {one.id: one.first(model.config) for one in MISTAKES.values()}


def test_a_mistake_that_only_padding_shows_pads_by_itself(page, make_model):
    engine = PageEngine(page, payload_of(halved(make_model)))
    trace = engine.trace([4, 2], TARGET, mistakes=[PADDING])
    assert trace["decoder.layers.0.cross_attention.weights"].shape == (3, 5, 5)
    assert engine.first_difference([4, 5, 6, 7, 2], TARGET, mistakes=[PADDING]) is None
