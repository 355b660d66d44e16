"""A recorded page: what it shows of one sentence, and that no control of it leads nowhere."""

import json
from typing import Any

import pytest

from browser.test_view import problems
from glassformer.watch.explorer.payload import recorded_payload

MANY_WORDS = " ".join(f"w{number}" for number in range(300))
PANELS = ("numbers", "beam", "positions")
SHOW = "(looks) => glassformer.app.show(looks)"


@pytest.fixture
def recorded(make_translator, explore) -> Any:
    """Return the recorded page of a model with more words than are recorded at a position."""
    page = explore(make_translator(target=MANY_WORDS), data=recorded_payload)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


def test_only_controls_that_work_are_shown(recorded):
    header = recorded.locator(".gf-header")
    assert "Changes and other sentences need the model: glassformer explore RUN" in header.inner_text()
    assert "PyTorch's numbers, rounded to half precision" in header.inner_text()
    assert header.locator("input").count() == 0
    assert [one.get_attribute("aria-label") for one in header.locator("select").all()] == ["Sort heads by"]
    assert header.locator("option[value=ablation]").count() == 0
    for panel in PANELS:
        recorded.evaluate(SHOW, {"panel": panel})
    assert recorded.locator(".gf-beam label").count() == 1  # α, which sorts what was found
    assert recorded.get_by_role("button", name="Search again").count() == 0


@pytest.mark.parametrize("point", ["logits", "log_probs"])
def test_a_view_of_words_says_how_many_are_recorded(recorded, point):
    recorded.evaluate(SHOW, {"stage": "point", "point": {"name": point, "head": 0}})
    recorded.get_by_text("Recorded are 100 words of each position").wait_for()
    written = recorded.evaluate("glassformer.app.result.current.hypothesis.ids[0]")
    recorded.evaluate("([name, id]) => glassformer.app.select(name, [0, id])", [point, written])
    panel = recorded.locator(".gf-numbers")
    panel.locator(".gf-formula").wait_for()
    said = "over 304 words: 100 are recorded" if point == "log_probs" else "needs the model"
    assert said in panel.inner_text()
    [missing] = recorded.evaluate(
        """async (name) => {
          const { data } = await glassformer.value(name);
          return [data.findIndex(Number.isNaN)];
        }""",
        point,
    )
    recorded.evaluate("([name, id]) => glassformer.app.select(name, [0, id])", [point, missing])
    panel.get_by_text("not among the 100 words").wait_for()
    assert panel.locator(".gf-example").count() == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(recorded, theme):
    for panel in PANELS:
        recorded.evaluate(SHOW, {"panel": panel, "theme": theme})
        assert problems(recorded) == [], panel
    recorded.evaluate(SHOW, {"stage": "point", "point": {"name": "log_probs", "head": 0}})
    recorded.evaluate("glassformer.app.select('encoder.layers.0.self_attention.query', [0, 1, 2])")
    assert problems(recorded) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_phone_shows_everything_without_scrolling_sideways(recorded, language):
    recorded.set_viewport_size({"width": 360, "height": 740})
    for panel in PANELS:
        for stage in ("map", "point"):
            recorded.evaluate(SHOW, {"panel": panel, "stage": stage, "language": language})
            recorded.evaluate("() => new Promise(requestAnimationFrame)")
            assert recorded.evaluate("document.documentElement.scrollWidth") <= 360, (panel, stage)


def test_a_link_to_something_that_is_not_recorded_says_so(make_translator, explore):
    wanted = json.dumps({"encoder.layers.0.self_attention": [1]})
    page = explore(make_translator(), data=recorded_payload, fragment=f"#ablated={wanted}")
    assert "needs the model" in page.get_by_role("alert").inner_text()
    assert page.evaluate("glassformer.app.changed") is False
