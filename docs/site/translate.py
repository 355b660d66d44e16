"""Write or refresh the file of a chapter's Chinese text; a cell whose English text is new appears in English.

python docs/site/translate.py attention
"""

import sys

import jupytext
from chapters import BOOK
from pages import key, translations


def refresh(stem: str) -> None:
    """Bring the cells of book/zh/STEM.md into the order of the chapter; add new cells in English.

    If a cell is gone, its Chinese text is kept as a comment below a new cell, to help with the translation.
    """
    path = BOOK / "zh" / f"{stem}.md"
    texts = translations(path) if path.exists() else {}
    cells = [cell.source.strip() for cell in jupytext.read(BOOK / f"{stem}.py").cells if cell.cell_type == "markdown"]
    missing = [text for text in cells if key(text) not in texts]
    path.parent.mkdir(exist_ok=True)
    earlier = iter([texts[name] for name in texts if name not in map(key, cells)])
    parts = [f"<!-- cell {key(text)} -->\n{texts.get(key(text)) or _new(text, next(earlier, ''))}\n" for text in cells]
    path.write_text("\n".join(parts), encoding="utf-8")
    print(f"{path}: {len(cells)} cells, {len(missing)} to translate")
    for text in missing:
        print(f"  {key(text)} {text.splitlines()[0][:80]}")


def _new(text: str, earlier: str) -> str:
    """Return a cell's English text with, in a comment below, the Chinese text of what it probably replaces."""
    return f"{text}\n\n<!-- before:\n{earlier}\n-->" if earlier else text


if __name__ == "__main__":
    for stem in sys.argv[1:]:
        refresh(stem)
