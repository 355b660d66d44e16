"""The notebooks in their order (the book's pages, then pages of the guide), and their execution."""

import hashlib
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

import jupytext
import nbformat
from nbclient import NotebookClient

from glassformer.built_in import run_folder, trained_demo

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
GUIDE = ROOT / "docs" / "guide"
EXECUTED = ROOT / "build" / "docs" / "executed"
RECORD = Path(__file__).with_name("executed.txt")
"""For each notebook, the digest of its code when all notebooks were executed last."""
WITNESSES = ("overview", "tour", "attention", "training", "guide/captum")
"""Notebooks that are always executed."""
INSIDE = ROOT / ".clients" / "inside"
"""Packages of other people that pages of the guide use, in the versions of `inside.txt`."""
NOTICE = "demo: the model in the package"
"""How the only line on stderr begins that a notebook may write."""
ROW = re.compile(r"^(?:# )?\| \[[^\]]+\]\(((?:experiments/)?\w+)\.py\) \|.*\n?", flags=re.MULTILINE)
"""A row of the overview's table of pages, in the file or in a cell of it."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One notebook of the book or the guide."""

    path: Path
    name: str
    """The name of its page: "attention", "experiments/beam", "guide/captum"."""

    @property
    def translation(self) -> Path:
        """The file of its Chinese text, which need not exist."""
        return BOOK / "zh" / f"{self.name}.md"

    @property
    def seconds(self) -> float:
        """Seconds of its last execution; infinite if it was never executed."""
        path = EXECUTED / f"{self.name}.ipynb"
        return nbformat.read(path, 4).metadata.glassformer.seconds if path.exists() else float("inf")


def parsed(path: Path) -> nbformat.NotebookNode:
    """Return the notebook in a Python file, without outputs. A text is parsed once; each caller gets its own copy."""
    return deepcopy(_parsed(path.read_text(encoding="utf-8")))


@cache
def _parsed(text: str) -> nbformat.NotebookNode:
    return jupytext.reads(text, "py")


def page_name(path: Path) -> str:
    """Return the name of a notebook's page."""
    if path.parent == GUIDE:
        return f"guide/{path.stem}"
    return path.stem if path.parent == BOOK else f"{path.parent.name}/{path.stem}"


def _chapters() -> tuple[Chapter, ...]:
    """Return all notebooks. The table in the overview has the book's pages in their order."""
    overview = BOOK / "overview.py"
    order = ROW.findall(overview.read_text(encoding="utf-8"))
    paths = [overview, *(BOOK / f"{name}.py" for name in order), *sorted(GUIDE.glob("*.py"))]
    return tuple(Chapter(path, page_name(path)) for path in paths if path.exists())


CHAPTERS = _chapters()


def executed(chapter: Chapter, again: bool = False) -> tuple[Chapter, nbformat.NotebookNode, float]:
    """Return the chapter, its notebook with outputs, and the seconds of its execution; 0 if nothing has changed since.

    Raises:
        RuntimeError: a cell failed or wrote to stderr.
    """
    kept, digest = EXECUTED / f"{chapter.name}.ipynb", _digest(chapter)
    if not again and kept.exists() and (old := nbformat.read(kept, 4)).metadata.glassformer.digest == digest:
        return chapter, old, 0.0
    notebook = parsed(chapter.path)
    start = perf_counter()
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": chapter.path.parent}},
        extra_arguments=["--log-level=40"],
    )
    try:
        client.execute()
    except Exception as error:
        raise RuntimeError(f"{chapter.path.relative_to(ROOT)}: {error}") from error
    for cell in notebook.cells:
        for output in [output for output in cell.get("outputs", ()) if output.get("name") == "stderr"]:
            if not output.text.startswith(NOTICE) or output.text.count("\n") > 1:
                raise RuntimeError(f"{chapter.path.relative_to(ROOT)} writes to stderr:\n{output.text}\n{cell.source}")
            cell.outputs.remove(output)
    seconds = perf_counter() - start
    notebook.metadata["glassformer"] = {"digest": digest, "seconds": seconds}
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return chapter, notebook, seconds


def changed() -> set[str]:
    """Return the names of the notebooks whose code, or a result that they read, differs from the record."""
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    return {chapter.name for chapter in CHAPTERS if _line(chapter) not in lines}


def write_record() -> None:
    """Record the code of all notebooks as executed."""
    RECORD.write_text("".join(f"{_line(chapter)}\n" for chapter in CHAPTERS), encoding="utf-8")


def _line(chapter: Chapter) -> str:
    """Return a notebook's line of the record, which its text and its translation do not change."""
    code = [cell.source for cell in parsed(chapter.path).cells if cell.cell_type == "code"]
    digest = hashlib.sha256("\n".join(code).encode())
    for path in _results(chapter):
        digest.update(path.read_bytes())
    return f"{chapter.name} {digest.hexdigest()[:16]}"


def _results(chapter: Chapter) -> list[Path]:
    """Return the committed results and solutions that a notebook reads."""
    text = chapter.path.read_text(encoding="utf-8")
    paths = (*(BOOK / "experiments" / "results").glob("*.json"), BOOK / "capstone" / "mine.py")
    return sorted(path for path in paths if f"{path.parent.name}/{path.name}" in text)


def _digest(chapter: Chapter) -> str:
    """Return a digest of everything that a notebook's outputs depend on."""
    digest = hashlib.sha256(_surroundings())
    for path in (chapter.path, *_results(chapter)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _surroundings() -> bytes:
    digest = hashlib.sha256()
    model = run_folder(trained_demo(ROOT / "runs" / "demo")) / "model.safetensors"
    for path in (*sorted((ROOT / "src").rglob("*.py")), Path(__file__).with_name("inside.txt"), model):
        digest.update(path.read_bytes())
    return digest.digest()
