"""The arithmetic of any cell: the terms add up, whatever was changed; the panel shows them; the snippets run."""

import json
from typing import Any

import pytest

from browser.engine import WEB
from glassformer.explorer.payload import PageLimits
from glassformer.inspection import MISTAKES

SENTENCE = "the big black dog sees a cat ."
OTHER = "a cat sleeps ."
PREFIX = "le grand chien noir"
SELF, CROSS, MASKED = (
    f"{name}_attention" for name in ("encoder.layers.0.self", "decoder.layers.1.cross", "decoder.layers.0.self")
)
MODELS: dict[str, dict[str, Any]] = {
    "post": {"d_k": 5, "d_v": 7},
    "pre": {"norm": "pre", "activation": "gelu", "positions": "learned", "max_length": 256, "d_k": 5, "d_v": 7},
    "halves": {"activation": "silu", "positions": "halves", "tie_output": True},
    "none": {"norm": "pre", "positions": "none"},
}
CHANGES: list[dict[str, Any]] = [
    *[{"mistakes": [mistake]} for mistake in MISTAKES],
    {"mistakes": ["mask_zero", "mask_after_softmax", "decoder_keys", "no_transpose", "norm_order", "residual_normed"]},
    {"positions": False, "scale": False, "ablated": {SELF: [0, 2], CROSS: [1]}},
    {"masks": {CROSS: [[1, key, False] for key in range(20)], MASKED: [[0, 1, True], [1, 0, False]]}},
    {"overrides": {SELF: [[1, 2, [0.5, 0, -0.25]], [0, 0, [1.0] * 40]]}, "prefix": "le chien"},
    {
        "patches": [
            {"point": f"{SELF}.value", "sentence": OTHER, "positions": [[1, 2], [3, 40]], "heads": [1, 2]},
            {"point": f"{CROSS}.key", "sentence": OTHER, "positions": [[0, 3], [2, 0]]},
            {"point": "encoder.layers.1.feed_forward.hidden", "sentence": OTHER, "positions": [[2, 1], [2, 0]]},
            {"point": "logits", "sentence": OTHER, "positions": [[0, 0]]},
        ]
    },
]
MIXED = {"masks": CHANGES[-3]["masks"], "overrides": CHANGES[-2]["overrides"], "patches": CHANGES[-1]["patches"]}

CHECK = """async (count) => {
  let state = 7;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const wrong = [];
  for (const name of await glassformer.points()) {
    const { shape, data } = await glassformer.value(name);
    for (let i = 0; i < count; i++) {
      const index = shape.map(random);
      const value = data[index.reduce((place, at, axis) => place * shape[axis] + at, 0)];
      const { terms, result, difference } = await glassformer.explain(name, index);
      const sum = terms.reduce((a, b) => a + b, 0);
      const close = Math.abs(sum - result) <= 2e-6 * Math.max(1, Math.abs(result)) && difference === sum - result;
      if (result !== value || !close) wrong.push([name, index, value, result, sum]);
    }
  }
  return wrong.slice(0, 5);
}"""
SNIPPETS = """async (library) => {
  MODULE
  const made = [];
  for (const name of await glassformer.points()) {
    const { shape } = await glassformer.value(name);
    const index = shape.map((length, axis) => (7 * axis + 2) % length);
    const explained = await glassformer.explain(name, index);
    made.push([explained.result, snippet(explained, library)]);
  }
  return made;
}"""


LINKS = """async () => {
  const wrong = [];
  for (const name of await glassformer.points()) {
    const { shape } = await glassformer.value(name);
    const { parts, steps } = await glassformer.explain(name, shape.map((length, axis) => (5 * axis + 3) % length));
    for (const { left, right, value, from = [] } of [...parts, ...steps]) {
      for (const [place, cell] of from.entries()) {
        const { shape, data } = await glassformer.value(cell.name);
        const number = data[cell.index.reduce((sum, at, axis) => sum * shape[axis] + at, 0)];
        const said = left === undefined ? value : [left, right][place];
        if (number !== said && said !== -Infinity) wrong.push([name, cell, said, number]);
      }
    }
  }
  return wrong.slice(0, 5);
}"""


def select(page: Any, name: str, index: list[int]) -> None:
    """Open the arithmetic of a cell and wait until it is shown."""
    page.evaluate("([name, index]) => glassformer.app.select(name, index)", [name, index])
    shown(page, name, index)


def shown(page: Any, name: str, index: list[int]) -> None:
    title = f"{name.rpartition('.')[2]}[{', '.join(map(str, index))}]"
    page.locator(".gf-numbers h3 code").get_by_text(title, exact=True).wait_for(timeout=5000)


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("=", ""))


def test_the_terms_of_every_point_add_up(make_translator, explore):
    for name, model in MODELS.items():
        page = explore(make_translator(name=name, **model), SENTENCE)
        assert page.evaluate(CHECK, 6) == [], name


def test_every_operand_leads_to_the_cell_that_has_its_number(make_translator, explore):
    for name, model in MODELS.items():
        page = explore(make_translator(name=name, **model), SENTENCE)
        assert page.evaluate(LINKS) == [], name
        page.evaluate("glassformer.set({mistakes: ['no_transpose', 'norm_order', 'decoder_keys', 'double_softmax']})")
        assert page.evaluate(LINKS) == [], name


@pytest.mark.parametrize("model", ["post", "pre"])
def test_under_every_change_the_terms_add_up(make_translator, explore, model):
    page = explore(make_translator(**MODELS[model]), SENTENCE)
    for change in CHANGES:
        page.evaluate("async (change) => { await glassformer.reset(); await glassformer.set(change); }", change)
        assert page.evaluate(CHECK, 4) == [], change


def test_a_checkpoint_s_weights_are_those_that_made_the_number(make_translator, explore):
    from glassformer.explorer.payload import payload

    earlier = payload(make_translator(seed=11), SENTENCE)["weights"]["data"]
    page = explore(make_translator(), SENTENCE, checkpoints=[{"step": 5, "data": earlier}], left_out=[])
    page.evaluate("glassformer.set({checkpoint: 5})")
    assert page.evaluate(CHECK, 3) == []


def test_what_made_a_number_is_said(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("(change) => glassformer.set({...change, mistakes: ['no_scale']})", {**MIXED, "prefix": PREFIX})

    def said(name: str, index: list[int]) -> Any:
        return page.evaluate(
            "async ([name, index]) => (await glassformer.explain(name, index)).notes.join()", [name, index]
        )

    assert "No √d_k" in said(f"{SELF}.scores", [0, 0, 0])
    assert "by hand" in said(f"{SELF}.weights", [1, 2, 0])
    assert "sees no key" in said(f"{CROSS}.weights", [0, 1, 0])
    assert OTHER in said("logits", [0, 5])
    assert said("logits", [1, 5]) == ""
    assert said(f"{SELF}.value", [0, 1, 0]) == ""  # of the other heads
    assert said(f"{SELF}.value", [1, 3, 0]) == ""  # the other sentence has no such position


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_snippets_run_as_pasted_and_give_the_number(make_translator, explore, model, library):
    page = explore(make_translator(**MODELS[model]), SENTENCE)
    text = (WEB / "engine" / "snippet.js").read_text(encoding="utf-8")  # the page's policy lets it import nothing
    making = SNIPPETS.replace("MODULE", text.replace("export ", ""))
    changes: list[dict[str, Any]] = [
        {},
        MIXED,
        {"mistakes": ["no_embedding_scale", "doubled_exponent", "mask_zero"]},
        {"mistakes": ["mask_after_softmax", "double_softmax", "no_transpose", "unbiased_norm"]},
    ]
    for change in changes:
        page.evaluate("async (change) => { await glassformer.reset(); await glassformer.set(change); }", change)
        for value, code in page.evaluate(making, library):
            names: dict[str, Any] = {"print": lambda *_: None}
            exec(code, names)
            assert float(names["result"]) == pytest.approx(value, rel=1e-5, abs=1e-6), code


def test_the_products_that_are_shown_add_up_to_the_score_that_is_shown(make_translator, explore):
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


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_clicking_operands_leads_from_a_logit_back_to_the_embedding(make_translator, explore, norm):
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
    assert back.is_disabled()
    forward.click()
    shown(page, *visited[1])


def test_without_a_cell_the_panel_asks_two_questions(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    assert "Click any cell" in page.locator(".gf-numbers").inner_text()
    page.get_by_role("button", name="Why does the model look at").click()
    page.wait_for_selector(".gf-own")
    name, index = page.evaluate("Object.values(glassformer.app.ui.selected)")
    largest = page.evaluate("async (name) => Math.max(...(await glassformer.value(name)).data)", name)
    assert "cross_attention.weights" in name
    assert (
        page.evaluate("async ([name, index]) => (await glassformer.explain(name, index)).result", [name, index])
        <= largest
    )


def test_where_a_word_comes_from_is_its_logit(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.get_by_role("button", name="Where does the word").click()
    page.wait_for_selector(".gf-terms")
    name, (row, word) = page.evaluate("Object.values(glassformer.app.ui.selected)")
    assert (name, word) == ("logits", page.evaluate("(row) => glassformer.app.result.current.hypothesis.ids[row]", row))


def test_what_is_copied_runs(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as PyTorch").click()
    page.get_by_role("status").get_by_text("Copied: PyTorch").wait_for(timeout=5000)
    assert page.evaluate("navigator.clipboard.readText()").startswith(f"# {CROSS}.scores[0, 1, 2]\n")


def test_where_the_page_may_not_copy_the_snippet_is_shown_and_selected(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    select(page, f"{CROSS}.scores", [0, 1, 2])
    page.get_by_role("button", name="Copy as NumPy").click()
    page.wait_for_selector(".gf-copy textarea:not([hidden])")
    assert "import numpy as np" in page.evaluate("getSelection().toString() || document.activeElement.value")


def test_a_bad_name_or_index_says_what_is_expected(make_translator, explore):
    page = explore(make_translator(), SENTENCE)

    def problem(*given: Any) -> str:
        asked = (
            "async (given) => { try { await glassformer.explain(...given); } catch (error) { return error.message; } }"
        )
        return str(page.evaluate(asked, list(given)))

    assert "no point" in problem("encoder.layers.9.output", [0])
    assert "source.embedding" in problem("x", [0])
    assert "no point" in problem(None, None)
    for index in (None, 3, [0, 0], [0, 0, 0, 0], [-1, 0, 0], [4, 0, 0], [0, 0.5, 0], ["0", 0, 0]):
        assert "3 whole numbers, from 0 and below 4, " in problem(f"{CROSS}.scores", index)


def test_a_cell_that_a_shorter_sentence_lacks_is_no_riddle(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    select(page, f"{SELF}.scores", [0, 8, 8])
    page.evaluate("(text) => glassformer.set({source: text})", OTHER)
    page.wait_for_selector(".gf-numbers .gf-error")
    assert page.locator(".gf-numbers .gf-example").count() == 2


def test_words_in_the_arithmetic_are_text(make_translator, explore):
    hostile = ["<img/src=x/onerror=alert(1)>", "</script><b>x</b>", "שלום"]
    page = explore(make_translator(" ".join(hostile), " ".join(hostile)), " ".join(hostile))
    for name, index in ((f"{CROSS}.heads", [0, 0, 0]), (f"{SELF}.weights", [0, 1, 2]), ("log_probs", [0, 5])):
        select(page, name, index)
        assert hostile[0] in page.locator(".gf-numbers").inner_text()
    assert page.locator(".gf-numbers img, .gf-numbers b").count() == 0


def test_a_page_without_weights_says_so_and_explains_the_rest(make_translator, explore):
    page = explore(make_translator(), SENTENCE, limits=PageLimits(model=0))
    assert page.evaluate("glassformer.app.engine.live") is False
    assert page.evaluate(CHECK, 3) == []
    select(page, f"{SELF}.query", [0, 1, 2])
    assert "does not contain the weight matrices" in page.locator(".gf-numbers").inner_text()
    assert page.locator(".gf-terms thead th").all_inner_texts() == ["i", "x"]
    select(page, f"{SELF}.scores", [0, 1, 2])
    assert page.locator(".gf-terms tfoot").count() == 1
