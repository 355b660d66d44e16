"""A recorded page: it shows one sentence, and each of its controls works."""

import json
from typing import Any

import pytest

from browser.waiting import open_panel
from glassformer.watch.explorer.payload import recorded_payload

MANY_WORDS = " ".join(f"w{number}" for number in range(300))
OPEN = "(selected) => glassformer.app.select(selected)"
KEY = {"name": "encoder.layers.0.self_attention.query", "index": [0, 1, 2]}


@pytest.fixture
def recorded(make_translator, explore) -> Any:
    """Return the recorded page of a model with more words than are recorded at a position."""
    return explore(make_translator(target=MANY_WORDS), data=recorded_payload)


def test_only_controls_that_work_are_shown(recorded):
    said = recorded.locator(".gfn-said", has_text="Changes and other sentences need the model: glassformer explore RUN")
    said.wait_for()
    assert recorded.locator(".gfn option[value=ablation]").count() == 0
    open_panel(recorded, "beam").locator(".gf-beam label").wait_for()
    # only α: a recording can re-sort the outputs, but cannot search again
    assert recorded.locator(".gf-beam label").count() == 1
    assert recorded.get_by_role("button", name="Search again").count() == 0


@pytest.mark.parametrize("point", ["logits", "log_probs"])
def test_a_view_of_words_says_how_many_are_recorded(recorded, point):
    written = recorded.evaluate("glassformer.app.result.current.hypothesis.ids[0]")
    recorded.evaluate(OPEN, {"name": point, "index": [0, written]})
    recorded.get_by_text("Recorded are 100 words of each position").wait_for()
    panel = recorded.locator(".gfz-about")
    said = "over 304 words: 100 are recorded" if point == "log_probs" else "needs the model"
    panel.get_by_text(said).wait_for()
    missing = recorded.evaluate("async (name) => (await glassformer.value(name)).data.findIndex(Number.isNaN)", point)
    recorded.evaluate(OPEN, {"name": point, "index": [0, missing]})
    panel.get_by_text("not among the 100 words").wait_for()


def test_a_link_to_something_that_is_not_recorded_says_so(make_translator, explore):
    wanted = json.dumps({"encoder.layers.0.self_attention": [1]})
    page = explore(make_translator(), data=recorded_payload, fragment=f"#ablated={wanted}")
    assert "needs the model" in page.get_by_role("alert").inner_text()
    assert page.evaluate("glassformer.app.changed") is False
