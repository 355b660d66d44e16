"""Models and pages for the tests of the explorer, which drive a real browser."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as browser tests."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("browser")


@pytest.fixture
def make_translator(tmp_path: Path) -> Callable[..., Any]:
    """Return `models.random_translator` with the test's folder."""
    from models import random_translator

    return partial(random_translator, tmp_path)


@pytest.fixture(scope="session")
def engine_script(npm: Callable[..., str]) -> str:
    """Return the modules of `web/engine/` as one script."""
    return npm("engine")


@pytest.fixture
def engine_page(page: Any, engine_script: str) -> Any:
    """Return an empty tab in which `module` has the exports of the modules in `web/engine/`."""
    page.add_script_tag(content=engine_script)
    return page


@pytest.fixture
def explore(page: Any, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that opens a translator's page from its file, and returns the tab when the view is ready."""
    from glassformer.watch.explorer.payload import payload
    from glassformer.watch.explorer.standalone import page_html

    def open_page(
        translator: Any,
        sentence: str = "the black cat sleeps .",
        *,
        fragment: str = "",
        view: str = "numbers",
        data: Callable[..., Any] = payload,
        **more: Any,
    ) -> Any:
        path = tmp_path / "page.html"
        path.write_bytes(page_html(data(translator, sentence) | more).encode("utf-8", "replace"))
        state = fragment.removeprefix("#")
        if view == "numbers" and not re.search("(view|panel)=", state):
            state = f"{state}&view=numbers".removeprefix("&")
        page.goto("about:blank")  # a change of the fragment alone would not reload the page
        page.goto(f"{path.as_uri()}#{state}" if state else path.as_uri())
        page.evaluate("() => glassformer.ready.then(() => null)")
        return page

    return open_page
