"""The picture of the model and attention as lines: they show the model's own numbers, and lead to them."""

from typing import Any

import pytest

import glassformer as gf
from browser.test_view import problems

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.1.cross_attention.weights"


def weights(translator: Any, page: Any, name: str) -> Any:
    """Return PyTorch's weights of an attention for the sentence on the page, by head."""
    import torch

    from glassformer.watch.explorer.payload import rounded

    model = rounded(translator.model)
    source, target = page.evaluate(
        "(({ sourceIds, targetIds }) => [sourceIds, targetIds])(glassformer.app.result.current)"
    )
    with torch.no_grad(), gf.record(model) as trace:
        model(torch.tensor([source]), torch.tensor([target]))
    return trace[name][0]


def test_lines_are_the_weights_of_the_head_and_open_their_arithmetic(make_translator, explore):
    translator = make_translator()
    page = explore(translator, SENTENCE)
    page.evaluate("(name) => glassformer.app.show({ stage: 'point', point: { name, head: 1 } })", CROSS)
    page.get_by_role("group", name="Picture of the weights").last.get_by_role("button", name="lines").click()
    expected = weights(translator, page, CROSS)[1]
    lines = page.locator(".gf-point .gf-lines")
    drawn = sorted(float(text) for text in lines.locator("path title").all_text_contents())
    assert drawn == pytest.approx(sorted(value for value in expected.flatten().tolist() if value >= 0.02), abs=6e-4)
    word = lines.get_by_role("button").nth(expected.shape[1])  # after the words that are read: the first that reads
    word.hover()
    shown = [float(text) for text in lines.locator(".gf-lines-numbers text").all_text_contents()]
    first = sorted((value for value in expected[0].tolist() if value >= 0.02), reverse=True)
    assert shown == pytest.approx(first, abs=6e-3)
    assert lines.locator("path.gf-on").count() == len(first)
    word.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    best = int(expected[1].argmax())
    assert page.evaluate("glassformer.app.state.selected") == {"name": CROSS, "index": [1, 1, best]}
    lines.locator("path").first.dispatch_event("click")
    row, column = divmod(int(expected.argmax()), expected.shape[1])
    assert page.evaluate("glassformer.app.state.selected.index") == [1, row, column]
    assert "face=lines" in page.url


def test_the_map_draws_all_three_attentions_as_lines(make_translator, explore):
    page = explore(make_translator(), SENTENCE, fragment="#face=lines")
    assert page.locator(".gf-map .gf-lines svg").count() == 3
    assert page.locator(".gf-map .gf-grid:visible").count() == 0
    page.get_by_role("button", name="grid", exact=True).first.click()
    assert page.locator(".gf-map .gf-grid:visible").count() == 3
    assert "face" not in page.url


def test_the_picture_of_the_model_leads_to_each_part(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    flow = page.get_by_role("region", name="The model at a glance")
    names = [one.get_attribute("aria-label") for one in flow.get_by_role("button").all()]
    layers = page.evaluate("({ ...glassformer.app.config })")
    assert len(names) == 4 + 2 * layers["encoder_layers"] + 3 * layers["decoder_layers"]
    assert len(set(names)) == len(names)
    lit = flow.locator("[aria-current]")
    assert lit.count() == 0
    flow.get_by_role("button", name="decoder, layer 1: cross-attention").press("Enter")
    assert page.evaluate("glassformer.app.state.point.name") == CROSS
    assert [one.get_attribute("aria-label") for one in lit.all()] == ["decoder, layer 1: cross-attention"]
    flow.get_by_role("button", name="memory").click()
    assert page.evaluate("glassformer.app.state.point.name") == "encoder.output"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_have_no_problems_in_axe(make_translator, explore, page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    explore(make_translator(), SENTENCE, fragment="#face=lines")
    assert problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
