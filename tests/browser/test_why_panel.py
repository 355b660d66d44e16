"""The panel "Why?": rivals, heads and source words of one word of the translation, with PyTorch's numbers."""

import math
import re
from copy import deepcopy
from typing import Any

import pytest
import torch

import glassformer as gf
from browser.test_chapters import ATTENTIONS, SENTENCE
from browser.test_view import problems
from browser.waiting import open_panel, until
from glassformer.watch.explorer.payload import fits_page, recorded_payload, rounded
from glassformer.watch.inspection import without_heads
from traces import direct_parts

PLACE = 1
FIRST = """(word) => new Promise((done) => {
  const holder = document.querySelector(".gf-why");
  const observer = new MutationObserver(() => {
    const rows = [...holder.querySelectorAll("tbody:has(.gf-head) tr")];
    if (rows.length === 0) return;
    observer.disconnect();
    done(rows.map((row) => [row.cells[2], row.cells[4]].map((cell) => cell.textContent)));
  });
  observer.observe(holder, { childList: true, subtree: true });
  glassformer.app.show({ row: word });
})"""
"""A script that returns the numbers in the table of parts when the table first appears."""


def explained(page: Any, place: int) -> Any:
    """Open the panel for a word of the translation."""
    page.evaluate("(row) => glassformer.app.show({ row })", place)
    return open_panel(page, "why")


def numbers(page: Any, table: int) -> list[list[float | None]]:
    """Return the numbers of a table, row by row, with None for a cell without a number."""
    rows = page.locator(f".gf-why table >> nth={table}").locator("tbody tr")
    found: list[list[float | None]] = rows.evaluate_all(
        """(rows) => rows.map((row) => [...row.querySelectorAll("td:not(.gf-bar)")]
          .filter((cell) => cell.textContent.trim())
          .map((cell) => { const one = cell.querySelector("data"); return one && Number(one.value); }))"""
    )
    return found


def names(page: Any) -> list[str]:
    """Return the labels of the table of parts: full names of heads."""
    labels = page.locator(".gf-why table >> nth=1 >> tbody th :is(.gf-link, .gf-hint)").all()
    return [label.get_attribute("title") or label.inner_text() for label in labels]


def head_name(name: str, head: int) -> str:
    stack, _, layer, kind = name.split(".")
    return f"layer {layer}, head {head} of {'cross-attention' if 'cross' in kind else f'{stack} self-attention'}"


class Word:
    """Log probabilities of the second word of the translation, computed by PyTorch."""

    def __init__(self, translator: gf.Translator, sentence: str = SENTENCE) -> None:
        bundle = translator.bundle
        self.model = rounded(translator.model) if fits_page(translator) else translator.model
        self.source = torch.tensor([[*bundle.source_tokenizer.encode(sentence), 2]])
        text = gf.Translator(bundle, self.model).translate([sentence])[0].text
        ids = [*bundle.target_tokenizer.encode(text), 2]
        self.word, self.target = ids[PLACE], torch.tensor([[1, *ids[:PLACE]]])

    def direct(self, rival: int) -> dict[str, float]:
        """Return the direct parts of logit(word) − logit(rival) in float64, by their labels."""
        found = direct_parts(
            deepcopy(self.model).double(), {}, self.word, rival, self.source[0].tolist(), self.target[0].tolist()
        )
        labels = {f"{name} {head}": head_name(name, head) for name in ATTENTIONS for head in range(4)}
        labels |= {f"decoder.layers.{layer}.feed_forward": f"feed-forward {layer}" for layer in (0, 1)}
        return {labels.get(name, name): value for name, value in found.items()}

    def row(self, edits: dict[str, Any]) -> Any:
        with torch.no_grad(), gf.intervene(self.model, edits):
            return self.model(self.source, self.target).log_softmax(-1)[0, -1]

    def without_source(self, position: int) -> Any:
        def hide(scores: Any) -> Any:
            hidden = torch.arange(scores.shape[-1]) == position
            return scores.masked_fill(hidden, -math.inf)

        names = [name for name in ATTENTIONS if name.startswith("encoder") or "cross" in name]
        return self.row({f"{name}.scores": hide for name in names})


@pytest.mark.long
def test_a_word_shows_the_rivals_heads_and_source_words_that_python_finds(make_translator, explore):
    translator = make_translator()
    page, word = explore(translator, SENTENCE), Word(translator)
    explained(page, PLACE)
    page.locator(".gf-why table").nth(2).wait_for()
    page.locator(".gf-measured:empty").wait_for(state="attached")
    assert page.evaluate("glassformer.app.state.panel") == "why"
    plain = word.row({})
    others = [id for id in plain.argsort(descending=True).tolist() if id != word.word][:10]
    expected = [plain[id].item() for id in (word.word, *others)]
    assert len(expected) == 11
    assert [one for [one] in numbers(page, 0)] == pytest.approx(expected, abs=1e-4)

    def margin(row: Any) -> float:
        return (row[word.word] - row[others[0]]).item()

    heads = [(name, head) for name in ATTENTIONS for head in range(word.model.config.heads)]
    ablated = {head_name(*one): margin(word.row(without_heads({one[0]: [one[1]]}))) - margin(plain) for one in heads}
    parts = dict(zip(names(page), numbers(page, 1), strict=True))
    exact = {name: effect for name, (_, effect) in parts.items() if effect is not None}
    assert exact == pytest.approx(ablated, abs=1e-4)
    assert [*exact.values()] == sorted(exact.values())
    direct = {name: part for name, (part, _) in parts.items() if part is not None}
    assert direct == pytest.approx(word.direct(others[0]), abs=1e-4)
    assert sum(direct.values()) == pytest.approx(margin(plain), abs=1e-5)
    hidden = [margin(word.without_source(position)) - margin(plain) for position in range(word.source.shape[1])]
    assert [one for [one] in numbers(page, 2)] == pytest.approx(sorted(hidden), abs=1e-4)
    said = page.locator(".gf-why [role=status]").inner_text()
    tokens = [*translator.bundle.source_tokenizer.tokens(word.source[0].tolist())]
    assert f"depends most on “{tokens[hidden.index(min(hidden))]}” in the source: without it, " in said
    assert f"The head that matters most is {max(ablated, key=lambda one: abs(ablated[one]))}: without it, " in said
    leading = f"is {math.exp(abs(margin(plain))):.2g} times as probable as"
    assert said.startswith("Here ")
    assert leading in said
    assert problems(page) == []
    page.locator(".gf-why .gf-link[title*=head]").first.click()
    assert page.evaluate("glassformer.app.state.zoom.box").endswith("attention")
    explained(page, PLACE).get_by_role("button", name="feed-forward 1").click()
    assert page.evaluate("glassformer.app.state.zoom.box") == "decoder.layers.1.feed_forward"
    explained(page, PLACE).get_by_role("button", name="Switch it off").first.click()
    until(page, "glassformer.app.changed")
    assert len(page.evaluate("Object.values(glassformer.app.changes.ablated).flat()")) == 1


def test_a_click_on_a_rival_makes_the_model_write_it(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    before = page.evaluate("glassformer.app.result.current.outputTokens")
    explained(page, PLACE)
    rivals = page.get_by_title(re.compile("^Write .* here"))
    rival = rivals.first.inner_text()
    rivals.first.click()
    until(page, "glassformer.app.changed && !glassformer.app.state.busy")
    after = page.evaluate("glassformer.app.result.current.outputTokens")
    assert after[: PLACE + 1] == [*before[:PLACE], rival]
    page.get_by_text(f"“{rival}”, which was given").wait_for()


def test_a_recorded_page_says_what_it_cannot_explain(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload)
    explained(page, 0).locator(".gf-why").get_by_text("glassformer explore RUN").wait_for()
    assert page.locator(".gf-why table").count() == 1
    assert page.locator(".gf-error:visible").count() == 0


def test_the_quick_guess_comes_first_and_is_left_out_where_it_would_be_wrong(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    explained(page, 0).locator(".gf-why h3").wait_for()
    rows = page.evaluate(FIRST, PLACE)
    assert len(rows) == len(ATTENTIONS) * 4 + 5
    assert {exact for _, exact in rows} == {"–"}
    assert {direct for direct, _ in rows} > {"–"}
    page.locator(".gf-why table").nth(2).wait_for()
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate("glassformer.app.show({language: 'zh', theme: 'dark'})")
    page.locator(".gf-why table").nth(2).wait_for()
    assert problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.evaluate("glassformer.app.show({language: 'en'})")
    patch = {"point": "decoder.layers.1.feed_forward.normed", "sentence": "the big cat .", "positions": [[PLACE, 0]]}
    page.evaluate("(patches) => glassformer.set({patches})", [patch])
    page.get_by_text("No direct parts of logit(").wait_for()
    assert page.get_by_text("direct part", exact=True).count() == 0
    page.evaluate("(patches) => glassformer.set({patches})", [patch | {"point": "encoder.output"}])
    page.get_by_text("direct part", exact=True).wait_for()
