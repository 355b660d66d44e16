"""Turning attention: the reader drags the beam of a head to another word, and the model writes a different word."""

import re
from functools import partial
from typing import Any

import pytest
import torch

import glassformer as gf
from browser.waiting import until
from glassformer.built_in import BUILT_IN
from glassformer.corpus.tasks import CLASSIC
from glassformer.watch.explorer import server
from glassformer.watch.explorer.payload import PageLimits, payload, recorded_payload, rounded
from glassformer.watch.inspection import with_rows
from models import pair_translator

SENTENCE = "the cat sees a big black dog ."
TIRED, WIDE = (example.source for example in CLASSIC[1:3])
CHAPTER = "#chapter=1"


def opened(explore: Any, translator: gf.Translator, sentence: str = SENTENCE, **more: Any) -> Any:
    """Open the chapter, and return the tab when it shows the sentence."""
    page = explore(translator, sentence, start="figure", fragment=CHAPTER, **more)
    page.locator(".gf-ray-tug data").first.wait_for()
    return page


def opening(page: Any, sentence: str = SENTENCE) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate("(sentence) => glassformer.app.payload.openings[sentence]", sentence)
    return found


def spot(page: Any, place: float) -> tuple[float, float]:
    """Return the position of the dot when it points to a word, or between two words of a line."""
    boxes = [page.locator(f"[data-place='{one}']").bounding_box() for one in (int(place), int(place + 0.999))]
    low, high = (box["x"] + box["width"] / 2 for box in boxes)
    return low + (high - low) * (place % 1), boxes[0]["y"] + boxes[0]["height"] + 16


def press(page: Any) -> None:
    """Press the mouse on the dot."""
    box = page.locator(".gf-ray-dot").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()


def drag(page: Any, place: float) -> None:
    press(page)
    page.mouse.move(*spot(page, place), steps=9)


def shown(page: Any) -> list[float]:
    """Return the probabilities of the word and of its rival on the page."""
    found: list[float] = page.locator(".gf-ray-tug data").evaluate_all("(all) => all.map((one) => Number(one.value))")
    return found


def pill(page: Any) -> str:
    text: str = page.locator(".gf-ray-pill").inner_text()
    return text


def expected(translator: gf.Translator, sentence: str, found: dict[str, Any], heads: Any, weights: Any) -> list[float]:
    """Return what PyTorch computes for the word and its rival when these heads' rows have these weights."""
    source = torch.tensor([[*translator.bundle.source_tokenizer.encode(sentence), 2]])
    ids, row = found["ids"], found["row"]
    edits: dict[str, Any] = {}
    for name, head in heads:
        edits.setdefault(name, []).append((head, row, weights))
    model = rounded(translator.model)
    with torch.no_grad(), gf.intervene(model, with_rows(edits)):
        probabilities = model(source, torch.tensor([[1, *ids[:row]]]))[0, -1].softmax(-1)
    return [probabilities[ids[row]].item(), probabilities[found["rival"]].item()]


def at(place: int) -> list[float]:
    return [0.0] * place + [1.0]


def until_shown(page: Any, numbers: list[float]) -> None:
    """Wait until the page shows these probabilities."""
    data = "[...document.querySelectorAll('.gf-ray-tug data')]"
    until(page, f"{data}.every((one, at) => Math.abs(one.value - {numbers}[at]) < 1e-4)")


def rest(page: Any) -> None:
    """Wait until the page has searched with the turned row, and shows the result."""
    busy = "document.querySelector('.gf-ray').ariaBusy === 'true'"
    until(page, f"!glassformer.app.state.busy && !({busy})")


@pytest.fixture
def turnable(make_translator):
    """Return a translator that writes another word when one row is turned."""
    return make_translator(seed=6, extra_length=1)


def test_dragging_the_dot_makes_the_model_write_the_other_word(explore, turnable):
    page = opened(explore, turnable)
    found = opening(page)
    turn, (word, rival) = (
        found["turn"],
        page.evaluate(
            "(ids) => glassformer.app.engine.tokens('target', ids)", [found["ids"][found["row"]], found["rival"]]
        ),
    )
    assert pill(page) == word
    drag(page, turn["to"])
    numbers = expected(turnable, SENTENCE, found, [(turn["attention"], turn["head"])], at(turn["to"]))
    until_shown(page, numbers)  # before the mouse button is released
    until(page, f"document.querySelector('.gf-ray-pill').innerText === {rival!r}")
    assert page.evaluate("glassformer.app.changes.overrides") == {}
    page.mouse.up()
    rest(page)
    assert page.evaluate("glassformer.app.changes.overrides") == {
        turn["attention"]: [[turn["head"], found["row"], [float(place == turn["to"]) for place in range(9)]]]
    }
    assert shown(page) == pytest.approx(numbers, abs=1e-4)
    assert page.locator(".gf-ray-written s").first.inner_text() == word
    now = page.locator(".gf-ray-written span").all_inner_texts()
    assert now == page.evaluate("glassformer.app.result.current.outputTokens.filter((one) => one !== '<eos>')")
    said = page.locator(".gf-ray-said").inner_text()
    assert said.startswith("One head now looks at ")
    assert f"the model writes “{rival}” ({numbers[1]:.3f}) instead of “{word}”" in said.replace("\u2068", "")


def test_between_two_words_the_weight_is_split(explore, turnable):
    page = opened(explore, turnable)
    found = opening(page)
    turn = found["turn"]
    drag(page, 3.4)
    page.mouse.up()
    rest(page)
    [[_, _, weights]] = page.evaluate("glassformer.app.changes.overrides")[turn["attention"]]
    assert weights[:3] + weights[5:] == [0] * 7
    assert weights[3:5] == pytest.approx([0.6, 0.4], abs=0.03)
    assert sum(weights) == pytest.approx(1)
    assert shown(page) == pytest.approx(
        expected(turnable, SENTENCE, found, [(turn["attention"], turn["head"])], weights), abs=1e-4
    )


def test_the_keyboard_moves_keeps_and_lets_go(explore, turnable):
    page = opened(explore, turnable)
    found = opening(page)
    turn, before = found["turn"], shown(page)
    head = [(turn["attention"], turn["head"])]
    dot = page.get_by_role("slider", name="The word that the head reads")
    dot.focus()
    assert dot.get_attribute("aria-valuenow") == str(turn["from"])
    page.keyboard.press("ArrowLeft")
    until_shown(page, expected(turnable, SENTENCE, found, head, at(turn["from"] - 1)))
    page.keyboard.press("Shift+ArrowLeft")
    split = [*[0.0] * (turn["from"] - 2), 0.1, 0.9]
    until_shown(page, expected(turnable, SENTENCE, found, head, split))
    assert "0.100" in dot.get_attribute("aria-valuetext")
    page.keyboard.press("Enter")
    rest(page)
    assert page.evaluate("glassformer.app.changes.overrides")[turn["attention"]][0][2][:8] == [*split, 0]
    assert page.evaluate("document.activeElement.role") == "slider"
    page.keyboard.press("Escape")
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 0")
    rest(page)
    assert shown(page) == pytest.approx(before)


@pytest.mark.usefixtures("page")
def test_the_button_plays_the_drag_and_then_leads_on(explore, turnable):
    page = opened(explore, turnable)
    turn = opening(page)["turn"]
    page.get_by_role("button", name="Drag it for me").click()
    page.get_by_role("button", name="See the whole figure").wait_for()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert shown(page) == pytest.approx([turn["word"], turn["rival"]], abs=1e-4)
    page.get_by_role("button", name="Let go").click()
    page.get_by_role("button", name="Drag it for me").wait_for()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 0")


def test_no_word_of_the_tug_is_bold_where_a_third_one_is_likelier(explore, make_translator):
    translator = make_translator(seed=34, extra_length=1)
    page = opened(explore, translator)
    drag(page, 2)
    page.mouse.up()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    shape, numbers = page.evaluate("glassformer.value('log_probs').then(({ shape, data }) => [shape, [...data]])")
    row = torch.tensor(numbers).view(shape)[opening(page)["row"]]
    row[: translator.bundle.model_config.eos_id] = -torch.inf  # a search never writes <pad> and <bos>
    assert row.argmax() not in {opening(page)["ids"][opening(page)["row"]], opening(page)["rival"]}
    assert page.locator(".gf-ray-won").count() == 0


IS_BESIDE = """(() => {
  const [dot, hint] = [".gf-ray-dot", ".gf-ray-hint"].map((one) => document.querySelector(one).getBoundingClientRect());
  const gap = Math.max(hint.left - dot.right, dot.left - hint.right);
  return Math.abs(gap) < 20 && hint.left >= 0 && hint.right <= innerWidth;
})()"""


def test_the_first_screen_names_the_dot_and_the_rest_of_the_bar(page, explore, turnable):
    opened(explore, turnable)
    numbers = [*shown(page), float(page.locator(".gf-ray-tug small").inner_text().split()[-1])]
    assert abs(sum(numbers) - 1) < 1e-3  # up to the rounding on the page
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, IS_BESIDE)  # once the scene has been laid out anew
    drag(page, 2)
    page.mouse.up()
    until(page, "!document.querySelector('.gf-ray-hint')")


def test_with_reduced_motion_the_beam_does_not_travel(page, explore, turnable):
    page.emulate_media(reduced_motion="reduce")
    opened(explore, turnable)
    turn = opening(page)["turn"]
    page.evaluate("""() => {
      globalThis.seen = new Set();
      const dot = document.querySelector(".gf-ray-dot");
      new MutationObserver(() => seen.add(dot.getAttribute("aria-valuenow"))).observe(dot, { attributes: true });
    }""")
    page.get_by_role("button", name="Drag it for me").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert set(page.evaluate("[...seen]")) <= {str(turn["from"]), str(turn["to"])}


def test_where_no_single_row_decides_two_are_turned_together(explore, make_translator):
    translator = make_translator(seed=31, extra_length=1)
    page = opened(explore, translator)
    found = opening(page)
    assert found["turn"] is None
    margins = {
        (name, head): worth["margin"]
        for name, heads in found["without"].items()
        for head, worth in enumerate(heads)
        if name.endswith("cross_attention")
    }
    heads = sorted(margins, key=lambda one: margins[one])[:2]
    assert "the dot turns two" in page.locator(".gf-ray-said").inner_text()
    drag(page, 2)
    page.mouse.up()
    rest(page)
    rows = page.evaluate("glassformer.app.changes.overrides")
    assert {(name, head) for name, all in rows.items() for head, *_ in all} == set(heads)
    assert shown(page) == pytest.approx(expected(translator, SENTENCE, found, heads, at(2)), abs=1e-4)
    page.get_by_role("button", name="Let go").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 0")


@pytest.mark.parametrize("layers", [2, 6])
def test_the_map_numbers_the_layers_and_each_line_names_its_weight(explore, make_translator, layers):
    page = opened(explore, make_translator(encoder_layers=layers, decoder_layers=layers))
    named = [f"Layer {layer}" for layer in reversed(range(layers))]
    for stack in page.locator(".gf-ray-map div").all():
        texts = stack.locator("*").all_inner_texts()
        assert [text for text in texts if text.startswith("Layer")] == named
    lines = page.locator(".gf-ray-chip:not(.gf-ray-hint)").all_inner_texts()
    assert lines or layers > 2  # with six layers, the model writes no word here, so there is no line
    assert all(re.fullmatch(r"((another, )?layer \d, head \d: weight \d\.\d+( · )?)+", line) for line in lines)


def test_the_two_sentences_of_the_pair_are_swapped_in_place(explore, tmp_path):
    page = opened(explore, pair_translator(tmp_path), TIRED)
    assert page.locator(".gf-ray h2").inner_text() == "Who is too tired?"
    before = pill(page)
    page.get_by_role("button", name="tired ⇄").click()
    until(page, "document.querySelector('.gf-ray h2').innerText === 'Who is too wide?'")
    assert page.evaluate("glassformer.app.state.sentence") == WIDE
    assert pill(page) != before
    page.get_by_role("button", name="wide ⇄").click()
    until(page, f"document.querySelector('.gf-ray-pill').innerText === {before!r}")
    swap = page.get_by_role("button", name="tired ⇄")
    drag(page, int(swap.locator("xpath=..").get_attribute("data-place")))
    under, dot = swap.bounding_box(), page.locator(".gf-ray-dot").bounding_box()
    assert dot["x"] < under["x"] + under["width"] / 2 < dot["x"] + dot["width"]
    assert dot["y"] + 8 >= under["y"] + under["height"]  # the circle is drawn 8 px inside the dot's area
    page.mouse.up()


def test_the_title_answers_its_question_when_the_word_has_turned(explore):
    page = opened(explore, gf.Translator.load(BUILT_IN), TIRED)
    title = page.locator(".gf-ray h2")
    config = page.evaluate("glassformer.app.config")
    heads = config["heads"] * (config["encoder_layers"] + 2 * config["decoder_layers"])
    assert f"called a head; this model has {heads}." in page.locator(".gf-ray-lead").inner_text()
    assert page.locator(".gf-ray-words button").inner_text() == "tired ⇄ wide"
    page.get_by_role("button", name="Drag it for me").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert pill(page) == "elle"
    assert title.inner_text() == "The street is too tired."
    page.get_by_role("button", name="Let go").click()
    until(page, "document.querySelector('.gf-ray h2').innerText === 'Who is too tired?'")
    assert pill(page) == "il"


def test_a_click_on_a_word_turns_the_look_to_it(explore, turnable):
    page = opened(explore, turnable)
    turn = opening(page)["turn"]
    page.locator(f"[data-place='{turn['to']}']").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert shown(page) == pytest.approx([turn["word"], turn["rival"]], abs=1e-4)


def test_a_click_on_the_written_word_turns_the_look_and_the_next_leads_on(explore, turnable):
    page = opened(explore, turnable)
    turn, before = opening(page)["turn"], pill(page)
    page.locator(".gf-ray-pill").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert shown(page) == pytest.approx([turn["word"], turn["rival"]], abs=1e-4)
    assert pill(page) != before
    page.locator(".gf-ray-pill").click()
    page.locator(".gfs-outline").get_by_text("Softmax").wait_for()
    assert page.evaluate("Object.keys(glassformer.app.changes.overrides).length") == 1


def test_the_outline_carries_what_the_reader_has_turned(explore, turnable):
    page = opened(explore, turnable)
    turn = opening(page)["turn"]
    page.locator(f"[data-place='{turn['to']}']").click()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    page.get_by_role("button", name="See the whole figure").click()
    page.get_by_role("heading", name="This is the Transformer.").wait_for()
    token = page.evaluate("glassformer.app.result.current.targetTokens")[opening(page)["row"]]
    assert f"by hand: “{token}”" in page.locator(".gfs-paper").inner_text()
    new = page.evaluate("glassformer.app.result.current.text")
    assert page.locator(".gfs-conclusion").inner_text().endswith(f"It now writes: {new}")
    page.get_by_role("button", name="Let go").click()
    until(page, "!document.querySelector('.gfs-paper').innerText")
    assert "now writes" not in page.locator(".gfs-conclusion").inner_text()


def test_the_title_asks_about_no_word_that_is_not_on_the_screen(explore, make_translator):
    page = opened(explore, make_translator(seed=13, extra_length=3))
    turn, [word, rival] = (opening(page)["turn"], page.locator(".gf-ray-lead strong").all_inner_texts())
    title = page.locator(".gf-ray h2")
    assert title.inner_text() == f"Why “{word}”?"
    page.locator(f"[data-place='{turn['to']}']").click(position={"x": 3, "y": 3})
    page.locator(".gf-ray-said", has_text="one that begins differently").wait_for()
    assert title.inner_text() == "Another translation"
    lead = page.locator(".gf-ray-lead").inner_text()
    assert lead.endswith(f"still compares “{word}” and “{rival}” for word {opening(page)['row'] + 1}.")
    page.get_by_role("button", name="Let go").click()
    until(page, f"document.querySelector('.gf-ray h2').innerText === 'Why “{word}”?'")


def test_another_sentence_asks_about_its_closest_word(explore, turnable):
    page = opened(explore, turnable)
    assert page.locator(".gf-ray h2").inner_text() == f"Why “{pill(page)}”?"
    assert page.locator(".gf-ray-words button").count() == 0


def test_a_sentence_of_several_lines_is_turned_in_each_line(explore, make_translator):
    sentence = " ".join([SENTENCE] * 4)
    page = explore(make_translator(seed=6, extra_length=1), sentence, start="figure", fragment=CHAPTER)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".gf-ray-tug data").first.wait_for(timeout=20000)
    tops = {page.locator(f"[data-place='{place}']").bounding_box()["y"] for place in range(33)}
    assert len(tops) > 3
    for place in (20, 3):
        rest(page)
        # the words stand at the top, so that the foot covers neither the dot nor its goal
        page.locator(".gf-ray-words").first.evaluate("(words) => words.scrollIntoView()")
        drag(page, place)
        page.mouse.up()
        rest(page)
        assert page.locator(".gf-ray-dot").get_attribute("aria-valuenow") == str(place)


def test_arrows_follow_a_source_from_right_to_left(explore, make_translator):
    source = "החתול רואה כלב גדול ושחור ."
    page = opened(explore, make_translator(seed=6, extra_length=1, source=source), source)
    boxes = [page.locator(f"[data-place='{place}']").bounding_box()["x"] for place in range(6)]
    assert boxes == sorted(boxes, reverse=True)
    drag(page, 2)
    page.mouse.up()
    rest(page)
    dot = page.locator(".gf-ray-dot")
    assert dot.get_attribute("aria-valuenow") == "2"
    dot.press("ArrowRight")
    assert dot.get_attribute("aria-valuenow") == "1"


def test_a_recording_shows_the_beam_but_does_not_turn_it(explore, turnable):
    page = opened(explore, turnable, data=recorded_payload)
    assert page.locator(".gf-ray-dot").count() == 0
    assert page.locator(".gf-ray-path").count() == 1
    assert page.locator(".gf-ray-pill").get_attribute("title") is None
    assert "is a recording" in page.locator(".gf-ray-said").inner_text()
    assert page.get_by_role("button", name="See the whole figure").is_visible()


def test_python_behind_the_page_computes_when_the_dot_rests(browser, turnable, serving, monkeypatch):
    monkeypatch.setattr(server, "payload", partial(payload, limits=PageLimits(model=10)))
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(serving(turnable, SENTENCE).url + CHAPTER)
    page.locator(".gf-ray-tug data").first.wait_for()
    assert page.evaluate("glassformer.app.engine.live") == "remote"
    found, before = opening(page), shown(page)
    turn = found["turn"]
    drag(page, turn["to"])
    assert page.locator(".gf-ray-said").inner_text().startswith("Let the dot rest")
    assert shown(page) == before
    page.mouse.up()
    until(page, "Object.keys(glassformer.app.changes.overrides).length === 1")
    rest(page)
    assert shown(page) == pytest.approx([turn["word"], turn["rival"]], abs=1e-4)
    context.close()
