"""The map of attentions: words at equal heights, rows that say what they read and write, heads with their numbers."""

import pytest

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


def test_a_cell_of_a_hidden_head_is_shown_on_the_map_and_stays_read(shown):
    shown.evaluate("glassformer.app.select('decoder.layers.0.cross_attention.weights', [3, 1, 2])")
    assert shown.evaluate("glassformer.app.ui.heads.cross") == {"layer": 0, "head": 3}
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
      const { app } = glassformer, original = app.ablationEffect;
      let calls = 0;
      app.ablationEffect = (...asked) => { calls++; return original.apply(app, asked); };
      await app.compute();  // a new result, of which no effect is known
      app.show({ order: "ablation" });
      for (let i = 0; i < 100000 && calls === 0; i++) await null;
      app.show({ order: "index" });
      for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame);
      delete app.ablationEffect;
      return calls;
    }"""
    assert 1 <= shown.evaluate(counted) <= 3  # one per family
