"""The page on a phone, with the keyboard, and on paper."""

import pytest

from browser.waiting import until

SENTENCE = "the big black dog sees a cat and sleeps ."
PHONE = {"width": 390, "height": 844}
PAINTED = "async () => { for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame); }"
SMALL = """() => [...document.querySelectorAll(
    "button, select, input:not([type=checkbox], [type=range]), summary, [role=tab], .gf-token[role=button]")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}) && getComputedStyle(one).visibility !== "hidden")
  .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
  .filter(([, {width, height}]) => width < 43.5 || height < 43.5)
  .map(([html, {width, height}]) => `${html} ${width} x ${height}`)"""


@pytest.fixture
def phone(make_translator, explore):
    """Return a page as wide and as high as a phone."""
    page = explore(make_translator(), SENTENCE)
    page.set_viewport_size(PHONE)
    page.evaluate(PAINTED)
    return page


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


def test_a_phone_shows_the_sentence_and_an_attention_first(phone):
    assert phone.evaluate("scrollY") == 0
    lines = phone.locator(".gf-said")
    picture = phone.locator(".gf-cross .gf-grid canvas")
    assert 0 < bottom(lines) <= picture.bounding_box()["y"]
    assert bottom(picture) <= PHONE["height"]


@pytest.mark.parametrize("panel", ["numbers", "why", "changes", "beam", "positions", "training"])
def test_targets_on_a_phone_are_large_enough_for_fingers(phone, panel):
    phone.evaluate("(panel) => glassformer.app.show({panel, word: 0})", panel)
    phone.locator(".gf-settings summary").click()
    phone.evaluate(PAINTED)
    assert phone.evaluate(SMALL) == []


def test_the_thumbnails_on_a_phone_are_large_enough_for_fingers(make_translator, explore):
    page = explore(make_translator(d_model=48, heads=8), SENTENCE)
    page.set_viewport_size(PHONE)
    page.evaluate(PAINTED)
    for canvas in page.locator(".gf-thumbnails canvas").all():
        box = canvas.bounding_box()
        assert min(box["width"] / 8, box["height"] / 2) >= 44


@pytest.mark.parametrize(
    ("target", "panel", "seen"),
    [
        (".gf-cross .gf-grid canvas", ".gf-numbers h3", ".gf-cross .gf-grid canvas"),
        (".gf-outcome [data-side=output]", ".gf-why h3", ".gf-outcome [data-side=source]"),
    ],
)
def test_a_tap_on_a_phone_leads_to_the_panel_and_a_button_leads_back(phone, target, panel, seen):
    inside = "([one, height]) => { const {top} = one.getBoundingClientRect(); return top >= 0 && top < height; }"
    box = phone.locator(target).first.bounding_box()
    place = {"x": box["width"] - 9, "y": box["height"] - 9}
    phone.locator(target).first.click(position=place)
    heading = phone.locator(panel).first
    heading.wait_for()
    phone.evaluate(PAINTED)
    assert heading.evaluate(f"(one) => ({inside})([one, {PHONE['height']}])")
    phone.get_by_role("button", name="↑ Back to the").click()
    assert phone.locator(seen).first.evaluate(f"(one) => ({inside})([one, {PHONE['height']}])")
    assert phone.locator(".gf-up").count() == 0


def test_a_box_of_the_model_on_a_phone_brings_its_tensor_into_view(phone):
    phone.locator(".gf-flow .gf-flow-next").click()
    until(phone, "Math.abs(document.querySelector('.gf-point').getBoundingClientRect().top) < 2")
    assert phone.locator(".gf-point .gf-grid canvas").is_visible()


def test_words_are_stops_of_the_keyboard(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    source, output = (page.locator(f".gf-outcome [data-side={side}]") for side in ("source", "output"))
    page.locator(".gf-settings summary").focus()
    page.keyboard.press("Tab")
    assert source.first.evaluate("(one) => one === document.activeElement")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert source.nth(2).evaluate("(one) => one === document.activeElement && one.classList.contains('gf-lit')")
    page.keyboard.press("Home")
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    assert output.first.evaluate("(one) => one === document.activeElement")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("[glassformer.app.state.panel, glassformer.app.state.word]") == ["why", 1]


def test_enter_on_a_source_word_opens_the_largest_weight_with_which_it_is_read(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.locator(".gf-outcome [data-side=source]").nth(3).press("Enter")
    page.locator(".gf-numbers .gf-result").wait_for()
    name, (head, row, column) = page.evaluate("(({ name, index }) => [name, index])(glassformer.app.state.selected)")
    assert column == 3
    assert {"layer": int(name.split(".")[2]), "head": head} == page.evaluate("glassformer.app.state.heads.cross")
    shape, data = page.evaluate("(name) => glassformer.value(name).then(({shape, data}) => [shape, [...data]])", name)
    weights = [data[(head * shape[1] + at) * shape[2] + column] for at in range(shape[1])]
    assert weights[row] == max(weights)


def test_paper_shows_words_picture_and_numbers_in_light_colours_without_controls(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("glassformer.app.show({theme: 'dark'})")
    page.evaluate("glassformer.app.select('decoder.layers.1.cross_attention.weights', [1, 1, 2])")
    page.locator(".gf-numbers .gf-result").wait_for()
    page.emulate_media(media="print")
    page.evaluate(PAINTED)
    for shown in (".gf-outcome [data-side=source]", ".gf-cross .gf-grid canvas", ".gf-numbers .gf-result"):
        assert page.locator(shown).first.is_visible(), shown
    said = page.locator(".gf-said").bounding_box()["height"]
    assert said >= sum(one.bounding_box()["height"] for one in page.locator(".gf-said .gf-words").all()) > 30
    controls = "button:not(.gf-link, .gf-hint), select, input, summary"
    assert [one.inner_text() for one in page.locator(controls).all() if one.is_visible()] == []
    look = "getComputedStyle(document.querySelector('.glassformer'))"
    assert page.evaluate(f"[{look}.color, {look}.backgroundColor]") == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    corner = """() => {
      const canvas = document.querySelector(".gf-decoder .gf-grid canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Uint32Array(data.buffer).includes(0xFFF3EFEC); // --blocked of the light theme
    }"""
    assert page.evaluate(corner)
    page.emulate_media(media="screen")
    page.evaluate(PAINTED)
    assert page.locator(".glassformer").get_attribute("data-theme") == "dark"
