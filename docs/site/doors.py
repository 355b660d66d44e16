"""The parts of the site, called doors, with their pages in the order in which "next" leads through them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chapters import CHAPTERS
from pages import guide_groups, page_name

PARTS = {
    "overview": ("Start", "开始"),
    "embeddings": ("Part by part", "逐个部件"),
    "encoder": ("The whole model", "整个模型"),
    "by_hand": ("By hand", "手算"),
    "corpora": ("Beyond the paper", "论文之外"),
}
"""The parts of the book, in English and Chinese, by the chapter with which each begins."""
DECISIONS = "decisions/index"


@dataclass(frozen=True, slots=True)
class Group:
    """Pages under one name in the sidebar."""

    name: str
    pages: Sequence[str]


@dataclass(frozen=True, slots=True)
class Door:
    """A part of the site, which the head of every page links to."""

    name: str
    groups: Sequence[Group]

    @property
    def pages(self) -> list[str]:
        """All its pages, in order."""
        return [page for group in self.groups for page in group.pages]


def doors(names: set[str], language: str) -> list[Door]:
    """Return the doors with those of their pages that are in `names`; a door without pages is left out."""
    zh = language == "zh"
    guide = {group: [page_name(path) for path in paths] for group, paths in guide_groups().items()}
    found: Mapping[str, Mapping[str, Sequence[str]]] = {
        "理解" if zh else "Understand": {
            **_parts(zh),
            "实验" if zh else "Experiments": _kind("experiments/"),
            "勘误与地图" if zh else "Errata and maps": [
                "errata",
                *sorted(name for name in names if name.startswith("maps/")),
            ],
        },
        "训练" if zh else "Train": {
            "Guide": ["guide/index"],
            "Start": guide["Start"],
            "Improve": guide["Improve"],
            "Many machines": guide["Many machines"],
        },
        "看内部" if zh else "Look inside": {"Models": guide["Understand"], "The explorer": ["reference/explorer"]},
        "使用" if zh else "Use": {"Models": guide["Use"]},
        "参考" if zh else "Reference": {
            "Interfaces": _reference("commands", "settings", "python", "points", "errors"),
            "Files and services": _reference("files", "imports", "exports", "terms", "service"),
        },
        "项目" if zh else "Project": {
            "Measured": ["benchmarks", "how_good", "measuring", "measured", "plan"],
            "Code": ["architecture", "contributing", DECISIONS, "changelog"],
        },
    }
    made = [
        Door(name, [Group(caption, kept) for caption, pages in groups.items() if (kept := _kept(pages, names))])
        for name, groups in found.items()
    ]
    return [door for door in made if door.groups]


def _parts(zh: bool) -> dict[str, list[str]]:
    """Return the book's chapters by part."""
    found: dict[str, list[str]] = {}
    name = ""
    for chapter in _kind(""):
        name = PARTS[chapter][zh] if chapter in PARTS else name
        found.setdefault(name, []).append(chapter)
    return found


def _kind(folder: str) -> list[str]:
    """Return the chapters in a folder of the site; "" = the book's own, without the errata."""
    names = [chapter.name for chapter in CHAPTERS if chapter.name != "errata"]
    return [name for name in names if name.startswith(folder) and name.count("/") == folder.count("/")]


def _reference(*names: str) -> list[str]:
    return [f"reference/{name}" for name in names]


def _kept(pages: Sequence[str], names: set[str]) -> list[str]:
    return [page for page in pages if page in names]
