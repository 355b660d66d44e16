"""The built documentation, opened without a network. `make site` builds it and runs these tests.

`make site-ci` runs the tests that are not marked `long`: a site may then have pages without outputs.
"""

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
from chapters import BOOK, CHAPTERS, ROOT, WITNESSES, changed, executed
from chinese import THEME
from links import Links
from nbclient import NotebookClient

import glassformer

pytestmark = [pytest.mark.docs, pytest.mark.browser]

SITE = Path(glassformer.__file__).parent / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
READ = {name for name in PAGES if not name.startswith(("zh/", "source/")) and name != "explorer.html"}
SHOWN = ROOT / "build" / "docs" / "source" / "site" / "en"
"""The notebooks of the English pages, as Sphinx read them."""
ITS_OWN = (SITE.as_uri(), "data:", "about:srcdoc")
"""How the addresses begin that a page of the site may load."""


def test_the_themes_words_are_chinese_on_chinese_pages():
    """A word that no English page has is outdated: a new version of the theme uses a different word."""
    english, chinese = [
        "".join((SITE / name).read_text(encoding="utf-8") for name in PAGES if name.startswith("zh/") is zh)
        for zh in (False, True)
    ]
    assert [word for word in THEME if word not in english or word in chinese] == []


@pytest.fixture(scope="module")
def visit(new_window):
    """Return a function that opens a page of the site, offline and in the tab of all tests, and returns the tab.

    A page that requests anything but files of the site, or logs an error, fails this test or the next.
    """
    window = new_window()
    tab, asked = window.new_page(), list[str]()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: message.type == "error" and asked.append(f"error {message.text}"))
    tab.on("pageerror", lambda error: asked.append(f"error {error}"))

    def visit(name: str):
        tab.set_viewport_size({"width": 1280, "height": 800})
        tab.goto(f"{SITE.as_uri()}/{name}")  # returns after everything has loaded, including frames
        check()
        return tab

    def check():
        what = [address for address in asked if not address.startswith(ITS_OWN)]
        asked.clear()
        assert what == []

    yield visit
    window.close()
    check()


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
def test_a_page_requests_only_files_does_not_scroll_sideways_and_describes_its_pictures(visit, name):
    page = visit(name)
    if name in READ:
        for width in (390, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".sidebar-drawer a:visible").count() <= 10
        described = "[...document.querySelectorAll('svg[role=img]')].every((one) => one.ariaLabel.length > 10)"
        assert page.evaluate(described)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_code_cell_is_shown_with_the_output_of_its_execution(chapter):
    code = code_cells(chapter)
    shown = sum(1 for cell in code if cell.outputs)
    classes = [found.split() for found in re.findall(r'<div class="([^"]*)"', read(f"{chapter.name}.html"))]
    assert sum("cell" in one for one in classes) == len(code)
    assert sum("cell_output" in one for one in classes) == shown
    if is_executed(chapter):
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        assert shown >= sum("check" not in cell.metadata.get("tags", ()) for cell in code) / 3
    else:
        assert {cell.execution_count for cell in code} == {None}
        assert shown == 0


def test_witnesses_and_changed_notebooks_are_executed():
    assert {*WITNESSES, *changed()} <= {chapter.name for chapter in CHAPTERS if is_executed(chapter)}


@pytest.mark.long
def test_the_whole_site_executes_and_records_each_notebook():
    assert [chapter.name for chapter in CHAPTERS if not is_executed(chapter)] == []
    assert changed() == set()


def code_cells(chapter) -> list[nbformat.NotebookNode]:
    """Return the code cells of a chapter's English page."""
    return [cell for cell in nbformat.read(SHOWN / f"{chapter.name}.ipynb", 4).cells if cell.cell_type == "code"]


def is_executed(chapter) -> bool:
    """Return whether a page shows the outputs of its cells."""
    return code_cells(chapter)[0].execution_count is not None


def test_a_page_never_scrolls_sideways_at_any_width(visit):
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
def test_search_finds_a_chapter(visit, search, chapter):
    visit("index.html")
    page = visit(search)
    page.locator(f'#search-results li a[href^="{chapter}"]').first.wait_for()


def test_the_language_can_be_switched_both_ways(visit):
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


def test_a_box_of_the_architecture_leads_to_its_chapter(visit):
    page = visit("overview.html")
    page.locator("svg a", has_text="cross-attention").click()
    page.wait_for_url("**/decoder.html")


def test_the_explorer_in_the_overview_works(visit):
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
    assert 3 <= int(about[1]) <= 90
    notebook = (SITE / chapter.name).parent / about[2]
    cells = nbformat.read(notebook, 4).cells
    assert (notebook.parent / re.search(r"%pip install --quiet (\S+)", cells[0].source)[1]).resolve().exists()
    assert len(cells) == 1 + len(nbformat.read(SHOWN / f"{chapter.name}.ipynb", 4).cells)
    for link in re.findall(r'href="([^"#]+)', "".join(cell.source for cell in cells if cell.cell_type == "markdown")):
        assert "://" in link or (notebook.parent / link).exists(), link


@pytest.mark.parametrize(("edition", "said"), [("", r"(\d+) min read"), ("zh/", r"阅读约 (\d+) 分钟")])
def test_the_overview_says_the_minutes_that_each_page_says(edition, said):
    rows = re.findall(
        r'<tr[^>]*><td><p><a[^>]* href="([^"]+)".*?</td>\n<td>.*?</td>\n<td><p>(\d+)</p>',
        read(f"{edition}overview.html"),
    )
    assert len(rows) == sum(chapter.path.is_relative_to(BOOK) for chapter in CHAPTERS) - 1
    for name, minutes in rows:
        assert re.search(said, read(f"{edition}{name}"))[1] == minutes, name


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


def test_a_picture_stands_above_the_folded_code_that_draws_it(visit):
    page = visit("attention.html")
    cells = page.locator("div.cell.tag_hide-input:has(.cell_output svg)")
    assert cells.count() > 2
    for cell in cells.all():
        picture, code = cell.locator(".cell_output").first.bounding_box(), cell.locator("summary").bounding_box()
        assert picture["y"] < code["y"]


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """Return a function that makes a notebook of one cell."""
    monkeypatch.setattr("chapters.ROOT", tmp_path)
    monkeypatch.setattr("chapters._surroundings", lambda: b"")
    monkeypatch.setattr("chapters.EXECUTED", tmp_path)

    def make(cell: str):
        path = tmp_path / "new.py"
        path.write_text(f"# %%\n{cell}\n", encoding="utf-8")
        return type(CHAPTERS[0])(path, "new")

    return make


def test_a_failing_cell_stops_the_build(notebook):
    with pytest.raises(RuntimeError, match="AssertionError"):
        executed(notebook("assert 1 == 2"))


def test_a_cell_may_say_that_it_uses_the_model_in_the_package(notebook):
    cell = 'from glassformer.built_in import run_folder\nprint(run_folder("demo").name)'
    _, shown, _ = executed(notebook(cell))
    assert [output.text for output in shown.cells[0].outputs] == ["demo\n"]


def test_other_words_on_stderr_stop_the_build(notebook):
    cell = (
        'import sys\nfrom glassformer.built_in import run_folder\nrun_folder("demo")\nprint("other", file=sys.stderr)'
    )
    with pytest.raises(RuntimeError, match=r"(?s)new\.py writes to stderr:.*other"):
        executed(notebook(cell))


@pytest.mark.long
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
