"""The figures on the pages that readers see first are the same as in the linked tables."""

import re
from pathlib import Path

import pytest
from docutils.nodes import make_id

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks/how_good.md"
NUMBER = re.compile(r"(?<![\w.,–-])\d+(?:[\u00a0\u202f ,]\d{3})*(?:\.\d+)?(?![\w-]|\.\d)")
HEADING = re.compile(r"^(#+) (.+)$", flags=re.MULTILINE)
LINK = re.compile(r"\]\(([^()#\s]*(?:benchmarks|README|how_good)\.md)#([^)]+)\)")


def numbers(text: str) -> set[str]:
    return {re.sub(r"[\u00a0\u202f ,]", "", found) for found in NUMBER.findall(text)}


def section(path: Path, anchor: str) -> str:
    """Return the part of a Markdown file under a heading, with its smaller headings."""
    text = path.read_text(encoding="utf-8")
    heads = [(one.start(), len(one[1]), make_id(re.sub(r"['’`]", "", one[2]))) for one in HEADING.finditer(text)]
    place, level = next((place, level) for place, level, name in heads if name == anchor)
    return text[place : next((end for end, other, _ in heads if end > place and other <= level), len(text))]


def unmeasured(text: str, page: Path) -> set[str]:
    """Return the numbers of a text that do not occur, rounded or as percentages, in a section that it links to."""
    links = LINK.findall(text)
    sources = [
        float(found) for file, anchor in links for found in numbers(section((page.parent / file).resolve(), anchor))
    ]
    values = [value * factor for value in sources for factor in (1, 100)]

    def is_measured(found: str) -> bool:
        digits = len(found.partition(".")[2])
        return any(abs(value - float(found)) <= 0.5 * 10**-digits + 1e-9 for value in values)

    plain = re.sub(r"\]\([^)]*\)", "]", text)
    return {found for found in numbers(plain) if not is_measured(found)} if links else set()


@pytest.mark.parametrize("title", re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE))
def test_each_figure_of_the_summary_is_in_a_table(title):
    parts = section(PAGE, make_id(title)).split("\n\n")
    own = "\n\n".join(part for part in parts if not part.startswith("Published: "))
    assert len(numbers(own)) >= 4
    assert unmeasured(own, PAGE) == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs/guide").glob("*.md")), ids=lambda page: page.stem)
def test_a_figure_of_the_guide_is_in_the_table_beside_it(page):
    for part in re.split(r"\n\n|\n(?=\|)|\n(?=- )", page.read_text(encoding="utf-8")):
        assert unmeasured(part, page) == set(), part


def test_a_changed_figure_is_found():
    link = "[table](../docs/benchmarks.md#training)"
    assert unmeasured(f"10 043 {link}", PAGE) == set()
    assert unmeasured(f"10 044 {link}", PAGE) == {"10044"}
