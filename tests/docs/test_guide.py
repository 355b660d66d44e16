"""Guide and decisions: short, of one form, with links that lead somewhere."""

import json
import re
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from chapters import GUIDE
from docutils.nodes import make_id
from pages import ROOT, documents, guide_groups

import glassformer as gf
from glassformer.cli import main
from glassformer.errors import install_command

PAGES = [page for group in guide_groups().values() for page in group]
TEXTS = [page for page in PAGES if page.suffix == ".md"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_first_page_lists_every_page_once():
    assert sorted(PAGES) == sorted({*GUIDE.glob("*.md"), *GUIDE.glob("*.py")} - {GUIDE / "index.md"})
    assert [*guide_groups()] == ["Start", "Improve", "Understand", "Use", "Many machines"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_at_most_700_words(page):
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) <= 700


def test_every_page_and_every_message_installs_an_optional_package_by_the_same_command():
    """The packages' versions are those in constraints.txt, with which the tests run."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    texts = [" ".join(page.read_text(encoding="utf-8").split()) for page in documents()]
    asked = [one for text in texts for one in re.findall(r"(?<!-m )pip install [^`]*?'\.\[\w+\]'", text)]
    commands = {install_command(extra).split("`")[1] for extra in extras}
    assert len(asked) >= 5
    assert not {*asked} - commands


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_a_page_begins_with_its_readers_and_ends_with_what_can_go_wrong(page):
    text = page.read_text(encoding="utf-8")
    assert re.match(r"# .+\n\nFor (those|everybody|lists)\b", text)
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE)[-1] == "When it goes wrong"


@pytest.mark.parametrize("path", [path for path in documents() if path.is_relative_to(ROOT / "docs")], ids=name_of)
def test_anchors_of_links_are_headings(path):
    for target, anchor in re.findall(r"\]\(([^()#\s]*\.md)?#([^()\s]+)\)", path.read_text(encoding="utf-8")):
        there = (path.parent / target).resolve() if target else path
        headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert anchor in {make_id(re.sub(r"['’`]", "", heading)) for heading in headings}, target


@pytest.mark.parametrize("path", sorted({*documents(), *(ROOT / "benchmarks").glob("*.md")}), ids=name_of)
def test_each_row_of_a_table_is_a_line_with_all_cells(path):
    """A line break in a row ends the table: the next line is then shown as a paragraph."""
    text = re.sub(r"^ *```.*?```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^ *\|.*\n)+.*", re.sub(r"`[^`\n]*`|\\\|", "", text), flags=re.MULTILINE):
        *rows, after = table.split("\n")
        assert not after.strip(), after
        assert len({row.count("|") for row in rows}) == 1, rows[0]


@pytest.mark.parametrize("path", sorted((ROOT / "docs/decisions").glob("*.md")), ids=name_of)
def test_a_decision_is_half_a_page_of_context_decision_and_consequences(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.split()) <= 500
    if path.stem != "what-left":  # this page has a paragraph for each feature
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, flags=re.MULTILINE) == ["Context", "Decision", "Consequences"]


def inside(before: str) -> str:
    """Return the output block that follows a text on the page about looking inside."""
    text = (GUIDE / "inside.md").read_text(encoding="utf-8")
    return text.partition(before)[2].partition("```text\n")[2].partition("```")[0]


def test_the_shown_trace_has_the_numbers_of_the_model_in_the_package(capsys):
    with pytest.raises(SystemExit) as end:
        main(["trace", "demo", "The cat slept on the rug."])
    assert not end.value.code
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = [line.split() for line in inside("glassformer trace demo").splitlines() if re.search(r"\d\.\d{4}", line)]
    assert len(shown) == 3
    for *words, one, two, three in shown:
        rows = [line for line in printed if line[:-3] == words]
        assert [float(number) for number in rows[0][-3:]] == pytest.approx([*map(float, (one, two, three))], abs=1.5e-4)


def test_switching_the_shown_head_off_changes_the_translation_as_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files
    text = (GUIDE / "inside.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(from glassformer\.watch\.inspection.*?)```", text, flags=re.DOTALL)
    with redirect_stdout(StringIO()) as printed:
        exec(code, {"gf": gf})
    assert printed.getvalue() == inside("with changed(")
    assert len({*printed.getvalue().splitlines()}) == 2


def test_the_shown_status_is_that_of_the_shown_search():
    text = (GUIDE / "guards.md").read_text(encoding="utf-8")
    [source] = re.findall(r'^echo "(.+)" \| glassformer translate demo --retry', text, flags=re.MULTILINE)
    [shown] = re.findall(r"```json\n(.*?)```", text, flags=re.DOTALL)
    [one] = gf.Translator.load("demo").translate([source], retry=True)
    assert json.loads(shown) == {"line": 1, "status": one.status, "reasons": [*one.reasons], "retry": one.retry}
    assert f"```text\n{one.text}\n" in text
