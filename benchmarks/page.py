"""Write docs/benchmarks.md from the measured JSON: `python -m benchmarks.page`.

This command measures nothing, and nothing on the page is written by hand. Put the results of a different machine into a
subfolder of `benchmarks/results`; they come last on the page.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.command import as_command
from benchmarks.results import RESULTS, read

NAMES = (
    "training",
    "decoding",
    "engines",
    "shortlist",
    "quality",
    "sentences",
    "recipe",
    "precision",
    "growth",
    "startup",
    "errors",
)
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEAD = (
    "# Benchmarks\n\nThis page compares glassformer with other toolkits: speed, memory, and the time to reach a given "
    "quality. Each section gives the command that measured it; [how to measure](../benchmarks/README.md) explains the "
    "commands. `python -m benchmarks.page` writes this page from the committed results. The tables include every "
    "result, also those in which another toolkit is faster. Speeds differ between machines, and from hour to hour on "
    "one machine, so compare only figures of the same run.\n\n"
    "In the tables, *ours* is glassformer, and the other names are peers, that is, other toolkits. *Allocator kept* "
    "means that freed memory stays with the process, as it always does in glassformer. `smoothing=False` means the "
    "peer's own loss, without label smoothing. `workers` is the number of glassformer's processes, `inter` is the "
    "number of CTranslate2's workers, and `intra` is the number of threads per worker.\n"
)


def page(folder: Path = RESULTS) -> str:
    """Return the page: a section for each measurement, with its picture where one exists."""
    parts = [HEAD, *sections(folder)]
    for other in sorted(path for path in folder.iterdir() if path.is_dir()):
        lower = (re.sub(r"^##", "###", section, flags=re.MULTILINE) for section in sections(other, f"{other.name}/"))
        parts += [f"## On another machine: {other.name}\n", *lower]
    return "\n".join(parts)


def sections(folder: Path, within: str = "") -> Iterator[str]:
    """Yield the section and the picture of each measurement in a folder; `within` is its path in the results."""
    others = [path.stem for kind in ("pareto", "terms") for path in sorted(folder.glob(f"{kind}-*.json"))]
    for name in (*NAMES, *others):
        if figures := read(name, folder):
            yield import_module(f"benchmarks.{name.partition('-')[0]}").markdown(figures)
            if (folder / f"{name}.png").exists():
                yield f"![{name}](../benchmarks/results/{within}{name}.png)\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


if __name__ == "__main__":
    as_command(main)
