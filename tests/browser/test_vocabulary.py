"""Views of a vocabulary of thousands of words: a window of columns, the likeliest words first, and a search."""

import pytest

from browser.waiting import until

WORDS = " ".join(f"w{number}" for number in range(4000))
LOOK = """async (name) => {
  const { data } = await glassformer.value(name);
  const first = [...data.keys()].reduce((best, at) => data[at] > data[best] ? at : best);
  const width = data.length / glassformer.app.result.current.targetTokens.length;
  glassformer.app.select({ name, index: [Math.floor(first / width), first % width] });
}"""
HEADERS = "[...document.querySelectorAll('.gfn-table th[scope=col]')].map((one) => one.textContent).filter(Boolean)"
BEST_FIRST = """async (name) => {
  const { app } = glassformer, { shape: [rows, width], data } = await app.value(name);
  const best = (id) => Math.max(...Array.from({ length: rows }, (_, row) => data[row * width + id]));
  const ids = Array.from({ length: width }, (_, id) => id).sort((a, b) => best(b) - best(a));
  return app.engine.tokens("target", ids);
}"""


@pytest.fixture
def point(make_translator, explore):
    """Return the view of a point of the vocabulary, as a table."""
    page = explore(make_translator(target=WORDS))
    page.evaluate(LOOK, "logits")
    page.get_by_role("button", name="Table").click()
    return page


def shown(page, count):
    """Return the words of the columns."""
    until(page, f"{HEADERS}.length === {count}")
    return page.evaluate(HEADERS)


@pytest.mark.parametrize("name", ["logits", "log_probs"])
def test_a_vocabulary_is_shown_in_windows_best_first(point, name):
    point.evaluate(LOOK, name)
    best = point.evaluate(BEST_FIRST, name)
    assert len(best) == 4004
    assert shown(point, 16) == best[:16]
    place = point.locator(".gfn-tensor > .gfn-tools [role=status]")
    assert place.text_content() == "words 1 to 16 of 4004, likeliest first"
    assert point.get_by_role("button", name="More likely words").is_disabled()
    point.get_by_role("button", name="Less likely words").click()
    assert shown(point, 16) == best[16:32]
    assert point.locator("*").count() < 1500


def test_a_word_is_found_by_its_letters(point):
    best = point.evaluate(BEST_FIRST, "logits")
    field = point.get_by_role("searchbox", name="Find a word")
    field.fill("W399")
    assert shown(point, 11) == [word for word in best if "w399" in word]
    field.fill("w3990")
    assert shown(point, 1) == ["w3990"]
    field.fill("nothing like it")
    shown(point, 0)
    assert point.locator(".gfn-grid").is_hidden()
    field.fill("")
    shown(point, 16)


def test_a_cell_of_a_later_window_opens_its_own_number(point):
    best = point.evaluate(BEST_FIRST, "logits")
    point.get_by_role("button", name="Less likely words").click()
    shown(point, 16)
    point.get_by_role("button", name="Table").click()
    canvas = point.locator(".gfn-grid canvas")
    canvas.wait_for(state="visible")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] - 9, "y": box["height"] - 9})
    name, [_, word] = point.evaluate("(({ name, index }) => [name, index])(glassformer.app.state.selected)")
    [token] = point.evaluate("(id) => glassformer.app.engine.tokens('target', [id])", word)
    assert (name, token) == ("logits", best[31])
