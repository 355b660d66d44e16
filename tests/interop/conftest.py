"""Runs to export."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from glassformer.bundle import Bundle
from interop.small_runs import write_run


@pytest.fixture(scope="session")
def trained_once(made_once: Callable[..., Path]) -> Callable[..., Path]:
    """Return a function that returns the folder of a run with these settings, trained once for all tests."""

    def folder(**settings: Any) -> Path:
        name = "-".join(["run", *(f"{name}={value}" for name, value in sorted(settings.items()))])
        return made_once(name, partial(write_run, **settings))

    return folder


@pytest.fixture
def make_run(trained_once: Callable[..., Path], tmp_path: Path) -> Callable[..., Bundle]:
    """Return a function that makes a run for one test; each call replaces the previous run."""

    def make(**settings: Any) -> Bundle:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return Bundle.load(shutil.copytree(trained_once(**settings), tmp_path / "run"))

    return make


@pytest.fixture(scope="session")
def run(trained_once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return a run that tests must not change."""
    return Bundle.load(shutil.copytree(trained_once(), tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture
def own(run: Bundle, tmp_path: Path) -> Bundle:
    """Return a copy of the run, not converted yet, that the test may change."""
    return Bundle.load(shutil.copytree(run.folder, tmp_path / "run", ignore=shutil.ignore_patterns("ctranslate2")))
