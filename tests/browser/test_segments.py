"""Segments of opened boxes (weights, rollout, logit lens) and the sweep of patches, with PyTorch's numbers."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import glassformer as gf
from browser.test_view import problems
from browser.waiting import until
from browser.zooms import DESK, SENTENCE, number, open_box, shown, strip, trace_of
from glassformer.watch.explorer.payload import recorded_payload, rounded

OTHER = "the black dog sleeps ."
KINDS: list[dict[str, Any]] = [
    {"tie_output": False},
    {"norm": "pre", "final_norm": True, "output_bias": True},
]


CROSS = "decoder.layers.1.cross_attention"


def shares(page: Any) -> list[float]:
    """Return the numbers beside the bars of a segment."""
    page.locator(".gfz-rows tbody tr").first.wait_for()
    return [number(text) for text in page.locator(".gfz-rows tbody td").all_inner_texts()]


def is_open(page: Any, segment: str) -> None:
    page.locator(".gfz-segments [aria-pressed='true']", has_text=segment).wait_for()


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

    def sums(self, stack: str) -> dict[str, Tensor]:
        """Return the residual stream after each box of a stack that adds something, by the box's name."""
        last = "added" if self.model.config.norm == "pre" else "normed"
        parts = ["self_attention", *(["cross_attention"] if stack == "decoder" else []), "feed_forward"]
        names = [f"{stack}.layers.{layer}.{part}" for layer in (0, 1) for part in parts]
        return {f"{name}.add": self.trace[f"{name}.{last}"][0] for name in names}

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


@pytest.mark.parametrize(
    ("stack", "settings"),
    [
        pytest.param("decoder", KINDS[0], id="decoder-post"),
        pytest.param("encoder", KINDS[1], id="encoder-pre"),
        pytest.param("decoder", KINDS[1], id="decoder-pre", marks=pytest.mark.long),
        pytest.param("encoder", KINDS[0], id="encoder-post", marks=pytest.mark.long),
    ],
)
def test_the_guesses_after_each_box_are_those_of_python(make_translator, explore, settings, stack):
    translator = make_translator(**settings)
    page, read = explore(translator, SENTENCE, start="figure", size=DESK), Read(translator)
    box, row = f"{stack}.layers.0.feed_forward.add", 1 if stack == "encoder" else 0
    open_box(page, {"zoom": {"box": box, "key": None}, "panel": "guesses", "row": 0, "sourceWord": 1}, {})
    table = page.locator(".gfz-guesses")
    table.wait_for()
    with torch.no_grad():
        expected = {name: read.lens(stack, one) for name, one in read.sums(stack).items()}
    found = [
        [number(text) for text in row.locator("small").all_inner_texts()] for row in table.locator("tbody tr").all()
    ]
    # in the order of the panel, with the last box on top
    largest = torch.stack([one.amax(-1) for one in expected.values()]).flip(0)
    torch.testing.assert_close(torch.tensor(found), largest, atol=5.1e-4, rtol=0)
    bundle = translator.bundle
    tokenizer = bundle.target_tokenizer if stack == "decoder" else bundle.source_tokenizer
    best = {name: tokenizer.tokens(one.argmax(-1).tolist()) for name, one in expected.items()}
    words = {name: [shown(token) for token in tokens] for name, tokens in best.items()}
    assert table.locator("tbody tr:first-child bdi").all_inner_texts() == list(words.values())[-1]
    if stack == "decoder":
        torch.testing.assert_close(list(expected.values())[-1], read.trace["log_probs"][0].exp())
    said = page.locator(".gf-zoom h2").inner_text()
    assert words[box][row] in said
    assert f"with {expected[box][row].max():.3f}." in said
    assert table.locator("thead [aria-current]").count() == 1
    assert table.locator("tbody [aria-current] th").inner_text() == "feed-forward, layer 0"
    about = page.locator(".gf-zoom .gfz-note").inner_text()
    assert about.startswith("A guess is the word that the model would write next if it stopped at this step")
    assert "Columns are words, rows are steps: read a column from the bottom to the top" in about
    to = f"{stack}.layers.1.self_attention.add"
    page.locator(f"[data-stop='guess {to} {2 * row}']").click()
    until(page, f"glassformer.app.state.zoom.box === '{to}'")
    looks = page.evaluate("(({panel, row, sourceWord}) => [panel, row, sourceWord])(glassformer.app.state)")
    assert looks == ["calculation", 0, 1 + row]


def test_a_label_of_a_guess_opens_the_guesses_at_its_box(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure")
    page.set_viewport_size({"width": 1440, "height": 900})
    for at, layer in (("cross_attention.add", 1), ("layer.0", 0)):
        page.locator(f".gfs-guess[data-guess='{at}']").click()
        is_open(page, "Guesses")
        box = f"decoder.layers.{layer}.{'feed_forward.add' if layer == 0 else at}"
        assert page.evaluate("glassformer.app.state.zoom.box") == box
        page.locator(".gf-zoom").get_by_role("button", name="← Figure").click()
        until(page, "glassformer.app.state.zoom === null")


@pytest.mark.parametrize("family", ["encoder", "cross", pytest.param("decoder", marks=pytest.mark.long)])
def test_rollout_follows_attention_back_and_sums_to_1(make_translator, explore, family):
    translator = make_translator()
    page, read = explore(translator, SENTENCE, start="figure", size=DESK), Read(translator)

    def rolled(layers: list[Tensor]) -> Tensor:
        identity = torch.eye(len(layers[0]), dtype=torch.float64)
        one, two = [(identity + layer) / 2 for layer in layers]
        return two @ one

    encoder = rolled(read.weights("encoder", "self_attention"))
    boxes = {"encoder": "encoder.layers.0.self_attention", "cross": CROSS, "decoder": "decoder.layers.0.self_attention"}
    expected = {
        "cross": torch.stack(read.weights("decoder", "cross_attention")).mean(0) @ encoder,
        "encoder": encoder,
        "decoder": rolled(read.weights("decoder", "self_attention")),
    }[family]
    zoom = {"box": boxes[family], "key": None}
    open_box(page, {"zoom": zoom, "panel": "rollout", "row": 1, "sourceWord": 1}, {})
    found = torch.tensor(shares(page), dtype=torch.float64)
    torch.testing.assert_close(found, expected[1], atol=5.1e-4, rtol=0)
    assert found.sum().item() == pytest.approx(1, abs=5.1e-4 * len(found))
    assert f"{expected[1].max():.3f} of 1" in page.locator(".gf-zoom h2").inner_text()
    assert page.locator(".gfz-pixels canvas").evaluate("(one) => [one.height, one.width]") == list(expected.shape)
    place = page.locator(".gfz-pixels canvas").bounding_box()
    page.mouse.click(place["x"] + 4, place["y"] + place["height"] * 0.5 / len(expected))
    until(page, f"glassformer.app.state.{'sourceWord' if family == 'encoder' else 'row'} === 0")
    page.locator(".gf-zoom h2", has_text=f"{expected[0].max():.3f} of 1").wait_for()


@pytest.mark.parametrize("stack", [pytest.param("encoder", marks=pytest.mark.long), "decoder"])
def test_a_sweep_measures_each_patch_as_python_does(make_translator, explore, stack):
    translator = make_translator()
    page = explore(translator, SENTENCE, start="figure", examples=[SENTENCE, OTHER])
    here, there = Read(translator), Read(translator, OTHER)
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
    page.evaluate("glassformer.app.show({sheet: true, panel: 'changes'})")
    sheet = page.locator(".gfs-sheet")
    sheet.get_by_text("Patch from another sentence").click()
    assert sheet.get_by_role("textbox", name="the other sentence").input_value() == OTHER

    def measure(sentence: str) -> None:
        sheet.get_by_role("textbox", name="the other sentence").fill(sentence)
        sheet.get_by_role("button", name="Use").click()
        until(page, "!document.querySelector('.gfs-sheet td data')")
        sheet.get_by_role("button", name=f"Measure the {stack}").click()

    measure(OTHER)
    sheet.locator("td data").first.wait_for(state="attached")
    rows = sheet.locator(".gf-coloured tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.querySelectorAll('data')].map((one) => Number(one.value)))"
    )
    torch.testing.assert_close(torch.tensor(rows).T, torch.tensor(expected), atol=1e-4, rtol=0)
    assert problems(page) == []
    measure(SENTENCE)
    sheet.get_by_text("Both sentences have the same translation").wait_for()


@pytest.mark.parametrize("box", [CROSS, pytest.param("encoder.layers.0.self_attention", marks=pytest.mark.long)])
def test_the_weights_of_a_head_are_drawn_and_make_its_numbers(make_translator, explore, box):
    translator = make_translator()
    page = explore(translator, SENTENCE, start="figure", size=DESK)
    family = "cross" if box == CROSS else "encoder"
    heads = {family: {"layer": int(box.split(".")[2]), "head": 1}}
    open_box(page, {"zoom": {"box": box, "key": 4}, "panel": "weights", "row": 1, "sourceWord": 1}, {}, heads)
    model, config = rounded(translator.model), translator.model.config
    names = page.locator(".gfz-pixels canvas").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    k, v = config.d_k, config.d_v
    weight, bias = (model.get_parameter(f"{box}.input_projection.{name}").detach() for name in ("weight", "bias"))
    begins = {"query": k, "key": config.heads * k + k, "value": 2 * config.heads * k + v}
    parts = [weight[begin : begin + (v if kind == "value" else k)] for kind, begin in begins.items()]
    parts.append(model.get_parameter(f"{box}.output_projection.weight").detach()[:, v : 2 * v].T)
    for name, part, said in zip("QKVO", parts, names, strict=True):
        numbers = f"deviation {part.std(unbiased=False):.3f}, largest {part.abs().max():.3f}"
        assert said == f"W_{name}: {len(part)} × {part.shape[1]}, {numbers}"
    trace = trace_of(page, translator)
    query = trace[f"{box}.query"][1, 1]
    at = int(np.argmax(np.abs(query)))
    assert page.locator(".gf-zoom h2").inner_text().startswith("The query of")
    for kind, reads, row in (
        ("query", trace[f"{box}.input"][1], at),
        ("key", trace["encoder.output" if box == CROSS else f"{box}.input"][4], 3),
        ("value", trace["encoder.output" if box == CROSS else f"{box}.input"][4], 2),
    ):
        if kind != "query":
            index = ["query", "key", "value"].index(kind)
            picture = page.locator(".gfz-pixels canvas").nth(index)
            size = picture.bounding_box()
            picture.click(position={"x": 3, "y": (row + 0.5) * size["height"] / len(parts[index])})
            until(page, f"glassformer.app.state.selected?.name === '{box}.{kind}'")
            page.locator(".gf-zoom h2", has_text=f"number {row} is").wait_for()
        weights = weight[begins[kind] + row].numpy()
        np.testing.assert_allclose(strip(page, "band 1"), reads, atol=0.00011)
        np.testing.assert_allclose(strip(page, "band 3"), weights, atol=0.00011)
        np.testing.assert_allclose(strip(page, "band 4"), reads * weights, atol=0.00011)
        total = float((reads * weights).sum() + bias[begins[kind] + row])
        assert number(page.locator(".gfz-made strong").inner_text()) == pytest.approx(total, abs=0.0051)
        assert number(page.locator(".gfz-receipt tfoot td").last.inner_text()) == pytest.approx(total, abs=0.0051)
        mark = page.locator(".gfz-pixels > i")
        assert mark.count() == 1
    picture = page.locator(".gfz-pixels canvas").nth(3)
    size = picture.bounding_box()
    picture.click(position={"x": 5.5 * size["width"] / config.d_model, "y": 3})
    page.locator(".gf-zoom h2", has_text="number 5 of the output").wait_for()
    joined = trace[f"{box}.joined"][1]
    np.testing.assert_allclose(strip(page, "band 1"), joined, atol=0.00011)


def test_both_matrices_of_a_network_are_drawn(make_translator, explore):
    translator = make_translator()
    page = explore(translator, SENTENCE, start="figure", size=DESK)
    box = "decoder.layers.1.feed_forward"
    open_box(page, {"zoom": {"box": box, "key": 5}, "panel": "weights", "row": 1}, {})
    model, trace = rounded(translator.model), trace_of(page, translator)
    expand, contract = (model.get_parameter(f"{box}.{name}.weight").detach().numpy() for name in ("expand", "contract"))
    sizes = page.locator(".gfz-pixels canvas").evaluate_all("(all) => all.map((one) => [one.height, one.width])")
    assert sizes == [list(expand.shape), list(contract.T.shape)]
    np.testing.assert_allclose(strip(page, "band 3"), expand[5], atol=0.00011)
    assert number(page.locator(".gfz-made strong").inner_text()) == pytest.approx(
        trace[f"{box}.hidden"][1, 5], abs=0.0051
    )
    size = page.locator(".gfz-pixels canvas").nth(1).bounding_box()
    page.locator(".gfz-pixels canvas").nth(1).click(position={"x": 3.5 * size["width"] / len(contract), "y": 3})
    page.locator(".gf-zoom h2", has_text="number 3 of the output").wait_for()
    np.testing.assert_allclose(strip(page, "band 1"), trace[f"{box}.activated"][1], atol=0.00011)
    np.testing.assert_allclose(strip(page, "band 3"), contract[3], atol=0.00011)
    result = trace[f"{box}.output"][1, 3]
    assert number(page.locator(".gfz-made strong").inner_text()) == pytest.approx(result, abs=0.0051)


def test_heads_without_rows_of_their_own_have_none_framed(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", size=DESK)
    looks = {"zoom": {"box": CROSS, "key": None}, "panel": "weights", "row": 1}
    open_box(page, looks, {"mistakes": ["no_transpose"]})
    page.locator(".gfz-note", has_text="transpose").wait_for()
    assert page.locator(".gfz-pixels").count() == 4
    assert page.locator(".gfz-pixels > i").count() == 0
    x, row = strip(page, "band 1"), strip(page, "band 3")
    shown_sum = number(page.locator(".gfz-made strong").inner_text())
    assert shown_sum == pytest.approx(float(x @ row), abs=0.5)  # the difference is the bias


def test_a_recording_shows_the_rollout_and_says_what_the_rest_needs(make_translator, explore):
    translator = make_translator()
    page = explore(translator, SENTENCE, start="figure", size=DESK, data=recorded_payload)
    for box, panel in ((CROSS, "weights"), ("decoder.layers.1.feed_forward", "weights"), (f"{CROSS}.add", "guesses")):
        open_box(page, {"zoom": {"box": box, "key": None}, "panel": panel}, {})
        page.locator(".gfz-panel", has_text="needs the model").wait_for()
    page = explore(translator, SENTENCE, data=recorded_payload, fragment="panel=rollout")
    is_open(page, "All layers")
    assert sum(shares(page)) == pytest.approx(1, abs=0.01)
    assert page.locator(".gf-error:visible").count() == 0
