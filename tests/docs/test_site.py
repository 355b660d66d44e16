"""The built documentation, opened without a network. `make site` builds it and runs these tests."""

import json
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import urldefrag, urljoin
from urllib.request import Request, urlopen

import nbformat
import pytest
from chapters import BOOK, CHAPTERS, EXECUTED, ROW, executed
from chinese import THEME
from links import Links
from nbclient import NotebookClient

import glassformer

pytestmark = [pytest.mark.docs, pytest.mark.browser]

SITE = Path(glassformer.__file__).parent / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
SAID = {row[1]: int(row[0].split("|")[3]) for row in ROW.finditer((BOOK / "overview.py").read_text(encoding="utf-8"))}
"""The minutes of each page according to the overview."""
READ = [name for name in PAGES if not name.startswith(("zh/", "source/")) and name != "explorer.html"]


def test_the_themes_words_are_chinese_on_chinese_pages():
    """A word that no English page has is outdated: a new version of the theme uses a different word."""
    english, chinese = [
        "".join((SITE / name).read_text(encoding="utf-8") for name in PAGES if name.startswith("zh/") is zh)
        for zh in (False, True)
    ]
    assert [word for word in THEME if word not in english or word in chinese] == []


@pytest.fixture
def visited(page):
    """Return a function that opens a page of the book offline, and lists of the page's requests and errors."""
    page.context.set_offline(True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: message.type == "error" and asked.append(f"error {message.text}"))
    page.on("pageerror", lambda error: asked.append(f"error {error}"))

    def visit(name: str):
        page.goto((SITE / name).as_uri())  # returns after everything has loaded, including frames
        return page

    return visit, asked


def test_the_site_is_built():
    expected = {
        "overview",
        "guide/corpus",
        "reference/commands",
        "attention",
        "zh/attention",
        "zh/experiments/beam",
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
    assert page.locator(".sidebar-drawer a:visible").count() <= 10
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
    page.locator(".site-head .language a").click()
    assert page.url.endswith("/zh/attention.html")
    assert re.search(r"[\u4e00-\u9fff]", page.locator("h1").inner_text())
    page.locator(".site-head .language a").click()
    assert page.url == (SITE / "attention.html").as_uri()


def test_links_of_chinese_pages_into_the_explorer_open_it_in_chinese():
    pages = [(SITE / name).read_text(encoding="utf-8") for name in PAGES if name.startswith("zh/")]
    states = [state for page in pages for state in re.findall(r' (?:href|src)="(?:\.\./)+explorer\.html([^"]*)"', page)]
    assert len(states) > 20
    assert [state for state in states if "language=zh" not in state] == []


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


@pytest.mark.parametrize("edition", ["", "zh/"])
def test_next_leads_through_every_page(edition):
    beside = ("source/", "search.html", "genindex.html", "explorer.html", *(() if edition else ("zh/",)))
    pages = {name.removeprefix(edition) for name in PAGES if name.startswith(edition)}
    name, reached = "index.html", []
    while name:
        reached.append(name)
        text = (SITE / edition / name).read_text(encoding="utf-8")
        found = re.search(r'<link rel="next" title="[^"]*" href="([^"]+)"', text)
        name = urljoin(name, found[1]) if found else ""
    assert len(reached) == len(set(reached))
    assert sorted(reached) == sorted(page for page in pages if not page.startswith(beside))


def test_the_site_adds_no_modules_to_the_package():
    assert [*SITE.rglob("*.py")] == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_a_chapter_says_how_long_it_takes_and_comes_as_a_notebook_beside_its_wheel(chapter):
    about = re.search(r'<p class="about"><span>(\d+) min read</span><a href="([^"]+)"', read(f"{chapter.name}.html"))
    assert 3 <= int(about[1]) <= SAID.get(chapter.name, 90)
    notebook = (SITE / chapter.name).parent / about[2]
    cells = nbformat.read(notebook, 4).cells
    assert (notebook.parent / re.search(r"%pip install --quiet (\S+)", cells[0].source)[1]).resolve().exists()
    assert len(cells) == 1 + len(nbformat.read(EXECUTED / f"{chapter.name}.ipynb", 4).cells)
    for link in re.findall(r'href="([^"#]+)', "".join(cell.source for cell in cells if cell.cell_type == "markdown")):
        assert "://" in link or (notebook.parent / link).exists(), link


def read(name: str) -> str:
    """Return the source of a page."""
    return (SITE / name).read_text(encoding="utf-8")


@pytest.mark.long
def test_a_notebook_runs_without_a_trained_demo(tmp_path):
    """If the wheel is installed and `runs/demo` does not exist, a chapter uses the model in the package."""
    copytree(SITE / "notebooks", tmp_path / "notebooks")
    notebook = nbformat.read(tmp_path / "notebooks" / "heads.ipynb", 4)
    notebook.cells.append(nbformat.v4.new_code_cell("print(translator.bundle.folder.parent.name)"))
    place = {"metadata": {"path": tmp_path / "notebooks"}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    assert notebook.cells[-1].outputs[0].text == "models\n"


@pytest.fixture(scope="module")
def below():
    """Return the address of the site below a folder of a static host."""

    class Below(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            inside = path.startswith("/some/sub/path/")
            return super().translate_path(path.removeprefix("/some/sub/path") if inside else "/none")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Below, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/some/sub/path/"
        server.shutdown()


def test_every_link_works_below_a_folder_of_a_host(below):
    asked, missing = set(), []
    for name in PAGES:
        if name == "explorer.html":
            continue
        page = Links(read(name))
        for link in (*page.links, *page.loaded):
            address = urldefrag(urljoin(below + name, link)).url
            if not address.startswith(below.partition("/some")[0]) or address in asked:
                continue
            asked.add(address)
            try:
                with urlopen(Request(address, method="HEAD")):
                    pass
            except HTTPError as error:
                missing.append(f"{name}: {link}: {error.code}")
    assert missing == []
    assert len(asked) > 200


@pytest.mark.parametrize("edition", ["", "zh/"])
def test_the_stage_on_the_home_page_computes_and_loads_after_the_outline_is_painted(below, page, edition):
    page.context.set_offline(False)
    page.goto(f"{below}{edition}index.html")
    page.locator(".stage.live iframe").wait_for()
    frame = page.frame(url=re.compile("explorer.html"))
    assert frame.evaluate("glassformer.ready.then(() => glassformer.parity)") < 1e-4
    painted, asked = page.evaluate(
        "() => [performance.getEntriesByName('first-contentful-paint')[0].startTime,"
        " performance.getEntriesByType('resource').find((one) => one.name.includes('explorer.html')).startTime]"
    )
    assert painted <= asked
    assert page.locator(".stage .outline svg text").count() > 10
    assert page.locator(".sidebar-drawer").count() == 0
    assert page.evaluate("document.getElementById('stage').clientWidth === document.documentElement.clientWidth")


def test_the_stage_follows_the_theme_of_the_site(below, page):
    page.context.set_offline(False)
    page.goto(f"{below}index.html")
    page.locator(".stage.live iframe").wait_for()
    frame = page.frame(url=re.compile("explorer.html"))
    frame.evaluate("glassformer.ready.then(() => null)")
    for _ in range(2):  # the button goes through auto, light and dark, in an order that depends on the system's theme
        page.locator(".site-head .theme-toggle").click()
        theme = page.evaluate("document.body.dataset.theme")
        frame.wait_for_function("(theme) => glassformer.app.state.theme === theme", arg=theme)


def test_a_picture_stands_above_the_folded_code_that_draws_it(visited):
    visit, _ = visited
    page = visit("attention.html")
    cells = page.locator("div.cell.tag_hide-input:has(.cell_output svg)")
    assert cells.count() > 2
    for cell in cells.all():
        picture, code = cell.locator(".cell_output").first.bounding_box(), cell.locator("summary").bounding_box()
        assert picture["y"] < code["y"]


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
        # If the adjective is hidden, the two sentences of a pair are equal, and each model prefers one of the nouns,
        # which is right in about half of the pairs.
        assert 38 <= hidden["adjective"]["everywhere"]["pronoun"] <= 62
        for word in ("verb", "it", "none"):
            assert all(found["pronoun"] >= 88 for found in hidden[word].values())
