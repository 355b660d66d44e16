"""The reference is complete: every command, setting and public name is in it."""

import re

import pytest
from all_settings import all_settings
from chapters import CHAPTERS, GUIDE
from documentation import MODULES, REFERENCE
from doors import DECISIONS, doors
from pages import ROOT, addresses, documents

import glassformer as gf
from glassformer.cli import COMMANDS

MARKDOWN = [path for path in documents() if path.name != "CHANGELOG.md"]
LINKING = [*MARKDOWN, ROOT / "README.md", *GUIDE.glob("*.py")]
SECTIONS = ROOT / "docs" / "reference.md"
"""The page that the repository has in place of the site's generated pages."""


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


@pytest.mark.parametrize("path", [*LINKING, SECTIONS], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_to_existing_files(path):
    """These links must also work in the web view of the repository, which has no built pages."""
    text = re.sub(r"`[^`\n]+`", "", path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^()\s]+)\)", text) + re.findall(r'(?:href|src|srcset)="([^"]+)"', text)
    files = [link.partition("#")[0] for link in links if "://" not in link]
    assert [file for file in files if file and not (path.parent / file).exists()] == []


def test_a_section_of_the_reference_is_a_page_on_the_site():
    address = addresses(SECTIONS.parent / "guide", "guide/settings", set(), "en", set())
    headings = re.findall(r"^## (.+)$", SECTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(f"reference/{heading.lower()}" for heading in headings) == sorted(REFERENCE)
    for heading in headings:
        assert address(f"../reference.md#{heading.lower()}") == f"../reference/{heading.lower()}.html"


@pytest.mark.parametrize("path", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_pictures_are_small_and_described(path):
    text = path.read_text(encoding="utf-8")
    shown = [(alt, name) for alt, name in re.findall(r"!\[([^\]]*)\]\(([^()\s]+)\)", text)]
    shown += [(alt, name) for name, alt in re.findall(r'<img src="([^"]+)" alt="([^"]*)">', text)]
    shown += [("dark", name) for name in re.findall(r'srcset="([^"]+)"', text)]
    for alt, name in shown:
        assert alt.strip(), name
        assert (path.parent / name).stat().st_size <= 250_000, name
