"""Runs to export."""

from collections.abc import Callable
from pathlib import Path

import pytest

from glassformer.bundle import Bundle
from interop.small_runs import write_run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Bundle]:
    """Return a function that writes a run."""
    return lambda **settings: write_run(tmp_path / "run", **settings)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return a run that nobody changes."""
    return write_run(tmp_path_factory.mktemp("runs") / "run")
