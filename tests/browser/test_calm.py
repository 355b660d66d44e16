"""The page stays calm: blank near-zeros, words before indices, explanations, equal heights, settings and tasks."""

import pytest

from browser.waiting import until

SENTENCE = "the big black dog sees a cat and sleeps ."
CROSS = "decoder.layers.1.cross_attention"
PAINTED = "async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }"
TOPS = """() => [".gf-flow", ".gf-map"].map((one) => {
  return Math.round(document.querySelector(one).getBoundingClientRect().top + scrollY);
})"""


@pytest.fixture
def shown(make_translator, explore):
    return explore(make_translator(), SENTENCE, examples=[SENTENCE, "the black dog sees a cat ."])


def test_cells_near_zero_have_no_number(shown):
    override = f"{{overrides: {{'{CROSS}': [[0, 0, [0.004, 0.096, 0, 0, 0, 0.9, 0, 0, 0, 0, 0]]]}}}}"
    shown.evaluate(f"glassformer.set({override})")
    shown.evaluate(f"glassformer.app.show({{stage: 'point', point: {{name: '{CROSS}.weights', head: 0}}}})")
    shown.evaluate(
        """() => {
          globalThis.written = [];
          const { fillText } = CanvasRenderingContext2D.prototype;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
            written.push(text);
            return fillText.call(this, text, ...more);
          };
        }"""
    )
    shown.evaluate("glassformer.app.layOut()")
    shown.evaluate(PAINTED)
    written = shown.evaluate("written")
    assert ".096" in written
    assert ".900" in written
    assert not {"0", "~0", ".004"} & set(written)


def test_words_stand_before_indices(shown):
    shown.evaluate(f"glassformer.app.select('{CROSS}.weights', [1, 1, 2])")
    shown.locator(".gf-numbers .gf-result").wait_for()
    word, weight = shown.evaluate(
        f"""glassformer.value('{CROSS}.weights').then(({{shape: [, rows, columns], data}}) =>
          [glassformer.app.result.current.targetTokens[1], data[(rows + 1) * columns + 2]])"""
    )
    told = f"head 1, layer 1: {word} → black {weight:.2f}"
    heading = shown.locator(".gf-numbers h3").inner_text().replace("\n", " ")
    assert " ".join(heading.split()) == f"{told} weights[1, 1, 2] = {weight:.4f}"
    assert shown.locator(".gf-cross .gf-readout").inner_text() == told


def test_entropy_peak_and_log_p_explain_themselves_to_pointer_and_keyboard(shown):
    for place, term, about in [
        (".gf-cross .gf-facts", "entropy", "in nats"),
        (".gf-cross .gf-facts", "peak", "largest weight"),
        (".gf-said", "log p", "natural logarithm"),
    ]:
        hint = shown.locator(place).get_by_role("button", name=term, exact=True)
        bubble = "(one) => getComputedStyle(one, '::after').content"
        assert hint.evaluate(bubble) == "none"
        hint.hover()
        assert about in hint.evaluate(bubble)
        shown.mouse.move(0, 0)
        shown.evaluate("document.activeElement.blur()")
        shown.keyboard.press("Tab")  # the keyboard shows its focus
        hint.focus()
        assert about in hint.evaluate(bubble)
        assert about in hint.get_attribute("aria-description")


def test_changes_and_new_sentences_do_not_move_the_page(shown):
    before = shown.evaluate(TOPS)
    shown.evaluate(f"glassformer.set({{ablated: {{'{CROSS}': [0, 1, 2, 3]}}}})")
    assert shown.locator(".gf-change").is_visible()
    assert shown.get_by_text("before", exact=True).is_visible()
    assert shown.evaluate(TOPS) == before
    shown.get_by_label("Source sentence").fill("the black cat sleeps .")
    shown.get_by_role("button", name="Translate").click()
    shown.locator(".gf-turned button").wait_for()
    assert shown.evaluate(TOPS) == before


def test_a_change_and_a_new_sentence_do_not_move_the_map_of_a_phone(shown):
    shown.set_viewport_size({"width": 390, "height": 844})
    shown.evaluate(PAINTED)
    shown.get_by_role("button", name="Larger, with numbers").first.wait_for()
    top = "Math.round(document.querySelector('.gf-stage').getBoundingClientRect().top + scrollY)"
    before = shown.evaluate(top)
    shown.evaluate(f"glassformer.set({{positions: false, ablated: {{'{CROSS}': [0, 1, 2, 3]}}}})")
    told = shown.locator(".gf-change").bounding_box()
    assert 0 < told["y"] < 844 - told["height"] + 1  # the effect is seen where the page is
    assert shown.get_by_text("before", exact=True).is_visible()
    assert shown.evaluate(top) == before
    shown.get_by_label("Source sentence").fill("the black cat sleeps .")
    shown.get_by_role("button", name="Translate").click()
    shown.locator(".gf-turned button").wait_for()
    assert shown.evaluate(top) == before


def test_settings_are_behind_one_button(shown):
    menu = shown.locator(".gf-settings")
    names = ["中文", "◐ Dark / light", "Contrast per row"]
    for name in names:
        assert not menu.get_by_text(name, exact=True).is_visible()
    menu.locator("summary").click()
    for name in names:
        assert menu.get_by_text(name, exact=True).is_visible()
    shown.get_by_label("Sort heads by").select_option("peak")
    menu.get_by_text("Contrast per row").click()
    assert shown.evaluate("[glassformer.app.state.order, glassformer.app.state.contrast]") == ["peak", True]
    shown.keyboard.press("Escape")
    assert not menu.get_by_text("Contrast per row").is_visible()
    assert menu.locator("summary").evaluate("(one) => one === document.activeElement")
    menu.locator("summary").click()
    shown.mouse.click(640, 780)
    assert menu.get_attribute("open") is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tabs_fit_in_one_row(shown, language):
    shown.evaluate("(language) => glassformer.app.show({language})", language)
    tabs = [one.bounding_box() for one in shown.get_by_role("tab").all()]
    assert len(tabs) == 7
    assert len({box["y"] for box in tabs}) == 1
    panel = shown.locator(".gf-panels").bounding_box()
    assert tabs[-1]["x"] + tabs[-1]["width"] <= panel["x"] + panel["width"]


@pytest.mark.parametrize(
    ("card", "reached"),
    [
        ("Ask why a word was written", "glassformer.app.state.panel === 'why' && glassformer.app.state.word !== null"),
        ("Find the head that decides", "glassformer.app.state.chapter === 7"),
        ("Switch a head off", "Object.values(glassformer.app.changes.ablated).flat().length === 1"),
        ("Plant a mistake", "glassformer.firstDifference === 'encoder.layers.0.self_attention.scores'"),
        ("Compare two sentences", "document.querySelectorAll('.gf-pair > *').length === 2"),
    ],
)
def test_a_card_leads_to_its_task_with_one_click(shown, card, reached):
    shown.locator(".gf-cards").get_by_role("button", name=card).click()
    until(shown, reached)


def test_six_layers_keep_words_at_equal_heights_and_thumbnails_readable(make_translator, explore):
    page = explore(make_translator(d_model=48, heads=8, encoder_layers=6, decoder_layers=6), SENTENCE)
    page.evaluate(PAINTED)
    cross, decoder = (page.locator(f".gf-{family} .gf-grid canvas").bounding_box() for family in ("cross", "decoder"))
    assert (cross["y"], cross["height"]) == (decoder["y"], decoder["height"])
    for canvas in page.locator(".gf-thumbnails canvas").all():
        box = canvas.bounding_box()
        assert min(box["width"] / 8, box["height"] / 6) >= 34
