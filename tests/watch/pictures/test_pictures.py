"""Pictures: they show real numbers, use the text's colour, and have an alternative text for screen readers."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from glassformer.errors import ConfigError, ShapeError
from glassformer.watch import pictures

WORDS = ["The", "cat", "<slept>"]
KINDS = ("heat map", "large heat map", "lines", "heads", "curves", "bars", "flow")


def drawn() -> dict[str, pictures.Picture]:
    weights = torch.softmax(torch.arange(9.0).view(3, 3), -1)
    return {
        "heat map": pictures.heat_map(weights, WORDS, WORDS, alt="weights & words"),
        "large heat map": pictures.heat_map(np.sin(np.arange(2000.0)).reshape(40, 50), alt="waves"),
        "lines": pictures.attention_lines(weights, WORDS, WORDS, query=1, alt="lines"),
        "heads": pictures.attention_lines(torch.stack([weights] * 2), WORDS, WORDS, names=["a", "b"], alt="heads"),
        "curves": pictures.curves(
            {"a": ([1, 2], [3, 4], [1, 1]), "b": ([1, 2], [4, 3])}, x_label="x", y_label="y", alt="c"
        ),
        "bars": pictures.bars({"a": (1.0, 0.5), "b": -2.0}, points={"a": [0.5, 1.5]}, x_label="x", alt="bars"),
        "flow": pictures.flow(
            {"a": pictures.Box("a", 0, 0, link="x.py", more={"code": "y.py"}), "b": pictures.Box("b", 1, 1)},
            [("a", "b", "(2, 3)")],
            alt="flow",
        ),
    }


@pytest.fixture(scope="module")
def all_drawn() -> dict[str, pictures.Picture]:
    """Return a picture of each kind."""
    return drawn()


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_one_svg_element_with_alternative_text_in_the_text_colour(all_drawn, kind):
    picture = all_drawn[kind]
    root = ElementTree.fromstring(picture.svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == picture.alt == root.findtext("{http://www.w3.org/2000/svg}title")
    assert "currentColor" in picture.svg
    assert not re.search(r"#000000|#ffffff|: (black|white)\b", picture.svg)
    assert picture._repr_html_().count("<svg") == 1
    assert len(repr(picture)) < 200


def test_the_ids_of_two_pictures_differ(all_drawn):
    assert tuple(all_drawn) == KINDS
    ids = [set(re.findall(r'\bid="([^"]+)"', picture.svg)) for picture in all_drawn.values()]
    assert len(set().union(*ids)) == sum(map(len, ids))
    for picture, own in zip(all_drawn.values(), ids, strict=True):
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', picture.svg)) <= own


@pytest.mark.slow
def test_the_same_numbers_give_the_same_bytes(all_drawn):
    assert {kind: one.svg for kind, one in drawn().items()} == {kind: one.svg for kind, one in all_drawn.items()}


def test_cells_of_a_small_heat_map_show_their_numbers():
    svg = pictures.heat_map([[0.25, -1.5]], alt="two").svg
    assert ">0.25<" in svg
    assert ">−1.50<" in svg


def test_lines_start_at_the_query_and_are_as_thick_as_the_weight():
    svg = pictures.attention_lines([[0.5, 0.5], [0.0, 1.0]], ["a", "b"], ["c", "d"], query=1, alt="x").svg
    assert re.findall(r"stroke-width: ([\d.]+)", svg) == ["6"]


def test_boxes_lead_to_their_chapters(all_drawn):
    assert 'href="x.py"' in all_drawn["flow"].svg
    assert 'href="y.py"' in all_drawn["flow"].svg
    assert "target=" not in all_drawn["flow"].svg


def test_words_stay_text(all_drawn):
    assert "&lt;slept&gt;" in all_drawn["heat map"].svg
    words = ["$x_1$", "中文", "\x01"]
    svg = pictures.heat_map([[1.0]] * 3, words, ["$"], alt="\x02", title="$5 or $6", column_label="a$^$").svg
    assert {*words[:2], "\ufffd", "$", "$5 or $6", "a$^$"} <= {
        one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: pictures.heat_map([1, 2], alt="x"), "expected 2 dimensions"),
        (lambda: pictures.heat_map([[1, 2]], columns=["a"], alt="x"), "columns: expected 2 names, one each, got 1"),
        (lambda: pictures.attention_lines([[1, 2]], ["a"], ["b"], alt="x"), r"expected shape \(1, 1\), got"),
    ],
)
def test_data_that_does_not_fit_is_refused(draw, message):
    with pytest.raises(ShapeError, match=message):
        draw()


def test_a_picture_without_alternative_text_is_refused():
    with pytest.raises(ValueError, match="got a blank text"):
        pictures.heat_map([[1.0]], alt=" ")


def test_a_player_has_every_frame_and_its_caption(all_drawn):
    frames = [all_drawn["lines"], all_drawn["bars"]]
    html = pictures.player(frames, ["one <b>", "two"])._repr_html_()
    assert html.count('class="gf-frame"') == 2
    assert "one &lt;b&gt;" in html
    with pytest.raises(ValueError, match="counts of at least 1, got 2 and 1"):
        pictures.player(frames, ["one"])


def test_a_saved_picture_is_an_svg_file(all_drawn, tmp_path):
    path = all_drawn["bars"].save(tmp_path / "bars.svg")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_picture_is_saved_as_svg_only(all_drawn, tmp_path):
    with pytest.raises(ConfigError, match=r"expected a name that ends with \.svg, got 'a.png'"):
        all_drawn["bars"].save(tmp_path / "a.png")
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory; choose another path"):
        all_drawn["bars"].save(tmp_path / "nowhere" / "a.svg")


@pytest.mark.slow
@pytest.mark.parametrize(("x", "y"), [(1, 0), (9, 0), (1, 5), (9, 5)])
def test_a_marked_point_has_a_label(x, y):
    line = {"a": ([1, 9], [0, 5])}
    svg = pictures.curves(line, alt="c", x_label="x", y_label="y", mark=(x, y, "kept"), from_zero=True).svg
    assert ">kept<" in svg
