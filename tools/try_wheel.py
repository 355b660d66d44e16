"""Install the wheel in an empty environment for each Python that is found, and use it from an empty folder.

    python -m tools.try_wheel dist/glassformer-0.1.0-py3-none-any.whl [--pythons 3.11 3.12 3.13]

Each environment is installed as the README says: PyTorch first, then the wheel with the constraints. Then the model in
the package translates a sentence and is written as a page.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import glassformer
from glassformer.built_in import BUILT_IN

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13")
SENTENCE, FRENCH = "The tired animal slept in the park.", "L'animal fatigué dormait dans le parc."


def interpreter(version: str) -> str | None:
    """Return the interpreter of a version: on the PATH, or among pyenv's; None if there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    return next(
        (one for one in found if one and subprocess.run([one, "-c", ""], capture_output=True).returncode == 0), None
    )


def torch_requirement() -> str:
    """Return the pinned requirement of PyTorch."""
    return next(line for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))


def problems(wheel: Path, python: str, folder: Path) -> Iterator[str]:
    """Install a wheel in a new environment in a folder, and yield what does not work in it."""
    environment, place = folder / "environment", folder / "empty"
    place.mkdir()
    subprocess.run([python, "-m", "venv", environment], check=True)
    scripts = environment / "bin"
    install = [str(scripts / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, torch_requirement()], check=True)
    subprocess.run([*install, "--constraint", str(CONSTRAINTS), str(wheel)], check=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str, text: str = "") -> str:
        command = [str(scripts / "glassformer"), *arguments]
        done = subprocess.run(command, cwd=place, env=clean, input=text, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else done.stderr

    version = f"glassformer {glassformer.__version__} ({glassformer.__released__})\n"
    if (got := run("--version")) != version:
        yield f"--version: expected {version!r}, got {got!r}"
    if (got := run("translate", BUILT_IN, text=f"{SENTENCE}\n")) != f"{FRENCH}\n":
        yield f"translate: expected {FRENCH!r}, got {got!r}"
    got = run("explore", "--html", "page.html")
    if not (place / "page.html").exists():
        yield f"explore: expected a page, got {got!r}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Try a wheel on each Python, and print a line for each; exit with 1 if something does not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the wheel, which `make wheel` writes into dist/")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="VERSION", help="versions of Python to try")
    given = parser.parse_args(arguments)
    tried = failed = 0
    for version in given.pythons:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not installed")
            continue
        start = perf_counter()
        with TemporaryDirectory() as folder:
            found = list(problems(given.wheel.resolve(), python, Path(folder)))
        tried, failed = tried + 1, failed + bool(found)
        print(f"Python {version}: {'; '.join(found) or 'works'} ({perf_counter() - start:.0f} s)", flush=True)
    sys.exit(failed > 0 or tried == 0)


if __name__ == "__main__":
    main()
