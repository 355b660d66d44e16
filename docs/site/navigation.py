"""A Sphinx extension: the doors at the head of every page, the sidebar of a door, reading times, and the home page."""

import re
from math import ceil
from typing import Any

from docutils.nodes import document
from doors import DECISIONS, Door, Group
from nbformat import NotebookNode
from sphinx.application import Sphinx

WORDS = {
    "notebook": ("Notebook", "笔记本"),
    "minutes": ("{} min read", "阅读约 {} 分钟"),
    "doors": ("Parts of the site", "网站的各部分"),
    "pages": ("Pages of this part", "本部分的页面"),
    "stage": ("The model at work in Figure 1 of the paper", "论文图 1 中运行的模型"),
    "whole": ("Open the figure in a window of its own", "在单独的窗口中打开此图"),
}
"""What the templates say, in English and Chinese."""
MOST_LINKS = 10
"""Maximum number of links in the sidebar at first sight; a door with more pages shows the group of this page alone."""
PACE = {"en": 220, "zh": 400}
"""English words, or Chinese characters, that a reader reads in a minute."""
SECONDS_PER_LINE, SECONDS_PER_OUTPUT = 3, 15
"""What a line of code and a picture or another output take."""
_FOLDED = {"hide-input", "remove-input", "check"}
_TITLE_END = re.compile(r"</h1>")


def add_navigation(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: document | None
) -> str | None:
    """Give a page's template its doors, its sidebar and its words; return the home page's own template."""
    zh = app.config.language != "en"
    doors: list[Door] = app.config.site_doors
    page = DECISIONS if pagename.startswith("decisions/") else pagename
    here = next((door for door in doors if page in door.pages), None)
    path, minutes = context["pathto"], app.config.reading_minutes
    context["doors"] = [(door.name, path(door.pages[0]), door is here) for door in doors]
    context["doors"] += [(name, path(f"../{page}.html", 1), False) for name, page in app.config.english_doors]
    context["groups"] = [_group(app, group, page, path) for group in here.groups] if here else []
    if here and len(here.pages) <= MOST_LINKS:
        context["groups"] = [group | {"open": True} for group in context["groups"]]
    context["said"] = {key: words[zh] for key, words in WORDS.items()}
    if "body" in context and pagename in minutes:
        about = f"<span>{WORDS['minutes'][zh].format(minutes[pagename])}</span>"
        if pagename in app.config.notebooks:
            address = path(f"notebooks/{pagename}.ipynb", 1)
            about += f'<a href="{address}" download>{WORDS["notebook"][zh]} (.ipynb)</a>'
        context["body"] = _TITLE_END.sub(f'</h1><p class="about">{about}</p>', context["body"], count=1)
    return "home.html" if pagename == app.config.root_doc else None


def _group(app: Sphinx, group: Group, page: str, path: Any) -> dict[str, Any]:
    """Return a group of the sidebar: its name, whether it is open, and its pages."""
    titles, minutes = app.env.titles, app.config.reading_minutes
    return {
        "name": group.name,
        "open": page in group.pages,
        "pages": [(titles[one].astext(), path(one), one == page, minutes.get(one)) for one in group.pages],
    }


def reading_minutes(notebook: NotebookNode, language: str) -> int:
    """Return how many minutes a notebook takes to read: its text, its pictures and the code that is not folded."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    words = len(re.findall(r"[\u4e00-\u9fff]" if language == "zh" else r"\w+", text))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    lines = sum(cell.source.count("\n") + 1 for cell in code if not _FOLDED & {*cell.metadata.get("tags", ())})
    outputs = sum(len(cell.get("outputs", ())) for cell in code)
    return ceil(words / PACE[language] + (lines * SECONDS_PER_LINE + outputs * SECONDS_PER_OUTPUT) / 60)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the settings and the handler."""
    app.add_config_value("site_doors", [], "html")
    app.add_config_value("english_doors", [], "html")
    app.add_config_value("reading_minutes", {}, "html")
    app.add_config_value("notebooks", set(), "html")
    app.connect("html-page-context", add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
