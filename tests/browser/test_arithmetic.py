"""The panel that explains a number; `web/tests/arithmetic.test.ts` checks the explanations."""

import json
from typing import Any

import pytest

from glassformer.watch.explorer.payload import recorded_payload

SENTENCE = "the big black dog sees a cat ."
OTHER = "a cat sleeps ."
PREFIX = "le grand chien noir"
SELF, CROSS = "encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"


def select(page: Any, name: str, index: list[int]) -> None:
    """Open the arithmetic of a cell and wait until it is shown."""
    page.evaluate("([name, index]) => glassformer.app.select(name, index)", [name, index])
    shown(page, name, index)


def shown(page: Any, name: str, index: list[int]) -> None:
    title = f"{name.rpartition('.')[2]}[{', '.join(map(str, index))}]"
    page.locator(".gf-numbers h3 code").get_by_text(title, exact=True).wait_for(timeout=5000)


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("=", ""))


def test_the_shown_products_add_up_to_the_shown_score(make_translator, explore):
    page = explore(make_translator(d_k=17), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix})", PREFIX)
    for index in ([0, 1, 2], [3, 4, 4], [2, 0, 5]):
        select(page, f"{CROSS}.scores", index)
        products = page.locator(".gf-terms:not(.gf-steps) tbody tr td:nth-last-child(2)").all_inner_texts()
        total = page.locator(".gf-terms tfoot tr td:nth-last-child(2)").inner_text()
        score = page.locator(".gf-numbers .gf-result").inner_text()
        assert len(products) == 13  # the twelve largest, and all others together
        assert sum(map(number, products)) == pytest.approx(number(total), abs=13 * 0.5e-5 + 0.5e-4)
        assert number(total) / 17**0.5 == pytest.approx(number(score), abs=1e-4)
        page.get_by_role("button", name="Show all").click()
        products = page.locator(".gf-terms:not(.gf-steps) tbody tr td:nth-last-child(2)").all_inner_texts()
        assert sum(map(number, products)) == pytest.approx(number(total), abs=17 * 0.5e-5 + 0.5e-4)
        page.get_by_role("button", name="Show all").click()


def test_an_explanation_says_what_was_changed(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    patch = {"point": "logits", "sentence": OTHER, "positions": [[0, 0]]}
    page.evaluate("(changes) => glassformer.set(changes)", {"mistakes": ["no_scale"], "patches": [patch]})
    select(page, f"{SELF}.scores", [0, 0, 0])
    assert page.locator(".gf-numbers .gf-change").all_inner_texts() == ["Changed here: No √d_k"]
    select(page, "logits", [0, 5])
    assert f"“{OTHER}”, position 0" in page.locator(".gf-numbers .gf-change").inner_text()


def test_a_mistaken_softmax_shows_the_queries_of_a_key(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix, mistakes: ['softmax_over_queries']})", PREFIX)
    select(page, f"{CROSS}.weights", [0, 1, 2])
    assert page.locator(".gf-terms thead th").first.inner_text() == "query"
    assert page.locator(".gf-own th").inner_text() == PREFIX.split()[0]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_clicking_operands_leads_from_a_logit_to_the_embedding(make_translator, explore, norm):
    page = explore(make_translator(norm=norm), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix})", PREFIX)
    order = page.evaluate("glassformer.points()")
    select(page, "logits", [2, 5])
    passed = []
    for _ in range(60):
        links = page.locator(".gf-terms .gf-link")
        cells = links.evaluate_all("(all) => all.map((one) => one.title)")
        if not cells:
            break
        best = min(cells, key=lambda cell: ("cross_attention.output" not in cell, order.index(cell.partition("[")[0])))
        links.nth(cells.index(best)).click()
        name, index = best[:-1].split("[")
        shown(page, name, json.loads(f"[{index}]"))
        passed.append(name)
    assert passed[-1] == "source.embedding"
    assert {"decoder.output", "encoder.output", "source.input"} < {*passed}
    assert {name.rpartition(".")[2] for name in passed} >= {"heads", "joined", "value", "added"}


def test_back_and_forward_visit_the_same_cells(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    visited = [("logits", [0, 4]), (f"{CROSS}.weights", [1, 0, 2]), (f"{SELF}.scores", [2, 1, 0])]
    for name, index in visited:
        select(page, name, index)
    back, forward = page.get_by_role("button", name="← Back"), page.get_by_role("button", name="Forward →")
    assert forward.is_disabled()
    for name, index in visited[1::-1]:
        back.click()
        shown(page, name, index)
    forward.click()
    shown(page, *visited[1])
    back.click()
    back.click()  # from the first cell, to the questions
    page.locator(".gf-numbers .gf-example").first.wait_for()
    assert back.count() == 0


def test_without_a_cell_the_panel_asks_two_questions(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    assert "Click any cell" in page.locator(".gf-numbers").inner_text()
    page.get_by_role("button", name="Why does the model look at").click()
    page.wait_for_selector(".gf-own")
    name, index = page.evaluate("Object.values(glassformer.app.state.selected)")
    largest = page.evaluate("async (name) => Math.max(...(await glassformer.value(name)).data)", name)
    assert "cross_attention.weights" in name
    assert (
        page.evaluate("async ([name, index]) => (await glassformer.explain(name, index)).result", [name, index])
        <= largest
    )


def test_the_question_about_a_word_leads_to_its_logit(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.get_by_role("button", name="Where does the word").click()
    page.wait_for_selector(".gf-terms")
    name, (row, word) = page.evaluate("Object.values(glassformer.app.state.selected)")
    assert (name, word) == ("logits", page.evaluate("(row) => glassformer.app.result.current.hypothesis.ids[row]", row))


def test_copied_code_runs(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as PyTorch").click()
    page.get_by_role("status").get_by_text("Copied: PyTorch").wait_for(timeout=5000)
    assert page.evaluate("navigator.clipboard.readText()").startswith(f"# {CROSS}.scores[0, 1, 2]\n")


def test_a_snippet_that_cannot_be_copied_is_shown_and_selected(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_selector(".gf-copy textarea:not([hidden])")
    assert "import numpy as np" in page.evaluate("getSelection().toString() || document.activeElement.value")


def test_a_cell_beyond_a_shorter_sentence_is_reported(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    select(page, f"{SELF}.scores", [0, 8, 8])
    page.evaluate("(text) => glassformer.set({source: text})", OTHER)
    page.wait_for_selector(".gf-numbers .gf-error")
    assert page.locator(".gf-numbers .gf-example").count() == 2


def test_words_in_the_arithmetic_stay_text(make_translator, explore):
    hostile = ["<img/src=x/onerror=alert(1)>", "</script><b>x</b>", "שלום"]
    page = explore(make_translator(" ".join(hostile), " ".join(hostile)), " ".join(hostile))
    for name, index in ((f"{CROSS}.heads", [0, 0, 0]), (f"{SELF}.weights", [0, 1, 2]), ("log_probs", [0, 5])):
        select(page, name, index)
        assert hostile[0] in page.locator(".gf-numbers").inner_text()
    assert page.locator(".gf-numbers img, .gf-numbers b").count() == 0


def test_a_recorded_page_says_what_needs_the_model_and_explains_the_rest(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload)
    assert page.evaluate("glassformer.app.engine.live") is False
    select(page, f"{SELF}.query", [0, 1, 2])
    assert "needs the model: glassformer explore RUN" in page.locator(".gf-numbers").inner_text()
    assert page.locator(".gf-terms thead th").all_inner_texts() == ["i", "x"]
    select(page, f"{SELF}.scores", [0, 1, 2])
    assert page.locator(".gf-terms tfoot").count() == 1
