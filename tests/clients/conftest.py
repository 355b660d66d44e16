"""Other people's programs, each in an environment that `make clients` has made."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models import random_translator

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def ask(client: Callable[[str], Path]) -> Ask:
    """Return a function that runs one of `programs/` in a client's environment, with JSON in and out."""

    def asked(name: str, program: str, **values: Any) -> Any:
        folder = client(name)
        script = PROGRAMS / f"{program}.mjs"
        javascript = [ROOT / ".venv/node/node", script, folder / "node_modules"]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run = subprocess.run(
            javascript if script.exists() and name == "node" else [folder / "bin/python", PROGRAMS / f"{program}.py"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            env={**alone, "OMP_NUM_THREADS": "1"},
            timeout=600,
        )
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    return asked


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small run with random weights."""
    translator = random_translator(tmp_path_factory.mktemp("serving"), extra_length=5)
    translator.bundle.save(translator.model)
    return translator.bundle.folder
