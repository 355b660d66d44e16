"""The committed page of benchmarks."""

from benchmarks import page


def test_the_page_shows_the_committed_results():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run `python -m benchmarks.page`"
