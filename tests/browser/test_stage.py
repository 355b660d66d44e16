"""The stage: Figure 1 with a sentence running through it shows the model's own numbers, and the reader changes them."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

import glassformer as gf
from browser.waiting import rest, settled, until
from glassformer.built_in import BUILT_IN
from glassformer.watch.explorer.payload import rounded
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions
from tiers import in_tiers

SENTENCE = "the black cat sees a big dog ."
ANIMAL = "The animal didn't cross the street because it was too tired."
CROSS = "decoder.layers.1.cross_attention"
SIZES = [(1440, 900), (1280, 720), (1920, 1080), (390, 844)]
OVERLAPS = """() => {
  const shown = [...document.querySelectorAll(".gf-stage-root text")].filter((one) => one.textContent.trim());
  const small = shown.filter((one) => parseFloat(getComputedStyle(one).fontSize) < 12).map((one) => one.textContent);
  const boxes = shown.map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
  const crossing = [];
  boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    const wide = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const tall = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    if (wide > 1 && tall > 4) crossing.push([one.text, other.text]);
  }));
  return { small, crossing };
}"""

FIGURE_TOP = "document.querySelector('.gfs-figure-svg').getBoundingClientRect().top + scrollY"
BUSY_SIGN = """() => getComputedStyle(document.querySelector(".gf-stage-root"), "::after").animationName"""


@pytest.fixture
def stage(make_translator: Any, explore: Any) -> Any:
    """Return a function that opens the stage of a model in a window, and returns the page when the figure is drawn."""

    def opened(size: tuple[int, int] = SIZES[0], sentence: str = SENTENCE, **settings: Any) -> Any:
        translator = make_translator(**{"extra_length": 6, **settings})
        page = explore(translator, sentence, start="figure", size=size)
        narrow = ".gfs-narrow" if size[0] < 700 else ":not(.gfs-narrow)"
        page.locator(f".gfs-plane{narrow} .gfs-knot").wait_for(state="attached")
        return page

    return opened


def shown(page: Any, selector: str) -> list[str]:
    texts: list[str] = page.locator(selector).all_text_contents()
    return texts


def value(page: Any, name: str) -> Any:
    found = page.evaluate(
        "async (name) => { const { shape, data } = await glassformer.value(name); return [shape, [...data]]; }", name
    )
    return np.array(found[1]).reshape(found[0])


def test_the_likeliest_words_have_the_models_probabilities(stage):
    page = stage()
    for row in (0, 2):
        page.evaluate("(row) => glassformer.app.show({row})", row)
        settled(page)
        expected = np.sort(np.exp(value(page, "log_probs")[row]))[::-1][:5]
        texts = shown(page, ".gfs-g-softmax text")[::2]
        np.testing.assert_allclose([float(text) for text in texts], expected, atol=5e-4)


def test_the_knot_stands_where_the_head_reads_most(stage):
    page = stage()
    for head in range(2):
        heads = page.evaluate("glassformer.app.state.heads") | {"cross": {"layer": 1, "head": head}}
        page.evaluate("(heads) => glassformer.app.show({row: 1, heads})", heads)
        settled(page)
        weights = value(page, f"{CROSS}.weights")[head, 1]
        knot = page.locator(".gfs-knot")
        assert int(knot.get_attribute("aria-valuenow")) == weights.argmax()
        assert knot.get_attribute("aria-valuetext").endswith(f"{weights.max():.3f}")


@pytest.mark.parametrize("size", in_tiers(SIZES, {SIZES[0], SIZES[3]}))
def test_a_chosen_source_word_and_the_word_of_the_knot_have_their_weights(stage, size):
    page = stage(size, extra_length=50)
    head = page.evaluate("glassformer.app.state.heads.cross.head")
    words = [*SENTENCE.split(), "end"]
    measure = " " if page.locator(".gfs-narrow").count() else " · weight "
    for source in range(len(words)):
        page.evaluate("(sourceWord) => glassformer.app.show({row: 1, sourceWord})", source)
        settled(page)
        weights = value(page, f"{CROSS}.weights")[head, 1]
        most = weights.argmax()
        assert int(page.locator(".gfs-knot").get_attribute("aria-valuenow")) == most
        labels = [label for label in shown(page, ".gfs-g-look text") if label not in ("K V", "Q")]
        assert labels == [f"{words[at]}{measure}{weights[at]:.3f}" for at in dict.fromkeys([most, source])]
        assert page.evaluate(OVERLAPS) == {"small": [], "crossing": []}


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder_layers": 6, "decoder_layers": 6},
        {"heads": 16, "d_model": 64},
        pytest.param({"norm": "pre"}, marks=pytest.mark.long),
        pytest.param({"positions": "learned"}, marks=pytest.mark.long),
        pytest.param({"positions": "none"}, marks=pytest.mark.long),
        pytest.param({"encoder_layers": 1, "decoder_layers": 3}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_the_figure_of_any_model_stands(stage, settings):
    page = stage(extra_length=50, **settings)
    layers = page.evaluate("glassformer.app.config.encoder_layers + glassformer.app.config.decoder_layers")
    assert page.locator(".gfs-edge").count() == layers - 2
    # waits until boxes have stopped gliding
    until(page, "document.getAnimations().every((one) => one.playState !== 'running')")
    assert page.evaluate(OVERLAPS) == {"small": [], "crossing": []}
    assert page.locator(".gfs-g-guesses .gfs-guess").count() >= 3


def test_the_sentence_says_what_the_lit_head_is_worth(stage):
    page = stage()
    page.evaluate("glassformer.app.show({row: 2})")
    page.locator(".gfs-more-text", has_text="Without this head").or_(
        page.locator(".gfs-more-text", has_text="still has")
    ).wait_for()
    said = page.locator(".gfs-more-text").inner_text()
    head = page.evaluate("glassformer.app.state.heads.cross")
    [word] = page.evaluate("[glassformer.app.result.current.hypothesis.ids[2]]")
    before = np.exp(value(page, "log_probs")[2, word])
    attention = f"decoder.layers.{head['layer']}.cross_attention"
    source, target = page.evaluate(
        "[glassformer.app.result.current.sourceIds, glassformer.app.result.current.targetIds]"
    )
    after = page.evaluate(
        """async ([sourceIds, targetIds, ablated, word]) => {
          const trace = await glassformer.app.engine.trace({ sourceIds, targetIds, changes: { ablated } });
          const { shape, data } = await trace.get("log_probs");
          return Math.exp(data[2 * shape[1] + word]);
        }""",
        [source, target, {attention: [head["head"]]}, word],
    )
    if f"{before:.3f}" == f"{after:.3f}":
        assert f"still has {after:.3f}" in said
    else:
        assert f"{before:.3f} to {after:.3f}" in said
        assert ("falls" in said) == (after < before)


def test_a_forced_word_is_called_forced(stage):
    page = stage()
    page.evaluate("glassformer.set({prefix: 'dort'})")
    page.evaluate("glassformer.app.show({row: 0})")
    page.get_by_text("You forced “dort”; the model itself gives it").wait_for()
    page.get_by_text("with your changes").wait_for()


def test_a_click_on_a_word_a_head_a_layer_and_a_box_lights_it(stage):
    page = stage()
    page.locator('.gfs-word[data-word="output"][data-column="2"]').click()
    assert page.evaluate("glassformer.app.state.row") == 2
    page.locator('.gfs-head[data-head="1"]').click()
    assert page.evaluate("glassformer.app.state.heads.cross.head") == 1
    page.locator('.gfs-edge[data-stack="decoder"]').click()
    assert page.evaluate("glassformer.app.state.heads.decoder.layer") == page.evaluate(
        "glassformer.app.state.heads.cross.layer"
    )
    page.locator('.gfs-box[data-box="decoder.softmax"]').click(position={"x": 5, "y": 5})
    page.get_by_role("heading", name="Softmax turns the scores into probabilities").wait_for()
    page.locator('.gfs-word[data-word="encoder"][data-column="3"]').click()
    assert page.evaluate("glassformer.app.state.sourceWord") == 3


def test_dragging_the_knot_turns_the_row_and_let_go_returns(stage):
    page = stage()
    page.evaluate("glassformer.app.show({row: 1})")
    settled(page)
    before = value(page, "log_probs")
    knot = page.locator(".gfs-knot .gfs-dot").bounding_box()
    first = page.locator(".gfs-g-ribbons path").first.get_attribute("d")
    y = float(first.split("M")[-1].split("H")[0].split(" ")[1])  # the height of the ribbon of the first word
    x = knot["x"] + knot["width"] / 2
    page.mouse.move(x, knot["y"] + knot["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y + 30)
    page.mouse.move(x, y)
    page.get_by_text("You turned head").wait_for()
    page.mouse.up()
    page.get_by_role("button", name="Let go").wait_for()
    [[_, row, weights]] = next(iter(page.evaluate("glassformer.app.changes.overrides").values()))
    assert (row, weights[0], sum(weights)) == (1, 1, 1)
    assert not np.allclose(value(page, "log_probs")[1], before[1])
    page.get_by_role("button", name="Let go").click()
    settled(page)
    np.testing.assert_array_equal(value(page, "log_probs"), before)


def test_arrows_on_the_knot_turn_the_row(stage):
    page = stage()
    page.locator(".gfs-knot").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Escape")
    assert page.evaluate("glassformer.app.changed") is False
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Let go").wait_for()


def tab_stops(page: Any) -> list[str]:
    """Press Tab until the focus has left the page; return the kinds and names of the elements that had the focus."""
    visited: list[str] = []
    page.evaluate("document.activeElement.blur()")
    while len(visited) < 30:
        page.keyboard.press("Tab")
        at = "(({ nodeName, ariaLabel, textContent }) => `${nodeName}: ${ariaLabel ?? textContent}`)"
        stop = page.evaluate(f"document.activeElement === document.body ? null : {at}(document.activeElement)")
        if stop is None:
            break
        visited.append(stop)
    return visited


@pytest.mark.parametrize(
    ("examples", "size"),
    [
        ([SENTENCE, "a dog sleeps ."], SIZES[0]),
        ([], SIZES[3]),
        pytest.param([], SIZES[0], marks=pytest.mark.long),
        pytest.param([SENTENCE, "a dog sleeps ."], SIZES[3], marks=pytest.mark.long),
    ],
    ids=str,
)
def test_the_tab_key_stops_at_most_nine_times_at_first_sight(make_translator, explore, size, examples):
    page = explore(make_translator(extra_length=6), SENTENCE, start="figure", examples=examples)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.locator(".gfs-knot").wait_for(state="attached")
    settled(page)
    stops = tab_stops(page)
    names = (
        "More",
        "Play",
        "What if?",
        "Open this box",
        "Cross-attention:",
        "Change the sentence",
        "1. Turn its attention",
    )
    for name in names:
        assert sum(name in stop for stop in stops) == 1, stops
    assert len(stops) <= 9, stops


def test_the_keyboard_moves_through_the_figure(stage):
    page = stage()
    page.locator(".gfs-figure-svg").focus()
    page.evaluate("glassformer.app.show({row: 1})")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("glassformer.app.state.row") == 2
    page.keyboard.press("ArrowUp")
    assert page.evaluate("glassformer.app.state.box") == "decoder.cross_attention.add"
    page.keyboard.press("PageDown")
    assert page.evaluate("glassformer.app.state.heads.cross.layer") == 0
    page.keyboard.press("1")
    assert page.evaluate("glassformer.app.state.heads.cross.head") == 1


def test_the_menu_has_no_sign_that_common_fonts_lack(stage):
    page = stage()
    page.locator(".gfs-more summary").click()
    text = page.locator(".gfs-more .gf-choices").inner_text()
    assert "Copy link" in text
    assert re.fullmatch(r"[\s!-~…·]+", text.replace("中文", ""))  # whoever reads Chinese has a font for it


def test_boxes_and_guesses_open_their_panels_over_the_free_space(stage):
    page = stage()
    sheet = page.locator(".gfs-sheet")
    page.get_by_role("button", name="What if?").click()
    sheet.get_by_role("button", name="No positions").click()
    page.wait_for_function("glassformer.app.changes.positions === false")
    assert (
        page.evaluate("document.querySelector('.gfs-sheet').getBoundingClientRect().right") < 690
    )  # the sheet does not cover the decoder
    page.keyboard.press("Escape")
    assert not sheet.is_visible()


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ("decoder.softmax", "Softmax turns the"),
        pytest.param("decoder.linear", "The output matrix gives", marks=pytest.mark.long),
        pytest.param("decoder.positions", "Each dimension is a wave", marks=pytest.mark.long),
        ("encoder.embedding", "has its own"),
    ],
)
def test_a_lit_box_opens_where_it_stands(stage, box, said):
    page = stage()
    for _ in range(2):  # the first click lights the box, the second opens it
        page.locator(f'.gfs-box[data-box="{box}"]').click(position={"x": 5, "y": 5})
    page.locator(".gf-zoom h2", has_text=said).wait_for()
    assert page.evaluate("(({zoom, sheet}) => [zoom.box, sheet])(glassformer.app.state)") == [box, False]


def test_the_sheet_is_open_again_after_all_numbers(stage):
    page = stage()
    page.get_by_role("button", name="What if?").click()
    page.locator(".gfs-sheet .gf-changes").wait_for()
    page.evaluate("glassformer.app.select({name: 'logits', index: [0, 0]})")
    page.locator(".gfn-names").wait_for()
    for _ in range(2):
        page.keyboard.press("Escape")
    page.locator(".gfs-sheet .gf-changes").wait_for()
    assert page.locator(".gf-changes").count() == 1


def test_back_returns_to_each_state_at_rest(stage):
    page = stage()
    for row in (1, 2):
        rest(page)
        page.evaluate("(row) => glassformer.app.show({row})", row)
    page.go_back()
    page.wait_for_function("glassformer.app.state.row === 1")
    page.go_back()
    page.wait_for_function("glassformer.app.state.row === null")


def test_play_writes_word_by_word_and_ends_with_the_whole_figure(stage):
    page = stage(extra_length=1)
    words = page.evaluate("glassformer.app.result.current.outputTokens.length")
    play = page.get_by_role("button", name="Play")
    for act in range(6 + words - 1):
        play.click()
        settled(page)
        assert page.locator('.gfs-word[data-word="output"]').count() == max(0, act - 4)
    play.click()
    settled(page)
    assert page.locator('.gfs-word[data-word="output"]').count() == words


SENTENCE_AT = ".gfs-said-box h2"
FLOWN = """() => {
  globalThis.flown = [];
  const added = (all) => all.flatMap(({ addedNodes }) => [...addedNodes].map((one) => [one.tagName, one.textContent]));
  new MutationObserver((all) => flown.push(...added(all)))
    .observe(document.querySelector(".gfs-flying"), { childList: true });
}"""
"""A script that keeps a list of all pieces that fly, even of those that have arrived."""
FLYING = "[...document.querySelector('.gfs-flying').children].map((one) => one.tagName)"
SAID = [
    "Each word becomes numbers, and its place is added.",
    "All words look at each other at once.",
    "A small network works on each word alone; the result is the memory.",
    "The decoder begins: so far, it has only the mark “start”.",
    "The decoder reads the memory.",
]


@pytest.mark.usefixtures("page")
def test_play_moves_what_is_read_what_is_added_and_the_written_word(stage):
    page = stage()
    page.evaluate(FLOWN)
    # plays, and pauses at once, so that only the keys lead on
    page.get_by_role("button", name="Play").evaluate("(one) => { one.click(); one.click(); }")
    for at, sentence in enumerate(SAID):
        page.locator(SENTENCE_AT, has_text=sentence).wait_for()
        pieces = [kind for kind, _ in page.evaluate("flown.splice(0)")]
        assert "image" in pieces  # vectors rise, or a sub-layer's output drops onto the strand
        assert at in (0, 2) or "circle" in pieces  # dots of the words that are attended to
        page.keyboard.press("ArrowRight")
    page.locator(SENTENCE_AT, has_text="is written").wait_for()
    word, chance = page.evaluate(
        "(({outputTokens, hypothesis}) => [outputTokens[0], Math.exp(hypothesis.tokenLogProbs[0])])"
        "(glassformer.app.result.current)"
    )
    assert page.locator(SENTENCE_AT).inner_text() == f"“{word}” gets {chance:.3f} and is written."
    assert ["text", word] in page.evaluate("flown")
    page.keyboard.press("ArrowLeft")
    page.locator(SENTENCE_AT, has_text=SAID[-1]).wait_for()
    page.keyboard.press("Escape")
    settled(page)
    assert page.evaluate(FLYING) == []


def test_with_reduced_motion_play_changes_states_and_moves_nothing(stage):
    page = stage()
    assert page.evaluate("matchMedia('(prefers-reduced-motion)').matches")
    page.locator(".gfs-figure-svg").focus()
    for sentence in SAID:
        page.keyboard.press(" ")
        page.locator(SENTENCE_AT, has_text=sentence).wait_for()
        settled(page)
        assert page.evaluate(FLYING) == []
        assert page.evaluate("document.getAnimations().filter((one) => one.playState === 'running').length") == 0


@pytest.mark.usefixtures("page")
def test_lecture_mode_fills_the_screen_with_large_type_and_obeys_a_clicker(stage):
    page = stage((1440, 900), sentence=" ".join([SENTENCE] * 3), extra_length=50)
    page.locator(".gfs-figure-svg").focus()
    page.keyboard.press("f")
    page.locator(".glassformer[data-lecture]").wait_for()
    settled(page)
    until(page, "parseFloat(getComputedStyle(document.querySelector('.gfs-said-box h2')).fontSize) >= 40")
    assert (
        page.locator(".gfs-word text").evaluate_all(
            """(all) => Math.min(...all.filter((one) => /[^.·…]/.test(one.textContent)).map(
                (one) => parseFloat(getComputedStyle(one).fontSize)))"""
        )
        >= 20
    )
    assert page.evaluate(OVERLAPS)["crossing"] == []
    box = page.locator(".glassformer").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1440, 900)
    for key, sentence in zip(["PageDown", " ", "ArrowRight", "PageUp"], [*SAID[:3], SAID[1]], strict=True):
        page.keyboard.press(key)
        page.locator(SENTENCE_AT, has_text=sentence).wait_for()
    page.keyboard.press("Escape")  # ends Play, but not lecture mode
    assert page.locator(".glassformer[data-lecture]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".glassformer[data-lecture]").count() == 0
    page.get_by_role("button", name="Change the sentence").click()
    page.keyboard.press("f")  # in a field, F is a letter and not a shortcut
    assert page.locator(".glassformer[data-lecture]").count() == 0


@pytest.mark.parametrize("size", [(1280, 720), pytest.param((1440, 900), marks=pytest.mark.long)])
def test_the_sentence_names_a_word_that_the_box_of_softmax_lists(explore, size):
    page = explore(gf.Translator.load(BUILT_IN), ANIMAL, start="figure")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("glassformer.set({ mistakes: ['no_transpose'] }).then(() => null)")
    likeliest, unlikely = np.exp(value(page, "log_probs")).max(1), 0
    rows = page.evaluate("glassformer.app.result.current.outputTokens.length")
    for row in range(0, rows, 1 if size[1] == 900 else 3):
        page.evaluate("(row) => glassformer.app.show({ row, box: 'decoder.softmax' })", row)
        settled(page)
        word = page.locator(f"{SENTENCE_AT} .gfs-target").inner_text()
        number = page.locator(SENTENCE_AT).inner_text().split()[-1].strip(".")
        texts = shown(page, ".gfs-g-softmax text")
        assert (number, word) in zip(texts[::2], texts[1::2], strict=True)
        assert len(texts) == 2 * 6
        unlikely += likeliest[row] > float(number) + 0.001
    # because of the mistake, the search writes words that are not the likeliest
    assert unlikely > (3 if size[1] == 900 else 0)
    page.evaluate("glassformer.app.show({ chapter: 7, act: 2 })")
    until(page, "document.querySelector('.gfs-conclusion').textContent.startsWith('A mistake')")
    written = page.evaluate("glassformer.app.result.current.outputTokens.length")
    assert page.locator(".gfs-word[data-word=output]").count() == written  # the sentence names all written words


@pytest.mark.parametrize(
    ("size", "struck"),  # the low window has no room for it
    [((1920, 1080), 1), pytest.param((1280, 720), 0, marks=pytest.mark.long)],
)
def test_in_lecture_mode_the_word_before_a_change_is_struck_apart_from_the_others(explore, size, struck):
    page = explore(gf.Translator.load(BUILT_IN), ANIMAL, start="figure")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    look = {"box": "decoder.cross_attention", "lecture": True, "row": 10}
    page.evaluate("(look) => glassformer.app.show(look)", look)
    layer, head = page.evaluate("(({ layer, head }) => [layer, head])(glassformer.app.state.heads.cross)")
    street = [[head, 10, [float(at == 6) for at in range(14)]]]
    name = f"decoder.layers.{layer}.cross_attention"
    page.evaluate("(rows) => glassformer.set({ overrides: rows }).then(() => null)", {name: street})
    page.locator(SENTENCE_AT, has_text="elle").wait_for()
    settled(page)
    assert page.locator(".gfs-struck").count() == struck
    assert page.evaluate(OVERLAPS)["crossing"] == []
    chip, frame = page.locator(".gfs-why rect").bounding_box(), page.locator(".gfs-box[data-box='decoder.softmax']")
    assert chip["x"] + chip["width"] <= frame.bounding_box()["x"] + frame.bounding_box()["width"]


def test_the_end_of_lecture_mode_draws_no_ring_around_the_page(stage):
    page = stage()
    page.locator(".gfs-figure-svg").focus()
    page.keyboard.press("f")
    page.locator(".glassformer[data-lecture]").wait_for()
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('.glassformer[data-lecture]')")
    until(page, "!document.querySelector('.gfs-figure-svg:focus-visible')")


def test_words_that_the_last_step_changed_keep_their_names(explore):
    page = explore(gf.Translator.load(BUILT_IN), ANIMAL, start="figure")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_role("button", name="tired ⇄ wide").click()
    page.locator(SENTENCE_AT, has_text="elle").wait_for()
    settled(page)
    assert {"·", "…"} & {*shown(page, ".gfs-word text")}  # not all words have a name
    for side, word in (("encoder", "wide"), ("output", "elle"), ("output", "large")):
        assert word in shown(page, f".gfs-word[data-word={side}] text")


def test_lecture_mode_fills_a_frame_that_may_not_have_the_screen(stage):
    page = stage()
    page.locator(".gfs-figure-svg").wait_for()
    page.evaluate("document.body.style.padding = '50px'")
    page.locator(".gfs-figure-svg").focus()
    page.keyboard.press("f")
    box = page.locator(".glassformer[data-lecture]").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1440, 900)
    assert page.locator(".gf-error:visible").count() == 0
    page.keyboard.press("Escape")
    assert page.locator(".glassformer[data-lecture]").count() == 0


def test_the_figure_has_the_width_of_the_window_after_the_first_chapter(stage):
    page = stage((1280, 720))
    page.evaluate("glassformer.app.show({chapter: 1})")
    page.set_viewport_size({"width": 1400, "height": 720})
    page.evaluate("glassformer.app.show({chapter: 0})")
    settled(page)
    assert page.locator(".gfs-figure-svg").get_attribute("width") == "1400"


@pytest.mark.parametrize("looks", [{"sheet": True, "panel": "changes"}, {"second": {"text": SENTENCE}}, {"chapter": 3}])
def test_every_cross_says_what_it_closes(stage, looks):
    page = stage()
    page.evaluate("glassformer.set({ positions: false }).then(() => null)")
    page.evaluate("(looks) => glassformer.app.show(looks)", looks)
    settled(page)
    crosses = (
        page.get_by_role("button").filter(has_text=re.compile("^([×✕]|Explore freely)$")).locator("visible=true").all()
    )
    assert len(crosses) == (2 if "sheet" in looks else 1)  # in the sheet, the active change has a cross of its own
    for cross in crosses:
        assert cross.get_attribute("title")
        assert cross.get_attribute("title") == cross.get_attribute("aria-label")


def test_a_new_sentence_is_typed_into_the_words(stage):
    page = stage()
    page.get_by_role("button", name="Change the sentence").click()
    page.get_by_label("Source sentence").fill("the dog sleeps .")
    page.keyboard.press("Enter")
    page.wait_for_function("glassformer.app.state.sentence === 'the dog sleeps .'")
    settled(page)
    assert shown(page, '.gfs-word[data-word="encoder"]') == ["the", "dog", "sleeps", ".", "end"]


def test_what_the_mask_no_longer_hides_is_drawn(stage):
    page = stage()
    page.evaluate("glassformer.app.show({ box: 'decoder.self_attention', row: 2 })")
    settled(page)
    hatched = page.locator(".gfs-g-arcs rect[fill='url(#gfs-hatch)']")
    assert hatched.count() == 1
    page.evaluate("glassformer.set({ mistakes: ['no_causal_mask'] }).then(() => null)")
    settled(page)
    assert hatched.count() == 0
    drawn = page.locator(".gfs-arcs[data-stack=decoder]").evaluate_all("(all) => all.map((one) => +one.dataset.column)")
    assert max(drawn) > page.evaluate("glassformer.app.state.row")


def test_a_head_that_is_off_looks_off(stage):
    page = stage()
    page.evaluate("glassformer.app.show({ box: 'decoder.cross_attention', row: 2 })")
    settled(page)
    layer, head = page.evaluate("(({ layer, head }) => [layer, head])(glassformer.app.state.heads.cross)")
    ribbon = page.locator(".gfs-lit-ribbon").first
    assert ribbon.get_attribute("stroke-dasharray") is None
    assert page.locator(".gfs-off").count() == 0
    off = {f"decoder.layers.{layer}.cross_attention": [head]}
    page.evaluate("(ablated) => glassformer.set({ ablated }).then(() => null)", off)
    settled(page)
    assert ribbon.get_attribute("stroke-dasharray") == "3 6"
    assert page.locator(f".gfs-head[data-head='{head}'] .gfs-off").count() == 1
    assert page.locator(".gfs-off").count() == 1
    assert "off" in page.locator(".gfs-knot").get_attribute("aria-valuetext")


def test_examples_are_told_apart_by_their_ends(make_translator, explore):
    pair = [
        "the black cat sees a big dog because it was so very tired .",
        "the black cat sees a dog because it was wide .",
    ]
    page = explore(make_translator(extra_length=6), SENTENCE, start="figure", examples=pair)
    page.locator(".gfs-chip[aria-pressed]").first.wait_for()
    assert shown(page, ".gfs-chip[aria-pressed]") == ["… so very tired .", "… it was wide ."]
    page.locator(".gfs-chip[aria-pressed]").first.focus()
    page.keyboard.press("ArrowRight")  # Tab reaches only one example
    assert page.evaluate("document.activeElement.title") == pair[1]
    assert page.locator(".gfs-chip[aria-pressed]").evaluate_all("(all) => all.map((one) => one.tabIndex)") == [-1, 0]


def test_examples_that_do_not_fit_fade_out_and_are_whole_where_the_arrows_lead(make_translator, explore):
    examples = [f"a {word} cat sleeps so very {word}ly ." for word in ("quiet", "brave", "proud", "loud")]
    page = explore(make_translator(extra_length=6), SENTENCE, start="figure", examples=examples)
    page.set_viewport_size({"width": 1280, "height": 800})
    strip, chips = page.locator(".gfs-chips"), page.locator(".gfs-chip")
    until(page, "(({scrollWidth, clientWidth}) => scrollWidth > clientWidth)(document.querySelector('.gfs-chips'))")
    assert "gradient" in strip.evaluate("(one) => getComputedStyle(one).maskImage")
    chips.first.focus()
    for _ in range(chips.count() - 1):
        page.keyboard.press("ArrowRight")
    last = chips.last.evaluate("(one) => [one === document.activeElement, one.scrollWidth - one.clientWidth]")
    assert last == [True, 0]  # its text is not cut off
    ends = [one.evaluate("(one) => one.getBoundingClientRect().right") for one in (chips.last, strip)]
    assert ends[0] <= ends[1] - 23  # it ends beside the fade


def test_a_frame_without_width_for_a_moment_is_no_error(stage):
    page = stage()
    for width in (60, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        until(page, f"document.documentElement.clientWidth === {width}")
        settled(page)
        rest(page)
    assert page.locator(".gf-error:visible").count() == 0


def test_a_pair_of_examples_is_one_chip_that_swaps(make_translator, explore):
    examples = [SENTENCE, "a dog sleeps .", SENTENCE.replace("black", "small")]
    page = explore(make_translator(extra_length=6), SENTENCE, start="figure", examples=examples)
    chips = page.locator(".gfs-chip[aria-pressed]")
    assert shown(page, ".gfs-chip[aria-pressed]") == ["black ⇄ small", "a dog sleeps ."]
    for sentence, word in ((examples[2], "small"), (examples[0], "black"), (examples[2], "small")):
        assert chips.first.get_attribute("title") == sentence
        chips.first.focus()
        page.keyboard.press("Enter")
        until(page, f"glassformer.app.result.current.text && glassformer.app.state.sentence === {json.dumps(sentence)}")
        settled(page)
        assert chips.first.get_attribute("aria-pressed") == "true"
        chips.first.locator("b", has_text=word).wait_for()
        # the chip keeps the focus, so the keyboard can swap again
        assert page.evaluate("document.activeElement.className") == "gfs-chip"
    chips.nth(1).click()
    settled(page)
    assert page.evaluate("glassformer.app.state.sentence") == examples[1]
    assert shown(page, ".gfs-chip b") == []


NEEDS = r"The choice of “(\S+)” over “(\S+)” depends most on “(\S+)”.* falls from (\S+) to (\d\S*?\d)[. ]"


def test_the_page_says_what_a_word_of_an_example_depends_on_most(make_translator, explore):
    translator = make_translator(seed=9, extra_length=2)
    page = explore(translator, SENTENCE, start="figure", fragment="row=8")
    [(word, rival, needed, before, after)] = re.findall(NEEDS, said_below(page, "depends most"))
    model, tokenizer = rounded(translator.model), translator.bundle.target_tokenizer
    source = [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]
    ids, places = page.evaluate("glassformer.app.result.current.hypothesis.ids"), range(len(source))
    pair = [ids[8], tokenizer.encode(rival)[0]]

    def chances(hidden: int | None = None) -> torch.Tensor:
        queries = {name: len(source) if name.startswith("encoder") else 9 for name in attentions(model)}
        masks = {
            name: [] if hidden is None else [(query, hidden, False) for query in range(count)]
            for name, count in queries.items()
            if "decoder" not in name or name.endswith("cross_attention")
        }
        with torch.no_grad(), changed(model, Changes(masks=masks)):
            return model(torch.tensor([source]), torch.tensor([[1, *ids[:8]]]))[0, -1].log_softmax(-1)[pair]

    margins = [float(chances(at) @ torch.tensor([1.0, -1.0])) for at in places]
    most = int(np.argmin(margins))
    assert (word, needed) == (tokenizer.tokens(pair)[0], SENTENCE.split()[most])
    assert float(before) == pytest.approx(float(chances()[0].exp()), abs=6e-4)
    assert float(after) == pytest.approx(float(chances(most)[0].exp()), abs=6e-4)
    page.evaluate("glassformer.app.open('a dog sleeps .').then(() => null)")  # not an example, so nothing is measured
    said_below(page, "Head")
    settled(page)
    assert "depends most" not in page.locator(".gfs-more-text").inner_text()


@pytest.mark.parametrize("row", [None, 8])
def test_the_note_and_why_speak_of_one_rival_and_the_same_words(make_translator, explore, row):
    page = explore(make_translator(seed=9, extra_length=2), SENTENCE, start="figure")
    opening = page.evaluate("glassformer.app.payload.openings[glassformer.app.state.sentence]")
    page.evaluate("(row) => glassformer.app.show({ row })", row)
    note = said_below(page, "depends most")
    [(word, rival, needed, *_)] = re.findall(NEEDS, note)
    if row is None:
        assert page.evaluate("(ids) => glassformer.app.engine.tokens('target', ids)", [opening["rival"]]) == [rival]
    box = {"box": "decoder.softmax", "key": None}
    lit = opening["row"] if row is None else row
    page.evaluate("(looks) => glassformer.app.show(looks)", {"zoom": box, "panel": "why", "row": lit})
    page.locator(".gf-why [role=status]", has_text="depends most").wait_for()
    why = page.locator(".gf-why [role=status]").inner_text()
    assert {word, rival} == set(re.findall(r"“(\S+)”", why)[:2])
    assert f"depends most on “{needed}” in the source" in why
    second = re.search(r"then on “(\S+)”", note)
    assert second is None or f"Next comes “{second[1]}”" in why


def said_below(page: Any, part: str) -> str:
    """Wait until the smaller sentence below contains a text; return the sentence."""
    page.locator(".gfs-more-text", has_text=part).wait_for()
    text: str = page.locator(".gfs-more-text").inner_text()
    return text


@pytest.mark.parametrize("size", [pytest.param(SIZES[0], marks=pytest.mark.long), SIZES[3]])
def test_an_empty_text_is_refused_where_the_reader_looks_and_nothing_moves(stage, size):
    page = stage(size)
    # In a narrow window, the sentence above the figure grows when the measurement ends, so wait for the measurement.
    page.locator(".gfs-said-box [aria-busy=false]", has_text="depends most").wait_for()
    before = page.evaluate(FIGURE_TOP)
    page.get_by_role("button", name="Change the sentence").click()
    page.get_by_label("Source sentence").fill(" ")
    page.keyboard.press("Enter")
    refusal = page.get_by_role("alert").filter(has_text="The source is blank")
    refusal.wait_for()
    place = refusal.bounding_box()
    assert place["y"] >= 0
    assert place["y"] + place["height"] <= size[1]
    assert page.evaluate(FIGURE_TOP) == before
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE


@pytest.mark.usefixtures("page")
def test_work_is_shown_at_the_top_of_the_stage(stage):
    page = stage()
    assert page.evaluate(BUSY_SIGN) == "none"
    page.evaluate(f"""() => {{
      globalThis.signs = [];
      const root = document.querySelector(".gf-stage-root");
      new MutationObserver(() => signs.push([root.getAttribute("aria-busy"), ({BUSY_SIGN})()]))
        .observe(root, {{ attributeFilter: ["aria-busy"] }});
    }}""")
    page.evaluate("glassformer.set({ mistakes: ['no_scale'] }).then(() => null)")
    settled(page)
    assert page.evaluate("signs") == [["true", "gfs-busy"], ["false", "none"]]


def test_chinese_sentences_follow_each_other_without_a_space(stage):
    page = stage(SIZES[0])
    page.evaluate("glassformer.app.show({ language: 'zh' })")
    settled(page)
    text = page.locator(".gfs-more-text").inner_text()
    assert re.search(r"。\S", text)
    assert "。 " not in text


LONG = "the big black dog sees a small cat and the small cat sees the big black dog because it was tired ."


def test_a_word_that_the_sentence_names_is_written_in_the_figure(stage):
    page = stage(SIZES[1], sentence=LONG)
    named = 0
    for box in ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"):
        for row in range(3):
            page.evaluate("([box, row]) => glassformer.app.show({ box, row, sourceWord: row })", [box, row])
            settled(page)
            for side in ("source", "target"):
                words = set(shown(page, f".gfs-said-box h2 .gfs-{side}"))
                kinds = ["encoder"] if side == "source" else ["decoder", "output"]
                written = {word for kind in kinds for word in shown(page, f'.gfs-word[data-word="{kind}"] text')}
                assert words <= written
                named += len(words)
    assert named > 12
    assert {"…", "·"} & set(shown(page, '.gfs-word[data-word="encoder"] text'))


def test_cross_attention_that_reads_the_decoder_draws_no_memory(stage):
    page = stage()
    page.evaluate("glassformer.app.show({ box: 'decoder.cross_attention', row: 2 })")
    settled(page)
    assert page.locator(".gfs-ribbon").count() > 0
    prefix = "le chat voit"
    changes = {"mistakes": ["decoder_keys"], "prefix": prefix}
    page.evaluate("(changes) => glassformer.set(changes).then(() => null)", changes)
    settled(page)
    assert page.locator(".gfs-ribbon, .gfs-lit-ribbon").count() == 0
    head = page.evaluate("glassformer.app.state.heads.cross.head")
    row = value(page, f"{CROSS}.weights")[head, 2]
    targets = page.evaluate("glassformer.app.result.current.targetTokens")
    assert len(row) == len(targets)
    knot = page.locator(".gfs-knot")
    assert int(knot.get_attribute("aria-valuenow")) == row.argmax()
    box = page.locator('.gfs-box[data-box="decoder.cross_attention"]').bounding_box()
    arcs = page.locator(".gfs-lit-arc").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().bottom)")
    inside = [bottom for bottom in arcs if box["y"] < bottom <= box["y"] + box["height"] + 1]
    assert len(inside) == (row >= 0.01).sum()
    assert "nothing reads it" in page.locator(".gfs-g-names").text_content()
    named = shown(page, ".gfs-said-box h2 .gfs-target")
    assert targets[row.argmax()].replace("<bos>", "start") in named


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_swapped_norms_redraw_the_boxes(stage, norm):
    page = stage(norm=norm)
    boxes = "() => [...document.querySelectorAll('.gfs-box')].map((one) => one.dataset.box)"
    before = page.evaluate(boxes)
    page.evaluate("glassformer.set({ mistakes: ['norm_order'] }).then(() => null)")
    settled(page)
    after = page.evaluate(boxes)
    assert ("encoder.self_attention.norm" in before) == (norm == "pre")
    assert ("encoder.self_attention.norm" in after) == (norm == "post")
    assert ("decoder.norm" in after) == (norm == "post")


def test_a_residual_that_is_normalised_shows_its_norm(stage):
    page = stage()
    assert page.locator(".gfs-loop-norm").count() == 0
    page.evaluate("glassformer.set({ mistakes: ['residual_normed'] }).then(() => null)")
    settled(page)
    assert page.locator(".gfs-loop-norm").count() == page.locator(".gfs-loop").count()


def test_weights_that_do_not_sum_to_1_are_not_called_attention(stage):
    page = stage()
    page.evaluate("glassformer.set({ mistakes: ['softmax_over_queries'] }).then(() => null)")
    page.evaluate("glassformer.app.show({ box: 'decoder.cross_attention', row: 2 })")
    page.locator(".gfs-more-text", has_text="do not sum to 1").wait_for()
    page.evaluate("glassformer.reset().then(() => null)")
    page.locator(".gfs-more-text", has_text="of its attention").wait_for()
    assert "do not sum" not in page.locator(".gfs-more-text").inner_text()


def handle(page: Any, family: str) -> Any:
    return page.locator(f".gfs-handle[data-family={family}]")


def drag_arc(page: Any, family: str, *, to_end: bool = False) -> None:
    """Drag the end of the lit arc to the first word, or to the right end of the box, and hold it there."""
    if to_end:
        box = page.locator(f'.gfs-box[data-box="{family}.self_attention"]').bounding_box()
        x = box["x"] + box["width"] - 5
    else:
        strand = page.locator(f".gfs-strand[data-stack={family}]").first.bounding_box()
        x = strand["x"] + strand["width"] / 2
    dot = handle(page, family).locator(".gfs-dot").bounding_box()
    y = dot["y"] + dot["height"] / 2
    page.mouse.move(dot["x"] + dot["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(x, y, steps=5)


@pytest.mark.parametrize(
    ("family", "row", "size"),
    [
        ("encoder", 3, SIZES[0]),
        ("decoder", 2, SIZES[3]),
        pytest.param("encoder", 3, SIZES[3], marks=pytest.mark.long),
        pytest.param("decoder", 2, SIZES[0], marks=pytest.mark.long),
    ],
)
def test_dragging_the_end_of_an_arc_turns_the_row_and_let_go_returns(stage, family, row, size):
    page = stage(size)
    looks = {"row": row, "box": f"{family}.self_attention"} | ({"sourceWord": row} if family == "encoder" else {})
    page.evaluate("(looks) => glassformer.app.show(looks)", looks)
    settled(page)
    # keeps the handle clear of the strip at the bottom of a phone
    handle(page, family).evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    before = value(page, "log_probs")
    old = page.locator(".gfs-old")
    assert old.count() == 0
    drag_arc(page, family)
    page.get_by_text("You turned").wait_for(state="attached")
    assert handle(page, family).get_attribute("aria-valuenow") == "0"
    assert old.count() > 0
    page.mouse.up()
    page.get_by_role("button", name="Let go").wait_for()
    [(attention, [[head, query, weights]])] = page.evaluate("Object.entries(glassformer.app.changes.overrides)")
    assert attention.startswith(f"{family}.layers.")
    assert (head, query) == (page.evaluate(f"glassformer.app.state.heads.{family}.head"), row)
    assert (weights[0], sum(weights)) == (1, 1)
    settled(page)
    after = value(page, "log_probs")
    assert after.shape != before.shape or not np.allclose(after, before)
    assert "Turned by hand:" in page.locator(".gfs-more-text").inner_text()
    assert page.locator(".gfs-lit-arc, .gfs-old").count() > 1
    page.get_by_role("button", name="Let go").click()
    settled(page)
    np.testing.assert_array_equal(value(page, "log_probs"), before)


def test_an_arc_between_two_words_splits_its_weight_and_the_mask_refuses_later_words(stage):
    page = stage()
    page.evaluate("glassformer.app.show({ row: 2, box: 'decoder.self_attention' })")
    settled(page)
    drag_arc(page, "decoder", to_end=True)
    assert handle(page, "decoder").get_attribute("aria-valuenow") == "2"
    page.mouse.up()
    settled(page)
    page.evaluate("glassformer.reset().then(() => null)")
    settled(page)
    end = handle(page, "decoder")
    end.focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert "0.700" in end.get_attribute("aria-valuetext")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Let go").wait_for()
    [[[_, query, weights]]] = page.evaluate("Object.values(glassformer.app.changes.overrides)")
    assert query == 2
    np.testing.assert_allclose(weights, [0.7, 0.3, *[0] * (len(weights) - 2)])


def test_turned_rows_are_named(stage):
    page = stage()
    source, target = page.evaluate(
        "(({ sourceTokens, outputTokens }) => [sourceTokens, outputTokens])(glassformer.app.result.reference)"
    )
    weights = value(page, f"{CROSS}.weights")
    one = [0] * weights.shape[2]
    one[3] = 1
    page.evaluate("(overrides) => glassformer.set({ overrides }).then(() => null)", {CROSS: [[1, 1, one]]})
    page.evaluate("glassformer.app.show({ row: 1 })")
    words = [source[weights[1, 1].argmax()], source[3]]
    page.get_by_text(f"Turned by hand: head 1 of layer 1, from “{words[0]}” to “{words[1]}”.").wait_for()
    page.evaluate("glassformer.app.show({ heads: { ...glassformer.app.state.heads, cross: { layer: 1, head: 1 } } })")
    page.locator(SENTENCE_AT, has_text=f"this head looks at “{words[1]}”. You turned it there.").wait_for()
    page.get_by_text("You gave it 1.000 of the attention of head 1 of layer 1.").wait_for()
    page.evaluate("glassformer.app.show({ row: 0 })")
    page.get_by_text(f"from “{words[0]}” to “{words[1]}” (“{target[1]}”).").wait_for()


WAVES = """() => [...document.querySelectorAll(".gfs-g-waves path")].map((one) =>
  [...one.getAttribute("d").matchAll(/(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]))"""


@pytest.mark.parametrize("positions", ["interleaved", "halves"])
def test_between_words_the_waves_are_the_sinusoids_of_the_positions(stage, positions):
    page = stage(positions=positions)
    page.evaluate("glassformer.app.show({box: 'encoder.positions'})")
    rest(page)
    [first, second, *_] = page.evaluate(WAVES)
    columns = page.locator(".gfs-g-words [data-word=encoder]").count()
    width = page.evaluate("glassformer.app.config.d_model")
    for points in (first, second):
        heights = np.array(points)[:, 1]
        steps = (len(points) - 1) / (columns - 1)
        assert steps >= 4
        places = np.arange(len(points)) / steps
        lefts = []
        for pair in range(width // 2):
            angles = places * 10000 ** (-2 * pair / width)
            terms = np.stack([np.sin(angles), np.cos(angles), np.ones_like(angles)], axis=1)
            fit = terms @ np.linalg.lstsq(terms, heights, rcond=None)[0]
            lefts.append(np.abs(fit - heights).max())
        assert min(lefts) < 0.1  # heights are written with one decimal


def test_learned_positions_are_joined_by_straight_lines(stage):
    page = stage(positions="learned", max_length=256)
    rest(page)
    columns = page.locator(".gfs-g-words [data-word=encoder]").count()
    assert {len(points) for points in page.evaluate(WAVES)[:2]} == {columns}
