"""The reference is complete: every command, setting and public name is in it."""

import re
from pathlib import Path

import pytest
from all_settings import all_settings
from chapters import CHAPTERS
from documentation import MODULES, REFERENCE
from doors import DECISIONS, doors
from pages import ROOT, documents

import glassformer as gf
from glassformer.cli import COMMANDS

MARKDOWN = [path for path in documents() if path.name != "CHANGELOG.md"]


def test_every_page_is_behind_one_door():
    names = {chapter.name for chapter in CHAPTERS} | {*REFERENCE, *documents().values(), DECISIONS}
    pages = [page for door in doors(names, "en") for page in door.pages]
    beside = {name for name in names if name.startswith("decisions/")} - {DECISIONS} | {"index"}
    assert sorted(pages) == sorted(names - beside)
    assert max(len(group.pages) for door in doors(names, "en") for group in door.groups) <= 10


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference(command):
    assert f"## glassformer {command}" in REFERENCE["reference/commands"]()


def test_every_setting_is_in_the_reference_with_an_explanation():
    text = REFERENCE["reference/settings"]()
    for setting in all_settings():
        assert setting.explanation
        assert f"| `{setting.name}` | {setting.type}" in text
        assert f"## [{setting.section}]" in text


def test_every_named_point_is_in_the_reference():
    text = REFERENCE["reference/points"]()
    model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=5))
    for name in gf.points(model):
        assert f"| `{re.sub(r'[.][0-9]+[.]', '.{i}.', name)}` |" in text


def test_every_public_name_is_in_a_documented_module():
    described = {f"glassformer.{module}" for modules in MODULES.values() for module in modules}
    described |= {"glassformer.errors", "glassformer.watch.inspection", "glassformer.training"}
    for name in gf.__all__:
        home = getattr(gf, name)
        assert getattr(home, "__module__", home.__name__ if name in ("inspection", "training") else "") in described, (
            name
        )


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_to_existing_files(path):
    """As in the repository; the pages of the reference exist on the built site only."""
    for target in re.findall(r"\]\(([^()\s]+)\)", path.read_text(encoding="utf-8")):
        file = target.partition("#")[0]
        if "://" in file or not file:
            continue
        there = (path.parent / file).resolve()
        assert there.exists() or "reference" in Path(file).parts or there.name == "explorer.html", target


@pytest.mark.parametrize("path", [*MARKDOWN, ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_pictures_are_small_and_described(path):
    text = path.read_text(encoding="utf-8")
    shown = [(alt, name) for alt, name in re.findall(r"!\[([^\]]*)\]\(([^()\s]+)\)", text)]
    shown += [(alt, name) for name, alt in re.findall(r'<img src="([^"]+)" alt="([^"]*)">', text)]
    shown += [("dark", name) for name in re.findall(r'srcset="([^"]+)"', text)]
    for alt, name in shown:
        assert alt.strip(), name
        assert (path.parent / name).stat().st_size <= 250_000, name
