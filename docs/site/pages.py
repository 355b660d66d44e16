"""The pages that Sphinx reads: notebooks in one language with the site's links, and the library's source files."""

import ast
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from html import escape
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import nbformat
from cells import chinese_code, chinese_output
from chapters import BOOK, CHAPTERS, GUIDE, ROW, Chapter, page_name
from docutils.nodes import make_id
from pictures import chinese_markdown, chinese_picture
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = BOOK.parent
DOCS = ROOT / "docs"
LIBRARY = ROOT / "src" / "glassformer"
MEASURES = BOOK / "experiments" / "measure"
CAPSTONE = BOOK / "capstone"
CHECKED = {"en": "Checked: show the assertions", "zh": "已验证（查看断言）"}
"""The line that replaces a folded cell of assertions, by language."""
SOLUTION = {"en": ("Solution", "Hide the solution"), "zh": ("答案", "隐藏答案")}
"""The button that shows the solution of an exercise, and the one that hides it, by language."""
MINUTES = {"en": "minutes", "zh": "分钟"}
"""The head of the column of reading times in the overview's table, by language."""
_HINT = re.compile("<summary>(?:Hint|提示)</summary>")
"""What each exercise has. The folded cells below it, up to the next text, are its solution."""

_LINK = re.compile(
    r"^```.*?^```|(?<!!)\[((?:`[^`]*`|[^\[\]`]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)|`[^`]*`", flags=re.MULTILINE | re.DOTALL
)
"""A fenced block, a link (its text, its address), or code in a line."""
_ADDRESS = re.compile(r'((?:xlink:)?href|src)="([^"]+)"')


def translatable(text: str) -> str:
    """Return a cell's English text without the rows of chapters that are not translated."""
    return ROW.sub(lambda row: row[0] if (BOOK / "zh" / f"{row[1]}.md").exists() else "", text)


def key(text: str) -> str:
    """Return the key of a cell's English text in its translation."""
    return hashlib.sha256(translatable(text).strip().encode()).hexdigest()[:8]


def translations(path: Path) -> dict[str, str]:
    """Return the Chinese text of each cell of a chapter, by the key of its English text."""
    _, *parts = re.split(r"^<!-- cell ([0-9a-f]{8}) -->\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def localised(chapter: Chapter, notebook: nbformat.NotebookNode, language: str) -> nbformat.NotebookNode | None:
    """Return an executed notebook with its text in a language, or None if the chapter is not translated.

    Raises:
        ValueError: the English text of a cell has changed since it was translated.
    """
    notebook = nbformat.from_dict(notebook)
    if language == "en":
        return notebook
    if not chapter.translation.exists():
        return None
    texts = translations(chapter.translation)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            if key(cell.source) not in texts:
                raise ValueError(
                    f"{chapter.translation.relative_to(ROOT)}: expected a cell {key(cell.source)}, the translation of "
                    f"{cell.source[:60]!r}; run `python docs/site/translate.py {chapter.path.stem}` and translate it"
                )
            cell.source = _with_english_anchors(cell.source, texts[key(cell.source)])
        else:
            cell.source = chinese_code(cell.source)
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = chinese_output(chapter.name, output.text)
            if html := output.get("data", {}).get("text/html"):
                output.data["text/html"] = chinese_picture(chapter.name, html)
            if markdown := output.get("data", {}).get("text/markdown"):
                output.data["text/markdown"] = chinese_markdown(chapter.name, markdown)
    return notebook


def with_minutes(notebook: nbformat.NotebookNode, minutes: Mapping[str, int], language: str) -> nbformat.NotebookNode:
    """Return the overview with a third column in its table of pages: the minutes that each page takes to read."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and ROW.search(cell.source):
            cell.source = re.sub(r"^\|.*\|$", partial(_with_cell, minutes, language), cell.source, flags=re.MULTILINE)
    return notebook


def _with_cell(minutes: Mapping[str, int], language: str, line: re.Match[str]) -> str:
    page, cells = ROW.match(line[0]), line[0].split("|")
    rule = set(line[0]) <= {"|", "-"}
    cell = str(minutes.get(page[1], "")) if page else "---" if rule else MINUTES[language]
    return "|".join([*cells[:3], f" {cell} ", *cells[3:]])


def _with_english_anchors(english: str, text: str) -> str:
    """Return a translation whose headings can be linked to by the anchors of the English headings."""
    anchors = iter(re.findall(r"^#+ (.*)$", english, flags=re.MULTILINE))

    def anchored(match: re.Match[str]) -> str:
        anchor = slug(next(anchors, ""))
        return f'<span id="{anchor}"></span>\n\n{match.group()}' if anchor else match.group()

    return re.sub(r"^#{2,} .*$", anchored, text, flags=re.MULTILINE) if _count(english) == _count(text) else text


def _count(text: str) -> int:
    return len(re.findall(r"^##+ ", text, flags=re.MULTILINE))


def slug(heading: str) -> str:
    """Return the anchor that Sphinx gives a heading."""
    return make_id(re.sub(r"[`*_$]", "", heading))


def notebook_page(
    name: str, notebook: nbformat.NotebookNode, names: set[str], language: str
) -> tuple[nbformat.NotebookNode, set[str]]:
    """Return a page's notebook with the site's own links, and the Python files that it links to."""
    path = next(chapter.path for chapter in CHAPTERS if chapter.name == name)
    files: set[str] = set()
    address = addresses(path.parent, name, names, language, files)
    exercise = False
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", ())
        if cell.cell_type == "markdown":
            exercise = bool(_HINT.search(cell.source))
            cell.source = with_links(cell.source, address)
        if "check" in tags:
            _name_button(cell, CHECKED[language], CHECKED[language])
        elif exercise and "hide-cell" in tags:
            _name_button(cell, *SOLUTION[language])
        for output in cell.get("outputs", ()):
            if html := output.get("data", {}).get("text/html"):
                output.data["text/html"] = _ADDRESS.sub(lambda m: f'{m[1]}="{address(m[2])}"', html)
    return notebook, files


def _name_button(cell: nbformat.NotebookNode, show: str, hide: str) -> None:
    """Set the words of the button that unfolds a cell; without them, it says "Code"."""
    cell.metadata["mystnb"] = {"code_prompt_show": show, "code_prompt_hide": hide}


@cache
def documents() -> dict[Path, str]:
    """Return the name of the page of each Markdown file that the site shows, in the order of the contents."""
    alone = {
        DOCS / "index.md": "index",
        DOCS / "explorer.md": "reference/explorer",
        DOCS / "files.md": "reference/files",
        DOCS / "imports.md": "reference/imports",
        DOCS / "exports.md": "reference/exports",
        DOCS / "terms.md": "reference/terms",
        DOCS / "service.md": "reference/service",
        DOCS / "benchmarks.md": "benchmarks",
        ROOT / "benchmarks" / "README.md": "measuring",
        ROOT / "benchmarks" / "how_good.md": "how_good",
        ROOT / "benchmarks" / "decisions.md": "measured",
        ROOT / "benchmarks" / "plan.md": "plan",
        DOCS / "architecture.md": "architecture",
        ROOT / "CONTRIBUTING.md": "contributing",
        ROOT / "CHANGELOG.md": "changelog",
    }
    guide = [GUIDE / "index.md", *(path for group in guide_groups().values() for path in group if path.suffix == ".md")]
    named = {path: f"{path.parent.name}/{path.stem}" for path in (*guide, *sorted((DOCS / "decisions").glob("*.md")))}
    return named | {path: name for path, name in alone.items() if path.exists()}


@cache
def guide_groups() -> dict[str, list[Path]]:
    """Return the guide's pages by group, in the order in which its first page lists them."""
    _, *parts = re.split(r"^## (.+)$", (GUIDE / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    pages = [[GUIDE / name for name in re.findall(r"\]\((\w+\.\w+)\)", text)] for text in parts[1::2]]
    return dict(zip(parts[::2], pages, strict=True))


def with_links(text: str, address: Callable[[str], str]) -> str:
    """Return Markdown with each link replaced by `address` of it; code is left alone."""

    def link(match: re.Match[str]) -> str:
        if match[2] is None:
            return match[0]
        there = address(match[2])
        if not there:  # a file of the repository that the site does not show
            return match[1]
        # Sphinx does not know the anchors of translated headings; the check of the whole site does.
        known = there == match[2] and not there.startswith("#")
        return match[0] if known else f'<a href="{escape(there)}">{match[1]}</a>'

    return _LINK.sub(link, text)


def addresses(folder: Path, page: str, names: set[str], language: str, files: set[str]) -> Callable[[str], str]:
    """Return a function that turns an address in a file of `folder` into the site's address, relative to `page`.

    Each Python file of the library, of the experiments' commands and of the capstone is added to `files`. An address
    that is not such a file, a chapter, a map or the explorer is returned unchanged.
    """
    top = "../" * page.count("/")
    english = top if language == "en" else f"../{top}"

    def address(target: str) -> str:
        where, _, anchor = target.partition("#")
        end = f"#{anchor}" if anchor else ""
        if not where or urlsplit(target).scheme:
            return target
        path = Path(os.path.normpath(folder / where))
        if path == ROOT / "README.md":
            return f"{english}index.html{end}"
        if path == DOCS / "decisions":
            return f"{english}decisions/index.html"
        if path == DOCS / "reference.md":  # on the site, each of its sections is a page, generated from the code
            return f"{english}reference/{anchor}.html"
        if (name := documents().get(path)) is not None:
            return f"{english}{name}.html{f'#{_anchors(path).get(anchor, anchor)}' if anchor else ''}"
        if path.parent in {MEASURES, CAPSTONE} or (path.suffix == ".py" and path.is_relative_to(LIBRARY)):
            file = str(PurePosixPath(path.relative_to(ROOT)))
            files.add(file)
            return f"{english}source/{file}.html{end}"
        if path.suffix == ".py" and (path.is_relative_to(BOOK) or path.parent == GUIDE):
            name = page_name(path)
            return f"{top if name in names else english}{name}.html{end}"
        if path.is_relative_to(BOOK / "maps"):
            name = f"maps/{path.stem}"
            return f"{top if name in names else english}{name}.html{end}"
        if path == ROOT / "runs" / "demo" / "explorer.html":
            if language == "zh" and "language=" not in anchor:
                end = f"#{anchor}&language=zh" if anchor else "#language=zh"
            return f"{english}explorer.html{end}"
        return "" if path.is_file() and path.is_relative_to(ROOT) else target

    return address


@cache
def _anchors(path: Path) -> dict[str, str]:
    """Return Sphinx's anchor of each heading of a Markdown file by GitHub's, which drops apostrophes."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): slug(heading) for heading in headings}


def source_page(file: str) -> str:
    """Return a page that shows a Python file; its classes and functions can be linked to by name."""
    code = (ROOT / file).read_text(encoding="utf-8")
    html = highlight(code, PythonLexer(), HtmlFormatter(linenos="inline", linespans="line", wrapcode=True))
    for name, (first, _) in definitions(file).items():
        html = html.replace(f'<span id="line-{first}">', f'<span id="{name}"></span><span id="line-{first}">', 1)
    return f"---\norphan: true\nnosearch: true\n---\n\n# {file.removeprefix('src/')}\n\n```{{raw}} html\n{html}\n```\n"


@cache
def definitions(file: str) -> dict[str, tuple[int, int]]:
    """Return the first and last line of each class, function, method and constant of a Python file, by name."""
    lines: dict[str, tuple[int, int]] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    names = [name]
                case ast.Assign(targets=targets):
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                case _:
                    names = []
            lines.update((prefix + name, (node.lineno, node.end_lineno or node.lineno)) for name in names)
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse((ROOT / file).read_text(encoding="utf-8")).body, "")
    return lines
