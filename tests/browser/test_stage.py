"""The stage: Figure 1 with a sentence running through it shows the model's own numbers, and the reader changes them."""

from typing import Any

import numpy as np
import pytest

from browser.test_view import problems

SENTENCE = "the black cat sees a big dog ."
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
    """Return a function that opens the stage of a model in a window, and returns the page once the figure stands."""

    def opened(size: tuple[int, int] = SIZES[0], sentence: str = SENTENCE, **settings: Any) -> Any:
        page = explore(make_translator(**settings), sentence, view="stage")
        page.set_viewport_size({"width": size[0], "height": size[1]})
        narrow = ".gfs-narrow" if size[0] < 700 else ":not(.gfs-narrow)"
        page.locator(f".gfs-plane{narrow} .gfs-knot").wait_for(state="attached")
        return page

    return opened


def shown(page: Any, selector: str) -> list[str]:
    texts: list[str] = page.locator(selector).all_text_contents()
    return texts


def settled(page: Any) -> None:
    """Wait until the figure has been drawn for the present state."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60)))")


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


@pytest.mark.parametrize("size", SIZES)
def test_no_text_is_small_or_covers_another(stage, size):
    page = stage(size)
    for row in range(len(page.evaluate("glassformer.app.result.current.outputTokens"))):
        page.evaluate("(row) => glassformer.app.show({row})", row)
        settled(page)
        assert page.evaluate(OVERLAPS) == {"small": [], "crossing": []}


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder_layers": 6, "decoder_layers": 6},
        {"heads": 16, "d_model": 64},
        {"norm": "pre"},
        {"positions": "learned"},
        {"positions": "none"},
        {"encoder_layers": 1, "decoder_layers": 3},
    ],
    ids=str,
)
def test_the_figure_of_any_model_stands(stage, settings):
    page = stage(**settings)
    layers = page.evaluate("glassformer.app.config.encoder_layers + glassformer.app.config.decoder_layers")
    assert page.locator(".gfs-edge").count() == layers - 2
    assert page.evaluate(OVERLAPS) == {"small": [], "crossing": []}
    assert page.locator(".gfs-g-guesses .gfs-guess").count() >= 3


def test_the_sentence_says_what_the_lit_head_is_worth(stage):
    page = stage()
    page.evaluate("glassformer.app.show({row: 2})")
    page.locator(".gfs-more-text", has_text="Without this head").or_(
        page.locator(".gfs-more-text", has_text="hardly depends")
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
    if abs(before - after) < min(0.01, max(before, after) / 10):
        assert "hardly depends on this head" in said
    else:
        assert f"{before:.3f} to {after:.3f}" in said
        assert ("falls" in said) == (after < before)
        assert ("Most of it does not depend on this head." in said) == (before / 2 < after < before)


def test_a_forced_word_is_called_forced(stage):
    page = stage()
    page.evaluate("glassformer.set({prefix: 'dort'})")
    page.evaluate("glassformer.app.show({row: 0})")
    page.get_by_text("You forced dort; the model itself gives it").wait_for()
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
    knot = page.locator(".gfs-knot-dot").bounding_box()
    first = page.locator(".gfs-g-ribbons path").first.get_attribute("d")
    y = float(first.split("M")[-1].split("H")[0].split(" ")[1])  # the height of the first word's ribbon
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


def test_the_keyboard_moves_through_the_figure_with_at_most_nine_stops(stage):
    page = stage()
    stops = page.evaluate(
        """() => ["button", "summary", "[tabindex='0']"].flatMap((one) => [
            ...document.querySelectorAll(`.gf-stage-root ${one}`),
          ]).filter((one) => one.checkVisibility() && one.tabIndex >= 0).length"""
    )
    assert stops <= 9
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


def test_boxes_and_guesses_open_their_panels_over_the_free_space(stage):
    page = stage()
    sheet = page.locator(".gfs-sheet")
    page.get_by_role("button", name="What if?").click()
    sheet.get_by_role("button", name="No positions").click()
    page.wait_for_function("glassformer.app.changes.positions === false")
    assert (
        page.evaluate("document.querySelector('.gfs-sheet').getBoundingClientRect().right") < 690
    )  # not over the decoder
    page.keyboard.press("Escape")
    assert not sheet.is_visible()
    page.locator(".gfs-guess").first.click()
    sheet.get_by_role("heading", name="Layers", exact=True).wait_for()


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ("decoder.softmax", "Softmax turns the"),
        ("decoder.linear", "The output matrix gives"),
        ("decoder.positions", "Each dimension is a wave"),
        ("encoder.embedding", "has its own"),
    ],
)
def test_a_lit_box_opens_where_it_stands(stage, box, said):
    page = stage()
    for _ in range(2):  # the first click lights the box
        page.locator(f'.gfs-box[data-box="{box}"]').click(position={"x": 5, "y": 5})
    page.locator(".gf-zoom h2", has_text=said).wait_for()
    assert page.evaluate("(({zoom, sheet}) => [zoom.box, sheet])(glassformer.app.state)") == [box, False]


def test_a_panel_stands_in_the_sheet_or_on_the_page_of_all_numbers(stage):
    page = stage()
    page.get_by_role("button", name="What if?").click()
    page.locator(".gfs-sheet .gf-changes").wait_for()
    page.evaluate("glassformer.app.show({view: 'numbers'})")
    page.locator(".gf-panels .gf-changes").wait_for()
    page.evaluate("glassformer.app.show({view: 'stage'})")
    page.locator(".gfs-sheet .gf-changes").wait_for()
    assert page.locator(".gf-changes").count() == 1


def test_back_returns_to_each_state_at_rest(stage):
    page = stage()
    for row in (1, 2):
        page.wait_for_timeout(450)  # states that follow sooner are one entry
        page.evaluate("(row) => glassformer.app.show({row})", row)
    page.go_back()
    page.wait_for_function("glassformer.app.state.row === 1")
    page.go_back()
    page.wait_for_function("glassformer.app.state.row === null")


def test_play_writes_word_by_word_and_ends_with_the_whole_figure(stage):
    page = stage()
    page.emulate_media(reduced_motion="reduce")
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
FLYING = "[...document.querySelector('.gfs-flying').children].map((one) => one.tagName)"
SAID = [
    "Each word becomes numbers, and its place is added.",
    "All words look at each other at once.",
    "A small network works on each word alone; the result is the memory.",
    "The decoder begins: so far, it has only the mark “start”.",
    "The decoder reads the memory.",
]


def test_play_moves_what_is_read_what_is_added_and_the_written_word(stage):
    page = stage()
    page.get_by_role("button", name="Play").click()
    for at, sentence in enumerate(SAID):
        page.locator(SENTENCE_AT, has_text=sentence).wait_for()
        pieces = page.evaluate(FLYING)
        assert "image" in pieces  # vectors rise, or what the sub-layer found drops onto the strand
        assert at in (0, 2) or "circle" in pieces  # words that are read
        page.keyboard.press("ArrowRight")
    page.locator(SENTENCE_AT, has_text="is written").wait_for()
    word, chance = page.evaluate(
        "(({outputTokens, hypothesis}) => [outputTokens[0], Math.exp(hypothesis.tokenLogProbs[0])])"
        "(glassformer.app.result.current)"
    )
    assert page.locator(SENTENCE_AT).inner_text() == f"{word} gets {chance:.3f} and is written."
    assert page.evaluate("document.querySelector('.gfs-flying text').textContent") == word
    page.keyboard.press("ArrowLeft")
    page.locator(SENTENCE_AT, has_text=SAID[-1]).wait_for()
    page.keyboard.press("Escape")
    settled(page)
    assert page.evaluate(FLYING) == []


def test_with_reduced_motion_play_changes_states_and_moves_nothing(stage):
    page = stage()
    page.emulate_media(reduced_motion="reduce")
    page.locator(".gfs-figure-svg").focus()
    for sentence in SAID:
        page.keyboard.press(" ")
        page.locator(SENTENCE_AT, has_text=sentence).wait_for()
        page.wait_for_timeout(100)
        assert page.evaluate(FLYING) == []
        assert page.evaluate("document.getAnimations().filter((one) => one.playState === 'running').length") == 0


def test_lecture_mode_fills_the_screen_with_large_type_and_obeys_a_clicker(stage):
    page = stage((1440, 900), sentence=" ".join([SENTENCE] * 3))
    page.locator(".gfs-figure-svg").focus()
    page.keyboard.press("f")
    page.locator(".glassformer[data-lecture]").wait_for()
    settled(page)
    assert page.locator(SENTENCE_AT).evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)") == 48
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
    page.keyboard.press("Escape")  # ends Play
    assert page.locator(".glassformer[data-lecture]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".glassformer[data-lecture]").count() == 0
    page.get_by_role("button", name="Change the sentence").click()
    page.keyboard.press("f")  # in a field, a letter
    assert page.locator(".glassformer[data-lecture]").count() == 0


def test_lecture_mode_fills_a_frame_that_may_not_have_the_screen(stage):
    page = stage()
    page.evaluate("() => { Element.prototype.requestFullscreen = async () => { throw new TypeError('refused'); }; }")
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
    page = explore(make_translator(), SENTENCE, view="stage", examples=pair)
    page.locator(".gfs-chip").first.wait_for()
    assert shown(page, ".gfs-chip") == ["… so very tired .", "… it was wide ."]
    page.locator(".gfs-chip").first.focus()
    page.keyboard.press("ArrowRight")  # the examples are one stop of the Tab key
    assert page.evaluate("document.activeElement.title") == pair[1]
    assert page.locator(".gfs-chip").evaluate_all("(all) => all.map((one) => one.tabIndex)") == [-1, 0]


@pytest.mark.parametrize("size", [SIZES[0], SIZES[3]])
def test_an_empty_text_is_refused_where_the_reader_looks_and_nothing_moves(stage, size):
    page = stage(size)
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


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [SIZES[0], SIZES[3]])
def test_axe_finds_nothing_serious(stage, size, language):
    page = stage(size)
    for theme in ("light", "dark"):
        page.evaluate("(looks) => glassformer.app.show(looks)", {"theme": theme, "language": language})
        settled(page)
        assert problems(page) == []
