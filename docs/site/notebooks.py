"""The chapters as notebooks that a reader can run, beside a wheel that each of them installs first."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, copytree

import nbformat
from chapters import BOOK, CHAPTERS, ROOT, Chapter, parsed
from pages import addresses, with_links

FOLDER = "notebooks"
SOLUTION, SHOWN_SOLUTION = "capstone/mine.py", "mine.py.txt"
"""A file that a chapter reads, and its name in the site, which has no Python files among those of the package."""
INSTALL = """\
# Keep the folder of this notebook together with the wheel, which lies in it: this cell installs that wheel.
from importlib.util import find_spec

if find_spec("glassformer") is None:
    %pip install --quiet {}"""


def write_notebooks(site: Path) -> None:
    """Write the wheel, each chapter and the files that chapters read into the site's folder of notebooks."""
    folder = site / FOLDER
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    for chapter in CHAPTERS:
        path = folder / f"{chapter.name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(chapter, os.path.relpath(wheel, path.parent)), path)
    copytree(BOOK / "experiments" / "results", folder / "experiments" / "results")
    copyfile(BOOK / SOLUTION, folder / SHOWN_SOLUTION)


def notebook(chapter: Chapter, wheel: str) -> nbformat.NotebookNode:
    """Return a chapter that has not been executed; its links lead to the site's pages, its first cell to the wheel."""
    made = parsed(chapter.path)
    name = f"{FOLDER}/{chapter.name}"
    address = addresses(chapter.path.parent, name, {one.name for one in CHAPTERS}, "en", set())
    up = "../" * (1 + chapter.name.count("/"))
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = with_links(cell.source, address)
        else:
            cell.source = cell.source.replace(f"{up}runs/demo/explorer.html", f"{up}explorer.html")
            cell.source = cell.source.replace(SOLUTION, SHOWN_SOLUTION)
    made.cells.insert(0, nbformat.v4.new_code_cell(INSTALL.format(wheel)))
    return made
