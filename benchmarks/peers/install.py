"""Install each peer in its own environment: `python -m benchmarks.peers.install [PEER ...]`, by default all peers.

The environments are made in the folder of the environment variable PEERS (default `.peers`), from the exact versions in
`requirements/PEER.txt`. PyTorch is installed first, in its exact version: a wide requirement could draw gigabytes of
CUDA packages, or a different release for each peer.

JoeyNMT 2.3 and OpenNMT-py 3.5 require an older PyTorch. They are installed without their requirements
(`requirements/PEER-alone.txt`), and then the packages that they need are installed. So all peers are measured on the
same PyTorch; JoeyNMT and OpenNMT-py work with this version. The Annotated Transformer is a single file, which is not
installed: `python -m benchmarks.training --annotated PATH` runs it in the environment of torch.nn.Transformer.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.command import as_command

TORCH = "torch==2.13.0"
WITHOUT_TORCH = ("ctranslate2",)
SHARED = ("numpy==2.4.6", "sentencepiece==0.2.3")
"""Requirements of the worker in every environment."""
REQUIREMENTS = Path(__file__).parent / "requirements"
ENVIRONMENTS = ("hugging_face", "torch_nn", "ctranslate2", "joeynmt", "x_transformers", "opennmt")
"""Folders of the environments, each with the name of its adapter; the most important peer comes first."""


def folder() -> Path:
    """Return the folder of the peers' environments."""
    return Path(os.environ.get("PEERS", ".peers")).absolute()


def python_of(environment: str) -> Path:
    """Return the interpreter of a peer's environment, whether or not it exists."""
    return folder() / environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(environment: str) -> None:
    """Make or complete the environment of a peer."""
    place = folder() / environment
    if not python_of(environment).exists():
        venv.create(place, with_pip=True)
    _pip(environment, *SHARED, *(() if environment in WITHOUT_TORCH else (TORCH,)))
    alone = REQUIREMENTS / f"{environment}-alone.txt"
    if alone.exists():
        _pip(environment, "--no-deps", "--requirement", str(alone))
    _pip(environment, "--requirement", str(REQUIREMENTS / f"{environment}.txt"))


def _pip(environment: str, *arguments: str) -> None:
    command = [str(python_of(environment)), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*command, *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", choices=[*ENVIRONMENTS, []], default=[], metavar="PEER")
    failed = []
    for environment in parser.parse_args().peers or ENVIRONMENTS:
        print(f"{environment}: {folder() / environment} …", flush=True)
        try:
            install(environment)
        except subprocess.CalledProcessError as error:
            print(f"{environment} could not be installed: {error}", file=sys.stderr)
            failed.append(environment)
    if failed:
        sys.exit(f"not installed: {', '.join(failed)}; the others are in {folder()}")
    print(f"all peers are in {folder()}")


if __name__ == "__main__":
    as_command(main)
