"""A box as a grid of all its numbers: its tensors in a list, a matrix as a grid, and the way there and back."""

import json
from typing import Any

import pytest

from browser.waiting import rest, settled, until
from browser.zooms import FRAMES

SENTENCE = "the big black dog sees a cat and sleeps ."
SELF, CROSS = "encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"
WRITTEN = """() => {
  globalThis.written = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
    written.push(text);
    return fillText.call(this, text, ...more);
  };
}"""
TEXTS = """(() => {
  const walker = document.createTreeWalker(document.querySelector(".gfn"), NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode.textContent);
  return texts.join(" ");
})()"""
STOPS = """[...document.querySelectorAll(".gfn :is(button, input, select, a, summary, [tabindex])")].filter(
  (one) => one.checkVisibility() && one.tabIndex >= 0 && !one.disabled)"""


@pytest.fixture
def shown(make_translator, explore):
    return explore(make_translator(extra_length=6), SENTENCE)


def open_cell(page: Any, name: str, index: list[int]) -> None:
    """Show a number, and wait until the grid of its matrix is drawn."""
    page.evaluate("(selected) => glassformer.app.select(selected)", {"name": name, "index": index})
    until(page, f"document.querySelector('.gfn h3 code')?.textContent === {json.dumps(name)}")
    page.evaluate(FRAMES)


def test_the_list_has_the_tensors_of_the_box_and_unfolds_to_all(shown):
    rows = shown.locator(".gfn-names button")
    names = "(all) => all.map((one) => one.title)"
    open_cell(shown, f"{CROSS}.weights", [2, 1, 3])
    box = rows.evaluate_all(names)
    assert f"{CROSS}.key" in box
    assert {name.rpartition(".")[0] for name in box} == {CROSS}
    assert not any(name.endswith((".added", ".normed")) for name in box)  # these belong to the box above
    shown.get_by_role("button", name="All tensors").click()
    assert len(rows.evaluate_all(names)) == len(shown.evaluate("glassformer.points()"))
    shown.get_by_role("button", name="This box only").click()
    assert rows.evaluate_all(names) == box


def test_every_tensor_opens_in_its_box_at_the_third_depth(shown):
    for name in shown.evaluate("glassformer.points()"):
        shown.evaluate(
            """(name) => glassformer.app.value(name).then(
              ({ shape }) => glassformer.app.select({ name, index: shape.map(() => 0) }))""",
            name,
        )
        until(shown, f"document.querySelector('.gfn h3 code')?.textContent === {json.dumps(name)}")
        box = shown.evaluate("glassformer.app.state.zoom.box")
        assert shown.locator(f".gfs-map [data-box='{box}'][stroke-width='8']").count() == 1, (name, box)
        assert shown.locator(f".gfn-names [title='{name}'][aria-current]").count() == 1


def test_the_list_has_every_tensor_with_its_shape_and_meaning(shown):
    names = shown.evaluate("glassformer.points()")
    shown.get_by_role("button", name="All tensors").click()
    rows = shown.locator(".gfn-names button")
    listed = rows.evaluate_all("(all) => all.map((one) => one.title)")
    assert sorted(listed) == sorted(names)
    shapes = shown.evaluate(
        """(names) => Promise.all(names.map(async (name) => (await glassformer.value(name)).shape.join(" × ")))""",
        listed,
    )
    assert rows.locator("span").all_inner_texts() == shapes
    assert all(text.strip() for text in rows.locator("small").all_inner_texts())


def test_typing_leaves_the_tensors_that_have_each_word(shown):
    field = shown.get_by_role("searchbox", name="Find a tensor")
    names = "(all) => all.map((one) => one.title)"
    field.fill("Layer 1 cross")
    rows = shown.locator(".gfn-names button")
    assert {name.rpartition(".")[0] for name in rows.evaluate_all(names)} == {CROSS}
    field.fill("gathers")  # no tensor has this word in its name
    assert {name.rpartition(".")[2] for name in rows.evaluate_all(names)} == {"heads"}
    field.fill("cross 0 weights")
    shown.locator(".gfn-names button").first.wait_for()
    field.press("Enter")
    until(shown, "glassformer.app.state.selected.name === 'decoder.layers.0.cross_attention.weights'")
    field.fill("no such thing")
    shown.get_by_text("No tensor has all these words").wait_for()


def test_another_tensor_keeps_the_word_and_the_head(shown):
    open_cell(shown, f"{CROSS}.weights", [2, 1, 3])
    shown.locator(f".gfn-names [title='{CROSS}.key']").click()
    until(shown, f"String(glassformer.app.state.selected.index) === '2,3,3' && '{CROSS}.key'")
    shown.locator(f".gfn-names [title='{CROSS}.output']").click()
    until(shown, "String(glassformer.app.state.selected.index) === '3,3'")


def test_the_keyboard_alone_finds_a_tensor_a_number_and_a_head(shown):
    shown.get_by_role("searchbox", name="Find a tensor").focus()
    shown.keyboard.type("encoder 1 scores")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    until(shown, "glassformer.app.state.selected.name === 'encoder.layers.1.self_attention.scores'")
    grid = shown.get_by_role("grid", name="encoder.layers.1.self_attention.scores")
    grid.focus()
    shown.keyboard.press("Home")
    for key in ("PageUp", "ArrowDown", "ArrowRight", "ArrowRight"):
        shown.keyboard.press(key)
    assert grid.get_by_role("gridcell").get_attribute("aria-label").startswith("row: big, column: black, score ")
    shown.keyboard.press("Enter")
    until(shown, "String(glassformer.app.state.selected.index.slice(1)) === '1,2'")
    shown.locator(".gfn-heads [tabindex='0']").focus()
    head = shown.evaluate("glassformer.app.state.selected.index[0]")
    shown.keyboard.press("ArrowRight" if head < 3 else "ArrowLeft")
    shown.keyboard.press("Enter")
    until(shown, f"glassformer.app.state.selected.index[0] === {head + 1 if head < 3 else head - 1}")


def test_there_are_a_handful_of_stops(shown):
    shown.locator(".gfz-about h2").wait_for()
    shown.locator(".gfn-heads canvas").first.wait_for()
    assert shown.evaluate(f"{STOPS}.length") <= 9


def test_the_grid_is_the_third_depth_of_a_box_and_escape_leads_up_again(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", fragment="#chapter=0")
    page.evaluate("(zoom) => glassformer.app.show({ zoom, sourceWord: 2 })", {"box": SELF, "key": 3})
    page.locator(".gfz-rows").wait_for()
    settled(page)
    rest(page)
    page.get_by_role("button", name="All numbers").click()
    page.locator(".gfn-names").wait_for()
    selected = page.evaluate("glassformer.app.state.selected")
    assert (selected["name"], selected["index"][1:]) == (f"{SELF}.weights", [2, 3])  # the row that is shown
    assert "panel=numbers" in page.evaluate("location.hash")
    assert page.locator(".gfs-map").is_visible()
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "glassformer.app.state.selected.index[1] === 3")
    assert page.get_by_role("grid").evaluate("(grid) => grid === document.activeElement")
    page.keyboard.press("Escape")
    page.locator(".gfz-rows").wait_for()  # the calculation, at the word and key of the number
    assert page.evaluate("[glassformer.app.state.sourceWord, glassformer.app.state.zoom]") == [
        3,
        {"box": SELF, "key": 3},
    ]
    page.keyboard.press("Escape")
    until(page, "glassformer.app.state.zoom === null")


@pytest.mark.parametrize("way", ["← Figure", pytest.param("map", marks=pytest.mark.long)])
def test_the_map_and_figure_are_at_hand_beside_the_grid(make_translator, explore, way):
    page = explore(make_translator(), SENTENCE, start="figure", fragment="#chapter=0")
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="All numbers").click()
    page.locator(".gfn-names").wait_for()
    if way == "map":
        page.locator(".gfs-map [data-box='encoder.layers.0.feed_forward']").click()
        page.locator(".gfz-rows, .gfz-whole").first.wait_for()
        assert page.evaluate("glassformer.app.state.zoom.box") == "encoder.layers.0.feed_forward"
    else:
        page.get_by_role("button", name=way).click()
        until(page, "glassformer.app.state.zoom === null")
        assert page.locator(".gfs-figure-svg").is_visible()


def test_back_of_the_browser_leads_to_the_figure(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", fragment="#chapter=0")
    rest(page)
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="All numbers").click()
    page.locator(".gfn-names").wait_for()
    until(page, "location.hash.includes('panel=numbers')")
    page.go_back()
    until(page, "glassformer.app.state.zoom === null")
    assert page.locator(".gfn").count() == 0 or page.locator(".gfn").is_hidden()


def test_the_first_chapter_gives_way_to_a_number(shown):
    shown.evaluate("glassformer.app.show({ chapter: 1, act: 1, zoom: null })")
    open_cell(shown, f"{CROSS}.key", [0, 2, 1])
    assert shown.evaluate("[glassformer.app.state.chapter, glassformer.app.state.zoom.key]") == [0, 2]


@pytest.mark.parametrize(
    ("address", "panel", "shown"),
    [
        ("panel=numbers", "numbers", CROSS),
        (f"selected={json.dumps({'name': 'logits', 'index': []})}", "numbers", "decoder.linear"),
        (f"selected={json.dumps({'name': f'{SELF}.key', 'index': [1, 2, 3]})}", "numbers", SELF),
        ("panel=why&row=1", "why", "decoder.softmax"),
        pytest.param("panel=positions", "positions", "encoder.positions", marks=pytest.mark.long),
        ("panel=training", "training", None),
    ],
)
def test_an_address_opens_the_box_of_what_it_names(make_translator, explore, address, panel, shown):
    page = explore(make_translator(), SENTENCE, fragment=f"#{address}", start="figure")
    assert page.locator("[role=alert]").text_content() == ""
    state = page.evaluate("glassformer.app.state")
    assert state["panel"] == panel
    assert (state["zoom"] or {"box": None})["box"] == shown
    assert state["sheet"] == (shown is None)
    if panel == "numbers":
        page.locator(".gfn-names").wait_for()
        asked = json.loads(address.partition("=")[2])["name"] if "selected" in address else f"{CROSS}.weights"
        assert state["selected"]["name"] == asked
    if "row=1" in address:
        assert state["row"] == 1


def test_a_change_shows_before_and_after_and_opens_the_first_tensor_that_differs(shown):
    shown.evaluate(f"glassformer.set({{ablated: {{'{CROSS}': [0, 1, 2, 3]}}}})")
    said = shown.locator(".gfn-said")
    said.get_by_text("first tensor that differs").wait_for()
    old, new = shown.evaluate("[glassformer.app.result.reference.text, glassformer.app.result.current.text]")
    assert old != new
    assert shown.locator(".gfn-said del").inner_text() == old
    assert new in said.inner_text()
    shown.get_by_role("button", name=f"{CROSS}.heads").click()
    until(shown, f"glassformer.app.state.selected.name === '{CROSS}.heads'")


def test_a_change_and_another_number_do_not_move_the_grid(shown):
    open_cell(shown, f"{CROSS}.weights", [1, 1, 2])
    top = "Math.round(document.querySelector('.gfn-room').getBoundingClientRect().top)"
    before = shown.evaluate(top)
    shown.evaluate(f"glassformer.set({{positions: false, ablated: {{'{CROSS}': [0, 1, 2, 3]}}}})")
    shown.locator(".gfn-said del").wait_for()
    assert shown.evaluate(top) == before
    for name, index in ((f"{SELF}.query", [0, 1, 2]), ("encoder.output", [1, 2]), (f"{SELF}.weights", [0, 0, 0])):
        open_cell(shown, name, index)
        assert shown.evaluate(top) == before, name


@pytest.mark.usefixtures("page")
def test_pointing_at_a_cell_draws_each_label_once(shown):
    open_cell(shown, f"{SELF}.weights", [0, 1, 2])
    box = shown.locator(".gfn-grid canvas").bounding_box()
    shown.evaluate(WRITTEN)
    for share in (0.5, 0.9):
        shown.evaluate("written.length = 0")
        shown.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])
        shown.evaluate(FRAMES)
        written = shown.evaluate("written")
        assert written
        words = shown.evaluate("glassformer.app.result.current.sourceTokens").count("the")
        assert written.count("the") == 2 * words == 2  # in the lit row and in the lit column


def test_the_labels_of_heads_stand_below_their_pictures(make_translator, explore):
    page = explore(make_translator(d_model=48, heads=8), SENTENCE)
    page.evaluate("glassformer.app.show({ order: 'peak' })")
    page.locator(".gfn-heads small").nth(7).wait_for()
    for one in page.locator(".gfn-heads button").all():
        picture, label = one.locator("canvas").bounding_box(), one.locator("span").bounding_box()
        assert picture["y"] + picture["height"] <= label["y"]
        assert label["width"] <= one.bounding_box()["width"] + 1


def test_reading_and_writing_are_said_in_words(shown):
    token, written = shown.evaluate(
        "(({targetTokens: t, outputTokens: o}) => [t[1], o[1]])(glassformer.app.result.current)"
    )
    open_cell(shown, f"{CROSS}.weights", [1, 1, 2])
    cell = shown.locator(".gfn-grid").get_by_role("gridcell")
    assert cell.get_attribute("aria-label").startswith(f"row: {token} (writes {written}), column: black, weight ")
    assert shown.locator(".gfz-about h2").inner_text().startswith(f"“{token}” reads “black”: ")
    assert "→" not in shown.locator(".gfn-tensor").inner_text() + shown.locator(".gfz-about").inner_text()


def test_small_numbers_are_written_with_their_digits(shown):
    shown.evaluate("""async () => {
      const { trace } = glassformer.app.result.current, { get } = trace;
      const small = (tensor) => ({ ...tensor, data: tensor.data.map((value) => value / 1000) });
      trace.get = async (name) => name.endsWith("activated") ? small(await get(name)) : get(name);
    }""")
    open_cell(shown, "encoder.layers.0.feed_forward.activated", [0, 0])
    shown.get_by_role("button", name="Table").click()
    cells = shown.locator(".gfn-table td").all_inner_texts()
    assert sum(float(text.replace("−", "-")) != 0 for text in cells if text) > 20


def test_no_text_grows_after_it_is_shown(shown):
    open_cell(shown, f"{CROSS}.weights", [1, 1, 2])
    shown.locator(".gfn-heads canvas").first.wait_for()
    texts = shown.evaluate(TEXTS)
    settled(shown)
    assert shown.evaluate(TEXTS) == texts


@pytest.mark.usefixtures("page")
def test_a_long_sentence_keeps_all_rows(make_translator, explore):
    page = explore(make_translator(), " ".join(["the big black cat"] * 10))
    open_cell(page, f"{SELF}.weights", [0, 39, 39])
    page.evaluate(WRITTEN)
    page.evaluate("glassformer.app.layOut()")
    page.evaluate(FRAMES)
    written = page.evaluate("written")
    assert written.count("the") >= 10
    room = "(({ scrollHeight, clientHeight, scrollTop }) => [scrollHeight, clientHeight, scrollTop])"
    whole, seen, top = page.evaluate(f"{room}(document.querySelector('.gfn-room'))")
    grid = page.locator(".gfn-grid canvas").bounding_box()["height"]
    assert whole >= grid > seen
    assert top > 0  # the chosen row has been scrolled into view


@pytest.mark.usefixtures("page")
def test_cells_near_zero_have_no_number(shown):
    row = "[0.004, 0.096, 0, 0, 0, 0.9, 0, 0, 0, 0, 0]"
    shown.evaluate(f"glassformer.set({{overrides: {{'{CROSS}': [[0, 0, {row}]]}}}})")
    open_cell(shown, f"{CROSS}.weights", [0, 0, 1])
    shown.evaluate(WRITTEN)
    shown.evaluate("glassformer.app.layOut()")
    shown.evaluate(FRAMES)
    written = shown.evaluate("written")
    assert ".096" in written
    assert ".900" in written
    assert not {"~0", ".004"} & set(written)


def test_a_masked_key_to_which_a_mistaken_model_gives_weight_is_not_drawn_as_blocked(shown):
    name = "decoder.layers.1.self_attention.weights"
    shown.evaluate("glassformer.set({mistakes: ['mask_zero'], prefix: 'le chat'})")
    open_cell(shown, name, [0, 0, 0])
    cell = shown.locator(".gfn-grid").get_by_role("gridcell")
    shown.locator(".gfn-grid [role=grid]").focus()
    shown.keyboard.press("End")
    assert float(cell.get_attribute("aria-label").rsplit("weight ", 1)[1]) > 0
    shown.evaluate("glassformer.set({mistakes: []})")
    until(shown, "!glassformer.app.changes.mistakes.length && !glassformer.app.state.busy")
    shown.keyboard.press("Home")
    shown.keyboard.press("End")
    assert cell.get_attribute("aria-label").endswith("blocked (minus infinity)")


@pytest.mark.parametrize("order", ["entropy", pytest.param("peak", marks=pytest.mark.long), "ablation"])
def test_heads_are_sorted_by_what_they_say(shown, order):
    open_cell(shown, f"{CROSS}.weights", [0, 0, 0])
    shown.get_by_label("Sort heads by").select_option(order)
    shown.locator(".gfn-heads small").nth(3).wait_for()
    said = [float(text.replace("−", "-")) for text in shown.locator(".gfn-heads small").all_inner_texts()]
    assert said == sorted(said, reverse=order != "ablation")
    heads = shown.locator(".gfn-heads button").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    assert sorted(heads) == [f"head {head}" for head in range(4)]
    assert "mean peak" in shown.locator(".gfn-heads button").first.get_attribute("title")


def test_another_order_stops_the_ablation_of_heads(shown):
    open_cell(shown, f"{CROSS}.weights", [0, 0, 0])
    calls = shown.evaluate("""async () => {
      const { app } = glassformer, original = app.translator.ablationEffect;
      let calls = 0;
      app.translator.ablationEffect = (...asked) => { calls++; return original.apply(app.translator, asked); };
      app.show({ order: "ablation" });
      for (let i = 0; i < 100000 && calls === 0; i++) await null;
      app.show({ order: "index" });
      for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame);
      delete app.translator.ablationEffect;
      return calls;
    }""")
    assert calls == 1


def test_contrast_colours_each_row_by_its_largest_weight(shown):
    open_cell(shown, f"{SELF}.weights", [0, 0, 0])
    pixels = "document.querySelector('.gfn-grid canvas').toDataURL()"
    before = shown.evaluate(pixels)
    shown.get_by_role("button", name="Contrast per row").click()
    until(shown, "glassformer.app.state.contrast")
    shown.evaluate(FRAMES)
    assert shown.evaluate(pixels) != before


def test_a_late_answer_does_not_overwrite_a_newer_one(shown):
    shown.locator(".gfz-about h2").wait_for()
    layers = shown.evaluate(
        """async () => {
          const { app } = glassformer, { trace } = app.result.current, { get } = trace, late = Promise.withResolvers();
          const name = (layer) => `encoder.layers.${layer}.self_attention.weights`;
          const show = (layer) => app.show({ selected: { name: name(layer), index: [0, 0, 0] } });
          const shown = () => document.querySelector(".gfn-grid [role=grid]").ariaLabel.match(/layers.(.)/)[1];
          const painted = async () => {
            await new Promise(requestAnimationFrame);
            await scheduler.postTask(() => {}, { priority: "background" });
          };
          trace.get = (asked) => (asked === name(0) ? late.promise : Promise.resolve()).then(() => get(asked));
          show(0);
          trace.get = get;
          show(1);
          await painted();
          const before = shown();
          late.resolve();
          await painted();
          return [before, shown()];
        }"""
    )
    assert layers == ["1", "1"]


def test_128_words_and_48_heads_need_few_nodes(make_translator, explore):
    words = " ".join(f"w{number}" for number in range(127))
    page = explore(
        make_translator(words, words, extra_length=1, d_model=48, heads=8, encoder_layers=6, decoder_layers=6), words
    )
    page.locator(".gfz-about h2").wait_for()
    assert page.evaluate("document.querySelectorAll('.gfn *').length") <= 2500
    assert page.evaluate("glassformer.app.result.current.sourceTokens.length") == 128


@pytest.mark.usefixtures("page")
def test_paper_shows_sentence_grid_and_arithmetic_in_light_colours_without_controls(shown):
    shown.evaluate("glassformer.app.show({theme: 'dark'})")
    open_cell(shown, f"{CROSS}.weights", [1, 1, 2])
    shown.emulate_media(media="print")
    shown.evaluate(FRAMES)
    for part in (".gfn-said", ".gfn-grid canvas", ".gfz-about h2", ".gfz-receipt"):
        assert shown.locator(part).first.is_visible(), part
    controls = shown.locator(".gfn :is(button:not(.gfz-link), select, input, summary)")
    assert [one.inner_text() for one in controls.all() if one.is_visible()] == []
    assert shown.locator(".glassformer").get_attribute("data-theme") == "light"
    shown.emulate_media(media="screen")
    shown.evaluate(FRAMES)
    assert shown.locator(".glassformer").get_attribute("data-theme") == "dark"
