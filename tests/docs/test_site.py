"""The built documentation, opened without a network. `make docs` builds it and runs these tests."""

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from chapters import BOOK, CHAPTERS, EXECUTED, executed

import glassformer

pytestmark = [pytest.mark.docs, pytest.mark.browser]

SITE = Path(glassformer.__file__).parent / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
READ = [name for name in PAGES if not name.startswith(("zh/", "source/")) and name != "explorer.html"]


@pytest.fixture
def visited(page):
    """Return a function that opens a page of the book offline, and lists of the page's requests and errors."""
    page.context.set_offline(True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: message.type == "error" and asked.append(f"error {message.text}"))
    page.on("pageerror", lambda error: asked.append(f"error {error}"))

    def visit(name: str):
        page.goto((SITE / name).as_uri())  # returns when everything is loaded, frames included
        return page

    return visit, asked


def test_the_site_is_built():
    expected = {
        "overview",
        "guide/corpus",
        "reference/commands",
        "attention",
        "zh/attention",
        "zh/experiments",
        "errata",
        "maps/paper",
    }
    assert {"index.html", *(f"{name}.html" for name in expected)} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_requests_only_files_and_logs_no_errors(visited, name):
    visit, asked = visited
    visit(name)
    assert [what for what in asked if not what.startswith((SITE.as_uri(), "data:", "about:srcdoc"))] == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_code_cell_is_executed_and_shown_with_its_output(visited, chapter):
    visit, _ = visited
    notebook = nbformat.read(EXECUTED / f"{chapter.name}.ipynb", 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    shown = sum(1 for cell in code if cell.outputs)
    page = visit(f"{chapter.name}.html")
    assert page.locator("div.cell").count() == len(code)
    assert page.locator("div.cell div.cell_output").count() == shown
    assert shown >= sum("check" not in cell.metadata.get("tags", ()) for cell in code) / 3


@pytest.mark.parametrize("name", READ)
def test_a_page_does_not_scroll_sideways_and_its_pictures_have_descriptions(visited, name):
    visit, _ = visited
    page = visit(name)
    for width in (390, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.querySelectorAll('svg[role=img]')].every((one) => one.ariaLabel.length > 10)")


def test_a_page_never_scrolls_sideways_at_any_width(visited):
    visit, _ = visited
    page = visit("errata.html")
    for width in (360, 700, 1000, 1152, 1310, 1330, 1552, 1600, 1792, 2000):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("search", "chapter"),
    [
        ("search.html?q=sinusoids", "positions.html"),
        ("search.html?q=length_penalty", "reference/settings.html"),
        ("zh/search.html?q=注意力", "attention.html"),
    ],
)
def test_search_finds_a_chapter(visited, search, chapter):
    visit, asked = visited
    page = visit("index.html")
    page.goto(f"{SITE.as_uri()}/{search}")
    page.wait_for_timeout(100)
    page.locator(f'#search-results li a[href^="{chapter}"]').first.wait_for()
    assert not any(what.startswith("error") for what in asked)


def test_the_language_can_be_switched_both_ways(visited):
    visit, _ = visited
    page = visit("attention.html")
    page.locator(".language a").click()
    assert page.url.endswith("/zh/attention.html")
    assert re.search(r"[\u4e00-\u9fff]", page.locator("h1").inner_text())
    page.locator(".language a").click()
    assert page.url == (SITE / "attention.html").as_uri()


def test_a_box_of_the_architecture_leads_to_its_chapter(visited):
    visit, _ = visited
    page = visit("overview.html")
    page.locator("svg a", has_text="cross-attention").click()
    page.wait_for_url("**/decoder.html")


def test_the_explorer_in_the_overview_works(visited):
    visit, _ = visited
    page = visit("overview.html")
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frame(url=re.compile("explorer.html"))
    assert frame is not None
    assert frame.evaluate("glassformer.ready.then(() => glassformer.parity)") < 1e-4


def test_a_failing_cell_stops_the_build(tmp_path, monkeypatch):
    broken = tmp_path / "99_broken.py"
    broken.write_text("# %%\nassert 1 == 2\n", encoding="utf-8")
    monkeypatch.setattr("chapters.ROOT", tmp_path)
    monkeypatch.setattr("chapters._surroundings", lambda: b"")
    monkeypatch.setattr("chapters.EXECUTED", tmp_path)
    with pytest.raises(RuntimeError, match="AssertionError"):
        executed(type(CHAPTERS[0])(broken, "broken"))


def test_an_experiment_at_reduced_size_supports_the_chapters_conclusion(tmp_path):
    """This machine's demo has different weights: its figures may differ from the chapter's by 12 percentage points."""
    command = [sys.executable, BOOK / "experiments/measure/hidden_key.py", "--limit", "120", "--seeds", "1"]
    subprocess.run([*command, "--output", tmp_path / "repeated.json"], check=True)
    repeated = json.loads((tmp_path / "repeated.json").read_text(encoding="utf-8"))["results"]
    results = json.loads((BOOK / "experiments/results/hidden_key.json").read_text(encoding="utf-8"))["results"]
    assert len(results) >= 4
    assert all(result["hidden"]["adjective"]["everywhere"]["place"] >= 88 for result in results.values())
    for result in (*results.values(), *repeated.values()):
        hidden = result["hidden"]
        for word, others in (("place", "animal"), ("animal", "place")):
            assert hidden[word]["encoder"]["pronoun"] >= 88
            assert hidden[word]["everywhere"][word] <= 50
            assert hidden[word]["everywhere"][others] >= 88
        # Without the adjective the two sentences of a pair are equal; each model then prefers one of the nouns.
        assert 38 <= hidden["adjective"]["everywhere"]["pronoun"] <= 62
        for word in ("verb", "it", "none"):
            assert all(found["pronoun"] >= 88 for found in hidden[word].values())
