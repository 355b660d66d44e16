"""The panel "Why?": rivals, heads and source words of one word of the translation, with PyTorch's numbers."""

import math
from typing import Any

import pytest
import torch

import glassformer as gf
from browser.test_story import ATTENTIONS, SENTENCE
from browser.test_view import problems
from glassformer.explorer.payload import recorded_payload, rounded
from glassformer.inspection import without_heads

PLACE = 1


def numbers(page: Any, table: int) -> list[float]:
    return [float(one.get_attribute("value")) for one in page.locator(f".gf-why table >> nth={table} >> data").all()]


class Word:
    """Log probabilities of the second word of the translation, computed by PyTorch."""

    def __init__(self, translator: gf.Translator) -> None:
        self.model, bundle = rounded(translator.model), translator.bundle
        self.source = torch.tensor([[*bundle.source_tokenizer.encode(SENTENCE), 2]])
        text = gf.Translator(bundle, self.model).translate([SENTENCE])[0].text
        ids = [*bundle.target_tokenizer.encode(text), 2]
        self.word, self.target = ids[PLACE], torch.tensor([[1, *ids[:PLACE]]])

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
    page.locator("[data-side=output]").nth(PLACE).press("Enter")
    page.locator(".gf-why table").nth(2).wait_for()
    assert page.evaluate("glassformer.app.ui.panel") == "why"
    plain = word.row({})
    others = [id for id in plain.argsort(descending=True).tolist() if id != word.word][:10]
    expected = [plain[id].item() for id in (word.word, *others)]
    assert len(expected) == 11
    assert numbers(page, 0) == pytest.approx(expected, abs=1e-4)

    def margin(row: Any) -> float:
        return (row[word.word] - row[others[0]]).item()

    heads = [(name, head) for name in ATTENTIONS for head in range(word.model.config.heads)]
    ablated = [margin(word.row(without_heads({name: [head]}))) - margin(plain) for name, head in heads]
    assert numbers(page, 1) == pytest.approx(sorted(ablated), abs=1e-4)
    hidden = [word.without_source(position) - plain for position in range(word.source.shape[1])]
    assert numbers(page, 2) == pytest.approx(sorted(row[word.word].item() for row in hidden), abs=1e-4)
    assert problems(page) == []
    page.locator(".gf-why .gf-link").first.click()
    assert page.evaluate("glassformer.app.ui.stage") == "point"
    page.get_by_role("button", name="Switch it off").first.click()
    page.locator(".gf-change").wait_for()
    assert len(page.evaluate("Object.values(glassformer.app.changes.ablated).flat()")) == 1


def test_a_recorded_page_says_what_it_cannot_explain(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload)
    page.locator("[data-side=output]").first.click()
    page.get_by_text("glassformer explore RUN").last.wait_for()
    assert page.locator(".gf-why table").count() == 1
    assert page.locator(".gf-error:visible").count() == 0
