"""The panel "Layers": logit lens, rollout, patches and matrices, with PyTorch's numbers."""

from typing import Any

import pytest
import torch
from torch import Tensor

import glassformer as gf
from browser.test_chapters import SENTENCE
from browser.test_view import problems
from glassformer.watch.explorer.payload import recorded_payload, rounded

OTHER = "the black dog sleeps ."
KINDS: list[dict[str, Any]] = [
    {"tie_output": False},
    {"norm": "pre", "final_norm": True, "output_bias": True},
]


def opened(page: Any, section: str) -> Any:
    page.evaluate("glassformer.app.show({panel: 'layers'})")
    found = page.locator(".gf-layers details").filter(has_text=section)
    if found.get_attribute("open") is None:
        found.locator("summary").click()
    return found


def table(section: Any) -> list[list[float]]:
    section.locator("tbody tr").first.wait_for()
    values = "(rows) => rows.map((row) => [...row.querySelectorAll('data')].map((one) => Number(one.value)))"
    found: list[list[float]] = section.locator("tbody tr").evaluate_all(values)
    return found


class Read:
    """A translator's model, as on a page, that has read a sentence and its translation."""

    def __init__(self, translator: gf.Translator, sentence: str = SENTENCE) -> None:
        bundle = translator.bundle
        self.model = rounded(translator.model)
        self.source = [*bundle.source_tokenizer.encode(sentence), 2]
        text = gf.Translator(bundle, self.model).translate([sentence])[0].text
        self.output = [*bundle.target_tokenizer.encode(text), 2]
        self.trace = self.record(self.output[:-1])

    def record(self, prefix: list[int]) -> Any:
        with torch.no_grad(), gf.record(self.model) as trace:
            self.model(torch.tensor([self.source]), torch.tensor([[1, *prefix]]))
        return trace

    def streams(self, stack: str, trace: Any = None) -> dict[str, Tensor]:
        """Return the residual stream by the name of its point, before the first layer and after each."""
        last = "added" if self.model.config.norm == "pre" else "normed"
        side = {"encoder": "source", "decoder": "target"}[stack]
        names = [f"{side}.input", *(f"{stack}.layers.{layer}.feed_forward.{last}" for layer in (0, 1))]
        return {name: (trace or self.trace)[name][0] for name in names}

    def lens(self, stack: str, stream: Tensor) -> Tensor:
        side = self.model.encoder if stack == "encoder" else self.model.decoder
        normed = side.norm(stream) if self.model.config.final_norm else stream
        logits = self.model.output(normed) if stack == "decoder" else normed @ self.model.source.tokens.weight.T
        return logits.softmax(-1)

    def weights(self, stack: str, kind: str) -> list[Tensor]:
        return [self.trace[f"{stack}.layers.{layer}.{kind}.weights"][0].double().mean(0) for layer in (0, 1)]


@pytest.mark.parametrize("settings", KINDS, ids=["post", "pre"])
def test_the_lens_reads_each_layer_as_python_does(make_translator, explore, settings):
    translator = make_translator(**settings)
    page, read = explore(translator, SENTENCE), Read(translator)
    section = opened(page, "layer by layer")
    for stack in ("decoder", "encoder"):
        page.evaluate("() => { document.querySelector('.gf-layers tbody')?.remove(); }")
        section.get_by_role("combobox").select_option(stack)
        found = torch.tensor(table(section)).T
        with torch.no_grad():
            expected = torch.stack([read.lens(stack, one) for one in read.streams(stack).values()])
        torch.testing.assert_close(found, expected.amax(-1), atol=1e-4, rtol=0)
        texts = section.locator("tbody td:last-child").all_inner_texts()
        bundle = translator.bundle
        tokenizer = bundle.target_tokenizer if stack == "decoder" else bundle.source_tokenizer
        assert texts == tokenizer.tokens(expected[-1].argmax(-1).tolist())
        if stack == "decoder":
            own = read.trace["log_probs"][0].exp()
            torch.testing.assert_close(expected[-1], own)  # the last layer's words are the model's
    assert problems(page) == []


def test_rollout_follows_attention_back_and_its_rows_sum_to_1(make_translator, explore):
    translator = make_translator()
    page, read = explore(translator, SENTENCE), Read(translator)
    section = opened(page, "Attention through all layers")

    def rolled(layers: list[Tensor]) -> Tensor:
        identity = torch.eye(len(layers[0]), dtype=torch.float64)
        one, two = [(identity + layer) / 2 for layer in layers]
        return two @ one

    encoder = rolled(read.weights("encoder", "self_attention"))
    expected = {
        "cross": torch.stack(read.weights("decoder", "cross_attention")).mean(0) @ encoder,
        "encoder": encoder,
        "decoder": rolled(read.weights("decoder", "self_attention")),
    }
    for kind, numbers in expected.items():
        page.evaluate("() => { document.querySelectorAll('.gf-layers tbody').forEach((one) => one.remove()); }")
        section.get_by_role("combobox").select_option(kind)
        found = torch.tensor(table(section), dtype=torch.float64)
        torch.testing.assert_close(found, numbers, atol=1e-4, rtol=0)
        # float32: each weight is off by up to 2⁻²⁴ of its size.
        torch.testing.assert_close(found.sum(-1), torch.ones(len(found), dtype=torch.float64), atol=1e-6, rtol=0)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_sweep_measures_each_patch_as_python_does(make_translator, explore, stack):
    translator = make_translator()
    page, here, there = explore(translator, SENTENCE), Read(translator), Read(translator, OTHER)
    section = opened(page, "Where does another sentence")
    section.get_by_role("textbox").fill(OTHER)
    section.get_by_role("button", name="Measure").wait_for()
    place = next(at for at, (one, other) in enumerate(zip(here.output, there.output, strict=False)) if one != other)
    prefix, word, rival = here.output[:place], here.output[place], there.output[place]
    donors = there.streams(stack, there.record(prefix))
    length = min(len(here.source), len(there.source)) if stack == "encoder" else place + 1

    def margin(edits: dict[str, Any]) -> float:
        with torch.no_grad(), gf.intervene(here.model, edits):
            row = here.model(torch.tensor([here.source]), torch.tensor([[1, *prefix]])).log_softmax(-1)[0, -1]
        return (row[word] - row[rival]).item()

    def patched(name: str, at: int) -> float:
        def put(value: Tensor) -> Tensor:
            return value.index_copy(1, torch.tensor([at]), donors[name][None, [at]])

        return margin({name: put})

    expected = [[patched(name, at) - margin({}) for at in range(length)] for name in donors]
    section.get_by_role("combobox").select_option(stack)
    section = opened(page, "Where does another sentence")
    section.get_by_role("textbox").fill(OTHER)
    section.get_by_role("button", name="Measure").click()
    torch.testing.assert_close(torch.tensor(table(section)).T, torch.tensor(expected), atol=1e-4, rtol=0)
    section.get_by_role("textbox").fill(SENTENCE)
    section.get_by_role("button", name="Measure").click()
    section.get_by_text("Both sentences have the same translation").wait_for()
    assert problems(page) == []


def test_a_matrix_is_drawn_with_its_numbers(make_translator, explore):
    translator = make_translator()
    page = explore(translator, SENTENCE)
    section = opened(page, "A weight matrix")
    name = "decoder.layers.0.cross_attention.output_projection"
    section.get_by_role("combobox").select_option(f"{name}.weight")
    section.locator(f"canvas[aria-label^='{name}']").wait_for()
    weight = rounded(translator.model).get_parameter(f"{name}.weight")
    rows, columns = weight.shape
    said = section.locator("canvas").get_attribute("aria-label")
    assert f"{rows} × {columns} weights" in said
    assert f"standard deviation {weight.std(unbiased=False):.3f} · largest size {weight.abs().max():.3f}" in said
    assert section.locator("canvas").evaluate("(one) => [one.height, one.width]") == [rows, columns]


def test_a_recording_shows_the_rollout_only(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload)
    section = opened(page, "Attention through all layers")
    assert page.locator(".gf-layers details").count() == 1
    assert len(table(section)) > 2
    assert page.locator(".gf-error:visible").count() == 0
