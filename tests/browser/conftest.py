"""Models and pages for the tests of the explorer, which drive a real browser."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

SENTENCES = [("the cat sees a dog", "le chat voit un chien"), ("a big dog <b>sleeps", "un grand chien dort")]
"""The validation pairs of the report's run."""


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


@pytest.fixture(scope="session")
def desk(new_window: Callable[[], Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the tab that all tests of this process share; nothing moves in it."""
    from browser.desk import Desk

    window = new_window(reduced_motion="reduce")  # painting boxes that glide takes much of the time
    yield Desk(window, tmp_path_factory.mktemp("desk"))
    window.close()


@pytest.fixture
def explore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that shows a translator's page, and returns the tab when the view is ready.

    The tests share a tab, in which each test has a view of its own. A test that asks for the fixture `page` has this
    fresh tab instead, and its page is loaded from a file: a test that reloads or leaves the page, replaces functions of
    the browser, or watches how something moves, needs it. An error on the page fails the test.
    """
    from browser.desk import SIZE
    from browser.payloads import made
    from browser.waiting import COUNT_TIMERS
    from glassformer.watch.explorer.payload import payload
    from glassformer.watch.explorer.standalone import page_html

    own = request.getfixturevalue("page") if "page" in request.fixturenames else None
    desk = request.getfixturevalue("desk") if own is None else None
    failed = request.session.testsfailed
    if own is not None:
        own.add_init_script(COUNT_TIMERS)

    def open_page(
        translator: Any,
        sentence: str = "the black cat sleeps .",
        *,
        fragment: str = "",
        start: str = "numbers",
        size: tuple[int, int] = SIZE,
        data: Callable[..., Any] = payload,
        **more: Any,
    ) -> Any:
        shown = made(data, translator, sentence) | more
        state = fragment.removeprefix("#")
        if start == "numbers" and not re.search("panel=", state):
            state = f"{state}&panel=numbers".removeprefix("&")
        address = f"#{state}" if state else ""
        if desk is not None:
            return desk.show(shown, address, size)
        path = tmp_path / "page.html"
        path.write_bytes(page_html(shown).encode("utf-8", "replace"))
        if size != SIZE:
            own.set_viewport_size({"width": size[0], "height": size[1]})
        own.goto("about:blank")  # a change of the fragment alone would not reload the page
        own.goto(f"{path.as_uri()}{address}")
        own.evaluate("() => glassformer.ready.then(() => null)")
        return own

    yield open_page
    if desk is not None:
        assert desk.clear(is_spoilt=request.session.testsfailed > failed) == []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run with a random model and an invented log."""
    from glassformer.watch.report import write_report
    from models import random_translator

    translator = random_translator(tmp_path_factory.mktemp("report"))
    run = translator.bundle.folder
    translator.bundle.save(translator.model)
    update = {"epoch": 1, "learning_rate": 1e-3, "gradient_norm": 1.0, "target_tokens": 99, "tokens_per_second": 7.0}
    update |= {"waited": 0.01, "padding": 0.1, "seconds": 1.0}
    lines = [{"type": "step", "step": step, "loss": 9 / step, **update} for step in range(1, 50)]
    measured = {"loss": 0.5, "perplexity": 1.6, "metric": ["BLEU", 12.5, True], "best": True}
    lines.append({"type": "validation", "step": 49, **measured})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "prepared").mkdir()
    (run / "prepared" / "valid.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in SENTENCES))
    return write_report(run)
