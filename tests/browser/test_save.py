"""Pictures, links and frames that a reader takes away from the page."""

import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from browser.waiting import open_panel, until

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.1.cross_attention"
STATE = "(({ state }) => ({ text: state.result.current.text, heads: state.heads }))(glassformer.app)"


@pytest.fixture
def opened(make_translator, explore):
    """Return a translator, and its page."""
    translator = make_translator(extra_length=6)
    return translator, explore(translator, SENTENCE)


def saved(page: Any, place: str, kind: str, folder: Path, *, last: bool = False) -> Path:
    """Save the first or the last picture of a part of the page, and return the file."""
    inside = page.locator(place)
    menus = inside.locator(".gf-save:visible")
    if menus.count():
        inside = menus.last if last else menus.first
        if inside.get_attribute("open") is None:
            inside.locator("summary").click()
    with page.expect_download() as download:
        inside.get_by_role("button", name=f"Save as {kind}").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def texts(svg: Path) -> list[str]:
    """Return the texts of an SVG file, which must be well-formed."""
    return [one.text or "" for one in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("kind", [pytest.param("SVG", marks=pytest.mark.long), "PNG"])
def test_the_button_says_that_the_picture_is_saved(opened, tmp_path, kind):
    _, page = opened
    path = saved(page, ".gfn", kind, tmp_path)
    page.get_by_role("button", name=f"Saved: {path.name}", exact=True).wait_for()
    page.get_by_role("button", name=f"Save as {kind}").wait_for()


@pytest.mark.parametrize("kind", ["SVG", pytest.param("PNG", marks=pytest.mark.long)])
def test_a_menu_closes_and_the_page_says_what_is_saved(opened, tmp_path, kind):
    _, page = opened
    page.evaluate("glassformer.app.show({zoom: null})")
    page.locator(".gfs-more summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save as {kind}").click()
    name = download.value.suggested_filename
    page.get_by_role("status").get_by_text(f"Saved: {name}", exact=True).wait_for()
    assert page.locator(".gfs-more[open]").count() == 0
    assert page.evaluate("document.activeElement.matches('.gfs-more summary')")
    open_panel(page, "beam").locator(".gf-node").first.wait_for()
    menu = page.locator(".gf-beam .gf-save")
    path = saved(page, ".gf-beam", kind, tmp_path)
    menu.locator("summary[aria-live=polite]", has_text=f"Saved: {path.name}").wait_for()
    assert menu.get_attribute("open") is None


def test_a_grid_is_saved_with_its_weights_and_words(opened, tmp_path):
    translator, page = opened
    selected = {"name": f"{CROSS}.weights", "index": [2, 0, 0]}
    page.evaluate("(selected) => glassformer.app.show({ selected })", selected)
    until(page, "document.querySelector('.gfn-grid [role=grid]')?.ariaLabel.includes('head 2')")
    path = saved(page, ".gfn", "SVG", tmp_path)
    assert path.name == f"{CROSS}.weights.2.svg"
    weights = page.evaluate(f"glassformer.value('{CROSS}.weights').then(({{shape, data}}) => [...data])")
    [output] = translator.translate([SENTENCE])
    read = ["start", *output.tokens[:-1]]
    written = [*output.tokens[:-1], "end"]
    rows = [f"{word} (writes {other})" for word, other in zip(read, written, strict=True)]
    columns = [word.removeprefix("▁") for word in translator.bundle.source_tokenizer.split(SENTENCE)] + ["end"]
    label = f"{CROSS}.weights, head 2: {len(rows)} × {len(columns)}"
    caption = [f"{SENTENCE} → {output.text}", label, f"glassformer · {translator.bundle.folder.name}"]
    said = texts(path)
    begin, end = said.index(rows[0]), said.index(rows[0]) + len(rows + columns)
    assert said[begin:end] == [*rows, *columns]
    assert " ".join(said[end:]) == " ".join(caption)  # the caption's lines are wrapped
    cells = len(rows) * len(columns)
    shown = [value for value in weights[2 * cells : 3 * cells] if value >= 0.005]
    assert list(map(float, said[:begin])) == pytest.approx(shown, abs=5.1e-4)
    about = ElementTree.parse(path).getroot().findtext("{http://www.w3.org/2000/svg}desc")
    assert about == page.evaluate("location.hash")


def test_a_png_has_twice_the_pixels_of_the_svg(opened, tmp_path):
    _, page = opened
    svg, png = (saved(page, ".gfn", kind, tmp_path) for kind in ("SVG", "PNG"))
    size = ElementTree.parse(svg).getroot()
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert (width, height) == (2 * int(size.get("width", 0)), 2 * int(size.get("height", 0)))


def test_the_caption_names_the_changes(opened, tmp_path):
    _, page = opened
    page.evaluate(f"glassformer.set({{ablated: {{'{CROSS}': [0]}}, mistakes: ['no_scale']}})")
    svg = saved(page, ".gfn", "SVG", tmp_path)
    [line] = [text for text in texts(svg) if text.startswith("with changes: ")]
    assert "head 0" in line
    assert page.evaluate("glassformer.app.t('mistake.no_scale')") in line
    assert "mistakes" in (ElementTree.parse(svg).getroot().findtext("{http://www.w3.org/2000/svg}desc") or "")


def test_a_picture_on_paper_is_light(opened, tmp_path):
    _, page = opened
    light = saved(page, ".gfn", "SVG", tmp_path).read_text(encoding="utf-8")
    page.evaluate("glassformer.app.show({theme: 'dark'})")
    until(page, "document.querySelector('.glassformer').dataset.theme === 'dark'")
    dark = saved(page, ".gfn", "SVG", tmp_path).read_text(encoding="utf-8")
    # only the description, which contains the address, differs
    assert dark.partition("</desc>")[2] == light.partition("</desc>")[2]


@pytest.mark.parametrize("theme", [pytest.param("light", marks=pytest.mark.long), "dark"])
def test_the_beam_tree_is_saved_as_it_is_drawn(opened, tmp_path, theme):
    _, page = opened
    page.evaluate(f"glassformer.app.show({{theme: '{theme}'}})")
    open_panel(page, "beam").locator(".gf-node").first.wait_for()
    tree = texts(saved(page, ".gf-beam", "SVG", tmp_path))
    nodes = page.locator(".gf-node").count()
    assert sum("Σ" in text for text in tree) >= nodes - 1  # only the root may lack a sum
    assert saved(page, ".gf-beam", "PNG", tmp_path).stat().st_size > 1000


@pytest.mark.parametrize("positions", ["interleaved", pytest.param("learned", marks=pytest.mark.long)])
def test_the_positions_are_saved(make_translator, explore, tmp_path, positions):
    page = explore(make_translator(positions=positions), SENTENCE)
    open_panel(page, "positions")
    table = page.locator(".gf-positions canvas")
    table.wait_for()
    path = saved(page, ".gf-positions", "SVG", tmp_path)
    assert path.name == "positions.svg"
    [image] = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}image")
    assert image.get("href") == table.evaluate("(one) => one.toDataURL()")
    assert texts(path)[0].startswith("Positional encoding")
    assert saved(page, ".gf-positions", "PNG", tmp_path).stat().st_size > 1000


def test_a_pair_of_dimensions_is_saved_as_it_is_drawn(opened, tmp_path):
    _, page = opened
    open_panel(page, "positions")
    page.get_by_label("Pair i").fill("2")
    path = saved(page, ".gf-positions", "SVG", tmp_path, last=True)
    assert path.name == "positions-pair.svg"
    said = texts(path)
    assert "Pair 2 of the positional encoding" in said
    shown = page.locator(".gf-equation .gf-column span").all_inner_texts()
    assert set(shown) <= set(said)
    assert len(list(ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}polyline"))) >= 2


def test_a_copied_frame_shows_the_same_state(opened, page, tmp_path):
    _, shown = opened
    shown.evaluate("glassformer.set({mistakes: ['no_scale']})")
    shown.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    shown.evaluate("glassformer.app.show({zoom: null})")
    menu = shown.locator(".gfs-more")
    menu.locator("summary").click()
    menu.get_by_role("button", name="Copy <iframe>").click()
    frame = menu.get_by_role("textbox", name="Copy <iframe>").input_value()
    before = shown.evaluate(STATE)
    (tmp_path / "slide.html").write_text(f"<!doctype html><title>slide</title>{frame}", encoding="utf-8")
    page.goto((tmp_path / "slide.html").as_uri())
    inner = page.frames[1]
    inner.wait_for_function("globalThis.glassformer?.ready")
    inner.evaluate("() => glassformer.ready.then(() => null)")
    assert inner.evaluate(STATE) == before
    assert inner.evaluate("glassformer.app.changes.mistakes") == ["no_scale"]


@pytest.mark.parametrize("size", [(1440, 900), pytest.param((1920, 1200), marks=pytest.mark.long), (390, 844)])
def test_the_figure_is_saved_with_its_sentence_and_words(make_translator, explore, tmp_path, size):
    translator = make_translator()
    page = explore(translator, SENTENCE, start="figure")
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.locator(".gfs-more summary").click()
    menu = page.locator(".gfs-more .gf-choices").bounding_box()
    assert menu["x"] >= 0
    assert menu["x"] + menu["width"] <= size[0]
    assert menu["y"] + menu["height"] <= size[1]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as SVG").click()
    download.value.save_as(tmp_path / "figure.svg")
    said = texts(tmp_path / "figure.svg")
    assert download.value.suggested_filename == "figure-1.svg"
    [output] = translator.translate([SENTENCE])
    assert f"{SENTENCE} → {output.text}" in " ".join(said)
    assert {"Softmax", "Linear", "Embedding"} <= {text.strip() for text in said}
    width = int(ElementTree.parse(tmp_path / "figure.svg").getroot().get("width", 0))
    assert width <= max(size[0], 420) + 8  # the caption is wrapped instead of widening the picture
