"""The book's tasks on the stage: a task is unsolved when its address opens, and the page's controls can solve it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from chapters import BOOK

from browser.test_view import problems
from browser.waiting import settled, until
from browser.zooms import STILL
from glassformer import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.payload import payload
from tiers import in_tiers

LINK = re.compile(r"runs/demo/explorer\.html#([^()\s]*&task=(\w+))\)")
ADDRESSES = {
    name: address
    for path in sorted(BOOK.rglob("*.py"))
    for address, name in LINK.findall(path.read_text(encoding="utf-8"))
}
SENTENCE = "The animal didn't cross the street because it was too tired."
LAYER = ".gfs-edge[data-stack={}]"
OPEN = "Not yet"


def click_word(page: Any, place: str, column: int) -> None:
    page.locator(f'.gfs-word[data-word="{place}"][data-column="{column}"]').first.click()


def open_box(page: Any, box: str) -> None:
    """Open a box by clicks on its edge: the first click lights the box, and the second opens it."""
    page.locator(f'.gfs-box[data-box="{box}"]').click(position={"x": 5, "y": 5})
    until(page, f"glassformer.app.state.box === '{box}'")
    if page.evaluate("glassformer.app.state.zoom") is None:
        page.get_by_role("button", name="Open this box").click()
    page.locator(".gf-zoom h2").wait_for()
    settled(page)
    page.evaluate(STILL)


def section(page: Any, name: str) -> None:
    page.locator(".gfs-sheet summary", has_text=name).click()


def click_number(page: Any, strip: str, place: int) -> None:
    """Open a number of a strip with the keyboard, by the shorter way from one of the strip's ends."""
    settled(page)  # a strip that is drawn again begins at its first number
    numbers = page.locator(f".gfz-room [data-stop='{strip}']")
    back = int(numbers.get_attribute("aria-valuemax")) - place
    numbers.focus()
    page.keyboard.press("Home" if place <= back else "End")
    for _ in range(min(place, back)):
        page.keyboard.press("ArrowRight" if place <= back else "ArrowLeft")
    assert numbers.get_attribute("aria-valuenow") == str(place)
    page.keyboard.press("Enter")


def numbers_of(page: Any, point: str, row: int) -> list[float]:
    found: list[float] = page.evaluate(
        """async ([name, row]) => {
          const { shape: [, width], data } = await glassformer.value(name);
          return [...data.slice(row * width, (row + 1) * width)];
        }""",
        [point, row],
    )
    return found


def turn(page: Any) -> None:
    page.locator(".gfs-knot").focus()
    for _ in range(5):  # moves the handle up from "tired" to "street"
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")


def head(page: Any) -> None:
    section(page, "Heads")
    page.get_by_role("button", name="head 5 off: Cross-attention, layer 0").click()


def what_if(page: Any) -> None:
    page.locator('[data-key="word 11"]').click()
    page.locator('[data-key="replacement"]').fill("wide")
    page.keyboard.press("Enter")


def hide(page: Any) -> None:
    section(page, "Mask")
    page.get_by_label("At what (key)").select_option("11")
    page.get_by_role("button", name="Hide “tired” from everyone").click()


def mistake(page: Any) -> None:
    section(page, "Classic mistakes")
    page.get_by_role("checkbox", name="No √d_k", exact=True).check()
    until(page, "glassformer.app.changes.mistakes.length === 1 && !glassformer.app.state.busy")
    assert status(page) == OPEN  # the translation is unchanged, so the task is not done
    page.get_by_role("checkbox", name="Softmax over the queries").check()


def temperature(page: Any) -> None:
    page.get_by_label("Temperature").fill("0.5")


def beam(page: Any) -> None:
    page.get_by_label("Beam size").select_option("2")
    until(page, "glassformer.app.result.current.search.hypotheses.length === 2 && !glassformer.app.state.busy")
    assert status(page) == OPEN
    page.get_by_label("Beam size").select_option("3")


def look(page: Any) -> None:
    page.locator('.gfs-box[data-box="encoder.self_attention"]').click(position={"x": 5, "y": 5})
    for head in (1, 0):
        assert status(page) == OPEN
        page.locator(f'.gfs-head[data-family="encoder"][data-head="{head}"]').click()
        until(page, f"glassformer.app.state.heads.encoder.head === {head}")
        click_word(page, "encoder", 8)


def attention(page: Any) -> None:
    page.locator(LAYER.format("decoder")).click()
    open_box(page, "decoder.cross_attention")
    page.get_by_role("button", name="head 4", exact=True).click()


def feed_forward(page: Any) -> None:
    click_word(page, "output", 1)
    open_box(page, "decoder.feed_forward")
    row = page.evaluate("glassformer.app.state.row")
    layer = page.evaluate("glassformer.app.state.zoom.box")
    silent = next(at for at, value in enumerate(numbers_of(page, f"{layer}.activated", row)) if value == 0)
    click_number(page, "units 0", silent)


def norm(page: Any) -> None:
    click_word(page, "output", 1)
    open_box(page, "decoder.feed_forward.add")
    part = page.evaluate("glassformer.app.state.zoom.box").removesuffix(".add")
    row = page.evaluate("glassformer.app.state.row")
    before, after = (numbers_of(page, f"{part}.{point}", row) for point in ("input", "added"))
    signs = [one * other for one, other in zip(before, after, strict=True)]
    click_number(page, "added", next(at for at, sign in enumerate(signs) if sign > 0))
    until(page, "glassformer.app.state.zoom.key !== null")
    assert status(page) == OPEN
    click_number(page, "added", next(at for at, sign in enumerate(signs) if sign < 0))


def positions(page: Any) -> None:
    click_word(page, "encoder", 4)
    open_box(page, "encoder.positions")
    word = page.evaluate("glassformer.app.state.sourceWord")
    small = [at for at, one in enumerate(numbers_of(page, "source.positions", word)) if abs(one) < 0.01]
    click_number(page, "position", small[-1])


def softmax(page: Any) -> None:
    open_box(page, "decoder.softmax")
    chances = page.evaluate("glassformer.app.result.current.hypothesis.tokenLogProbs")
    page.get_by_role("button", name="Figure").click()
    click_word(page, "output", chances.index(min(chances)))
    open_box(page, "decoder.softmax")


def learning(page: Any) -> None:
    slider = page.get_by_role("slider", name="Checkpoint")
    slider.press("Home")
    until(page, "glassformer.app.changes.checkpoint === 32 && !glassformer.app.state.busy")
    assert status(page) == OPEN  # with these early weights, the model writes no sentence yet
    slider.press("ArrowRight")


def second(page: Any) -> None:
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="Compare with").click()
    page.keyboard.type(SENTENCE.replace("tired", "wide"))
    page.keyboard.press("Enter")


SOLVED: dict[str, Callable[[Any], None]] = {
    one.__name__: one
    for one in (
        turn,
        head,
        what_if,
        hide,
        mistake,
        temperature,
        beam,
        look,
        attention,
        feed_forward,
        norm,
        positions,
        softmax,
        learning,
        second,
    )
}
DAILY = {"turn", "mistake", "beam", "norm", "learning", "second"}
"""The tasks that `make test` solves, because their tests differ most; `make test-all` solves all."""


@pytest.fixture
def opened(explore: Any) -> Callable[[str], Any]:
    """Return a function that opens a task at the book's address, with the model in the package."""

    def open_task(name: str) -> Any:
        data = partial(payload, checkpoints=3)
        demo, size = Translator.load("demo"), (1440, 900)
        page = explore(demo, SENTENCE, start="figure", fragment=ADDRESSES[name], data=data, size=size)
        page.locator(".gfs-knot").wait_for(state="attached")
        return page

    return open_task


def status(page: Any) -> str:
    """Wait until the page has checked its task in the present state; return the page's text about the task."""
    settled(page)
    text: str = page.locator(".gf-task [role=status]").inner_text()
    return text


def test_the_book_sets_every_task_of_the_page():
    texts = {key.removeprefix("task.") for key in strings()["en"] if key.startswith("task.")}
    assert {*ADDRESSES} == {*SOLVED} == texts - {"name", "open", "done", "leave"}
    assert len(ADDRESSES) == 15


@pytest.mark.parametrize("name", in_tiers(SOLVED, DAILY))
def test_a_task_is_open_at_its_address_and_done_by_the_pages_controls(opened, name):
    page = opened(name)
    task = page.get_by_role("complementary", name="Task")
    assert strings()["en"][f"task.{name}"] in task.inner_text()
    assert status(page) == OPEN
    SOLVED[name](page)
    task.get_by_text("✓ Done").wait_for()
    assert f"task={name}" in page.url
    assert page.locator(".gf-error:visible").count() == 0


def test_a_task_stays_done_until_the_reader_leaves_it(opened):
    page = opened("temperature")
    task = page.get_by_role("complementary", name="Task")
    temperature(page)
    task.get_by_text("✓ Done").wait_for()
    page.get_by_label("Temperature").fill("3")
    assert status(page) == "✓ Done"
    page.evaluate("glassformer.app.show({language: 'zh'})")
    page.get_by_role("complementary", name="任务").get_by_text("✓ 完成").wait_for()
    page.evaluate("glassformer.app.show({language: 'en'})")
    assert problems(page) == []
    page.get_by_role("button", name="Leave the task").click()
    task.wait_for(state="hidden")
    until(page, "!location.hash.includes('task=')")
    page.evaluate("glassformer.app.show({task: 'temperature'})")
    task.get_by_text(OPEN).wait_for()


def test_an_address_with_an_unknown_task_says_so(explore, make_translator):
    page = explore(make_translator(), "the cat .", start="figure", fragment="task=fly")
    page.locator(".gf-error", has_text="task").wait_for()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_task_covers_neither_the_strip_of_chapters_nor_the_end_of_the_page(opened, width):
    page = opened("turn")
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate(STILL)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    task, strip = (page.locator(one).bounding_box() for one in (".gf-task", ".gfs-plane .gfs-strip:visible"))
    assert strip["y"] + strip["height"] <= task["y"] + 1
    assert task["y"] + task["height"] <= 845
