"""Linear and Softmax opened in the figure: their numbers equal PyTorch's, and no slider changes the translation."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from browser.test_view import problems
from browser.waiting import rest, until
from browser.zooms import DESK, SENTENCE, SMALL, number, open_box, trace_of, value
from glassformer.watch.explorer.payload import recorded_payload

SOFTMAX, LINEAR = "decoder.softmax", "decoder.linear"
ROWS = ".gfz-words tbody tr:not(.gfz-sums)"
ROW = 1
SLIDER = "([name, value]) => { const one = document.querySelector(`[aria-label='${name}']`); one.value = value; \
one.dispatchEvent(new Event('input')); }"


@pytest.fixture
def opened(make_translator, explore) -> Callable[..., Any]:
    """Return a function that opens Linear or Softmax of a page."""

    def show(box: str = SOFTMAX, *, row: int = ROW, key: int | None = None, page: Any = None, **changes: Any) -> Any:
        page = page or explore(make_translator(), SENTENCE, start="figure", size=DESK)
        return open_box(page, {"zoom": {"box": box, "key": key}, "row": row}, changes)

    return show


def column(page: Any, place: int) -> list[str]:
    return [text.strip() for text in page.locator(f"{ROWS} > :nth-child({place})").all_inner_texts()]


def numbers(page: Any, place: int) -> list[float]:
    return [number(text.replace("\u202f", "").split("\n")[0]) for text in column(page, place)]


def receipt(page: Any) -> list[list[str]]:
    return [text.split("\t") for text in page.locator(".gfz-receipt tfoot tr").all_inner_texts()]


def said(page: Any) -> str:
    text: str = page.locator(".gf-zoom h2").inner_text()
    return text


@pytest.mark.parametrize("box", [SOFTMAX, pytest.param(LINEAR, marks=pytest.mark.long)])
def test_the_competing_words_have_pytorchs_numbers(make_translator, explore, opened, box):
    translator = make_translator()
    page = opened(box, page=explore(translator, SENTENCE, start="figure", size=DESK))
    trace = trace_of(page, translator)
    logits, log_probs = trace["logits"][ROW], trace["log_probs"][ROW]
    count = len(logits)
    order = np.argsort(-log_probs)[: min(12, count)]
    ids = [int(one.split(" ")[1]) for one in page.locator(f"{ROWS} th button").evaluate_all(
        "(all) => all.map((one) => one.dataset.stop)")]  # fmt: skip
    assert ids == order.tolist()
    np.testing.assert_allclose(numbers(page, 2), logits[order], atol=0.0051)
    np.testing.assert_allclose(numbers(page, 3), logits[order], atol=0.0051)
    np.testing.assert_allclose(numbers(page, 4), np.exp(logits[order]), rtol=0.01)
    np.testing.assert_allclose(numbers(page, 5), np.exp(log_probs[order]), atol=0.00051)
    others, total = (row.split("\t") for row in page.locator(".gfz-sums").all_inner_texts())
    assert number(total[3].replace("\u202f", "")) == pytest.approx(np.exp(logits).sum(), rel=0.01)
    assert number(others[4]) == pytest.approx(1 - np.exp(log_probs[order]).sum(), abs=0.00051)
    lines = receipt(page)
    assert number(lines[-1][1]) == pytest.approx(np.exp(log_probs[order[0]]), abs=0.00051)
    assert f"{np.exp(log_probs.max()):.3f}" in said(page) if box == SOFTMAX else "the highest" in said(page)


def test_a_words_logit_opens_its_arithmetic(make_translator, explore, opened):
    translator = make_translator()
    page = opened(page=explore(translator, SENTENCE, start="figure", size=DESK))
    trace = trace_of(page, translator)
    page.locator(f"{ROWS} td:nth-child(2) button").nth(2).click()
    until(page, "glassformer.app.state.selected?.name === 'logits'")
    word = int(np.argsort(-trace["log_probs"][ROW])[2])
    assert page.evaluate("glassformer.app.state.selected.index") == [ROW, word]
    page.locator(".gf-zoom h2", has_text="rank 3").wait_for()
    with torch.no_grad():
        products = trace["decoder.output"][ROW] * translator.model.output.weight[word].numpy()
    shown = page.locator(".gfz-receipt tbody tr").all_inner_texts()
    listed = [number(one.split("\t")[2]) for one in shown if len(one.split("\t")) == 3]
    assert all(np.abs(products - one).min() < 0.01 for one in listed)
    lines = dict(receipt(page))
    assert number(lines["= logit"]) == pytest.approx(trace["logits"][ROW, word], abs=0.0051)
    for strip, expected in (("product", products), ("vector", trace["decoder.output"][ROW])):
        slider = page.locator(f"[data-stop='{strip}']")
        slider.focus()
        page.keyboard.press("Home")
        assert number(slider.get_attribute("aria-valuetext").split(": ")[1]) == pytest.approx(expected[0], abs=0.001)
    page.keyboard.press("Enter")
    page.locator(".gf-zoom h2", has_text="last vector has").wait_for()
    assert page.evaluate("glassformer.app.state.selected") == {"name": "decoder.output", "index": [ROW, 0]}


def test_sliders_show_what_would_be_drawn_and_translate_nothing(make_translator, explore, opened):
    translator = make_translator()
    page = opened(page=explore(translator, SENTENCE, start="figure"))
    trace = trace_of(page, translator)
    page.evaluate("globalThis.before = glassformer.app.result")
    logits = torch.tensor(trace["logits"][ROW])
    order = logits.argsort(descending=True)[:12]
    page.evaluate(SLIDER, ["Temperature", "0.5"])
    warm = (logits / 0.5).softmax(-1)
    np.testing.assert_allclose(numbers(page, 5), warm[order].numpy(), atol=0.00051)
    np.testing.assert_allclose(numbers(page, 3), (logits / 0.5)[order].numpy(), atol=0.0101)
    page.evaluate(SLIDER, ["Top-k", "3"])
    drawn = column(page, 6)
    assert drawn[3:] == ["left out"] * 9
    kept = warm[order[:3]] / warm[order[:3]].sum()
    np.testing.assert_allclose([number(one.removeprefix("✓ ")) for one in drawn[:3]], kept.numpy(), atol=0.00051)
    page.evaluate(SLIDER, ["Top-p", "0.05"])
    assert column(page, 6)[:2] == ["✓ 1.000", "left out"]
    page.evaluate(SLIDER, ["Temperature", "0"])  # at temperature 0, one word has all the probability
    assert numbers(page, 5)[:2] == [1, 0]
    assert page.evaluate("globalThis.before === glassformer.app.result")


def test_the_temperature_of_the_box_is_that_of_the_sentence_and_of_the_chapter(opened):
    page = opened()
    scores = torch.tensor(value(page, "logits")[ROW])
    heading, likeliest = page.locator(".gf-zoom h2"), float(scores.softmax(-1).max())
    assert f"At temperature 1, softmax turns the {len(scores)} scores" in heading.inner_text()
    page.evaluate(SLIDER, ["Temperature", "1.85"])
    page.locator(".gf-zoom h2", has_text="At temperature 1.85,").wait_for()
    warm = float((scores / 1.85).softmax(-1)[int(scores.argmax())])
    assert f"{warm:.3f} of 1" in heading.inner_text()
    assert warm < likeliest - 0.001
    assert numbers(page, 5)[0] == pytest.approx(warm, abs=0.00051)
    page.evaluate("glassformer.app.show({ zoom: null, chapter: 5, act: 1 })")
    chapter = page.get_by_label("Temperature")
    chapter.wait_for()
    assert chapter.input_value() == "1.85"
    chapter.fill("0.7")
    page.locator(".gfs-conclusion", has_text="At temperature 0.7,").wait_for()
    page.evaluate("glassformer.app.show({ zoom: { box: 'decoder.softmax', key: null } })")
    page.locator(".gf-zoom h2", has_text="At temperature 0.7,").wait_for()
    assert page.locator(".gfz-sliders").get_by_label("Temperature").input_value() == "0.7"
    page.evaluate("glassformer.app.show({ zoom: null, chapter: 0 })")
    until(page, "glassformer.app.state.temperature === 1")  # the figure shows the model's own probabilities


def test_every_word_of_the_vocabulary_has_a_tick_and_is_found(make_translator, explore, opened):
    translator = make_translator()
    page = opened(LINEAR, page=explore(translator, SENTENCE, start="figure", size=DESK))
    logits = trace_of(page, translator)["logits"][ROW]
    ticks = page.locator("[data-stop='ticks']")
    assert ticks.get_attribute("aria-valuemax") == str(len(logits) - 1)
    ticks.focus()
    page.keyboard.press("Home")
    for id in range(len(logits)):
        _, rest = ticks.get_attribute("aria-valuetext").split(": ")
        value, rank = rest.split(", rank ")
        assert number(value) == pytest.approx(logits[id], abs=0.0051)
        assert int(rank) == 1 + (logits > logits[id]).sum()
        page.keyboard.press("ArrowRight")
    field = page.get_by_role("searchbox", name="Find a word")
    field.fill("ChIe")
    field.press("Enter")
    id = page.evaluate("glassformer.app.engine.tokenizers.target.encode('chien')[0]")
    until(page, f"glassformer.app.state.zoom.key === {id}")
    page.locator(".gf-zoom h2", has_text="chien").wait_for()
    assert f"rank {1 + (logits > logits[id]).sum()}." in said(page) or "the highest" in said(page)
    assert "chien" in column(page, 1)
    field.fill("xyz")
    field.press("Enter")
    assert field.evaluate("(one) => one.validationMessage") == "No word that this page knows begins like this."


def test_a_forced_word_is_said_to_be_forced(opened):
    page = opened(row=0, prefix="dort")
    assert "forced by you" in column(page, 5)[column(page, 1).index("dort")]
    page.locator(".gfz-note", has_text="You forced “dort”; the model itself gives it").wait_for()
    assert page.locator(".gfz-result").inner_text().split() [1] == "dort"  # fmt: skip


def test_a_word_that_the_beam_chose_is_said_so(make_translator, explore, opened):
    page = explore(make_translator(seed=6), SENTENCE, start="figure", size=DESK)
    row = page.evaluate("""async () => {
      const { hypothesis } = glassformer.app.result.current;
      const { shape: [rows, width], data } = await glassformer.value("log_probs");
      return hypothesis.ids.findIndex((id, row) =>
        Math.max(...data.slice(row * width, (row + 1) * width)) > data[row * width + id]);
    }""")
    assert row >= 0, "the seed's best translation has to differ from the greedy one"
    page = opened(page=page, row=row)
    word = page.evaluate("(row) => glassformer.app.result.current.outputTokens[row]", row)
    lit = page.locator(f"{ROWS}.gfz-keyed")
    assert "chosen by the beam" in lit.inner_text()
    assert page.locator(f"{ROWS}.gfz-keyed").count() == 1
    assert page.locator(ROWS).first.get_attribute("class") == ""
    assert word.replace("<eos>", "end") in lit.inner_text()
    page.locator(".gfz-note", has_text="is not the likeliest word here").wait_for()


def test_the_step_with_the_closest_words_is_offered_where_there_is_little_to_choose(make_translator, explore, opened):
    translator = make_translator()
    with torch.no_grad():
        translator.model.output.weight.mul_(12)
    page = opened(page=explore(translator, SENTENCE, start="figure", size=DESK))
    log_probs = trace_of(page, translator)["log_probs"]
    best = np.sort(np.exp(log_probs), -1)
    row = int(np.argmax(best[:, -1]))
    page.evaluate("(row) => glassformer.app.show({row})", row)
    offer = page.get_by_role("button", name="There is little to choose here.")
    offer.wait_for()
    leads = best[:, -1] - best[:, -2]
    leads[row] = 2
    offer.click()
    until(page, f"glassformer.app.state.row === {int(np.argmin(leads))}")


def test_a_planted_mistake_is_said_and_its_probabilities_are_shown(opened):
    page = opened(mistakes=["double_softmax"])
    page.locator(".gfz-note", has_text="Changed here: Softmax twice").wait_for()
    shares = page.evaluate("""async ([row]) => {
      const { shape: [, width], data } = await glassformer.value("log_probs");
      return [...data.slice(row * width, (row + 1) * width)].map(Math.exp).sort((a, b) => b - a).slice(0, 12);
    }""", [ROW])  # fmt: skip
    np.testing.assert_allclose(numbers(page, 5), shares, atol=0.00051)


def test_why_and_the_beam_are_segments_of_the_box(opened):
    page = opened()
    page.get_by_role("button", name="Why?", exact=True).click()
    word = page.evaluate("glassformer.app.result.current.outputTokens[1]").replace("▁", "")
    page.locator(".gfz-panel .gf-why h3", has_text=f"Why “{word}”?").wait_for()
    rest(page)
    page.get_by_role("button", name="The word after").click()
    after = page.evaluate("glassformer.app.result.current.outputTokens[2]").replace("▁", "")
    page.locator(".gfz-panel .gf-why h3", has_text=f"Why “{after}”?").wait_for()
    rest(page)
    page.locator(".gfz-panel .gf-why .gf-head .gf-link", has_text="cross-attention").first.click()
    page.locator(".gfz-rows th button").first.wait_for()  # the box of the head's attention
    assert "cross_attention" in page.evaluate("glassformer.app.state.zoom.box")
    until(page, "location.hash.includes('cross_attention')")
    rest(page)
    page.go_back()
    page.locator(".gfz-panel .gf-link", has_text="feed-forward 0").click()
    until(page, "glassformer.app.state.zoom.box === 'decoder.layers.0.feed_forward'")
    until(page, "location.hash.includes('layers.0.feed_forward')")
    rest(page)
    page.go_back()
    page.get_by_role("button", name="Beam", exact=True).click()
    page.locator(".gfz-panel .gf-node").first.wait_for()
    assert page.evaluate(SMALL) == []
    assert problems(page) == []
    page.get_by_role("button", name="Next word", exact=True).click()
    page.locator(ROWS).first.wait_for()


@pytest.mark.parametrize("panel", ["why", "beam"])
def test_addresses_of_the_sheet_open_the_box(make_translator, explore, panel):
    fragment = f"#sheet=true&panel={panel}"
    page = explore(make_translator(), SENTENCE, fragment=fragment, start="figure", size=DESK)
    page.locator(f".gfz-panel .gf-{panel}").wait_for()
    assert page.evaluate("(({zoom, sheet}) => [zoom.box, sheet])(glassformer.app.state)") == [SOFTMAX, False]


@pytest.mark.usefixtures("page")
def test_an_address_reopens_the_word_and_the_segment(opened):
    page = opened(key=7)
    page.locator("[data-stop='logit 7']").click()
    address = page.evaluate("location.hash")
    before = said(page)
    page.goto("about:blank")
    page.go_back()
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert page.evaluate("location.hash") == address
    page.locator(".gf-zoom h2", has_text=before).wait_for()


def test_the_keyboard_reaches_every_word(opened):
    page = opened()
    assert page.locator(".gfz-room [data-stop][tabindex='0']").count() == 1
    page.get_by_role("button", name="Copy as PyTorch").focus()
    page.keyboard.press("Tab")
    for name in ("Temperature", "Top-k", "Top-p"):
        assert page.evaluate("document.activeElement.ariaLabel") == name
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.stop").startswith("share ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = page.evaluate(
        "Number(document.querySelectorAll('.gfz-words tbody button[data-stop^=word]')[1].dataset.stop.slice(5))"
    )
    until(page, f"glassformer.app.state.zoom.key === {second}")
    page.keyboard.press("Escape")
    until(page, "glassformer.app.state.zoom === null")


def test_a_recording_shows_its_words_and_says_what_it_lacks(explore, make_translator, opened):
    page = opened(page=explore(make_translator(), SENTENCE, start="figure", size=DESK, data=recorded_payload))
    assert all(column(page, 2))
    assert page.locator("[data-stop='product'], .gfz-fan:first-child path").count() == 0
    page.locator(".gfz-whole .gfz-note", has_text="needs the model").wait_for()
    assert page.get_by_role("button", name="Beam", exact=True).count() == 1


@pytest.mark.parametrize(
    "settings",
    [{"norm": "pre"}, {"tie_output": False}, pytest.param({"heads": 1, "decoder_layers": 3}, marks=pytest.mark.long)],
)
def test_other_models_open(make_translator, explore, opened, settings):
    page = opened(page=explore(make_translator(**settings), SENTENCE, start="figure", size=DESK), row=0)
    below = page.locator(".gfz-outside text").first.text_content()
    assert below == f"from {'Norm' if 'norm' in settings else 'Add & norm'} below"
    lines = dict(receipt(page))
    logit = page.evaluate(
        "glassformer.value('logits').then(({data}) => data[glassformer.app.result.current.hypothesis.ids[0]])"
    )
    assert number(lines["= logit"]) == pytest.approx(logit, abs=0.0051)


def as_shown(value: float, text: str) -> bool:
    """Return whether a number, rounded to the digits of a text, is the text's number."""
    decimals = len(text.partition(".")[2])
    return abs(round(value, decimals) - number(text.replace("\u202f", ""))) < 10.0**-decimals / 4


@pytest.mark.parametrize("temperature", [pytest.param("1", marks=pytest.mark.long), "0.7"])
def test_a_reader_with_a_calculator_gets_the_powers_that_are_shown(opened, temperature):
    page = opened()
    page.evaluate(SLIDER, ["Temperature", temperature])
    for scaled, power in zip(numbers(page, 3), column(page, 4), strict=True):
        assert as_shown(math.exp(scaled), power)
    lines = receipt(page)
    [(name, power)] = [line for line in lines if line[0].startswith("e^")]
    assert as_shown(math.exp(number(name.removeprefix("e^"))), power)
    assert "rounded" in page.locator(".gfz-receipt caption").inner_text()
    open_box(page, {"zoom": {"box": "decoder.layers.0.cross_attention", "key": None}, "row": ROW}, {})
    small = page.locator(".gfz-rows tr[aria-current] small").all_inner_texts()
    [(score, power)] = [re.findall(r"^e(\S+) = (\S+)$", text)[0] for text in small if text.startswith("e")]
    assert as_shown(math.exp(number(score)), power)
    total, share = next(re.findall(r"[−\d.]+", text) for text in small if text.startswith("Σ"))
    shown = page.locator(".gfz-rows tr[aria-current] [data-stop^=scores]").first.inner_text()
    assert as_shown(number(total) / math.sqrt(number(share)), shown)


def test_a_reader_with_a_calculator_gets_the_sums_that_are_shown(opened):
    page = opened("encoder.embedding")
    (_, entry), (scale, scaled), (_, position), (_, total) = receipt(page)
    assert as_shown(number(entry) * math.sqrt(number(scale.split("√")[1])), scaled)
    assert as_shown(number(scaled) + number(position), total)
    for at in range(8):
        open_box(page, {"zoom": {"box": "encoder.layers.0.self_attention.add", "key": at}}, {})
        page.locator(".gf-zoom h2", has_text=f"Number {at}:").wait_for()
        one, other, total = re.findall(r"[−\d.]*\d", said(page).partition(":")[2])[:3]
        assert as_shown(number(one) + number(other), total)
