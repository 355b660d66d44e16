"""Build the documentation (guide, book, reference, decisions) as one static site that needs no network.

python docs/site/build.py                     the whole site, into src/glassformer/site/, for `glassformer learn`
python docs/site/build.py --changed           the same, but only changed notebooks and a few others are executed; the
                                              remaining pages have no outputs
python docs/site/build.py --only attention    these chapters of the book alone, into build/docs/site-attention/
python docs/site/build.py --pages             the pages that are not executed, into build/docs/site-pages/

A notebook is executed again when it, the library, an experiment's result or the model has changed. The model is that of
`make demo` if it has been trained, otherwise the model in the package. After the whole site, `executed.txt` has the
digest of each notebook's code.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns, rmtree
from time import perf_counter

import nbformat
from chapters import CHAPTERS, INSIDE, ROOT, WITNESSES, Chapter, changed, executed, parsed, write_record
from documentation import REFERENCE, documentation
from doors import DECISIONS, Door, doors
from links import broken_links
from maps import MAPS, map_page
from navigation import reading_minutes
from notebooks import write_notebooks
from pages import documents, localised, notebook_page, source_page, with_minutes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from glassformer import Translator
from glassformer.watch.explorer.standalone import write_page

HERE = Path(__file__).parent
BUILD = ROOT / "build" / "docs"
SITE = ROOT / "src" / "glassformer" / "site"
STAGE = "demo"
"""The model on the home page and in the explorer: the one in the package."""
LANGUAGES = {"en": "", "zh": "zh"}
"""Each language's folder in the site."""


def main() -> None:
    """Execute the notebooks, write pages in both languages, build them, check the links."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names such as attention or experiments/beam")
    parser.add_argument("--pages", action="store_true", help="only the pages that are not executed")
    parser.add_argument("--changed", action="store_true", help="execute only changed notebooks and a few others")
    parser.add_argument("--again", action="store_true", help="execute all chapters again")
    asked = parser.parse_args()
    if asked.pages:
        return build_site({}, "en", BUILD / "site-pages", maps=(), beside=True)
    if not (INSIDE / "installed").exists():
        sys.exit(f"{INSIDE} does not exist, and pages of the guide use its packages: run `make site`")
    if unknown := set(asked.only or ()) - {chapter.name for chapter in CHAPTERS}:
        sys.exit(f"unknown chapter {', '.join(unknown)}; the chapters are {', '.join(one.name for one in CHAPTERS)}")
    chosen = [chapter for chapter in CHAPTERS if not asked.only or chapter.name in asked.only]
    out = BUILD / "-".join(["site", *(name.replace("/", "-") for name in asked.only or ())])
    executing = {*WITNESSES, *changed()} if asked.changed else {chapter.name for chapter in chosen}
    notebooks = {chapter.name: parsed(chapter.path) for chapter in chosen}
    notebooks |= execute_all([chapter for chapter in chosen if chapter.name in executing], asked.again)
    rmtree(out, ignore_errors=True)
    for language, folder in LANGUAGES.items():
        pages = {
            chapter.name: page
            for chapter in chosen
            if (page := localised(chapter, notebooks[chapter.name], language)) is not None
        }
        maps = () if asked.only else [name for name in MAPS if language == "en" or is_translated(f"maps/{name}")]
        if pages:
            build_site(pages, language, out / folder, maps=maps, beside=language == "en" and not asked.only)
    write_page(Translator.load(STAGE), out / "explorer.html", snapshots=3)
    if asked.only:
        return None
    rmtree(SITE, ignore_errors=True)  # the wheel beside the notebooks is without the site
    write_notebooks(out)
    if problems := broken_links(out):
        sys.exit("\n".join(problems))
    copytree(out, SITE, ignore=ignore_patterns(".buildinfo", "objects.inv", "_sources", "jupyter_execute"))
    if not asked.changed:
        write_record()
    return say(f"the site: {SITE.relative_to(ROOT)}")


def execute_all(chosen: list[Chapter], again: bool) -> dict[str, nbformat.NotebookNode]:
    """Return the executed notebooks by name; chapters run in parallel, one thread each."""
    os.environ["OMP_NUM_THREADS"] = "1"  # two at once with two threads each would be several times slower
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(INSIDE)]))
    notebooks, start = {}, perf_counter()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        # The longest first, so that none is left to run alone at the end.
        jobs = [pool.submit(executed, chapter, again) for chapter in sorted(chosen, key=lambda one: -one.seconds)]
        for done, job in enumerate(as_completed(jobs), start=1):
            chapter, notebook, seconds = job.result()
            notebooks[chapter.name] = notebook
            say(f"[{done}/{len(jobs)}] {chapter.name}: {f'{seconds:.0f} s' if seconds else 'unchanged'}")
    say(f"chapters: {perf_counter() - start:.0f} s")
    return notebooks


def build_site(
    pages: dict[str, nbformat.NotebookNode], language: str, out: Path, *, maps: Sequence[str], beside: bool
) -> None:
    """Write one language's pages, and let Sphinx make a site of them; a warning is an error.

    `beside` adds the pages that are not the book's: guide, reference, benchmarks, decisions.
    """
    source, doctrees = BUILD / "source" / out.name / language, BUILD / "doctrees" / out.name / language
    rmtree(source, ignore_errors=True)
    minutes = {name: reading_minutes(notebook, language) for name, notebook in pages.items()}
    if "overview" in pages:
        pages |= {"overview": with_minutes(pages["overview"], minutes, language)}
    names = {*pages, *(f"maps/{name}" for name in maps)}
    files: set[str] = set()
    for name, notebook in pages.items():
        page, linked = notebook_page(name, notebook, names, language)
        files |= linked
        write(source / f"{name}.ipynb", nbformat.writes(page))
    for name in maps:
        page, linked = map_page(name, names, language)
        files |= linked
        write(source / f"maps/{name}.md", page)
    if beside:
        files |= documentation(source, names)
    elif (HERE / f"index.{language}.md").exists():
        copyfile(HERE / f"index.{language}.md", source / "index.md")
    if language == "en":
        for file in sorted(files):
            write(source / f"source/{file}.md", source_page(file))
    titles = names | ({*REFERENCE, *documents().values(), DECISIONS} if beside else set())
    parts = doors(titles, language)
    ordered = [page for door in parts for page in door.pages]
    with_contents(source, ordered)
    translated = {name for name in names if language == "zh" or is_translated(name)} | {"index"}
    switches = dict.fromkeys(translated if pages else (), LANGUAGES)
    settings = {
        "language": {"en": "en", "zh": "zh_CN"}[language],
        "html_context": {"switches": switches},
        "site_doors": parts,
        "english_doors": english_doors(parts) if language == "zh" else [],
        "notebooks": set(pages) if maps and language == "en" else set(),
        "reading_minutes": minutes,
    }
    if language == "zh":
        settings |= {"nb_code_prompt_show": "代码", "nb_code_prompt_hide": "隐藏代码"}
    with patch_docutils(HERE), docutils_namespace():
        app = Sphinx(
            source,
            HERE,
            out,
            doctrees,
            "html",
            settings,
            status=None,
            warningiserror=True,
            parallel=os.cpu_count() or 1,
        )
        app.build(force_all=True)
    if app.statuscode:
        sys.exit(app.statuscode)
    write(out / "contents.txt", "\n".join(["index", *ordered]) + "\n")
    say(f"{language}: {sum(1 for _ in out.rglob('*.html'))} pages in {out.relative_to(ROOT)}")


def with_contents(source: Path, pages: Sequence[str]) -> None:
    """Put the table of contents at the end of the first page, which is made if it does not exist."""
    index = source / "index.md"
    text = index.read_text(encoding="utf-8") if index.exists() else "# glassformer\n"
    write(index, f"{text}\n```{{toctree}}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n")


def english_doors(parts: Sequence[Door]) -> list[tuple[str, str]]:
    """Return the doors without Chinese pages: each name with its first page, which is in English."""
    everything = {chapter.name for chapter in CHAPTERS} | {*REFERENCE, *documents().values()}
    there = {door.name for door in parts}
    return [(door.name, door.pages[0]) for door in doors(everything, "zh") if door.name not in there]


def is_translated(name: str) -> bool:
    """Return whether a page exists in Chinese too."""
    if name.startswith("maps/"):
        return name.removeprefix("maps/") in MAPS
    return next(chapter for chapter in CHAPTERS if chapter.name == name).translation.exists()


def write(path: Path, text: str) -> None:
    """Write a page's source, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def say(text: str) -> None:
    """Print a line of progress at once."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError) as error:  # a cell failed, or a translation is out of date
        sys.exit(str(error))
