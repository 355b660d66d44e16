"""The link: the address contains the reader's view and changes, and opening the address restores both."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from browser.waiting import open_panel, rest, translate, until
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import page_html

SENTENCE = "the black cat sleeps ."
SELF, CROSS = "encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"
CHANGES: dict[str, Any] = {
    "source": "a big dog sleeps .",
    "prefix": "un & grand",
    "ablated": {CROSS: [0, 3]},
    "masks": {SELF: [[0, 1, False], [1, 1, False], [2, 3, False]], CROSS: [[query, 2, False] for query in range(56)]},
    "overrides": {SELF: [[2, 1, [0.25, 0.5, 0.25]]]},
    "patches": [{"point": f"{SELF}.normed", "sentence": "the cat #1 & 100%", "positions": [[1, 2]]}],
    "positions": False,
    "mistakes": ["no_scale", "no_causal_mask"],
}
SEEN = """() => {
  const { app } = glassformer, { current, firstDifference, logProbOfReference } = app.result;
  const { sentence, changes, search, language, theme, zoom, heads, selected } = app.state;
  return { sentence, changes, search, text: current.text, firstDifference, logProb: current.hypothesis.logProb,
    logProbOfReference, language, theme, zoom, heads, selected };
}"""
BAD = [
    "#foo",
    "#changes",
    "#ablated={",
    "#ablated=%FF",
    "#ablated=null",
    '#ablated={"encoder.layers.9.self_attention":[0]}',
    '#masks={"decoder.layers.0.self_attention":[[0,99999999999,0,true]]}',
    '#masks={"decoder.layers.0.self_attention":"abc"}',
    '#patches=[{"point":"nowhere"}]',
    '#mistakes=["no_such"]',
    '#checkpoint="64"',
    "#panel=nothing",
    "#panel=constructor",
    "#__proto__=1",
    "#constructor=1",
    '#selected={"name":"nowhere","index":[]}',
    '#point={"name":"logits"}',
    '#heads={"encoder":{"layer":7,"head":0}}',
    "#selected=7",
    "#word=-1",
    "#row=999",
    "#sourceWord=77",
    "#word=il",
    "#beam=0",
    "#beam=many",
    "#theme=<script>alert(1)</script>",
]


def address(page: Any) -> str:
    """Return the page's present hash."""
    fragment: str = page.evaluate("location.hash")
    return fragment


def mounted(page: Any, data: dict[str, Any], views: int = 2) -> None:
    """Put several views of a model into the open page."""
    page.evaluate(
        """async ([code, text, count]) => {
          const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
          const { mount } = await import(url);
          const place = () => document.body.appendChild(document.createElement("div"));
          globalThis.views = Array.from({ length: count }, () => mount(place(), JSON.parse(text)));
          await Promise.all(views.map((view) => view.ready));
        }""",
        [explorer_module(), json.dumps(data), views],
    )


def blank(page: Any, tmp_path: Any, body: str = "") -> Any:
    """Open an empty page of a file."""
    path = tmp_path / "blank.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>t</title><body>{body}", encoding="utf-8")
    page.goto(path.as_uri())
    return page


@pytest.mark.usefixtures("page")
def test_a_link_restores_all_changes_and_the_whole_view(make_translator, explore):
    translator = make_translator()
    page = explore(translator, SENTENCE)
    page.evaluate("glassformer.app.open('the cat sees a dog .')")
    page.evaluate("(changes) => glassformer.set(changes)", CHANGES)
    page.evaluate("glassformer.app.searchWith({beamSize: 2, lengthPenalty: 0})")
    page.evaluate(
        """glassformer.app.show({language: "zh", theme: "dark",
          heads: {...glassformer.app.state.heads, cross: {layer: 0, head: 3}}})"""
    )
    page.evaluate("glassformer.app.select({name: 'encoder.layers.1.self_attention.weights', index: [1, 2, 0]})")
    before, fragment = page.evaluate(SEEN), address(page)
    page.goto("about:blank")
    explore(translator, SENTENCE, fragment=fragment)
    assert page.evaluate(SEEN) == before
    assert before["firstDifference"] == "source.embedding"
    assert address(page) == fragment


def test_a_link_contains_only_differences(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure")
    assert address(page) == ""
    page.evaluate("glassformer.set({mistakes: ['no_scale']})")
    assert address(page) == "#mistakes=%5B%22no_scale%22%5D"
    page.evaluate("glassformer.set({mistakes: [], source: 'a dog'})")
    assert address(page) == "#source=a+dog"
    page.evaluate("glassformer.reset()")
    assert address(page) == ""
    page.evaluate("glassformer.app.show({panel: 'beam', contrast: true})")
    assert address(page) == ""  # no panel is open
    page.evaluate("glassformer.app.show({panel: 'changes', sheet: true})")
    assert address(page) == "#sheet=true&panel=changes"


def test_a_word_hidden_from_everyone_makes_a_short_link(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure")
    page.evaluate("(masks) => glassformer.set({masks})", {CROSS: [[query, 2, False] for query in range(400)]})
    assert len(address(page)) < 120


@pytest.mark.usefixtures("page")
def test_states_that_follow_at_once_are_one_entry_of_the_history(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure")
    before = page.evaluate("history.length")
    rest(page)
    page.evaluate("() => { for (const row of [1, 2, 3]) glassformer.app.show({ row }); }")
    assert page.evaluate("history.length") == before + 1
    assert address(page) == "#row=3"


def test_an_invalid_link_is_reported_and_leaves_the_page_unchanged(make_translator, explore):
    translator = make_translator(extra_length=1)
    for fragment in BAD:
        page = explore(translator, SENTENCE, start="figure", fragment=quote(fragment[1:], safe="=%&"))
        alert = page.get_by_role("alert")
        assert "the link is ignored" in alert.text_content(), fragment
        assert alert.is_visible(), fragment
        seen = page.evaluate(SEEN)
        untouched = {"sentence": SENTENCE, "firstDifference": None, "zoom": None}
        assert {key: seen[key] for key in untouched} == untouched, fragment
        assert page.evaluate("({}).polluted") is None, fragment
        page.evaluate("glassformer.set({positions: false})")
        assert address(page) == "#positions=false", fragment


def test_the_content_of_a_link_stays_text(make_translator, explore):
    hostile = "<img src=x onerror=alert(1)> </script> ${1}"
    page = explore(
        make_translator(), SENTENCE, fragment=f"#text={quote(hostile)}&prefix={quote(hostile)}&panel=changes"
    )
    assert page.evaluate("glassformer.app.state.sentence") == hostile
    assert page.evaluate("glassformer.app.changes.prefix") == hostile
    assert page.locator(".glassformer img, .glassformer script").count() == 0


def test_typing_an_address_changes_the_page(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    first = "glassformer.app.result.firstDifference"
    wait = """async () => { const end = Date.now() + 5000; while (%s) {
      if (Date.now() > end) throw new Error("nothing came"); await new Promise(requestAnimationFrame); } }"""
    page.evaluate("() => { location.hash = '#mistakes=[\"no_scale\"]&panel=changes'; }")
    page.evaluate(wait % f"{first} !== '{SELF}.scores' || glassformer.app.state.panel !== 'changes'")
    page.evaluate("() => { location.hash = ''; }")
    page.evaluate(wait % f"{first} !== null || glassformer.app.state.panel !== 'calculation'")


def test_the_older_of_two_views_owns_the_address(page, tmp_path, make_translator):
    mounted(blank(page, tmp_path), payload(make_translator(), SENTENCE))
    page.evaluate("views[1].set({positions: false})")
    assert address(page) == ""
    page.evaluate("views[0].set({scale: false})")
    assert address(page) == "#scale=false"
    page.evaluate("() => { views[0].close(); }")
    page.evaluate("views[1].set({mistakes: ['mask_zero']})")
    assert address(page) == "#positions=false&mistakes=%5B%22mask_zero%22%5D"


def test_only_the_older_view_reads_the_address(page, tmp_path, make_translator):
    blank(page, tmp_path).evaluate("() => { location.hash = '#scale=false'; }")
    mounted(page, payload(make_translator(), SENTENCE))
    assert page.evaluate("views.map((view) => view.app.changes.scale)") == [False, True]


@pytest.mark.parametrize("sandbox", [pytest.param("", marks=pytest.mark.long), 'sandbox="allow-scripts"'])
def test_a_page_in_a_frame_works_without_an_address(page, tmp_path, make_translator, sandbox):
    blank(page, tmp_path, f'<iframe {sandbox} style="width:900px;height:700px"></iframe>')
    text = page_html(payload(make_translator(), SENTENCE)).encode("utf-8", "replace").decode()
    page.evaluate("(text) => { document.querySelector('iframe').srcdoc = text; }", text)
    frame = page.frame_locator("iframe")
    frame.locator(".gfs-stage-buttons").get_by_role("button", name="What if?").click()
    frame.get_by_role("button", name="No positions").click()
    frame.locator(".gfs-sheet-turned", has_text="source.positions").wait_for()
    assert frame.get_by_role("button", name="Copy link").count() == 0


def test_a_notebooks_address_is_left_alone(page, tmp_path, make_translator):
    blank(page, tmp_path).evaluate("() => { location.hash = '#section-2'; }")
    data = payload(make_translator(), SENTENCE)
    page.evaluate(
        """async ([code, text]) => {
          const { mount } = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
          globalThis.view = mount(document.body, JSON.parse(text), { request: async () => null });
          await view.set({ positions: false });
        }""",
        [explorer_module(), json.dumps(data)],
    )
    assert address(page) == "#section-2"
    assert not page.get_by_role("alert").is_visible()


@pytest.mark.usefixtures("page")
def test_the_link_is_copied_or_shown(make_translator, explore):
    page = explore(make_translator(), SENTENCE, fragment="#positions=false&sheet=true&panel=changes")
    page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; }")
    page.get_by_role("button", name="Copy link").click()
    link = page.get_by_role("textbox", name="Copy link")
    link.wait_for()
    assert link.input_value() == page.url
    assert "The text is selected: press Ctrl+C" in page.locator(".gf-copied:visible").inner_text()
    assert link.evaluate("(one) => one.value.slice(one.selectionStart, one.selectionEnd)") == page.url
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }; }")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("copied") == page.url


def test_a_link_restores_the_explained_word(make_translator, explore):
    translator = make_translator()
    page = open_panel(explore(translator, SENTENCE), "why")
    page.evaluate("glassformer.app.show({ row: 1 })")
    page.locator(".gf-why h3").wait_for()
    fragment = address(page)
    assert "row=1" in fragment
    assert "panel=why" in fragment
    page = explore(translator, SENTENCE, fragment=fragment)
    page.get_by_role("heading", name="Why").wait_for()
    assert page.evaluate("[glassformer.app.state.panel, glassformer.app.state.row]") == ["why", 1]
    page.evaluate("glassformer.set({positions: false})")
    assert "row=1" in address(page)


def test_back_returns_to_the_previous_sentence_with_its_changes(make_translator, explore):
    page = explore(make_translator(), SENTENCE, fragment="#chapter=0", start="figure")
    page.evaluate("glassformer.set({positions: false})")
    state = "[glassformer.app.state.sentence, glassformer.app.changes.positions].join()"
    notice = page.locator(".gfs-notice")

    def opened(text: str, after: bool) -> None:
        translate(page, text)
        until(page, f"{state} === {json.dumps(f'{text},{str(after).lower()}')}")

    opened("a big dog sleeps .", True)
    until(page, "document.querySelector('.gfs-notice').textContent")
    assert "Dropped: No positions." in notice.text_content()
    notice.get_by_role("button").click()
    until(page, f"{state} === '{SENTENCE},false'")
    until(page, "!document.querySelector('.gfs-notice').textContent")
    open_panel(page, "changes").get_by_role("button", name="Pin all").click()
    opened("a small dog sleeps .", False)
    until(page, "document.querySelector('.gfs-notice').textContent")
    assert "Kept: No positions." in notice.text_content()
    page.evaluate("history.back()")
    until(page, f"{state} === '{SENTENCE},false' && !glassformer.app.state.busy")
    page.get_by_role("button", name="↶ Undo", exact=True).click()
    until(page, f"{state} === 'a small dog sleeps .,false'")
