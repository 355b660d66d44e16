"""For every item of the five tutorials, items.toml names a chapter, code and a test that exist."""

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from chapters import BOOK, parsed
from maps import MAPS
from pages import ROOT, definitions, slug

FILE = Path(__file__).with_name("items.toml")


class Item(NamedTuple):
    """One row of items.toml, with the name of its tutorial and the kind of its table."""

    tutorial: str
    kind: str
    item: str
    page: str
    code: str
    test: str


ITEMS = [
    Item(tutorial, kind, **row)
    for tutorial, kinds in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
    for kind, rows in kinds.items()
    for row in rows
]


@cache
def anchors(page: str) -> set[str]:
    """Return the anchors of a chapter's headings."""
    cells = parsed(BOOK / page).cells
    lines = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return {slug(line.lstrip("# ")) for line in lines if line.startswith("#")}


@cache
def names_of_tests(file: str) -> set[str]:
    """Return the names of a file's tests."""
    body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_tutorial_and_its_pictures_have_items():
    assert {one.tutorial for one in ITEMS} == {*MAPS, "pictures"} - {"paper"}
    assert len({(one.tutorial, one.kind, one.item) for one in ITEMS}) == len(ITEMS) >= 162


def test_no_item_is_missing():
    assert [one.item for one in ITEMS if not (one.page and one.code and one.test)] == []


@pytest.mark.parametrize("one", ITEMS, ids=lambda one: f"{one.tutorial}: {one.item[:40]}")
def test_every_item_has_an_existing_chapter_function_and_test(one: Item):
    page, _, anchor = one.page.partition("#")
    assert anchor in anchors(page)
    file, _, name = one.code.partition("#")
    assert name in definitions(f"src/glassformer/{file}")
    file, _, name = one.test.partition("::")
    assert name in names_of_tests(file)
