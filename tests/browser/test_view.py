"""The whole page: its layout, and its use with a keyboard and a screen reader."""

import json
from typing import Any

from browser.waiting import translate, until
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.payload import payload

SENTENCE = "the big black dog sees a cat and sleeps ."
HOSTILE = ["</script><!--<script>\"'&", "<img/src=x/onerror=alert(1)>", "שלום", "مرحبا", "$&", "$1"]
AUDIT = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


def problems(page: Any) -> list[tuple[str, str]]:
    """Return the serious and critical problems that axe-core finds on the page."""
    from axe_playwright_python.base import AXE_FILE_PATH

    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8") + "; null")
    found = page.evaluate(AUDIT)
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]


def test_a_blank_sentence_is_refused_and_changes_nothing(make_translator, explore):
    page = explore(make_translator(), SENTENCE, fragment="#chapter=0", start="figure")
    translate(page, "  ")
    alert = page.get_by_role("alert")
    alert.get_by_text("The source is blank: type a sentence.").wait_for()
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE
    assert page.evaluate("glassformer.translate(' ')") == {"text": "", "score": 0, "logProb": 0, "tokens": []}


def test_words_of_a_model_stay_text(make_translator, explore):
    words = " ".join(HOSTILE)
    page = explore(make_translator(words, words, name="<b>run"), words)

    page.locator(".gfn-grid").wait_for()
    assert words in page.locator(".gfn-said").inner_text()
    assert page.locator(".glassformer img, .glassformer script, .glassformer b").count() == 0
    page.get_by_role("button", name="Table").click()
    assert HOSTILE[0] in page.locator(".gfn-table").inner_text()
    page.get_by_role("button", name="← Figure").click()
    page.locator(".gfs-more summary").click()
    page.locator(".gfs-about", has_text="<b>run").wait_for()
    assert page.locator(".glassformer img, .glassformer script, .glassformer b").count() == 0


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


def test_a_text_that_the_model_cannot_read_is_refused_and_nothing_changes(make_translator, explore):
    page = explore(make_translator(), SENTENCE, fragment="#chapter=0", start="figure")
    for text, message in (
        ("cat " * 250_000, "the model takes up to 1023 tokens, and this text has 250000. Shorten it."),
        ("cat \ud83d dog", "half of a character"),
    ):
        page.locator(".gfs-edit").click()
        field = page.get_by_role("combobox", name="Source sentence")
        # Escaped, because the driver's messages are UTF-8 and cannot contain unpaired surrogates.
        page.evaluate(f"() => {{ document.querySelector('input.gfs-input').value = {json.dumps(text)}; }}")
        field.press("Enter")
        page.locator(".gf-error").get_by_text(message).wait_for()
        assert page.evaluate("glassformer.app.state.sentence") == SENTENCE
        field.press("Escape")
    refused = "glassformer.set({prefix: 'le \\udc00'}).then(() => '', (error) => error.message)"
    assert "half of a character" in page.evaluate(refused)
    assert page.evaluate("glassformer.app.changes.prefix ?? ''") == ""


def test_the_page_is_in_the_language_that_the_reader_has_chosen(make_translator, explore):
    page = explore(make_translator())
    assert page.locator("html").get_attribute("lang") == "en"
    page.evaluate("glassformer.app.show({ language: 'zh' })")
    assert page.locator("html").get_attribute("lang") == "zh-CN"


def test_two_log_ps_of_one_translation_are_explained(make_translator, explore):
    page = explore(make_translator(extra_length=1), "sleeps")
    page.evaluate("glassformer.set({ mistakes: ['no_causal_mask'] })")
    said = page.locator(".gfn-said", has_text="log p of the old translation now")
    said.wait_for()
    reads_ahead = page.evaluate(
        """(({ reference, current, logProbOfReference }) =>
          String(reference.hypothesis.ids) === String(current.hypothesis.ids)
          && Math.abs(current.hypothesis.logProb - logProbOfReference) > 1e-3)(glassformer.app.result)"""
    )
    assert reads_ahead  # under this mistake, the random model writes the same output
    assert "the search writes word by word" in said.inner_text()
    page.evaluate("glassformer.set({ mistakes: ['no_scale'] })")
    until(page, "document.querySelector('.gfn-said').textContent.includes('self_attention.scores')")
    assert "the search writes word by word" not in said.inner_text()
