"""The table of every item that the five tutorials teach: where the book has it, which code computes it, which test."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from chapters import BOOK
from maps import MAPS
from pages import addresses, definitions, with_links

FILE = BOOK / "items.toml"
NAME = "maps/items"
"""The name of the table's page."""
PICTURES = "Pictures that the tutorials point to"


@dataclass(frozen=True, slots=True)
class Item:
    """One row of the table."""

    tutorial: str
    """The name of the tutorial's reading map, or "pictures"."""
    kind: str
    """What the item is in its tutorial, such as "steps" or "errata"."""
    item: str
    page: str
    """Where the book has it, such as "05_masks.py#both"."""
    code: str
    """What computes it, as a file in `src/glassformer` and a name, such as "model/masks.py#causal_mask"."""
    test: str
    """Which test proves it, such as "tests/model/test_masks.py::test_the_future_cannot_be_attended_to"."""


def all_items() -> Iterator[Item]:
    """Yield every row, tutorial by tutorial."""
    for tutorial, kinds in tomllib.loads(FILE.read_text(encoding="utf-8")).items():
        for kind, rows in kinds.items():
            yield from (Item(tutorial, kind, **row) for row in rows)


def items_page(names: set[str], language: str) -> tuple[str, set[str]]:
    """Return the table as Markdown, and the Python files that it links to."""
    files: set[str] = set()
    address = addresses(BOOK, NAME, names, language, files)
    parts = [
        "# Every item of the tutorials",
        "This book began with five tutorials. The table has each step, example, picture, open question and mistake of"
        " them: where this book has it, which code computes it, and which test proves it.",
    ]
    before = ("", "")
    for one in all_items():
        if one.tutorial != before[0]:
            parts.append(f"\n## {_title(one.tutorial)}")
        if (one.tutorial, one.kind) != before:
            parts.append(
                f"\n### {one.kind.capitalize()}\n\n| item | chapter | code | test |\n| --- | --- | --- | --- |"
            )
        before = (one.tutorial, one.kind)
        parts.append(_row(one))
    return with_links("\n".join(parts) + "\n", address), files


def _title(tutorial: str) -> str:
    if tutorial not in MAPS:
        return PICTURES
    return str(MAPS[tutorial].data["title"]).removeprefix("If you come from: ").capitalize()


def _row(one: Item) -> str:
    chapter, _, anchor = one.page.partition("#")
    file, _, name = one.code.partition("#")
    first, last = definitions(f"src/glassformer/{file}")[name]
    test_file, _, test = one.test.partition("::")
    cells = (
        one.item,
        f"[{anchor.replace('-', ' ')}]({one.page})<br>{chapter}",
        f"[`{name}`](../src/glassformer/{file}#{name})<br>{file}:{first}–{last}",
        f"`{test}`<br>{test_file}",
    )
    return f"| {' | '.join(cells)} |"
