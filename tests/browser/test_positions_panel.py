"""The panel of positions: one rotation maps PE[pos] to PE[pos + k], with the table's own numbers, in both layouts."""

from typing import Any

import pytest

import glassformer as gf
from browser.waiting import open_panel

SENTENCE = "the big black dog sees a cat and sleeps ."
SLIDERS = {"Position pos": "position", "Shift k": "shift", "Pair i": "pair"}


@pytest.fixture
def positions(make_translator, explore):
    """Return a function that opens the panel for a model."""

    def show(**model: Any) -> Any:
        page = explore(make_translator(**model), SENTENCE)
        open_panel(page, "positions")
        return page

    return show


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def slide(page: Any, name: str, value: int) -> None:
    page.evaluate(
        """([name, value]) => {
          const slider = document.querySelector(`.gf-positions [aria-label="${name}"]`);
          slider.value = value;
          slider.dispatchEvent(new Event("input"));
        }""",
        [name, value],
    )


def matrices(page: Any) -> dict[str, list[float]]:
    """Return the numbers of each matrix and vector of the equation, by its caption."""
    return {
        term.locator("small").inner_text(): [
            number(text) for text in term.locator(".gf-column > span").all_inner_texts()
        ]
        for term in page.locator(".gf-equation .gf-term").all()
    }


@pytest.mark.parametrize("layout", ["interleaved", pytest.param("halves", marks=pytest.mark.long)])
def test_the_matrix_maps_one_position_to_the_other(positions, layout):
    page, table = positions(positions=layout), gf.sinusoids(64, 24, layout)
    for position, shift, pair in ((0, 1, 0), (3, 2, 1), (7, 40, 4), (10, 53, 11)):
        for name, value in zip(SLIDERS, (position, shift, pair), strict=True):
            slide(page, name, value)
        said, there = matrices(page), f"PE[{position + shift}]"
        columns = [2 * pair, 2 * pair + 1] if layout == "interleaved" else [pair, pair + 12]
        for at in (position, position + shift):
            assert said[f"PE[{at}]"] == pytest.approx(table[at, columns].tolist(), abs=5e-4)
        assert said[f"M·PE[{position}]"] == said[there]
        a, b, c, d = said[f"M_{shift}"]
        sine, cosine = said[f"PE[{position}]"]
        assert [a * sine + b * cosine, c * sine + d * cosine] == pytest.approx(said[there], abs=3e-3)
        assert [a, b] == [d, -c]


def test_the_angle_follows_the_papers_formula(positions):
    page = positions()
    for shift, pair in ((1, 0), (2, 3), (40, 11)):
        slide(page, "Shift k", shift)
        slide(page, "Pair i", pair)
        angle = shift / 10000 ** (2 * pair / 24)
        text = page.locator("p.gf-mono", has_text="angle").inner_text()
        assert f"{shift} / 10000^({2 * pair}/24)" in text
        assert number(text.split(" rad")[0].split("= ")[-1]) == pytest.approx(angle, rel=0.06, abs=5e-5)


def test_one_matrix_fits_every_position(positions):
    text = positions().locator(".gf-positions").inner_text()
    [worst] = [line for line in text.splitlines() if line.startswith("The same matrix")]
    assert "from 0 to 61" in worst
    assert float(worst.split("largest difference ")[1].split(". ")[0]) < 1e-6


def test_no_matrix_fits_the_doubled_exponent(positions):
    page = positions()
    page.evaluate("glassformer.set({ mistakes: ['doubled_exponent'] })")
    slide(page, "Pair i", 2)
    said = page.locator(".gf-positions .gf-change").inner_text()
    assert "no rotation fits" in said
    assert float(said.split(": ")[-1].rstrip(".")) > 0.1


def test_a_click_on_the_picture_chooses_position_and_pair(positions):
    page = positions(positions="halves")
    canvas = page.locator(".gf-positions canvas")
    canvas.hover()  # waits until the box has its final size
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 17.5 / 24, "y": box["height"] * 4.5 / 11})
    page.locator(".gf-positions", has_text="Pair 5: dimensions 5 (sine) and 17 (cosine)").wait_for()
    assert "PE[4]" in matrices(page)
    assert page.get_by_label("Pair i").input_value() == "5"


def test_the_sliders_obey_the_keyboard_and_keep_the_focus(positions):
    page = positions()
    for name in SLIDERS:
        slider = page.get_by_label(name)
        before = int(slider.input_value())
        slider.focus()
        page.keyboard.press("ArrowRight")
        assert int(slider.input_value()) == before + 1
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == name
    assert list(matrices(page)) == ["M_3", "PE[4]", "M·PE[4]", "PE[7]"]


@pytest.mark.parametrize(("kind", "words"), [("learned", "has learned its positions"), ("none", "has no positions")])
def test_other_kinds_of_positions_are_named(positions, kind, words):
    page = positions(positions=kind, max_length=256)
    assert words in page.locator(".gf-positions").inner_text()
    assert page.locator(".gf-positions canvas").count() == (kind == "learned")
    assert page.locator(".gf-equation").count() == 0


def test_an_odd_width_leaves_the_last_sine_without_a_pair(positions):
    page = positions(d_model=27, heads=3, d_k=5, d_v=5, positions="halves")
    slide(page, "Pair i", 99)
    assert "Pair 12: dimensions 12 (sine) and 26 (cosine)" in page.locator(".gf-positions").inner_text()
