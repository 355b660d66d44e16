"""Fixtures for several folders. Only the fixtures that use torch import it, because half of the tests do not."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.browser import FLAGS
from benchmarks.browser import chromium as find_chromium

import profiles  # noqa: F401 – loads hypothesis's profiles before any test asks for settings
import typechecker
from products import products_overflow

typechecker.install()

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import `reference.attention`

# A process that a script starts in the background ignores Ctrl-C, and so do its child processes. Then tests could not
# interrupt the child processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without VNNI, sums of 8-bit products overflow in CTranslate2's library for AMD. MKL is exact, but slow.
# The workers of pytest-xdist inherit this choice.
if not {"CT2_USE_MKL", "PYTEST_XDIST_WORKER"} & os.environ.keys() and products_overflow():
    os.environ["CT2_USE_MKL"] = "1"
    if products_overflow():  # on Intel's processors without VNNI, MKL is exact in this mode only
        os.environ["MKL_CBWR"] = "COMPATIBLE"

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
LONGEST = (
    "browser/test_sweep.py",
    "browser/test_stage.py",
    "browser/test_hosts.py",
    "browser/test_truth.py",
    "watch/explorer/test_in_node.py",
    "browser/test_chapters.py",
    "browser/test_changes_panel.py",
    "browser/test_box_zooms.py",
    "serving/test_abuse.py",
    "browser/test_touch.py",
    "cli/test_streams.py",
    "serving/test_translation_page.py",
    "browser/test_tasks.py",
    "watch/inspection/test_diagnosis.py",
    "watch/report/test_page.py",
    "browser/test_link.py",
    "serving/test_service.py",
    "test_run.py",
    "browser/test_segments.py",
    "serving/test_explore.py",
)
"""Files that take long, in the order in which they begin, so that no process waits for another at the end;
`python -m benchmarks.tiers test` measures all files."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the long files first."""
    order = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


def pytest_runtest_setup() -> None:
    """Check the first calls of each function again."""
    typechecker.calls.clear()


@pytest.fixture
def seed() -> Iterator[None]:
    """Seed torch's generator; restore its state after the test."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20170612)
        yield


@pytest.fixture
def float64() -> Iterator[None]:
    """Make float64 the default dtype; restore the old one after the test."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def small_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the built-in task "copy" small, for tests that do not depend on the task."""
    from glassformer.corpus.tasks import TASKS, copy_task

    monkeypatch.setitem(TASKS, "copy", partial(copy_task, train=300, valid=250, test=30, length=7))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switch off the tests' checks of types and shapes, as for users, so that our own error messages appear."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def make_model(seed: None, float64: None) -> Callable[..., Any]:
    """Return `models.random_model`, with a fixed seed and in float64."""
    from models import random_model

    return random_model


@pytest.fixture(scope="session")
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return `shared.made_once` for pytest's cache folder or, with `-p no:cacheprovider`, for the session's folder."""
    from shared import made_once

    cache = getattr(request.config, "cache", None)
    place = cache.mkdir("made") if cache else tmp_path_factory.getbasetemp()
    return partial(made_once, place)


@pytest.fixture
def serving() -> Iterator[Callable[..., Any]]:
    """Return a function that serves the explorer of a translator, until the test ends."""
    from glassformer.watch.explorer.server import serve

    servers = []

    def start(translator: Any, sentence: str, port: int | None = 0) -> Any:
        server = serve(translator, sentence, port)
        servers.append((server, threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})))
        servers[-1][1].start()
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def npm() -> Callable[..., str]:
    """Return a function that runs a script of `web/`, on these files, and returns its output; CI must have Node."""
    node = ROOT / ".venv" / "node"
    if not (node / "npm").exists() and os.environ.get("CI"):
        pytest.fail("no Node: `make .venv/node` finds or installs it")
    if not (node / "npm").exists():
        pytest.skip("no Node in .venv")

    def run(script: str, *files: str, given: str = "", **environment: str) -> str:
        path = {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
        command = [str(node / "npm"), "run", "--silent", script, "--", *files]
        done = subprocess.run(
            command, cwd=WEB, env=os.environ | path | environment, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    return run


@pytest.fixture(scope="session")
def client() -> Callable[[str], Path]:
    """Return a function that gives the folder of a client's environment; in CI its absence is a failure."""

    def environment(name: str) -> Path:
        folder = ROOT / ".clients" / name
        if not (folder / "installed").exists():
            message = f"no environment {folder}: make clients, or make test-clients"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
        return folder

    return environment


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser; in CI its absence is a failure."""
    path = find_chromium()
    if path is None and os.environ.get("CI"):
        pytest.fail("no Chromium: `make test` installs it on Debian; elsewhere put `chromium` on the PATH")
    if path is None:
        pytest.skip("no Chromium on the PATH")
    return path


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """Return a headless browser that all tests of this process share."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def new_window(browser: Any) -> Callable[[], Any]:
    """Return a function that opens a window of 1280 × 800 without a network; Playwright calls it a context."""
    return partial(browser.new_context, viewport={"width": 1280, "height": 800}, offline=True)


@pytest.fixture(scope="session")
def window(new_window: Callable[[], Any]) -> Iterator[Any]:
    """Return the window of all tabs. Opening a tab takes half the time of opening a window."""
    window = new_window()
    yield window
    window.close()


@pytest.fixture
def page(window: Any) -> Iterator[Any]:
    """Return a fresh tab; an error on the page fails the test."""
    page, problems = window.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield page
    page.close()
    window.clear_permissions()
    assert problems == []
