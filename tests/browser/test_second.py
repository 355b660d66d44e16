"""A second translation in the same figure: its words below the first translation, dashed lines, and outlines."""

from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from browser.test_stage import shown, value
from browser.waiting import rest, settled, until

SENTENCE, OTHER = "the black cat sleeps .", "the big cat sleeps ."
THERE = """async ([text, name]) => {
  const { app } = glassformer;
  const { trace, hypothesis, outputTokens } = await app.translated(
    text, app.changes.prefix ?? "", app.result.current.changes);
  const { shape, data } = await trace.get(name);
  return [shape, [...data], hypothesis.ids, hypothesis.tokenLogProbs, outputTokens];
}"""
TOLD = "document.querySelector('.gf-stage-root')?.hasAttribute('data-second') === true"


def opened(explore: Any, translator: Any, fragment: str = "", sentence: str = SENTENCE, **more: Any) -> Any:
    page = explore(translator, sentence, start="figure", fragment=f"chapter=0{fragment}", **more)
    page.locator(".gfs-knot").wait_for(state="attached")
    return page


def compare(page: Any, text: str) -> None:
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="Compare with").click()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Second sentence"
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    until(page, TOLD)


@pytest.mark.usefixtures("page")
def test_a_second_sentence_stands_under_the_first_and_the_address_keeps_it(make_translator, explore):
    page = opened(explore, make_translator())
    assert shown(page, ".gfs-second-word") == []
    compare(page, OTHER)
    assert shown(page, ".gfs-second-word")[: len(OTHER.split()) + 1] == [*OTHER.split(), "end"]
    assert shown(page, ".gfs-g-second .gfs-own")[0] == "big"
    assert shown(page, ".gfs-g-words .gfs-first")[0] == "black"
    assert f'second={{"text":"{OTHER}"}}' in unquote(page.url).replace("+", " ")
    page.reload()
    until(page, f"globalThis.glassformer && {TOLD}")
    rest(page)
    page.keyboard.press("Escape")
    until(page, f"!({TOLD})")
    assert page.evaluate("glassformer.app.state.second") is None
    page.go_back()
    until(page, TOLD)
    page.get_by_role("button", name="Close").first.click()
    until(page, f"!({TOLD})")


@pytest.mark.parametrize("family", ["cross", pytest.param("decoder", marks=pytest.mark.long), "encoder"])
def test_lines_and_outlines_are_the_second_translations_weights(make_translator, explore, family):
    page = opened(explore, make_translator(seed=5), "&prefix=le+chat+voit")
    compare(page, OTHER)
    stack, kind = ("encoder", "self_attention") if family == "encoder" else ("decoder", f"{family}_attention")
    name = f"{stack}.layers.1.{kind.replace('decoder', 'self')}.weights"
    here = value(page, name)
    shape, data, ids, *_ = page.evaluate(THERE, [OTHER, name])
    there = np.array(data).reshape(shape)
    assert page.evaluate("glassformer.app.result.current.hypothesis.ids")[:3] == ids[:3]
    row = 3  # both decoders have read the same words up to this row
    looks = {"row": row, "box": f"{stack}.{kind.replace('decoder', 'self')}", "sourceWord": 3}
    if family != "encoder":
        looks["sourceWord"] = None
    outlined = 0
    for head in range(here.shape[0]):
        heads = page.evaluate("glassformer.app.state.heads")
        heads = {one: {"layer": 1, "head": head if one == family else 0} for one in heads}
        page.evaluate("(looks) => glassformer.app.show(looks)", looks | {"heads": heads})
        settled(page)
        sources, count = [0, 2, 3, 4, 5], row + 1  # all source positions except that of the different second word
        keys = list(range(count)) if family == "decoder" else sources
        rows = sources if family == "encoder" else list(range(count))
        far = [(at, key) for at in rows for key in keys if abs(here[head, at, key] - there[head, at, key]) > 0.1]
        titles = shown(page, ".gfs-differs title")
        arc = "path" if family != "cross" else "circle"
        mine = page.locator(f".gfs-differs:has({arc})").count()
        others = page.locator(".gfs-differs").count() - mine
        told = {f"{here[head, at, key]:.3f}; in the second translation {there[head, at, key]:.3f}" for at, key in far}
        assert told <= {title.split(": ")[1] for title in titles}
        if family == "cross":
            assert mine == len(far)
        assert others >= 0
        outlined += len(far)
    assert outlined > 0


def test_a_shared_word_says_how_its_probability_differs(make_translator, explore):
    page = opened(explore, make_translator(seed=5))
    compare(page, OTHER)
    _, _, ids, log_probs, _ = page.evaluate(THERE, [OTHER, "log_probs"])
    own, before = page.evaluate(
        "(({ ids, tokenLogProbs }) => [ids, tokenLogProbs])(glassformer.app.result.current.hypothesis)"
    )
    assert own[0] == ids[0]
    change = np.exp(log_probs[0]) - np.exp(before[0])
    assert abs(change) >= 0.005
    assert f"{change:+.2f}".replace("-", "−") in shown(page, ".gfs-second-word")


def test_a_button_lights_the_weight_that_differs_most(make_translator, explore):
    page = opened(explore, make_translator(seed=5))
    compare(page, OTHER)
    buttons = page.locator(".gfs-second-most button")
    assert buttons.count() == 3
    sizes = [abs(float(text.rsplit(" ", 1)[1].replace("−", "-"))) for text in buttons.all_inner_texts()]
    assert sizes == sorted(sizes, reverse=True)
    for at in range(3):
        words = buttons.nth(at).inner_text().split(": ")
        buttons.nth(at).click()
        settled(page)
        box = page.evaluate("glassformer.app.state.box")
        family = {"encoder.self_attention": "encoder", "decoder.self_attention": "decoder"}.get(box, "cross")
        head, layer = page.evaluate(f"(({{head, layer}}) => [head, layer])(glassformer.app.state.heads.{family})")
        assert f"head {head} of layer {layer}" in words[0]
        reader = words[1].split(" → ")[0]
        side = "source" if family == "encoder" else "target"
        assert reader in shown(page, f".gfs-said-box h2 .gfs-{side}")
        change = float(words[1].rsplit(" ", 1)[1].replace("−", "-"))
        told = [
            title.split(": ")[1].split("; in the second translation ") for title in shown(page, ".gfs-differs title")
        ]
        assert any(abs(float(there) - float(here) - change) < 0.011 for here, there in told)


def test_the_sentence_before_the_changes_is_compared_where_no_other_is_given(make_translator, explore):
    page = opened(explore, make_translator(), '&second={"text":""}')
    assert not page.evaluate(TOLD)
    page.evaluate("glassformer.set({ positions: false }).then(() => null)")
    until(page, TOLD)
    assert "Before your changes" in page.locator(".gfs-second-text").text_content()
    before = page.evaluate("glassformer.app.result.reference.outputTokens.slice(0, -1).join(' ')")
    assert page.locator(".gfs-second-text").text_content().partition("):")[2].strip() == f"{before} end".strip()
    page.evaluate("glassformer.reset().then(() => null)")
    until(page, f"!({TOLD})")


def test_a_longer_sentence_finds_its_columns(make_translator, explore):
    page = opened(explore, make_translator())
    compare(page, "the big black cat sleeps and sleeps .")
    words = " ".join(shown(page, ".gfs-g-second > .gfs-second-word")).split("end")[0]
    assert words.split() == ["the", "big", "black", "cat", "sleeps", "and", "sleeps", "."]
