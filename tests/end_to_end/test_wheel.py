"""The wheel is complete, including files other than Python."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "glassformer"
MOST_BYTES = 6_500_000
"""Maximum size of the wheel without the site."""


def built(tree: Path, folder: Path) -> Path:
    """Return the wheel of a checkout, built into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    [wheel] = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the wheel of this checkout."""
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel):
    without = {PACKAGE / "site" / "source" / "src", PACKAGE / "site" / "explorer.html"}
    files = {
        path
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix != ".whl"
        and not without & {path, *path.parents}
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("glassformer/")}
    assert packed == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {Path(name).suffix for name in packed} >= {".py", ".toml", ".js", ".json", ".typed", ".safetensors"}
    assert "glassformer/models/demo/model.safetensors" in packed


@pytest.mark.slow
def test_the_wheel_is_small_and_has_the_model_once(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {one.filename: one.compress_size for one in archive.infolist()}
    site = sum(size for name, size in packed.items() if name.startswith("glassformer/site/"))
    assert wheel.stat().st_size - site < MOST_BYTES
    weights = [name for name in packed if name.endswith(".safetensors")]
    assert all(name.startswith("glassformer/models/demo/") for name in weights)


@pytest.mark.slow
def test_the_site_in_the_wheel_lacks_what_the_package_has(tmp_path):
    """Build a wheel from a checkout whose site has one page, the source pages and the explorer's page."""
    tree = tmp_path / "tree"
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        tree.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree)
    for name in (
        "__init__.py",
        "site/index.html",
        "site/explorer.html",
        "site/notebooks/glassformer.whl",
        "site/source/src/model.py.html",
        "site/source/book/a.py.html",
    ):
        path = tree / "src" / "glassformer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with zipfile.ZipFile(built(tree, tmp_path / "dist")) as archive:
        packed = {name for name in archive.namelist() if name.startswith("glassformer/")}
    kept = {"__init__.py", "site/index.html", "site/source/book/a.py.html"}
    assert packed == {f"glassformer/{name}" for name in kept}


@pytest.mark.slow
def test_the_installed_explorer_is_the_same(wheel):
    code = "from glassformer.watch.explorer import module; print(module.__file__); print(module.explorer_module())"
    texts = []
    for path in (wheel, ROOT / "src"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(path)},
            capture_output=True,
            text=True,
            check=True,
        )
        origin, _, text = done.stdout.partition("\n")
        assert origin.startswith(str(path))
        texts.append(text)
    assert texts[0] == texts[1]
