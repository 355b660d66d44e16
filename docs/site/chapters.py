"""The notebooks in their order (the book's pages, then pages of the guide), and their execution."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
GUIDE = ROOT / "docs" / "guide"
EXECUTED = ROOT / "build" / "docs" / "executed"
INSIDE = ROOT / ".clients" / "inside"
"""Packages of other people that pages of the guide use, in the versions of `inside.txt`."""
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
    notebook = jupytext.read(chapter.path)
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
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                raise RuntimeError(f"{chapter.path.relative_to(ROOT)} writes to stderr:\n{output.text}\n{cell.source}")
    seconds = perf_counter() - start
    notebook.metadata["glassformer"] = {"digest": digest, "seconds": seconds}
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return chapter, notebook, seconds


def _digest(chapter: Chapter) -> str:
    """Return a digest of everything that a chapter's outputs depend on."""
    digest = hashlib.sha256(_surroundings())
    digest.update(chapter.path.read_bytes())
    results = BOOK / "experiments" / "results"
    for path in sorted(results.glob("*.json")):
        if path.stem in chapter.path.read_text(encoding="utf-8"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _surroundings() -> bytes:
    digest = hashlib.sha256()
    for path in (*sorted((ROOT / "src").rglob("*.py")), Path(__file__).with_name("inside.txt")):
        digest.update(path.read_bytes())
    digest.update((ROOT / "runs" / "demo" / "model.safetensors").read_bytes())
    return digest.digest()
