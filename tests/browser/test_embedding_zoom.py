"""Embedding and positions opened in the figure: each number of the sum equals PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from browser.waiting import until
from browser.zooms import DESK, SENTENCE, number, open_box, strip, trace_of
from glassformer.watch.explorer.payload import recorded_payload, rounded

ENCODER, DECODER = "encoder.embedding", "decoder.positions"
ROW = 2


@pytest.fixture
def opened(make_translator, explore) -> Callable[..., Any]:
    """Return a function that opens the embedding of a stack."""

    def show(box: str = ENCODER, *, row: int = ROW, page: Any = None, **changes: Any) -> Any:
        page = page or explore(make_translator(), SENTENCE, start="figure", size=DESK)
        return open_box(page, {"zoom": {"box": box, "key": None}, "row": row, "sourceWord": row}, changes)

    return show


def lines(page: Any) -> list[list[str]]:
    return [text.split("\t") for text in page.locator(".gfz-receipt tfoot tr").all_inner_texts()]


def said(page: Any) -> str:
    text: str = page.locator(".gf-zoom h2").inner_text()
    return text


@pytest.mark.parametrize(("box", "side"), [(ENCODER, "source"), (DECODER, "target")])
def test_row_scale_position_and_sum_are_pytorchs(make_translator, explore, opened, box, side):
    translator = make_translator()
    page = opened(box, page=explore(translator, SENTENCE, start="figure", size=DESK), prefix="le grand chien noir")
    ids = page.evaluate(f"glassformer.app.result.current.{side}Ids")
    table = rounded(translator.model).state_dict()[f"{side}.tokens.weight"].numpy()
    trace = trace_of(page, translator)
    assert f"id {ids[ROW]}" in page.locator(".gfz-result").inner_text()
    np.testing.assert_allclose(strip(page, "entry"), table[ids[ROW]], atol=0.00011)
    for stop, point in (("scaled", "embedding"), ("position", "positions"), ("sum", "input")):
        np.testing.assert_allclose(strip(page, stop), trace[f"{side}.{point}"][ROW], atol=0.00011)


def test_a_number_opens_its_arithmetic(make_translator, explore, opened):
    translator = make_translator()
    page = opened(page=explore(translator, SENTENCE, start="figure", size=DESK))
    width = translator.model.config.d_model
    slider = page.locator("[data-stop='sum']")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".gf-zoom h2", has_text="are added: number 2 of the sum is").wait_for()
    assert page.evaluate("glassformer.app.state.selected") == {"name": "source.input", "index": [ROW, 2]}
    entry, scaled, wave, total = ([name, number(value)] for name, value in lines(page))
    assert scaled[0] == f"× √{width}"
    assert wave[0] == f"+ sin({ROW} / 10000^(2 / {width}))"
    assert scaled[1] == pytest.approx(entry[1] * width**0.5, abs=0.005)
    assert wave[1] == pytest.approx(np.sin(ROW / 10000 ** (2 / width)), abs=0.005)
    assert total[1] == pytest.approx(scaled[1] + wave[1], abs=0.011)
    until(page, "document.activeElement.dataset.stop === 'sum'")
    page.locator("[data-stop='step position']").click()
    page.locator(".gf-zoom h2", has_text=f"at position {ROW}, dimension 2 stands at").wait_for()
    assert "§3.5" in page.locator(".gfz-about").inner_text()


def test_the_waves_are_the_models_and_the_position_is_marked(make_translator, explore, opened):
    translator = make_translator()
    page = opened(page=explore(translator, SENTENCE, start="figure", size=DESK))
    table = trace_of(page, translator)["source.positions"]
    dimensions = page.locator(".gfz-dimension").all_inner_texts()
    assert len(dimensions) >= 2
    shown = page.locator(".gfz-waves g text").all_text_contents()
    expected = [table[ROW, int(one.split()[-1])] for one in dimensions]
    np.testing.assert_allclose([number(one) for one in shown], expected, atol=0.0051)
    circles = (
        page.locator(".gfz-waves g")
        .first.locator("circle")
        .evaluate_all("(all) => all.map((c) => +c.getAttribute('r'))")
    )
    assert circles == [5 if place == ROW else 2 for place in range(len(table))]
    page.locator(".gfz-dimension").first.click()
    until(page, "glassformer.app.state.selected.name === 'source.positions'")


@pytest.mark.parametrize("positions", ["interleaved", pytest.param("halves", marks=pytest.mark.long), "learned"])
def test_the_positions_open_at_a_dimension_whose_wave_can_be_seen(make_translator, explore, opened, positions):
    sentence = " ".join([SENTENCE.removesuffix(" .")] * 2)
    page = explore(make_translator(positions=positions, d_model=64), sentence, start="figure", size=DESK)
    opened("encoder.positions", page=page)
    at = int(page.locator(".gfz-dimension.gfz-keyed").inner_text().split()[-1])
    table = np.array(page.evaluate("glassformer.value('source.positions').then(({ data }) => [...data])")).reshape(
        -1, 64
    )
    if positions == "learned":
        assert at == table.var(axis=0).argmax()
        return
    period = 2 * np.pi * 10000 ** (2 * (at if positions == "halves" else at // 2) / 64)
    # the wave turns at least once, and a turn has at least three positions
    assert 1 <= len(table) / period <= len(table) / 3
    page.evaluate("glassformer.app.show({ selected: { name: 'source.positions', index: [2, 63] } })")
    page.locator(".gf-zoom h2", has_text="dimension 63 stands at").wait_for()


def test_the_nearest_words_have_the_largest_cosine(make_translator, explore, opened):
    translator = make_translator()
    page = opened(page=explore(translator, SENTENCE, start="figure", size=DESK))
    table = rounded(translator.model).state_dict()["source.tokens.weight"].numpy().astype(float)
    id = page.evaluate("(row) => glassformer.app.result.current.sourceIds[row]", ROW)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    cosines = table @ table[id]
    cosines[id] = -2
    order = np.argsort(-cosines)[:12]
    rows = [text.split("\t") for text in page.locator(".gfz-nearest tbody tr").all_inner_texts()]
    np.testing.assert_allclose([number(value) for _, value in rows], cosines[order], atol=0.0051)


@pytest.mark.parametrize(
    ("settings", "changes", "about", "gone"),
    [
        ({"positions": "learned"}, {}, "Each position has its own learned numbers", None),
        pytest.param({"positions": "none"}, {}, "No position is added", "position", marks=pytest.mark.long),
        ({}, {"positions": False}, "No position is added", "position"),
        ({}, {"mistakes": ["no_embedding_scale"]}, "Each dimension is a wave", "scaled"),
        pytest.param({"positions": "halves"}, {}, "Each dimension is a wave", None, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_other_embeddings_are_said(make_translator, explore, opened, settings, changes, about, gone):
    page = opened(
        "encoder.positions", page=explore(make_translator(**settings), SENTENCE, start="figure", size=DESK), **changes
    )
    assert about in said(page)
    for stop in ("entry", "scaled", "position", "sum"):
        assert page.locator(f"[data-stop='{stop}']").count() == (stop != gone)
    total = page.evaluate(
        """async (row) => {
          const { shape: [, width], data } = await glassformer.value("source.input");
          return [...data.slice(row * width, (row + 1) * width)];
        }""",
        ROW,
    )
    assert any(abs(number(lines(page)[-1][1]) - one) < 0.006 for one in total)
    terms = [number(value) for name, value in lines(page)[1 if gone != "scaled" else 0 : -1]]
    assert sum(terms) == pytest.approx(number(lines(page)[-1][1]), abs=0.011)


def test_the_positions_panel_is_a_segment(make_translator, explore, opened):
    page = opened()
    page.get_by_role("button", name="Positions", exact=True).click()
    page.locator(".gfz-panel .gf-positions canvas").wait_for()
    page.get_by_role("button", name="Embedding + position", exact=True).click()
    page.locator("[data-stop='sum']").wait_for()
    page = explore(make_translator(), SENTENCE, fragment="#sheet=true&panel=positions", start="figure")
    page.locator(".gfz-panel .gf-positions canvas").wait_for()
    assert page.evaluate("glassformer.app.state.sheet") is False


def test_a_recording_says_what_it_lacks(explore, make_translator, opened):
    page = opened(page=explore(make_translator(), SENTENCE, start="figure", size=DESK, data=recorded_payload))
    assert page.locator("[data-stop='entry']").count() == 0
    assert page.locator("[data-stop='scaled']").count() == 1
    page.locator(".gfz-whole .gfz-note", has_text="needs the whole table").or_(
        page.locator(".gfz-whole .gfz-note", has_text="need the whole table")
    ).wait_for()
    page.locator(".gfz-whole .gfz-note", has_text="needs the model").wait_for()
