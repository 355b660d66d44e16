"""The help pages, as stored in tests/cli/help; `python tests/cli/test_help.py` writes them again after a change."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import typer.main

from glassformer.cli import GROUPS, application

PAGES = Path(__file__).parent / "help"
PINNED = re.search(r"^typer==(\S+)", (Path(__file__).parents[2] / "constraints.txt").read_text(), re.MULTILINE)[1]
MOST_OPTIONS = 17
DESIGN = {
    "demo": (),
    "prepare": ("--check", "--json", "--source", "--target", "--set", "--data"),
    "train": ("--source", "--target", "--set", "--data"),
    "bulk": ("--output", "--part", "--ray", "--finish", "--column"),
    "translate": ("--beam-size", "--n-best", "--prefix", "--sample", "--engine", "--status"),
    "evaluate": (),
    "score": (),
    "trace": ("--json",),
    "explore": ("--html",),
    "export": ("--to",),
    "estimate": ("--presets", "--source", "--target"),
    "check": (),
    "average": ("--last",),
    "recipes": (),
    "compare": (),
    "distil": ("--backward",),
    "learn": ("--check",),
    "tune": ("--rescore", "--lexicon"),
}
"""Commands and options that must not disappear."""


def commands():
    """Return every command by the words that a user types, including the whole command line."""
    whole = typer.main.get_command(application())
    return {"glassformer": whole, **{f"glassformer {name}": command for name, command in whole.commands.items()}}


def page_of(typed, command):
    """Return a help page for a terminal of 80 columns."""
    context = typer.Context(command, info_name=typed, terminal_width=80, max_content_width=80)
    return command.get_help(context) + "\n"


def path_of(typed):
    return PAGES / f"{typed.replace(' ', '-')}.txt"


ALL = commands()
each_command = pytest.mark.parametrize("typed", ALL)


@pytest.mark.skipif(version("typer") != PINNED, reason="pages are stored as the pinned typer lays them out")
@each_command
def test_each_help_page_equals_the_stored_page(typed):
    assert page_of(typed, ALL[typed]) == path_of(typed).read_text(encoding="utf-8")


def test_every_stored_page_belongs_to_a_command():
    assert {path.stem for path in PAGES.iterdir()} == {path_of(typed).stem for typed in ALL}


@each_command
def test_a_help_page_fits_80_columns(typed):
    assert max(map(len, page_of(typed, ALL[typed]).splitlines())) <= 80


@each_command
def test_each_command_has_few_options_each_with_help(typed):
    shown = [one for one in ALL[typed].params if one.param_type_name == "option" and not one.hidden]
    assert len(shown) <= MOST_OPTIONS
    assert all(one.help and one.help[0].isupper() for one in shown)
    assert all(getattr(one, "help", None) for one in ALL[typed].params if one.param_type_name == "argument")


def test_each_summary_fits_one_line():
    page = page_of("glassformer", ALL["glassformer"])
    listed = page[page.index("\nUse:") :]
    assert listed.count("\n  ") == sum(map(len, GROUPS.values()))
    assert "..." not in listed


@pytest.mark.parametrize("name", DESIGN)
def test_every_documented_command_answers_help(glassformer, name):
    result = glassformer(*name.split(), "--help")
    assert result.status == 0
    assert f" {name} [OPTIONS]" in result.out.splitlines()[0]
    spellings = {spelling for one in ALL[f"glassformer {name}"].params for spelling in one.opts}
    assert {*DESIGN[name]} <= spellings


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.iterdir():
        old.unlink()
    for typed, command in ALL.items():
        path_of(typed).write_text(page_of(typed, command), encoding="utf-8")
