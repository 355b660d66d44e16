"""An attention opened in the figure: its numbers equal the trace, and its sentences are true under every change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from browser.waiting import until
from browser.zooms import (
    DESK,
    FRAMES,
    READ,
    SENTENCE,
    notes,
    number,
    open_box,
    trace_of,
    value,
)
from glassformer.watch.explorer.payload import recorded_payload
from traces import rounded

PREFIX = "le grand chien noir et dort"
ENCODER, MASKED, CROSS = (
    "encoder.layers.1.self_attention",
    "decoder.layers.0.self_attention",
    "decoder.layers.1.cross_attention",
)
FAMILIES = {ENCODER: "encoder", MASKED: "decoder", CROSS: "cross"}
ROWS = ".gfz-rows tbody tr"
SCORE, MASK, WEIGHT = (f"td:nth-child({column})" for column in (3, 4, 5))


@pytest.fixture
def opened(make_translator, explore) -> Callable[..., Any]:
    """Return a function that opens an attention of a page."""

    def show(box: str, *, row: int = 2, key: int | None = None, head: int = 1, page: Any = None, **changes: Any) -> Any:
        page = page or explore(make_translator(), SENTENCE, start="figure", size=DESK)
        looks = {"zoom": {"box": box, "key": key}, "row": row, "sourceWord": row}
        heads = {FAMILIES[box]: {"layer": int(box.split(".")[2]), "head": head}}
        return open_box(page, looks, changes, heads)

    return show


def numbers(page: Any, column: str) -> list[float]:
    """Return the numbers of a column, with NaN for each row without a number."""
    cells = page.locator(f"{ROWS} {column}").all()
    texts = [cell.locator("button").all_inner_texts() for cell in cells]
    return [number(text[0]) if text else float("nan") for text in texts]


@pytest.mark.parametrize("box", [pytest.param(ENCODER, marks=pytest.mark.long), MASKED, CROSS])
def test_the_shown_numbers_are_pytorchs(make_translator, explore, opened, box):
    translator = make_translator()
    page = opened(box, page=explore(translator, SENTENCE, start="figure", size=DESK))
    expected = trace_of(page, translator)
    scores, weights = (expected[f"{box}.{point}"][1, 2] for point in ("scores", "weights"))
    masked = weights == 0
    assert masked.any() == (box == MASKED)
    np.testing.assert_allclose(numbers(page, SCORE), scores, atol=0.0051)
    np.testing.assert_allclose(numbers(page, WEIGHT), np.where(masked, np.nan, weights), atol=0.00051)
    key = int(np.argmax(weights))
    assert page.locator(f"{ROWS}[aria-current] th").inner_text() == page.locator(f"{ROWS} th").nth(key).inner_text()
    for point, strip in (
        (expected[f"{box}.query"][1, 2], ".gfz-query > svg"),
        (expected[f"{box}.key"][1, key], f"{ROWS}[aria-current] [data-stop='key {key}']"),
        (expected[f"{box}.value"][1, key], f"{ROWS}[aria-current] [data-stop='value {key}']"),
        (expected[f"{box}.heads"][1, 2], "[data-stop^='heads']"),
        (expected[f"{box}.joined"][2][6:12], "[data-stop='joined 1']"),
        (expected[f"{box}.output"][2], "[data-stop^='output']"),
    ):
        texts = page.locator(strip).evaluate(READ)
        np.testing.assert_allclose([number(text.partition(": ")[2]) for text in texts], point, atol=0.00011)


def test_the_receipt_multiplies_query_and_key(opened):
    page = opened(CROSS, key=4)
    rows = [one.split() for one in page.locator(".gfz-receipt tbody tr").all_inner_texts()]
    query, key = value(page, f"{CROSS}.query")[1, 2], value(page, f"{CROSS}.key")[1, 4]
    shown = np.array([[number(text) for text in row] for row in rows])
    np.testing.assert_allclose(shown, np.stack([query, key, query * key], 1), atol=0.0051)
    lines = [text.split("\t") for text in page.locator(".gfz-receipt tfoot tr").all_inner_texts()]
    assert [name for name, _ in lines] == ["sum", "÷ √6 = score", "softmax = weight"]
    score, weight = value(page, f"{CROSS}.scores")[1, 2, 4], value(page, f"{CROSS}.weights")[1, 2, 4]
    expected = [float(query @ key), score, weight]
    np.testing.assert_allclose([number(text) for _, text in lines], expected, atol=0.0051)


def test_a_long_sum_stands_apart_from_its_neighbours(opened):
    page = opened(CROSS, key=4)
    apart = """(text) => {
      const small = document.querySelector(".gfz-rows [aria-current] td:nth-child(4) small");
      small.textContent = text;
      const edges = (one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return range.getBoundingClientRect();
      };
      const row = small.closest("tr");
      const [name, sum] = [row.querySelector("td:nth-child(3) > span + span"), small].map(edges);
      const share = edges(row.querySelector("td:nth-child(5) > :last-child"));
      return [sum.left - name.right, share.left - sum.right];
    }"""
    for text in ("Σ 1.23 ÷ √6", "Σ −12.34567 ÷ √16"):
        assert min(page.evaluate(apart, text)) >= 4


def test_every_number_opens_its_own_receipt(opened):
    page = opened(CROSS, key=4)
    for stop, point, index, about in (
        ("query 4", "query", [1, 2, 3], "The query of"),
        ("key 0", "key", [1, 0, 3], "The key of"),
        ("value 2", "value", [1, 2, 3], "The value of"),
        ("heads 2", "heads", [1, 2, 3], "The weighted sum"),
        ("joined 2", "joined", [2, 15], "The sums of all 4 heads"),
        ("output 2", "output", [2, 3], "W_O mixes all 4 heads"),
    ):
        strip = page.locator(f".gfz-room [data-stop='{stop}']")
        strip.focus()
        page.keyboard.press("Home")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        until(page, f"glassformer.app.state.selected?.name === '{CROSS}.{point}'")
        assert page.evaluate("glassformer.app.state.selected.index") == index
        page.locator(".gf-zoom h2", has_text=about).wait_for()
        result = number(page.locator(".gfz-receipt tfoot tr:last-child td").inner_text())
        assert result == pytest.approx(value(page, f"{CROSS}.{point}")[tuple(index)], rel=0.01, abs=1e-3)
        assert page.evaluate("document.activeElement.dataset.stop") == stop
    page.locator("[data-stop='weights 5']").click()
    page.locator(".gfz-formula", has_text="exp(score − max)").wait_for()
    shares = [number(row.split("\t")[-1]) for row in page.locator(".gfz-receipt tbody tr").all_inner_texts()]
    scores = value(page, f"{CROSS}.scores")[1, 2]
    np.testing.assert_allclose(shares, np.exp(scores - scores.max()), atol=0.0051)
    page.get_by_role("button", name="All numbers").click()
    looks = page.evaluate("(({panel, selected}) => [panel, selected.name, selected.index[0]])(glassformer.app.state)")
    assert looks == ["numbers", f"{CROSS}.weights", 1]


def test_the_lines_are_the_products_of_one_output_number(make_translator, explore, opened):
    translator = make_translator()
    page = opened(CROSS, page=explore(translator, SENTENCE, start="figure", size=DESK))
    joined, output = value(page, f"{CROSS}.joined")[2], value(page, f"{CROSS}.output")[2]
    chosen = int(np.argmax(np.abs(output)))
    matrix = rounded(translator.model).state_dict()[f"{CROSS}.output_projection.weight"].numpy()
    products = np.abs(joined * matrix[chosen])
    assert page.locator(".gfz-fan path").count() == (products >= 0.04 * products.max()).sum()
    assert number(page.locator(".gfz-made strong").inner_text()) == pytest.approx(output[chosen], abs=0.0051)


def test_the_mask_hides_later_words(opened):
    page = opened(MASKED, prefix=PREFIX)
    marks = [one.get_attribute("aria-label") for one in page.locator(f"{ROWS} {MASK} button").all()]
    assert marks == ["may look"] * 3 + ["blocked: –∞"] * (len(marks) - 3)
    assert "Softmax turns the 3 scores into weights" in page.locator(".gf-zoom h2").inner_text()
    page.locator(f"{ROWS} th button").nth(4).click()
    page.locator(".gf-zoom h2", has_text="The mask hides").wait_for()
    assert "§3.2.3" in page.locator(".gfz-about").inner_text()
    page.evaluate("glassformer.app.show({row: 0, zoom: {box: glassformer.app.state.zoom.box, key: null}})")
    page.locator(".gf-zoom h2", has_text="Only one word may be read here: “start” gets 1.000 of 1.").wait_for()


STEP = "[data-stop='step mask']"


def test_the_step_of_the_mask_says_what_it_does_and_what_it_prevents(opened):
    page = opened(MASKED, prefix=PREFIX)
    words = [one.inner_text() for one in page.locator(f"{ROWS} th").all()]
    page.locator(STEP).click()
    page.locator(f"{STEP}[aria-current=step]").wait_for()
    assert page.locator(".gfz-step[aria-current]").count() == 1
    said = f"The mask lets “{words[2]}” read only the words up to itself: 3 of {len(words)}."
    assert page.locator(".gf-zoom h2").inner_text() == said
    weights, scores = (value(page, f"{MASKED}.{point}")[1, 2] for point in ("weights", "scores"))
    unmasked = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    why, without = notes(page)
    assert why.startswith("Later words are not written yet. In training they are known")
    assert number(without.split()[8]) == pytest.approx(unmasked[3:].sum(), abs=0.00051)
    rows = [row.split("\t") for row in page.locator(".gfz-receipt tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == words
    shown = np.array([[number(text) for text in row[1:]] for row in rows])
    np.testing.assert_allclose(shown, np.stack([weights, unmasked], 1), atol=0.0051)


def test_each_mark_of_the_mask_tells_of_its_word(opened):
    page = opened(MASKED, prefix=PREFIX)
    word = page.locator(f"{ROWS} th").nth(5).inner_text()
    page.locator("[data-stop='mask 5']").focus()
    page.keyboard.press("Enter")
    page.locator(".gf-zoom h2", has_text=f"The mask hides “{word}”: its weight is 0.").wait_for()
    assert "In training they are known" in notes(page)[0]
    assert page.evaluate("document.activeElement.dataset.stop") == "mask 5"
    page.locator("[data-stop='mask 1']").click()
    page.locator(".gf-zoom h2", has_text="read only the words up to itself").wait_for()
    page.locator("[data-stop='weights']").click()
    page.locator(".gfz-step[aria-current]", has_text="Softmax").wait_for()


@pytest.mark.parametrize(
    ("box", "changes", "said"),
    [
        (ENCODER, {}, "The mask hides nothing here: “{query}” may read all {all} words."),
        (MASKED, {"mistakes": ["no_causal_mask"]}, "The mask hides nothing here: “{query}” may read all {all} words."),
        pytest.param(
            MASKED, {"mistakes": ["mask_zero"]}, "Softmax turns the {all} scores into weights", marks=pytest.mark.long
        ),
        (MASKED, {"mistakes": ["mask_after_softmax"]}, "and only then the mask hides some"),
        pytest.param(
            MASKED, {"mistakes": ["softmax_over_queries"]}, "Softmax runs down the columns here", marks=pytest.mark.long
        ),
        (MASKED, {"overrides": {MASKED: [[1, 2, [0.5, 0.5, 0]]]}}, "not computed from these scores."),
        (CROSS, {"masks": {CROSS: [[2, 1, False]]}}, "The mask lets “{query}” read {some} of {all} words."),
    ],
)
def test_what_is_said_of_a_mask_is_true_of_other_masks(opened, box, changes, said):
    page = opened(box, prefix=PREFIX, **changes)
    page.locator(STEP).click()
    page.locator(f"{STEP}[aria-current=step]").wait_for()
    query, count = page.locator(".gfz-word").inner_text(), page.locator(ROWS).count()
    assert said.format(query=query, all=count, some=count - 1) in page.locator(".gf-zoom h2").inner_text()
    assert any("Without the mask" in one for one in notes(page)) == ("masks" in changes)
    assert not any("In training" in one for one in notes(page))


@pytest.mark.parametrize(
    ("mistake", "said", "note"),
    [
        pytest.param(
            *("mask_zero", "Softmax turns the {keys} scores into weights", "Masked scores set to 0"),
            marks=pytest.mark.long,
        ),
        ("mask_after_softmax", "and the row sums to {sum}.", "Mask after the softmax"),
        ("softmax_over_queries", "Softmax runs down the columns here", "Softmax over the queries"),
        pytest.param("no_scale", "Softmax turns the 3 scores into weights", "No √d_k", marks=pytest.mark.long),
        ("no_causal_mask", "Softmax turns the {keys} scores into weights", "No causal mask"),
    ],
)
def test_the_sentence_is_true_under_a_mistake(opened, mistake, said, note):
    page = opened(MASKED, prefix=PREFIX, mistakes=[mistake])
    weights = value(page, f"{MASKED}.weights")[1, 2]
    sentence = page.locator(".gf-zoom h2").inner_text()
    assert said.format(keys=len(weights), sum=f"{weights.sum():.3f}") in sentence
    assert f"{weights.max():.3f}" in sentence
    assert f"Changed here: {note}" in notes(page)
    shown = numbers(page, WEIGHT)
    np.testing.assert_allclose(np.nan_to_num(shown), weights, atol=0.00051)
    scaled = page.locator(".gfz-receipt tfoot").inner_text()
    assert ("not scaled" in scaled) == (mistake == "no_scale")


def test_a_row_by_hand_and_a_head_that_is_off_are_said(opened):
    page = opened(CROSS, overrides={CROSS: [[1, 2, [0, 0.25, 0.75]]]}, ablated={CROSS: [1]})
    said = page.locator(".gf-zoom h2").inner_text()
    assert said == "“black” has the weight 0.750 here, not computed from these scores."
    assert notes(page) == ["This row of weights was written by hand.", "Head 1 is switched off: its output is 0."]
    assert page.locator(".gfz-rows small").all_inner_texts()[0].startswith("Σ")  # the powers of e are left out
    assert page.locator(".gfz-receipt tfoot th").all_inner_texts()[-1] == "weight"


def test_rows_from_another_sentence_are_said(opened):
    patch = {"point": f"{CROSS}.key", "sentence": "a cat sleeps .", "positions": [[2, 1]]}
    page = opened(CROSS, key=2, patches=[patch])
    assert notes(page) == ["Patched in from “a cat sleeps .”, position 1: this is the other sentence's number."]


def test_words_at_which_attention_rests_are_named(opened):
    page = opened(CROSS, overrides={CROSS: [[1, 2, [0, 0, 0, 0, 0, 0, 0.25, 0.35, 0.4]]]})
    assert any(one.startswith("0.75 of this row rests on “.”, “end”.") for one in notes(page))
    page.evaluate(
        "(changes) => glassformer.set(changes)", {"overrides": {CROSS: [[1, 2, [0, 0, 0, 0, 0, 0, 0.75, 0.25]]]}}
    )
    page.locator(".gf-zoom h2", has_text="0.750").wait_for()
    assert not any("rests on" in one for one in notes(page))


def test_a_head_whose_row_is_wide_is_offered(opened):
    rows = [[3, 2, [0.2, 0.2, 0.3, 0.3]], [0, 2, [1]], [2, 2, [0.6, 0.4]]]
    one = [[2, key, False] for key in range(1, 9)]  # only one word may be read, so softmax gives it all the weight
    page = opened(CROSS, overrides={CROSS: rows}, masks={CROSS: one})
    page.get_by_role("button", name="See head 3").click()
    page.locator(".gfz-place", has_text="head 3").first.wait_for()
    assert page.evaluate("glassformer.app.state.heads.cross") == {"layer": 1, "head": 3}
    assert page.get_by_role("button", name="See head").count() == 0


def test_heads_words_and_steps_are_chosen_in_the_panel(opened):
    page = opened(ENCODER)
    page.locator("[data-stop='head 2']").click()
    until(page, "glassformer.app.state.heads.encoder.head === 2")
    page.get_by_role("button", name="The word after").click()
    page.locator(".gfz-word", has_text="dog").wait_for()
    assert page.evaluate("glassformer.app.state.sourceWord") == 3
    page.locator("[data-stop='step heads']").click()
    page.locator(".gfz-step[aria-current]", has_text="Weighted sum").wait_for()
    page.locator(".gf-zoom").get_by_role("button", name="← Figure").click()
    until(page, "glassformer.app.state.zoom === null && !document.querySelector('.gf-zoom').firstChild")
    page.evaluate("glassformer.app.show({zoom: {box: 'encoder.layers.7.self_attention', key: null}})")
    page.evaluate(FRAMES)
    assert page.locator(".gf-zoom *").count() == 0


def test_the_panel_is_one_stop_of_the_tab_key(opened):
    page = opened(CROSS, key=4)
    assert page.locator(".gfz-room [tabindex='0']").count() == 1
    page.get_by_role("button", name="Copy as PyTorch").focus()
    page.keyboard.press("Tab")
    active = "document.activeElement.dataset.stop"
    assert page.evaluate(active) == "weights"
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(active) == "mask 4"
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(active) == "scores 4"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(active) == "scores 5"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(active) == "weights"
    assert page.locator(".gfz-room [tabindex='0']").count() == 1
    seen = [page.evaluate(active)]
    for _ in range(40):
        page.keyboard.press("ArrowUp")
        seen.append(page.evaluate(active))
    assert "output 4" in seen
    assert seen[-1].startswith("segment ")


def test_a_screen_reader_gets_a_table_with_headers(opened):
    page = opened(CROSS)
    heads = page.locator(".gfz-rows th[scope=col]").all_inner_texts()
    assert [one.replace("\n", " ").strip() for one in heads[1:]] == [
        "2 Keys",
        "3 Score",
        "4 Mask",
        "5 Softmax",
        "6 Values × weight",
    ]
    words = page.evaluate("glassformer.app.result.current.sourceTokens")
    assert page.locator(".gfz-rows th[scope=row]").all_inner_texts() == [
        word.removeprefix("▁") for word in words[:-1]
    ] + ["end"]
    assert page.locator(".gf-zoom h2[aria-live=polite]").count() == 1


def test_a_recording_shows_all_but_the_products_with_w_o(explore, make_translator, opened):
    page = opened(CROSS, page=explore(make_translator(), SENTENCE, start="figure", size=DESK, data=recorded_payload))
    assert page.locator(".gfz-fan path").count() == 0
    assert page.locator(ROWS).count() == len(page.evaluate("glassformer.app.result.current.sourceTokens"))
    page.locator("[data-stop='step output']").click()
    page.locator(".gfz-note", has_text="needs the model").wait_for()


@pytest.mark.parametrize(
    "settings", [{"norm": "pre", "d_k": 40, "d_v": 5}, pytest.param({"heads": 12}, marks=pytest.mark.long)]
)
def test_other_shapes_and_norms_are_drawn(make_translator, explore, opened, settings):
    page = opened(CROSS, page=explore(make_translator(**settings), SENTENCE, start="figure", size=DESK))
    boxes = [one.bounding_box() for one in page.locator(".gfz-head, .gfz-query").all()]
    panel = page.locator(".gfz-scroll").bounding_box()
    for box in boxes:
        assert panel["x"] <= box["x"]
        assert box["x"] + box["width"] <= panel["x"] + panel["width"]
    labels = page.locator(".gfz-outside text").all_text_contents()
    expected = (
        ["from Norm below", "to Add above"] if "norm" in settings else ["from Add & norm below", "to Add & norm above"]
    )
    assert labels == expected
