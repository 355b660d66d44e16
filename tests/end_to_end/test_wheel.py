"""The wheel is complete, including files other than Python."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "glassformer"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.iterdir()
    return wheel


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel):
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("glassformer/")}
    assert packed == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {Path(name).suffix for name in packed} >= {".py", ".toml", ".js", ".json", ".typed"}


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
