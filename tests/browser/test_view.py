"""The whole page, for the eye, the keyboard and the screen reader."""

import json
from typing import Any

import pytest

from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.payload import payload

SENTENCE = "the big black dog sees a cat and sleeps ."
HOSTILE = ["</script><!--<script>\"'&", "<img/src=x/onerror=alert(1)>", "שלום", "مرحبا", "$&", "$1"]
CONTROLS = """
[...document.querySelectorAll("button, select, input, a[href], [role=grid], summary, [role=tabpanel]")]
"""
AUDIT = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


def problems(page: Any) -> list[tuple[str, str]]:
    """Return the serious and critical problems that axe-core finds on the page."""
    from axe_playwright_python.base import AXE_FILE_PATH

    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8") + "; null")
    found = page.evaluate(AUDIT)
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]


def test_the_three_attentions_fit_on_one_screen(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    for grid in page.locator(".gf-columns .gf-grid canvas").all():
        box = grid.bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= 1280
        assert box["y"] + box["height"] <= 800
    assert page.locator(".gf-columns .gf-grid canvas").count() == 3


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("stage", ["map", "point"])
def test_a_phone_shows_everything_without_scrolling_sideways(make_translator, explore, stage, language):
    page = explore(make_translator(), SENTENCE)
    page.set_viewport_size({"width": 360, "height": 740})
    for panel in ("numbers", "changes", "beam", "positions", "training"):
        page.evaluate(
            "([panel, stage, language]) => glassformer.app.show({panel, stage, language})", [panel, stage, language]
        )
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, panel


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(make_translator, explore, theme):
    page = explore(make_translator(), SENTENCE)
    for panel in ("numbers", "changes", "beam", "positions", "training"):
        page.evaluate("([panel, theme]) => glassformer.app.show({panel, theme})", [panel, theme])
        assert problems(page) == [], panel
    page.evaluate("glassformer.set({mistakes: ['no_scale']})")
    page.evaluate("glassformer.app.show({stage: 'point'})")
    page.evaluate("glassformer.app.select('encoder.layers.0.self_attention.scores', [0, 1, 2])")
    assert problems(page) == []


def test_axe_finds_nothing_serious_on_a_phone(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".gf-settings summary").click()
    assert problems(page) == []
    page.keyboard.press("Escape")
    page.locator(".gf-outcome [data-side=output]").first.click()
    page.locator(".gf-up").wait_for()
    assert problems(page) == []


def test_the_tab_key_reaches_every_control(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    wanted = page.evaluate(f"{CONTROLS}.filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)")
    page.evaluate("globalThis.seen = new Set()")
    page.evaluate("document.addEventListener('focusin', (event) => { seen.add(event.target); })")
    for _ in range(len(wanted) + 30):
        page.keyboard.press("Tab")
    assert len(page.evaluate(f"{CONTROLS}.filter((one) => seen.has(one))")) == len(wanted) > 10


def test_arrow_keys_move_in_a_grid_and_enter_opens_the_arithmetic(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    heads = page.evaluate("glassformer.app.state.heads") | {"encoder": {"layer": 1, "head": 0}}
    page.evaluate("(heads) => glassformer.app.show({heads})", heads)
    grid = page.get_by_role("grid", name="encoder.layers.1.self_attention.weights")
    grid.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert grid.get_by_role("gridcell").get_attribute("aria-label").startswith("row: big, column: black, weight 0.")
    page.keyboard.press("Enter")
    assert page.evaluate("glassformer.app.state.selected.index.slice(1)") == [1, 2]


def test_a_word_is_highlighted_everywhere(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    word = page.locator("[data-side=source][data-position='2']")
    before = page.evaluate(
        "[...document.querySelectorAll('.gf-columns .gf-grid canvas')].map((one) => one.toDataURL())"
    )
    word.hover()
    after = page.evaluate("[...document.querySelectorAll('.gf-columns .gf-grid canvas')].map((one) => one.toDataURL())")
    assert [old == new for old, new in zip(before, after, strict=True)] == [
        False,
        False,
        True,
    ]  # encoder, cross, decoder
    assert "gf-lit" in word.get_attribute("class")


def test_a_change_shows_before_and_after_and_the_first_tensor_that_differs(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("glassformer.set({ablated: {'decoder.layers.1.cross_attention': [0, 1, 2, 3]}})")
    outcome = page.locator(".gf-outcome")
    assert "decoder.layers.1.cross_attention.heads" in outcome.inner_text()
    old, new = page.evaluate("[glassformer.app.result.reference.text, glassformer.app.result.current.text]")
    assert old != new
    assert old in outcome.inner_text()
    page.get_by_role("button", name="Undo all changes").first.click()
    assert page.evaluate("glassformer.firstDifference") is None


def test_a_blank_sentence_is_refused_and_changes_nothing(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.get_by_label("Source sentence").fill("  ")
    page.get_by_role("button", name="Translate").click()
    assert page.get_by_role("alert").inner_text() == "The source is blank: type a sentence."
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE
    assert page.evaluate("glassformer.translate(' ')") == {"text": "", "score": 0, "logProb": 0, "tokens": []}


def test_words_of_a_model_stay_text(make_translator, explore):
    words = " ".join(HOSTILE)
    page = explore(make_translator(words, words, name="<b>run"), words)
    assert page.locator(".gf-outcome [data-side=source]").all_inner_texts() == [*HOSTILE, "<eos>"]
    assert page.locator(".glassformer img, .glassformer script, .glassformer b").count() == 0
    assert page.locator(".gf-brand").inner_text().find("<b>run") > 0
    page.evaluate("glassformer.app.show({stage: 'point'})")
    page.get_by_role("button", name="As a table").click()
    assert HOSTILE[0] in page.locator(".gf-table").inner_text()


def test_128_words_and_48_heads_need_few_nodes(make_translator, explore):
    words = [f"w{number}" for number in range(127)]
    translator = make_translator(
        " ".join(words), " ".join(words), d_model=48, heads=8, encoder_layers=6, decoder_layers=6
    )
    page = explore(translator, " ".join(words))
    assert page.evaluate("document.querySelectorAll('.gf-map *').length") <= 2000
    assert page.evaluate("glassformer.app.result.current.sourceTokens.length") == 128


COUNT_LISTENERS = """() => {
  globalThis.listeners = 0;
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const shared = (target) => !(target instanceof Element) || target === document.body;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    if (shared(this) && !(this instanceof AbortSignal)) {
      listeners++;
      options?.signal && addEventListener.call(options.signal, "abort", () => listeners--);
    }
    return addEventListener.call(this, type, listener, options);
  };
  EventTarget.prototype.removeEventListener = function (...given) {
    if (shared(this) && !(this instanceof AbortSignal)) listeners--;
    return removeEventListener.call(this, ...given);
  };
}"""
MOUNT = """async ([text, payload]) => {
  const { mount } = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  globalThis.views = [0, 1].map(() => mount(document.body.appendChild(document.createElement("div")), payload));
  await Promise.all(views.map((view) => view.ready));
}"""


def test_two_views_are_independent_and_a_closed_view_leaves_nothing(make_translator, page):
    page.goto("about:blank")
    page.evaluate(COUNT_LISTENERS)
    page.evaluate(MOUNT, [explorer_module(), payload(make_translator(), SENTENCE)])
    page.evaluate("views[0].set({ablated: {'encoder.layers.0.self_attention': [1]}})")
    assert page.evaluate("views.map((view) => view.firstDifference)") == ["encoder.layers.0.self_attention.heads", None]
    assert page.evaluate("glassformer === views[1] && document.body.children[0].glassformer === views[0]")
    page.evaluate("views[1].close()")
    assert page.evaluate("glassformer === views[0]")
    assert page.evaluate("views[0].translate()")["text"] == page.evaluate("views[0].app.result.current.text")
    page.evaluate("views[0].close()")
    assert page.evaluate("[listeners, document.querySelectorAll('body *').length, typeof glassformer]") == [
        0,
        2,
        "undefined",
    ]


@pytest.mark.parametrize("stage", ["map", "point"])
def test_a_late_answer_does_not_overwrite_a_newer_one(make_translator, explore, stage):
    page = explore(make_translator(), SENTENCE)
    layers = page.evaluate(
        """async (stage) => {
          const { app } = glassformer, { trace } = app.result.current, { get } = trace, late = Promise.withResolvers();
          const name = (layer) => `encoder.layers.${layer}.self_attention.weights`;
          const show = (layer) => app.show({
            stage, point: { name: name(layer), head: 0 }, heads: { ...app.state.heads, encoder: { layer, head: 0 } } });
          const label = () => document.querySelector(`.gf-${stage} .gf-grid [role=grid]`).ariaLabel;
          const shown = () => label().match(/layers.(.)/)[1];
          const painted = () => new Promise((resolve) => setTimeout(resolve, 50));
          trace.get = (asked) => (asked === name(0) ? late.promise : Promise.resolve()).then(() => get(asked));
          show(0);
          trace.get = get;
          show(1);
          await painted();
          const before = shown();
          late.resolve();
          await painted();
          return [before, shown()];
        }""",
        stage,
    )
    assert layers == ["1", "1"]


def test_pictures_use_the_colours_of_the_style_sheet(make_translator, explore):
    page = explore(make_translator(), SENTENCE)

    def shown(theme: str) -> set[int]:
        """Return the colours of the decoder's picture, each as 0xAABBGGRR."""
        page.evaluate("(theme) => glassformer.app.show({theme})", theme)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        return set(
            page.evaluate(
                """() => {
                  const canvas = document.querySelector(".gf-decoder .gf-grid canvas");
                  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                  return [...new Set(new Uint32Array(data.buffer))];
                }"""
            )
        )

    assert {0xFFF3EFEC in shown("light"), 0xFF442A1C in shown("dark")} == {True}  # --blocked
    page.add_style_tag(content=".glassformer { --blocked: rgb(1, 200, 3) !important; }")
    assert 0xFF03C801 in shown("light")


def test_a_text_that_the_model_cannot_read_is_refused_and_nothing_changes(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    for text, message in (
        ("cat " * 250_000, "the model takes up to 1023 tokens, and this text has 250000. Shorten it."),
        ("cat \ud83d dog", "half of a character"),
    ):
        # As an escape, because the driver's own messages are UTF-8.
        page.evaluate(f"() => {{ document.querySelector('.gf-form input').value = {json.dumps(text)}; }}")
        page.get_by_role("button", name="Translate").click()
        page.locator(".gf-error").first.get_by_text(message).wait_for()
        assert page.locator(".gf-error").count() == 1
        assert page.evaluate("glassformer.app.state.sentence") == SENTENCE
    refused = "glassformer.set({prefix: 'le \\udc00'}).then(() => '', (error) => error.message)"
    assert "half of a character" in page.evaluate(refused)
    assert page.evaluate("glassformer.app.changes.prefix ?? ''") == ""


def test_words_that_the_vocabulary_lacks_are_named(make_translator, explore):
    page = explore(make_translator(), "the zebra sleeps .")
    note = page.locator(".gf-unknown")
    assert note.inner_text() == "Not in the vocabulary, so the model reads <unk>: zebra"
    page.evaluate("glassformer.set({prefix: 'le hippopotame'})")
    page.get_by_text("hippopotame").wait_for()
    assert note.locator("bdi").all_inner_texts() == ["zebra", "hippopotame"]
    page.evaluate("glassformer.app.open('the cat sleeps .')")
    note.wait_for(state="detached")


def test_the_page_is_in_the_language_that_the_reader_has_chosen(make_translator, explore):
    page = explore(make_translator())
    assert page.locator("html").get_attribute("lang") == "en"
    page.evaluate("glassformer.app.show({ language: 'zh' })")
    assert page.locator("html").get_attribute("lang") == "zh-CN"


def test_two_log_ps_of_one_translation_are_explained(make_translator, explore):
    page = explore(make_translator(extra_length=1), "sleeps")
    page.evaluate("glassformer.set({ mistakes: ['no_causal_mask'] })")
    said = page.locator(".gf-change", has_text="log p of the old translation now")
    said.wait_for()
    reads_ahead = page.evaluate(
        """(({ reference, current, logProbOfReference }) =>
          String(reference.hypothesis.ids) === String(current.hypothesis.ids)
          && Math.abs(current.hypothesis.logProb - logProbOfReference) > 1e-3)(glassformer.app.result)"""
    )
    assert reads_ahead  # the random model writes the same under this mistake
    assert "the search writes word by word" in said.inner_text()
    page.evaluate("glassformer.set({ mistakes: ['no_scale'] })")
    page.wait_for_function("glassformer.app.changes.mistakes[0] === 'no_scale'")
    assert "the search writes word by word" not in said.inner_text()
