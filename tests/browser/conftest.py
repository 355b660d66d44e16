"""A real Chromium for the tests of the explorer, without a network."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser; in CI its absence is a failure."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Return a fresh tab of 1280 × 800 that is offline; an error on the page fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert problems == []
