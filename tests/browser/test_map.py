"""The map of attentions: words at equal heights, rows that say what they read and write, heads with their numbers."""

import re

import pytest

from browser.test_save import saved
from browser.test_view import problems

SENTENCE = "the big black dog sees a cat and sleeps ."
LIT = (
    """() => [...document.querySelectorAll(".gf-outcome .gf-lit")].map((one) => [one.dataset.side, one.textContent])"""
)


@pytest.fixture
def shown(make_translator, explore):
    return explore(make_translator(), SENTENCE)


def test_all_masked_cells_have_the_colour_of_masked_cells(make_translator, explore):
    page = explore(make_translator(), "the cat")
    name = "encoder.layers.0.self_attention"
    page.evaluate("(masks) => glassformer.set({masks})", {name: [[row, 0, False] for row in range(3)]})
    page.evaluate("(name) => glassformer.app.show({stage: 'point', point: {name, head: 0}})", f"{name}.weights")
    page.evaluate("async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }")
    share = page.evaluate(
        """() => {
          const canvas = document.querySelector(".gf-point .gf-grid canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Uint32Array(data.buffer).filter((one) => one === 0xFFF3EFEC).length / (64 * 26); // --blocked
        }"""
    )
    assert 2 < share < 3  # cells, of which hatching and text cover a part


def test_a_masked_key_to_which_a_mistaken_model_gives_weight_is_not_drawn_as_blocked(shown):
    shown.evaluate("glassformer.set({mistakes: ['mask_zero'], prefix: 'le chat'})")
    grid = shown.get_by_role("grid", name="decoder.layers.1.self_attention.weights")
    grid.focus()
    shown.keyboard.press("Home")
    shown.keyboard.press("End")
    told = grid.get_by_role("gridcell").get_attribute("aria-label")
    assert float(told.rsplit("weight ", 1)[1]) > 0
    shown.evaluate("glassformer.set({mistakes: []})")
    shown.keyboard.press("Home")
    shown.keyboard.press("End")
    assert grid.get_by_role("gridcell").get_attribute("aria-label").endswith("blocked (minus infinity)")


def test_cross_and_decoder_show_a_word_at_the_same_height(shown):
    tops = shown.evaluate(
        """[".gf-cross", ".gf-decoder"].map((family) => {
          const { y, height } = document.querySelector(`${family} .gf-grid canvas`).getBoundingClientRect();
          return [y, height];
        })"""
    )
    assert tops[0] == tops[1]


def test_a_row_says_the_word_that_it_reads_and_the_word_that_it_writes(shown):
    first = shown.evaluate("glassformer.app.result.current.outputTokens[0]")
    grid = shown.get_by_role("grid", name="decoder.layers.1.cross_attention.weights")
    grid.focus()
    assert grid.get_by_role("gridcell").get_attribute("aria-label").startswith(f"row: <bos> → {first}, column: the")
    assert shown.evaluate(LIT) == [["source", "the"], ["output", first]]


def test_cross_attention_shows_a_head_that_aligns_words_first(make_translator, explore):
    translator = make_translator()
    assert explore(translator, SENTENCE).evaluate("glassformer.app.state.heads.cross.layer") == 1
    page = explore(translator, SENTENCE, alignment={"layer": 0, "heads": [2]})
    assert page.evaluate("glassformer.app.state.heads.cross") == {"layer": 0, "head": 2}


def test_a_cell_of_a_hidden_head_is_shown_on_the_map_and_stays_read(shown):
    shown.evaluate("glassformer.app.select('decoder.layers.0.cross_attention.weights', [3, 1, 2])")
    assert shown.evaluate("glassformer.app.state.heads.cross") == {"layer": 0, "head": 3}
    readout = shown.locator(".gf-cross .gf-readout", has_text="→ black")
    readout.wait_for()
    shown.get_by_role("button", name="← Back").click()
    shown.locator(".gf-numbers .gf-example").first.wait_for()


def test_the_box_of_examples_offers_examples_again_after_a_choice(make_translator, explore):
    page = explore(make_translator(), SENTENCE, examples=["the cat sleeps .", "a dog"])
    box = page.get_by_label("Examples")
    box.select_option("a dog")
    page.locator(".gf-outcome [data-side=source]", has_text="dog").wait_for()
    assert box.input_value() == ""
    assert page.get_by_label("Source sentence").input_value() == "a dog"


def test_the_effect_by_which_heads_are_sorted_can_be_read(shown):
    shown.locator(".gf-settings summary").click()
    shown.get_by_label("Sort heads by").select_option("ablation")
    grid = shown.get_by_role("grid", name="Heads of").first
    shown.evaluate("async () => { for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame); }")
    grid.focus()
    assert "effect on log p" in grid.get_by_role("gridcell").get_attribute("aria-label")


def test_a_different_order_stops_the_ablation_of_heads(shown):
    counted = """async () => {
      const { app } = glassformer, original = app.sentences.ablationEffect;
      let calls = 0;
      app.sentences.ablationEffect = (...asked) => { calls++; return original.apply(app.sentences, asked); };
      await app.set({});  // a new result, of which no effect is known
      app.show({ order: "ablation" });
      for (let i = 0; i < 100000 && calls === 0; i++) await null;
      app.show({ order: "index" });
      for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame);
      delete app.sentences.ablationEffect;
      return calls;
    }"""
    assert 1 <= shown.evaluate(counted) <= 3  # one per family


def test_stop_ends_the_ablation_of_heads_and_moves_nothing(shown):
    top = "document.querySelector('.gf-cross .gf-grid canvas').getBoundingClientRect().top"
    before = shown.evaluate(top)
    shown.evaluate(
        """async () => {
          const { app } = glassformer, original = app.sentences.ablationEffect;
          await app.set({});  // a new result, of which no effect is known
          globalThis.calls = 0;
          const held = new Promise((go) => { globalThis.go = go; });
          app.sentences.ablationEffect = async (...asked) => {
            calls++;
            await held;
            return original.apply(app.sentences, asked);
          };
        }"""
    )
    settings = shown.locator(".gf-settings")
    settings.locator("summary").click()
    shown.get_by_label("Sort heads by").select_option("ablation")
    shown.keyboard.press("Escape")
    progress = shown.locator(".gf-cross .gf-progress")
    progress.get_by_text("switching off head after head: 0 of 8").wait_for()
    assert shown.evaluate(top) == before
    assert problems(shown) == []
    progress.get_by_role("button", name="Stop").click()
    progress.wait_for(state="hidden")
    shown.evaluate("go()")
    shown.evaluate("async () => { for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame); }")
    assert shown.evaluate("calls") == 3  # one per family
    assert shown.locator(".gf-progress:visible").count() == 0
    assert shown.evaluate("glassformer.app.state.order") == "index"
    settings.locator("summary").click()
    assert shown.get_by_label("Sort heads by").input_value() == "index"


WEIGHTS = """async ({name, text}) => {
  const { app } = glassformer;
  const values = async ({ trace }) => [...(await trace.get(name)).data];
  const other = await app.translated(text, "", { ...app.result.current.changes, patches: [] });
  return [await values(app.result.current), await values(other), app.result.current.sourceIds.length];
}"""


def test_weights_that_differ_between_two_sentences_are_outlined_and_told(make_translator, explore):
    page = explore(make_translator(d_model=8, heads=2), "the black cat sleeps .")
    name, other = "encoder.layers.1.self_attention.weights", "the big cat sleeps ."
    page.evaluate(
        """() => {
          const { strokeRect } = CanvasRenderingContext2D.prototype;
          globalThis.outlined = 0;
          CanvasRenderingContext2D.prototype.strokeRect = function (...box) {
            if (this.strokeStyle === "#1d2733") outlined++;  // --ink
            return strokeRect.apply(this, box);
          };
        }"""
    )
    page.evaluate("(name) => glassformer.app.show({stage: 'point', point: {name, head: 1}})", name)
    page.evaluate("(beside) => glassformer.app.show({beside})", other)
    page.locator(".gf-pair mark").first.wait_for()
    page.evaluate("async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }")
    here, there, size = page.evaluate(WEIGHTS, {"name": name, "text": other})
    places = [(head, row, column) for head in range(2) for row in range(size) for column in range(size)]
    shared = [place for place in places if 1 not in place[1:]]  # the second word differs
    of = {place: (here[at], there[at]) for at, place in enumerate(places)}
    marked = [place for place in shared if abs(of[place][0] - of[place][1]) > 0.1]
    assert len(marked) < len(shared)
    own = [place for place in marked if place[0] == 1]
    assert own
    page.evaluate("outlined = 0; glassformer.app.show({ point: glassformer.app.state.point })")
    page.evaluate("async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }")
    assert page.evaluate("outlined") == len(own)
    grid = page.locator(".gf-point").get_by_role("grid")
    grid.focus()
    for row in range(size):
        page.keyboard.press("Home")
        for column in range(size):
            told = grid.get_by_role("gridcell").get_attribute("aria-label")
            weight = f" (second translation: {of[1, row, column][1]:.2f})"
            assert told.endswith(weight) == ((1, row, column) in own)
            assert ("second translation" in told) == ((1, row, column) in own)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    heads = page.get_by_role("grid", name="Heads of Encoder")
    page.evaluate("glassformer.app.show({stage: 'map'})")
    heads.focus()
    page.keyboard.press("End")
    count = sum(place[0] == 0 for place in marked)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    assert (f"{count} cells differ" in heads.get_by_role("gridcell").get_attribute("aria-label")) == (count > 0)
    page.locator(".gf-beside summary").click()
    page.evaluate("async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }")
    assert "differ" not in heads.get_by_role("gridcell").get_attribute("aria-label")
    assert page.evaluate("glassformer.app.compared") is None


def test_weights_that_a_change_moves_are_outlined_while_both_translations_are_compared(shown, tmp_path):
    name = "encoder.layers.1.self_attention"
    shown.evaluate("glassformer.app.show({heads: {...glassformer.app.state.heads, encoder: {layer: 1, head: 2}}})")
    rows = [[2, 3, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]]]
    before = shown.evaluate(f"async () => (await glassformer.value('{name}.weights')).data[(2 * 11 + 3) * 11 + 5]")
    shown.evaluate("(overrides) => glassformer.set({overrides})", {name: rows})
    assert shown.locator(".gf-map").get_by_text("outlined, ≠").count() == 0
    shown.locator("summary", has_text="Compare two translations").click()
    shown.locator(".gf-map").get_by_text("differs by more than 0.1 from: before").wait_for()
    svg = saved(shown, ".gf-encoder", "SVG", tmp_path).read_text(encoding="utf-8")
    assert svg.count('fill="none" stroke="#1d2733"/>') == len(re.findall(r'fill="none" stroke="#ffffff"/>', svg)) > 0
    assert "outlined, ≠: differs by more than 0.1 from: before (" in svg
    grid = shown.get_by_role("grid", name=f"{name}.weights")
    grid.focus()
    for key in ["ArrowDown"] * 3 + ["ArrowRight"] * 5:
        shown.keyboard.press(key)
    assert grid.get_by_role("gridcell").get_attribute("aria-label").endswith(f"1.000 (before: {before:.2f})")
    shown.evaluate("glassformer.reset()")
    assert shown.locator(".gf-map").get_by_text("outlined, ≠").count() == 0
