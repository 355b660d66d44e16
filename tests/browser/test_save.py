"""Pictures, links and frames that a reader takes away from the page."""

import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.1.cross_attention"
STATE = "(({ state }) => ({ text: state.result.current.text, heads: state.heads }))(glassformer.app)"


@pytest.fixture
def opened(make_translator, explore):
    """Return a translator, and its page."""
    translator = make_translator()
    return translator, explore(translator, SENTENCE)


def saved(page: Any, place: str, kind: str, folder: Path, *, last: bool = False) -> Path:
    """Save the first or the last picture of a place by its menu, and return the file."""
    menus = page.locator(f"{place} .gf-save:visible")
    menu = menus.last if last else menus.first
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name=f"Save as {kind}").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def texts(svg: Path) -> list[str]:
    """Return the texts of an SVG file, which must be well-formed."""
    return [one.text or "" for one in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_the_button_says_that_the_picture_is_saved(opened, tmp_path, kind):
    _, page = opened
    path = saved(page, ".gf-cross", kind, tmp_path)
    page.get_by_role("button", name=f"Saved: {path.name}", exact=True).wait_for()
    page.get_by_role("button", name=f"Save as {kind}").wait_for()


def test_a_grid_is_saved_with_its_weights_and_words(opened, tmp_path):
    translator, page = opened
    page.evaluate("glassformer.app.show({heads: {...glassformer.app.state.heads, cross: {layer: 1, head: 2}}})")
    path = saved(page, ".gf-cross", "SVG", tmp_path)
    assert path.name == f"{CROSS}.2.svg"
    weights = page.evaluate(f"glassformer.value('{CROSS}.weights').then(({{shape, data}}) => [...data])")
    [output] = translator.translate([SENTENCE])
    read = ["<bos>", *output.tokens[:-1]]
    rows = [f"{word} → {written}" for word, written in zip(read, output.tokens, strict=True)]
    columns = [*translator.bundle.source_tokenizer.split(SENTENCE), "<eos>"]
    label = f"{CROSS}.weights, head 2: {len(rows)} rows, {len(columns)} columns"
    caption = [f"{SENTENCE} → {output.text}", label, f"glassformer · {translator.bundle.folder.name}"]
    said = texts(path)
    begin, end = said.index(rows[0]), said.index(rows[0]) + len(rows + columns)
    assert said[begin:end] == [*rows, *columns]
    assert " ".join(said[end:]) == " ".join(caption)  # its lines are wrapped
    cells = len(rows) * len(columns)
    shown = [value for value in weights[2 * cells : 3 * cells] if value >= 0.005]
    assert list(map(float, said[:begin])) == pytest.approx(shown, abs=5.1e-4)
    about = ElementTree.parse(path).getroot().findtext("{http://www.w3.org/2000/svg}desc")
    assert about == page.evaluate("location.hash")


def test_a_png_has_twice_the_pixels_of_the_svg(opened, tmp_path):
    _, page = opened
    svg, png = (saved(page, ".gf-encoder", kind, tmp_path) for kind in ("SVG", "PNG"))
    size = ElementTree.parse(svg).getroot()
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert (width, height) == (2 * int(size.get("width", 0)), 2 * int(size.get("height", 0)))


def test_the_caption_names_the_changes(opened, tmp_path):
    _, page = opened
    page.evaluate(f"glassformer.set({{ablated: {{'{CROSS}': [0]}}, mistakes: ['no_scale']}})")
    svg = saved(page, ".gf-decoder", "SVG", tmp_path)
    [line] = [text for text in texts(svg) if text.startswith("with changes: ")]
    assert "head 0" in line
    assert page.evaluate("glassformer.app.t('mistake.no_scale')") in line
    assert "mistakes" in (ElementTree.parse(svg).getroot().findtext("{http://www.w3.org/2000/svg}desc") or "")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_the_beam_tree_are_saved_as_they_are_drawn(opened, tmp_path, theme):
    translator, page = opened
    page.evaluate(f"glassformer.app.show({{theme: '{theme}', face: 'lines', panel: 'beam'}})")
    page.locator(".gf-node").first.wait_for()
    lines = saved(page, ".gf-cross", "SVG", tmp_path)
    words = [*translator.bundle.source_tokenizer.split(SENTENCE), "<eos>"]
    assert set(words) <= set(texts(lines))
    assert len(list(ElementTree.parse(lines).iter("{http://www.w3.org/2000/svg}path"))) > 5
    tree = texts(saved(page, ".gf-beam", "SVG", tmp_path))
    nodes = page.locator(".gf-node").count()
    assert sum("Σ" in text for text in tree) >= nodes - 1  # the root has no sum
    assert saved(page, ".gf-beam", "PNG", tmp_path).stat().st_size > 1000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_models_picture_is_saved_with_its_lines(opened, tmp_path, theme):
    translator, page = opened
    page.evaluate(f"glassformer.app.show({{theme: '{theme}'}})")
    path = saved(page, ".gf-flow-frame", "SVG", tmp_path)
    assert path.name == "model.svg"
    said = texts(path)
    for word in ["encoder", "decoder", "memory", *translator.bundle.source_tokenizer.split(SENTENCE), "<eos>"]:
        assert word in said
    [output] = translator.translate([SENTENCE])
    caption = ["The model at a glance", f"{SENTENCE} → {output.text}"]
    assert said[-3:] == [*caption, f"glassformer · {translator.bundle.folder.name}"]
    assert [said.count(word) for word in ("self", "cross", "FFN")] == [4, 2, 4]
    svg = ElementTree.parse(path)
    drawn = [(one.get("stroke"), one.get("stroke-dasharray")) for one in svg.iter("{http://www.w3.org/2000/svg}line")]
    assert len(drawn) == 2 + 2 * 10 + 3 + 2  # the stacks' names, stubs, both streams and the memory, taps into it
    assert sum(gaps != "none" for _, gaps in drawn) == 3  # what is read from the memory is dotted
    colours = page.evaluate(
        """["encoder", "decoder"].map((stack) => getComputedStyle(document.querySelector(
          `.gf-flow-${stack} .gf-flow-stream > .gf-flow-line`)).borderTopColor)"""
    )
    assert {stroke for stroke, _ in drawn} == set(colours)
    assert saved(page, ".gf-flow-frame", "PNG", tmp_path).stat().st_size > 1000


@pytest.mark.parametrize("positions", ["interleaved", "learned"])
def test_the_positions_are_saved(make_translator, explore, tmp_path, positions):
    page = explore(make_translator(positions=positions), SENTENCE)
    page.evaluate("glassformer.app.show({panel: 'positions'})")
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
    page.evaluate("glassformer.app.show({panel: 'positions'})")
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
    menu = shown.locator(".gf-cross .gf-save")
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


@pytest.mark.parametrize("size", [(1440, 900), (1920, 1200), (390, 844)])
def test_the_figure_is_saved_with_its_sentence_and_words(make_translator, explore, tmp_path, size):
    translator = make_translator()
    page = explore(translator, SENTENCE, view="stage")
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
    assert width <= max(size[0], 420) + 8  # the caption is wrapped: it does not widen the picture
