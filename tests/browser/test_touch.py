"""The controls that a newcomer touches first do what their looks suggest."""

from typing import Any

import pytest

from browser.test_stage import SENTENCE, shown, stage, tab_stops  # noqa: F401 – `stage` is a fixture
from browser.waiting import open_panel, settled, translate, until

SMALL = (1280, 720)
PHONE = (390, 844)
OUTLINE = """() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return outlineStyle === "none" || outlineWidth === "0px" ? "" : document.activeElement.outerHTML.slice(0, 60);
}"""
NAMELESS = """() => [...document.querySelectorAll("button, summary")].filter((one) => {
  const isSeen = one.checkVisibility({ visibilityProperty: true });
  const isWord = /[\\p{L}\\p{N}]/u.test(one.innerText) || one.querySelector("bdi"); // a word may be a full stop
  return isSeen && !isWord && !/\\p{L}/u.test(one.title);
}).map((one) => one.outerHTML.slice(0, 90))"""


FREE = """() => {
  const shown = [".gfs-edit", '.gfs-word[data-word="encoder"] rect', ".gfs-field"].flatMap((one) =>
    [...document.querySelectorAll(one)].map((found) => found.getBoundingClientRect()));
  const field = shown.pop();
  const ends = [...shown.map((one) => one.right), field.left];
  const room = (x) => Math.min(field.right, ...shown.map((one) => one.left).filter((left) => left > x)) - x;
  const begin = ends.filter((x) => !shown.some((one) => one.left <= x && x < one.right))
    .reduce((most, x) => (room(x) > room(most) ? x : most));
  return begin + room(begin) / 2;
}"""
"""Returns the middle of the widest place without a word or a button in the line of source words."""


def field(page: Any) -> Any:
    return page.get_by_role("combobox", name="Source sentence")


def middle(page: Any, selector: str) -> tuple[float, float]:
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


WAYS = ["label", "pencil", "between", "double", "letters"]


@pytest.mark.parametrize(
    ("way", "size"),
    [*((way, SMALL) for way in WAYS), *(pytest.param(way, (1440, 900), marks=pytest.mark.long) for way in WAYS)],
)
def test_a_sentence_of_ones_own_is_entered_at_the_first_try(stage, size, way):  # noqa: F811
    page = stage(size)
    until(page, "document.getAnimations().every((one) => one.playState !== 'running')")
    left, y = page.locator(".gfs-field").bounding_box()["x"], middle(page, ".gfs-field")[1]
    if way == "label":
        label = page.locator(".gfs-g-names text", has_text="source").last.bounding_box()
        page.mouse.click(label["x"] + 5, label["y"] + 5)
    elif way == "pencil":
        page.mouse.click(left + 72, y)
    elif way == "between":
        page.mouse.click(page.evaluate(FREE), y)
    elif way == "double":
        page.mouse.dblclick(*middle(page, '.gfs-word[data-word="encoder"] text'))
    if way != "letters":
        field(page).wait_for()
    page.keyboard.type("The dog sleeps .")
    assert field(page).input_value() == "The dog sleeps ."
    page.keyboard.press("Enter")
    until(page, "glassformer.app.state.sentence === 'The dog sleeps .'")
    assert page.evaluate("glassformer.app.state.lecture") is False


def test_on_a_phone_a_touch_of_the_sentence_opens_the_field(stage):  # noqa: F811
    page = stage(PHONE)
    page.locator(".gfs-field-text").click()
    field(page).fill("a dog sleeps .")
    page.locator(".gfs-said-box h2").click()  # clicking elsewhere keeps what was typed
    until(page, "glassformer.app.state.sentence === 'a dog sleeps .'")


def test_letters_are_shortcuts_only_where_nobody_types(stage):  # noqa: F811
    page = stage()
    page.mouse.click(*middle(page, '.gfs-word[data-word="encoder"][data-column="2"] text'))
    page.keyboard.type("From")  # a capital letter starts a new sentence
    assert field(page).input_value() == "From"
    page.keyboard.press("Escape")
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE
    page.keyboard.type("x")
    page.mouse.click(30, 300)
    settled(page)
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE  # a single letter is ignored as a slip
    page.evaluate("""() => {
      const editor = document.createElement("p");
      editor.contentEditable = "true";
      document.body.append(editor);
      editor.focus();
    }""")
    page.keyboard.type("from")
    assert page.locator("p[contenteditable]").inner_text() == "from"
    assert page.evaluate("glassformer.app.state.lecture") is False
    page.evaluate("document.activeElement.blur()")
    page.get_by_role("button", name="What if?").click()
    page.locator(".gfs-sheet").wait_for()
    page.keyboard.type("w")
    assert field(page).count() == 0  # the sheet covers the words, so no field opens
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    until(page, "glassformer.app.state.lecture")
    page.keyboard.type("b")  # a key of presentation remotes
    assert field(page).count() == 0


@pytest.mark.parametrize("size", [(1440, 900), PHONE])
def test_a_source_word_does_not_move_the_chosen_written_word(stage, size):  # noqa: F811
    page = stage(size)
    page.evaluate("glassformer.app.show({ row: 1 })")
    settled(page)
    for column in (3, 0, 5):
        if size == PHONE:
            page.evaluate("(sourceWord) => glassformer.app.show({ sourceWord })", column)
        else:
            page.locator(f'.gfs-word[data-word="encoder"][data-column="{column}"]').click()
        settled(page)
        looks = page.evaluate("(({ row, sourceWord, box }) => [row, sourceWord, box])(glassformer.app.state)")
        assert looks == [1, column, "decoder.cross_attention"]
        weights = page.locator(".gfs-g-look text").all_text_contents()
        assert any(weight.startswith(SENTENCE.split()[column]) for weight in weights)


def test_the_mouse_leaves_no_frame_around_the_figure(stage):  # noqa: F811
    page = stage()
    word = middle(page, '.gfs-word[data-word="output"][data-column="1"] text')
    for place in [(1000, 20), (300, 330), (730, 345), word, (640, 600)]:
        page.mouse.click(*place)
        settled(page)
        assert page.evaluate(OUTLINE) == ""
    page.mouse.click(*word)
    settled(page)
    page.keyboard.press("ArrowLeft")  # the keyboard continues where the mouse was
    assert page.evaluate("glassformer.app.state.row") == 0
    assert "gfs-figure-svg" in page.evaluate(OUTLINE)
    page.mouse.click(1000, 20)
    assert page.evaluate(OUTLINE) == ""
    page.keyboard.press("Tab")
    page.locator(".gfs-figure-svg").focus()
    assert "gfs-figure-svg" in page.evaluate(OUTLINE)


@pytest.mark.parametrize("size", [(1440, 900), pytest.param(SMALL, marks=pytest.mark.long), PHONE])
def test_controls_without_words_are_named_under_the_pointer(make_translator, explore, size):
    page = explore(make_translator(extra_length=6), SENTENCE, start="figure", examples=[SENTENCE, "a dog sleeps ."])
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.locator(".gfs-knot").wait_for(state="attached")
    states = [
        {},
        {"second": {"text": "a dog ."}},
        {"sheet": True, "panel": "changes"},
        {"sheet": False, "chapter": 4, "act": 1},
        {"chapter": 0, "zoom": {"box": "decoder.softmax", "key": None}, "panel": "calculation"},
        {"panel": "beam"},
        {"panel": "why"},
        {"panel": "numbers", "selected": {"name": "logits", "index": [0, 1]}},
    ]
    for state in states:
        page.evaluate("(state) => glassformer.app.show(state)", state)
        settled(page)
        assert page.evaluate(NAMELESS) == [], state
    page.evaluate("glassformer.app.show({ zoom: null })")
    page.evaluate("glassformer.set({ positions: false }).then(() => null)")
    open_panel(page, "changes")
    settled(page)
    assert page.evaluate(NAMELESS) == []


@pytest.mark.parametrize("size", [(1440, 900), pytest.param(SMALL, marks=pytest.mark.long), PHONE])
def test_one_click_on_the_figure_says_why_the_lit_word_is_written(stage, size):  # noqa: F811
    page = stage(size)
    page.evaluate("glassformer.app.show({ row: 1 })")
    settled(page)
    looks = "(({ row, sourceWord, box, heads, view, sheet }) => [row, sourceWord, box, heads, view, sheet])"
    before = page.evaluate(f"{looks}(glassformer.app.state)")
    word = page.evaluate("glassformer.app.result.current.outputTokens[1]")
    page.locator(".gfs-why rect").click()
    page.locator(".gfz-panel", has_text=word).wait_for()
    assert page.evaluate("glassformer.app.state.zoom.box + ' ' + glassformer.app.state.panel") == "decoder.softmax why"
    assert page.evaluate(f"{looks}(glassformer.app.state)") == before  # the rest of the state is unchanged
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('.gf-zoom')?.firstChild")


TOPS = """() => {
  globalThis.tops = new Set();
  const look = () => {
    const figure = document.querySelector(".gfs-figure-svg[viewBox]");
    if (figure) tops.add(Math.round(figure.getBoundingClientRect().top + scrollY));
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.parametrize(
    ("language", "examples"),
    [
        ("zh", []),
        pytest.param("en", [SENTENCE], marks=pytest.mark.long),
        pytest.param("en", [], marks=pytest.mark.long),
        pytest.param("zh", [SENTENCE], marks=pytest.mark.long),
    ],
)
def test_what_is_measured_does_not_move_the_figure_on_a_phone(make_translator, explore, page, examples, language):
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.add_init_script(f"({TOPS})()")
    translator = make_translator(extra_length=6)
    sentence = SENTENCE if examples else "a dog sleeps ."
    explore(translator, SENTENCE, start="figure", examples=examples, fragment=f"language={language}")
    if not examples:
        page.evaluate("(text) => glassformer.app.open(text)", sentence)
    for row in range(3):
        page.evaluate("(row) => glassformer.app.show({ row })", row)
        settled(page)
        first = page.evaluate("(tops.clear(), document.querySelector('.gfs-more-text').textContent)")
        page.locator(".gfs-said-box [aria-busy=false]").wait_for()
        settled(page)
        assert len(page.evaluate("[...tops]")) == 1
        assert page.locator(".gfs-more-text").text_content().startswith(first.split(".")[0])


@pytest.mark.parametrize("size", [pytest.param((1440, 900), marks=pytest.mark.long), SMALL])
def test_the_second_translation_is_read_in_a_low_window(make_translator, explore, size):
    page = explore(make_translator(), SENTENCE, start="figure", fragment='second={"text":"the+black+dog+sleeps+."}')
    page.set_viewport_size({"width": size[0], "height": size[1]})
    text = page.locator(".gfs-second-text")
    text.wait_for()
    settled(page)
    written = page.locator(".gfs-second-text > :is(span, mark)").all_text_contents()
    assert len(written) > 1
    place, memory = text.bounding_box(), page.locator(".gfs-g-ribbons").bounding_box()
    assert place["height"] > 15
    assert place["y"] + place["height"] <= memory["y"]


def test_what_if_has_the_height_that_it_needs_and_buttons_look_like_buttons(make_translator, explore):
    pair = ["the tired cat sleeps .", "the wide cat sleeps ."]
    page = explore(make_translator(extra_length=2), pair[0], start="figure", story={"opens": "never", "pair": pair})
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="What if?").click()
    swap = page.get_by_role("button", name="Swap “tired” for “wide”")
    swap.wait_for()
    body = page.locator(".gfs-sheet-body").evaluate("(one) => [one.scrollHeight, one.clientHeight]")
    assert body[0] <= body[1]  # the content does not scroll
    sheet = page.locator(".gfs-sheet").bounding_box()
    assert sheet["y"] + sheet["height"] <= page.locator(".gfs-field").bounding_box()["y"]
    framed = "(all) => all.every((one) => parseFloat(getComputedStyle(one).borderTopWidth) > 0)"
    assert page.locator(".gfs-sheet button:not(.gf-link, .gfs-sheet-close)").evaluate_all(framed)
    swap.click()
    until(page, f"glassformer.app.changes.source === '{pair[1]}'")
    translate(page, "a dog sleeps .")  # the sheet does not cover the sentence
    until(page, "glassformer.app.state.sentence === 'a dog sleeps .'")
