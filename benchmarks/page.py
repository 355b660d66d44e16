"""The page of all results, docs/benchmarks.md, from the JSON that was measured: `python -m benchmarks.page`.

Nothing is measured, and nothing on the page is written by hand. What was measured on another machine may be kept in a
folder of its own in `benchmarks/results`; it comes last.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.command import as_command
from benchmarks.results import RESULTS, read

NAMES = ("training", "decoding", "engines", "quality", "precision", "growth", "startup")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEAD = (
    "# Benchmarks\n\nMeasured by `benchmarks/`, which says how; `python -m benchmarks.page` writes this page from "
    "`benchmarks/results`. Absolute figures differ between machines, even between hours of one: trust ratios of one "
    "run. Where a peer is ahead, the tables say so.\n"
)


def page() -> str:
    """Return the page: a table and, where there is one, a picture of everything that has been measured."""
    parts = [HEAD, *sections(RESULTS)]
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        parts += [f"# On another machine: {folder.name}\n", *sections(folder)]
    return "\n".join(parts)


def sections(folder: Path) -> Iterator[str]:
    """Yield the table and the picture of each measurement in a folder."""
    curves = sorted(path.stem for path in folder.glob("pareto-*.json"))
    for name in (*NAMES, *curves):
        if figures := read(name, folder):
            yield import_module(f"benchmarks.{name.partition('-')[0]}").markdown(figures)
            picture = (folder / name).with_suffix(".png")
            if picture.exists():
                yield f"![{name}](../benchmarks/results/{picture.relative_to(RESULTS).as_posix()})\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


if __name__ == "__main__":
    as_command(main)
