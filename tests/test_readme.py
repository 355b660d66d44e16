"""Every code block of the README and of the guide works."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from pages import guide_groups

import glassformer as gf
from glassformer.corpus.tasks import english_french
from interop.tutorials import TorchTutorial
from outputs import blocks_with_outputs, missing_line

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [path for group in guide_groups().values() for path in group if path.suffix == ".md"]
# the page "import" comes last, because it reads files that the other pages export
GUIDE = sorted(PAGES, key=lambda path: path.stem == "import")
SHORT = ["--set", "training.minutes=0", "--set", "training.steps=12", "--set", "decoding.extra_length=5"]
"""Settings of a short training, after which a model would not end its outputs by itself."""
EXPORTED = {
    "opus-mt-fr-en": "runs/mine-huggingface",
    "translate-en_fr-1_9.argosmodel": "mine.argosmodel",
    "converted": "small",
}
"""The foreign models that the guide imports, each with an export, from an earlier page, that takes its place."""
SERVED = "service"
"""The page whose blocks need a service: tests/serving/test_guide.py executes them."""
SMALL = [*SHORT, "--set", "tokenizer.vocab_size=400", "--set", "model.d_model=32", "--set", "model.d_ff=32"]


def blocks(path: Path, language: str) -> list[str]:
    """Return the code blocks of a Markdown file in a language."""
    found = re.findall(r"```(\w+)\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [text for name, text in found if name == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, made_once: Callable[..., Path]) -> Path:
    """Return a folder with the files that README and guide name, and a small run in place of the demo's."""
    folder = tmp_path_factory.mktemp("readme")
    splits = english_french(1, train=400, valid=120, test=10, unseen=1, pairs=1, senses=1, longer=1).splits
    files = {
        "train": splits["train"],
        "texts": splits["train"][:100],
        "texts-test": splits["valid"][:50],
        "test": splits["test"],
        "valid": splits["valid"],
        "new": splits["valid"][:10],
    }
    for name, examples in files.items():
        (folder / f"{name}.en").write_text("".join(f"{one.source}\n" for one in examples), encoding="utf-8")
        (folder / f"{name}.fr").write_text("".join(f"{one.target}\n" for one in examples), encoding="utf-8")
    (folder / "DIR").mkdir()
    for name, words in {"train": ("cat", "dog", "bee") * 9 + ("the", "a", "at"), "dev": ("cab", "dot", "bed")}.items():
        with gzip.open(folder / "DIR" / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{word}{number}\t{' '.join(word.upper())}\n" for number, word in enumerate(words))
    torch.save(TorchTutorial(9, 9, heads=8).state_dict(), folder / "model.pt")
    for side in ("source", "target"):
        tokens = ["<unk>", "<pad>", "<bos>", "<eos>", *(f"{side[0]}{number}" for number in range(1, 6))]
        (folder / f"{side}.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    (folder / "page.html").write_text("<p>The <b>cat</b> slept.</p>\n", encoding="utf-8")
    (folder / "mine.toml").write_text(
        blocks(next(one for one in GUIDE if one.stem == "corpus"), "toml")[0], encoding="utf-8"
    )
    shutil.copytree(made_once("small demo", train_small_demo), folder, dirs_exist_ok=True)
    # copied in advance for pages that need it, because any page may come first
    shutil.copytree(folder / "runs/demo", folder / "runs/mine")
    return folder


def train_small_demo(folder: Path) -> None:
    """Train a small run in place of the demo's; keep the command's output."""
    folder.mkdir()
    run(folder, f"glassformer demo {' '.join(SMALL)} > demo.txt")


def run(folder: Path, line: str) -> str:
    """Run a line of shell with the environment's commands on the path; return what it prints on both streams."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "110"}
    command = ["bash", "-ec", line]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}"
    return done.stdout


def test_the_two_commands_are_targets_of_the_makefile():
    commands = [line for text in blocks(README, "sh") for line in text.splitlines() if line.startswith("make ")]
    assert commands == ["make demo"]
    assert "`make test`" in README.read_text(encoding="utf-8")
    assert "glassformer demo" in subprocess.check_output(["make", "-n", "demo"], cwd=ROOT, text=True)
    assert "pytest" in subprocess.check_output(["make", "-n", "test"], cwd=ROOT, text=True)


def test_the_map_of_the_code_has_every_part():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = (path for path in (ROOT / "src/glassformer").iterdir() if not path.name.startswith(("_", "py.typed")))
    for path in parts:
        assert f"`{path.name}{'/' if path.is_dir() else ''}`" in text


def test_the_built_in_model_translates_as_shown():
    given = re.search(r'^echo "(.+)" \| glassformer translate demo$', README.read_text(encoding="utf-8"), re.MULTILINE)
    assert given
    [translation] = gf.Translator.load("demo").translate([given[1]])
    assert translation.text == blocks(README, "text")[0].strip()


def test_the_readme_is_short_and_begins_with_the_essentials():
    text = README.read_text(encoding="utf-8")
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) <= 700
    lines = text.splitlines()
    assert any(line.startswith("pip install") for line in lines[:40])
    assert "make demo" in lines[:40]
    assert "```python" in lines[:80]
    assert "pip install glassformer" not in text
    [python] = blocks(README, "python")
    assert len(python.split("\n\n")[1].splitlines()) + 1 == 5  # one more line for the blank one after the import


def test_the_readme_says_for_whom_it_is_and_for_whom_not():
    text = README.read_text(encoding="utf-8")
    assert "| You want to | You get | Start with |" in text
    assert [row.partition("|")[0].split()[0] for row in re.findall(r"^\| (\w+[^|]*) \|", text, flags=re.MULTILINE)][
        1:5
    ] == ["understand", "train", "find", "put"]
    [refused] = re.findall(r"^## What it is not for\n\n(.*?)\n\n", text, flags=re.MULTILINE | re.DOTALL)
    assert [line.split(":")[0] for line in refused.splitlines() if line.startswith("- ")] == [
        "- Chat and language models",
        "- Pretrained models",
        "- Conclusions about language from the demo",
        "- Clusters",
    ]
    assert "benchmarks/how_good.md#where-others-are-better" in text


def test_the_citation_names_the_version_and_licence_of_the_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {name: cited[name] for name in ("version", "license", "keywords")} == {
        name: project[name] for name in ("version", "license", "keywords")
    }
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # the fields that the format requires
    assert "(CITATION.cff)" in README.read_text(encoding="utf-8")


def test_the_readmes_figures_beside_a_peer_are_those_of_the_benchmarks():
    results = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    table = README.read_text(encoding="utf-8").partition("## Beside a peer")[2].partition("## Status")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    figures = [
        figure
        for row in rows
        for figure in re.findall(r"(?<!\w)(?:\d+ \d{3}|\d+\.\d|\d{2,3})(?!\w)", row.partition("|")[2].partition("|")[2])
    ]
    assert len(figures) >= 10
    for figure in figures:
        assert f" {figure} " in results.replace(",", " ").replace("(", " ").replace(")", " "), figure


@pytest.mark.client
@pytest.mark.long
def test_the_commands_run_as_printed(folder: Path, client: Callable[[str], Path]):
    """The README's commands, then the guide's, page by page; only training runs are shortened."""
    shown = [block for path in (README, *GUIDE) for block in blocks_with_outputs(path) if block.language == "sh"]
    assert sum(len(block.commands) for block in shown) >= 30
    for block in shown:
        printed = "".join(executed(folder, line, client) for line in block.commands)
        if block.output and block.commands:  # other tests check what `make` prints
            assert missing_line(block.output, printed) is None, f"{block.text}\n{printed}"
    assert len((folder / "new.fr").read_text(encoding="utf-8").splitlines()) == 10


def executed(folder: Path, line: str, client: Callable[[str], Path]) -> str:
    """Run a line of the guide, its trainings shortened, and return what it prints."""
    if " train " in line or " distil " in line:
        line += f" {' '.join(SHORT if ' train adapt ' in line else SMALL)} --set training.checkpoint_every=4"
    if line.startswith(("python -m benchmarks.speed", "glassformer estimate")):
        line = f"PYTHONPATH={ROOT} {line} --seconds 1"
    if line == "glassformer prepare mine.toml":
        line += f" {' '.join(SMALL)}"  # the folder belongs to a run with these settings
    if " distil " in line:
        line += " --keep-reference"  # twelve steps are too few for useful outputs
    if " export " in line and "--to ctranslate2" not in line:
        line += " --unverified"  # tests/clients verifies exports with other programs
    if line.startswith("glassformer explore") and "--html" not in line:
        line += " --html served.html"  # writes a file, because a server would not end
    line = line.replace("--page node_modules", f"--page {client('node')}/node_modules")
    if line.startswith("glassformer check"):
        line += " || test $? = 1"  # twelve steps are too few for a model to use its source
    if line.startswith("glassformer import opus-mt-fr-en"):
        run(folder, "; ".join(f"cp -r {export} {name}" for name, export in EXPORTED.items()))
    if line.startswith("glassformer import converted"):
        run(folder, "rm -r runs/theirs")
    if line.startswith("glassformer train mine.toml") and "runs/other" not in line:
        run(folder, "rm -r runs/mine")
    if line.startswith("glassformer train translation"):
        run(folder, "rm -rf runs/mine")
    return run(folder, line)


@pytest.mark.long
@pytest.mark.parametrize(
    "path", [one for one in (README, *GUIDE) if blocks(one, "python") and one.stem != SERVED], ids=lambda one: one.stem
)
def test_the_python_blocks_run_in_order(folder, path):
    (folder / "blocks.py").write_text("\n".join(blocks(path, "python")), encoding="utf-8")
    run(folder, f"{sys.executable} -W error blocks.py")


@pytest.mark.long
def test_the_demo_prints_the_output_in_the_readme(folder):
    """The table has the same rows and classic sentences; its numbers come from a longer training."""
    printed = (folder / "demo.txt").read_text(encoding="utf-8")
    shown = blocks(README, "text")[1]
    for line in shown.splitlines():
        first = re.split(r"\s{2,}|[✓\d]", line.strip())[0]
        assert first in printed
