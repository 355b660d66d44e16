"""Reading maps link to existing code, chapters, and points of the forward pass."""

import pytest
from chapters import BOOK, Chapter, parsed
from maps import HEADS, MAPS, OPENS, map_page, place
from pages import ROOT, definitions, slug

import glassformer as gf

STEPS = [(name, step) for name, one in MAPS.items() for step in one.steps]
POINTS = set(gf.points(gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))))


def lines(code: str) -> str:
    """Return the source of a reference such as "model/attention.py#attention"."""
    file, name = place(code)
    first, last = definitions(file)[name]
    return "\n".join((ROOT / file).read_text(encoding="utf-8").splitlines()[first - 1 : last])


def test_the_paper_and_each_tutorial_have_a_map():
    assert set(MAPS) == {"paper", "encoder_notebook", "whole_model", "step_by_step", "posts", "intuitions"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), STEPS, ids=lambda value: str(value)[:40] if isinstance(value, str) else "")
def test_every_step_leads_to_existing_code_chapters_and_points(name, step):
    code = "\n".join(map(lines, step.get("code", ())))
    assert all(fragment in code for fragment in step.get("shows", ()))
    assert step.get("point") in POINTS | {None}
    assert step.get("opens") in {*OPENS, None}
    for chapter in step["chapters"]:
        file, _, anchor = chapter["page"].partition("#")
        cells = parsed(BOOK / file).cells
        headings = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
        assert not anchor or anchor in {slug(line.lstrip("# ")) for line in headings if line.startswith("#")}


def test_every_section_of_the_paper_with_code_is_on_its_map():
    text = " ".join(step["step"] for step in MAPS["paper"].steps)
    for section in (
        "§3.1",
        "§3.2.1",
        "§3.2.2",
        "§3.2.3",
        "§3.3",
        "§3.4",
        "§3.5",
        "§5.1",
        "§5.3",
        "§5.4",
        "§6.1",
        "§6.2",
    ):
        assert section in text


@pytest.mark.parametrize(("name", "language"), [(name, language) for name in MAPS for language in HEADS])
def test_a_page_has_a_row_for_each_step_and_its_links_work_on_the_site(name, language):
    page, files = map_page(name, {f"maps/{name}"}, language)
    assert page.count("\n| ") == len(MAPS[name].steps) + 2
    assert "](" not in page
    assert ".py#" not in page.replace(".py.html#", "")
    assert files


def test_a_chinese_map_names_the_chapters_that_are_in_english_only(monkeypatch):
    page, _ = map_page("paper", {"maps/paper"}, "zh")
    assert "（英文）" not in page
    monkeypatch.setattr(Chapter, "translation", BOOK / "zh" / "missing.md")
    page, _ = map_page("paper", {"maps/paper"}, "zh")
    assert "实验：哪个头决定 it（英文）" in page
