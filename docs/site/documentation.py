"""The pages beside the book: the guide, the reference, benchmarks, decisions, the changelog.

What a page says about commands, settings, named points and the Python API comes from the source that does it, so that
the reference cannot drift from the program.
"""

import os
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from shutil import copyfile

import typer
from all_settings import all_settings
from chapters import ROOT
from doors import DECISIONS
from pages import addresses, documents, with_links
from typer.cli import get_docs_for_click

import glassformer as gf
from glassformer.cli import application
from glassformer.model.points import named_points
from glassformer.settings import Setting

REFERENCE: dict[str, Callable[[], str]] = {}
"""What writes each generated page of the reference, by its name."""

MODULES = {
    "Models": ("model.transformer", "model.config", "model.attention", "model.positions", "model.taps"),
    "Translating": (
        "translator",
        "translating.translation",
        "text.glossary",
        "text.links",
        "evaluation.guards",
        "decoding.engine",
        "decoding.options",
        "decoding.hypothesis",
    ),
    "Training": (
        "jobs.run",
        "jobs.run_reports",
        "training.loop",
        "training.reports",
        "recipes.configuration",
        "recipes.toml",
    ),
    "Evaluating": ("evaluation.metrics", "evaluation.items", "evaluation.significance", "jobs.evaluation"),
    "Looking inside": (
        "watch.inspection.check",
        "watch.inspection.changes",
        "watch.inspection.diagnosis",
        "watch.inspection.edits",
        "watch.inspection.mistakes",
        "watch.inspection.studies",
        "watch.explorer.widget",
    ),
    "Models in folders": (
        "bundle",
        "interop.formats",
        "interop.exporting",
        "interop.ctranslate2.writer",
        "interop.onnx.writer",
        "interop.verification",
        "interop.importing",
        "interop.torch.state_dicts",
        "interop.huggingface.reader",
        "interop.ctranslate2.reader",
        "interop.argos.reader",
    ),
}
"""The modules whose public names the Python reference describes, by heading."""

_IMAGE = re.compile(r"!\[((?:[^\[\]])*)\]\(([^()\s]+)\)", flags=re.DOTALL)


def generated(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register the function that writes a page of the reference."""

    def register(write: Callable[[], str]) -> Callable[[], str]:
        REFERENCE[f"reference/{name}"] = write
        return write

    return register


@generated("commands")
def commands() -> str:
    """Return the page of all commands with their arguments and options."""
    app = typer.main.get_command(application())
    context = typer.Context(app, info_name="glassformer")
    parts = [
        "# Commands\n\n`glassformer COMMAND --help` prints the same text in the terminal. Errors go to stderr in one"
        " line with exit status 1; wrong usage exits with status 2.\n"
    ]
    for name in app.list_commands(context):
        text = get_docs_for_click(obj=app.commands[name], ctx=context, name=name, call_prefix="glassformer")
        parts.append(_deeper(text))
    return "\n".join(parts)


def _deeper(text: str) -> str:
    """Return Markdown whose headings are one level deeper and carry no code marks."""
    return re.sub(r"^(#+) `([^`]+)`$", r"#\1 \2", text, flags=re.MULTILINE)


@generated("settings")
def settings() -> str:
    """Return the page of all settings of a configuration, section by section."""
    parts = [
        "# Settings",
        "A configuration is a TOML file with the sections below; `glassformer recipes NAME` prints a complete one."
        " `--set SECTION.FIELD=VALUE` overrides one setting. Ranges include both ends.",
        'Above the sections, `base = "NAME"` names a recipe or a file whose settings a configuration has and changes.',
    ]
    for section, group in groupby(all_settings(), key=lambda one: one.section):
        rows = [f"| `{one.name}` | {_values(one)} | {_code(one.default)} | {_cell(one.explanation)} |" for one in group]
        parts += [f"## [{section}]", "| setting | value | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _values(setting: Setting) -> str:
    return f"{setting.type}, {setting.range}" if setting.range else setting.type


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    """Return a text that can stand in a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


@generated("points")
def points() -> str:
    """Return the page of the named points, in the order of computation."""
    config = gf.ModelConfig.preset("tiny", vocab_size=5, encoder_layers=1, decoder_layers=1)
    rows = [
        f"| `{name.replace('.0.', '.{i}.')}` | {point.shape} | {point.place.replace(' 0', '')} | {point.about} |"
        for name, point in named_points(config).items()
    ]
    head = (
        "# Named points",
        "`gf.record` reads the tensors at these points and `gf.intervene` replaces them; the explorer and `trace` use"
        " the same names. `{i}` is the number of a layer, from 0. `gf.points(model)` lists the names of one model. In a"
        " pre-norm model, `normed` is the input of its sub-layer and comes before the sub-layer's other points.",
        "Axes: B batch · S source positions · T target positions · D d_model · F d_ff · H heads · K width of a head's"
        " query and key · W width of a head's value · V target vocabulary.",
        "| name | shape | where | value |\n|---|---|---|---|\n" + "\n".join(rows),
    )
    return "\n\n".join(head) + "\n"


@generated("python")
def python_interface() -> str:
    """Return the page of the Python API, which autodoc fills from docstrings."""
    head = [
        "# Python",
        "`import glassformer as gf` offers: " + ", ".join(f"`gf.{name}`" for name in sorted(gf.__all__, key=str.lower)),
        "`import glassformer` is fast, because each name is imported at its first use.",
    ]
    for heading, modules in MODULES.items():
        head.append(f"## {heading}")
        head += [_automodule(f"glassformer.{module}") for module in modules]
    return "\n\n".join(head) + "\n"


def _automodule(module: str) -> str:
    return f"### {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n```"


@generated("errors")
def errors() -> str:
    """Return the page of the error classes."""
    return (
        "# Errors\n\nglassformer raises these errors. Each class is also a built-in error, such as ValueError, and can"
        " be caught as that error.\n\n```{eval-rst}\n.. automodule:: glassformer.errors\n   :members:\n"
        "   :show-inheritance:\n```\n"
    )


def decisions() -> str:
    """Return the page that lists the decisions."""
    names = [name.removeprefix("decisions/") for name in documents().values() if name.startswith("decisions/")]
    return (
        "# Decisions\n\nWhy the code is as it is: for each decision its context, what was decided, and what follows"
        " from it.\n\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
    )


def documentation(source: Path, names: set[str]) -> set[str]:
    """Write the pages beside the book into Sphinx's source folder, and return the Python files that they lead to."""
    files: set[str] = set()
    for name, write in REFERENCE.items():
        _write(source / f"{name}.md", write())
    _write(source / f"{DECISIONS}.md", decisions())
    names = names | set(REFERENCE)
    for path, name in documents().items():
        address = addresses(path.parent, name, names, "en", files)
        text = _IMAGE.sub(lambda m, here=path, page=name: _image(m, here, page, source), path.read_text("utf-8"))
        _write(source / f"{name}.md", with_links(text, address))
    return files


def _image(match: re.Match[str], document: Path, page: str, source: Path) -> str:
    """Return an image of the repository with its address in the site, to which its file is copied.

    An image NAME-light is shown to readers with a light theme, and NAME-dark to the others.
    """
    alt = " ".join(match[1].split())
    light = Path(os.path.normpath(document.parent / match[2]))
    dark = light.with_name(light.name.replace("-light.", "-dark."))
    places = {}
    for path in (light, dark):
        kept = source / "pictures" / "-".join(path.relative_to(ROOT).parts[1:])
        kept.parent.mkdir(parents=True, exist_ok=True)
        copyfile(path, kept)
        places[path] = f"{'../' * page.count('/')}pictures/{kept.name}"
    if light == dark:
        return f"![{alt}]({places[light]})"
    themes = zip(places.values(), ("light", "dark"), strict=True)
    return "\n".join(f"```{{image}} {place}\n:alt: {alt}\n:class: only-{theme}\n```" for place, theme in themes)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
