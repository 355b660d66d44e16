"""The arithmetic of the chosen number; `web/tests/arithmetic.test.ts` checks the explanations."""

import json
from typing import Any

import pytest

from browser.waiting import settled
from glassformer.watch.explorer.payload import recorded_payload

SENTENCE = "the big black dog sees a cat ."
OTHER = "a cat sleeps ."
PREFIX = "le grand chien noir"
SELF, CROSS = "encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"


def select(page: Any, name: str, index: list[int]) -> None:
    """Open the arithmetic of a cell, and wait until the page shows the arithmetic."""
    page.evaluate("(selected) => glassformer.app.select(selected)", {"name": name, "index": index})
    shown(page, name, index)


def shown(page: Any, name: str, index: list[int]) -> None:
    title = f"{name.rpartition('.')[2]}[{', '.join(map(str, index))}] ="
    page.locator(".gfz-about .gfz-note code").get_by_text(title).wait_for(timeout=5000)


def result(page: Any) -> float:
    return number(page.locator(".gfz-about .gfz-note code").first.inner_text().partition("= ")[2])


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("=", ""))


def test_the_shown_products_add_up_to_the_shown_score(make_translator, explore):
    page = explore(make_translator(d_k=20), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix})", PREFIX)
    rows, button = page.locator(".gfz-receipt tbody tr td:last-child"), page.get_by_role("button", name="the other ")
    for index in ([0, 1, 2], [3, 4, 4], [2, 0, 5]):
        select(page, f"{CROSS}.scores", index)
        products = rows.all_inner_texts()
        total = number(page.locator(".gfz-receipt tfoot td").first.inner_text())
        digits = 0.51 * 10 ** -min(len(text.partition(".")[2]) for text in products)
        assert 6 <= len(products) <= 17  # the largest, and the sum of all others
        assert sum(map(number, products)) == pytest.approx(total, abs=17 * digits)
        assert total / 20**0.5 == pytest.approx(result(page), abs=1e-4)
        button.click()
        rows.nth(19).wait_for()
        assert sum(map(number, rows.all_inner_texts())) == pytest.approx(total, abs=20 * digits)


def test_an_explanation_says_what_was_changed(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    patch = {"point": "logits", "sentence": OTHER, "positions": [[0, 0]]}
    page.evaluate("(changes) => glassformer.set(changes)", {"mistakes": ["no_scale"], "patches": [patch]})
    select(page, f"{SELF}.scores", [0, 0, 0])
    assert page.locator(".gfz-about .gfz-note").all_inner_texts()[1] == "Changed here: No √d_k"
    select(page, "logits", [0, 5])
    assert f"“{OTHER}”, position 0" in page.locator(".gfz-about .gfz-note").nth(1).inner_text()


def test_a_mistaken_softmax_shows_the_queries_of_a_key(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix, mistakes: ['softmax_over_queries']})", PREFIX)
    select(page, f"{CROSS}.weights", [0, 1, 2])
    assert page.locator(".gfz-receipt thead th").first.inner_text() == "query"
    assert page.locator(".gfz-own th").inner_text() == PREFIX.split()[0]


@pytest.mark.parametrize("norm", ["post", pytest.param("pre", marks=pytest.mark.long)])
def test_clicking_operands_leads_from_a_logit_to_the_embedding(make_translator, explore, norm):
    page = explore(make_translator(norm=norm), SENTENCE)
    page.evaluate("(prefix) => glassformer.set({prefix})", PREFIX)
    order = page.evaluate("glassformer.points()")
    select(page, "logits", [2, 5])
    passed = []
    for _ in range(60):
        links = page.locator(".gfz-receipt .gfz-link[title$=']']")
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


def test_the_way_to_a_number_is_in_the_order_of_the_computation(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    order = page.evaluate("glassformer.points()")
    select(page, f"{CROSS}.output", [1, 4])
    for _ in range(3):
        page.locator(".gfz-receipt .gfz-link[title$=']']").first.click()
        settled(page)
    way = page.locator(".gfz-trail button")
    cells = way.evaluate_all("(all) => all.map((one) => one.title)")
    names = [cell.partition("[")[0] for cell in cells]
    assert len(names) == 4
    assert names == sorted(names, key=order.index)
    assert names[-1] == f"{CROSS}.output"
    assert way.first.get_attribute("aria-current") == "step"
    way.last.click()
    shown(page, f"{CROSS}.output", [1, 4])
    assert way.last.get_attribute("aria-current") == "step"
    assert way.evaluate_all("(all) => all.map((one) => one.title)") == cells  # the trail is unchanged
    select(page, f"{SELF}.scores", [2, 1, 0])
    assert way.count() == 0  # a number that is not an operand of the previous number ends the trail


@pytest.mark.usefixtures("page")
def test_copied_code_runs(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as PyTorch").click()
    page.locator(".gfz-copy").get_by_text("Copied: PyTorch").wait_for(timeout=5000)
    assert page.evaluate("navigator.clipboard.readText()").startswith(f"# {CROSS}.scores[0, 1, 2]\n")


@pytest.mark.usefixtures("page")
def test_a_snippet_that_cannot_be_copied_is_shown_and_selected(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_selector(".gfz-copy textarea:not([hidden])")
    assert "import numpy as np" in page.evaluate("getSelection().toString() || document.activeElement.value")


def test_a_cell_beyond_a_shorter_sentence_is_the_nearest_one(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    select(page, f"{SELF}.scores", [0, 8, 8])
    page.evaluate("(text) => glassformer.set({source: text})", OTHER)
    shown(page, f"{SELF}.scores", [0, 4, 4])


def test_the_formula_of_an_activation_has_its_number(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    select(page, "encoder.layers.0.feed_forward.activated", [1, 2])
    formula = page.locator(".gfz-formula code").all_inner_texts()
    assert formula[0] == "max(0, x)"
    assert formula[1].startswith("= max(0, ")


def test_words_in_the_arithmetic_stay_text(make_translator, explore):
    hostile = ["<img/src=x/onerror=alert(1)>", "</script><b>x</b>", "שלום"]
    page = explore(make_translator(" ".join(hostile), " ".join(hostile)), " ".join(hostile))
    for name, index in ((f"{CROSS}.heads", [0, 0, 0]), (f"{SELF}.weights", [0, 1, 2]), ("log_probs", [0, 5])):
        select(page, name, index)
        assert hostile[0] in page.locator(".gfz-about").inner_text()
    assert page.locator(".gfn img, .gfn b").count() == 0


def test_a_recorded_page_says_what_needs_the_model_and_explains_the_rest(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload)
    assert page.evaluate("glassformer.app.engine.live") is False
    select(page, f"{SELF}.query", [0, 1, 2])
    assert "needs the model: glassformer explore RUN" in page.locator(".gfz-about").inner_text()
    assert page.locator(".gfz-receipt thead th").all_inner_texts() == ["i", "x"]
    select(page, f"{SELF}.scores", [0, 1, 2])
    assert page.locator(".gfz-receipt tfoot").count() == 1
