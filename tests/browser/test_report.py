"""The report of a training run in a browser: offline, in light and dark, on a phone, and for a screen reader."""

from typing import Any


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


def test_text_of_the_corpus_stays_text(page, report):
    opened(page, report)
    assert page.locator(".outputs b").count() == 0
    assert page.get_by_text("a big dog <b>sleeps").first.is_visible()
