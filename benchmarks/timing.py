"""A pytest plugin that writes how long each test, each fixture and the import of each test file take.

`python -m benchmarks.tiers` loads the plugin. Each process that runs tests appends to its own file in the folder that
the environment variable `GLASSFORMER_TIMES` names: one line of JSON per phase of a test, fixture, or imported file.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

VARIABLE = "GLASSFORMER_TIMES"
"""The environment variable with the folder of the records."""


def pytest_configure(config: pytest.Config) -> None:
    """Record in the processes that run tests, but not in pytest's controller or in a pytest that a test starts."""
    runs_tests = hasattr(config, "workerinput") or config.getoption("dist", "no") == "no"
    if runs_tests and VARIABLE in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ.pop(VARIABLE))))
        os.environ.pop("PYTEST_ADDOPTS", None)


class Recorder:
    """Hooks that write a line for everything that takes time."""

    def __init__(self, folder: Path) -> None:
        self.file = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8")
        self.nested = [0.0]
        """For each fixture that is being set up, the seconds of the fixtures that it asked for."""

    def write(self, kind: str, name: str, seconds: float, **more: str) -> None:
        """Append a record."""
        self.file.write(json.dumps({"kind": kind, "name": name, "seconds": round(seconds, 4), **more}) + "\n")
        self.file.flush()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Time the import of a test file."""
        begun = perf_counter()
        result = yield
        if isinstance(collector, pytest.Module):
            self.write("import", collector.nodeid, perf_counter() - begun)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """Time a fixture, without the fixtures that it asked for."""
        begun = perf_counter()
        self.nested.append(0.0)
        try:
            return (yield)
        finally:
            whole = perf_counter() - begun
            own = whole - self.nested.pop()
            self.nested[-1] += whole
            self.write("fixture", fixturedef.argname, own, test=request.node.nodeid, scope=fixturedef.scope)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Record a phase of a test: setup, call or teardown."""
        result = yield
        self.write(call.when, item.nodeid, call.duration)
        return result
