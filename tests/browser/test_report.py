"""The report of a training run in a browser: offline, in light and dark, on a phone, and for a screen reader."""

import json
from typing import Any

import pytest

from glassformer.watch.report import write_report
from models import random_translator

SENTENCES = [("the cat sees a dog", "le chat voit un chien"), ("a big dog <b>sleeps", "un grand chien dort")]
AUDIT = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return the report of a run with a random model and an invented log."""
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


def opened(page: Any, path: Any) -> list[str]:
    """Open a page; return its requests and its messages."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url))
    page.on("console", lambda message: found.append(message.text))
    page.goto(path.as_uri())
    return found


def test_the_page_requests_nothing_and_logs_no_errors(page, report):
    found = opened(page, report)
    assert [url for url in found if not url.startswith("data:")] == [report.as_uri()]
    assert page.locator("h2").all_inner_texts()[0] == "Training"
    assert page.locator("svg").count() == 11


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways_and_axe_finds_nothing_serious(page, report, width, theme):
    from axe_playwright_python.base import AXE_FILE_PATH

    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, report)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8") + "; null")
    found = page.evaluate(AUDIT)
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


def test_a_picture_is_readable_on_a_phone(page, report):
    page.set_viewport_size({"width": 390, "height": 800})
    opened(page, report)
    labels = page.locator("figure svg text").first
    assert labels.bounding_box()["height"] >= 8


def test_text_of_the_corpus_stays_text(page, report):
    opened(page, report)
    assert page.locator(".outputs b").count() == 0
    assert page.get_by_text("a big dog <b>sleeps").first.is_visible()
