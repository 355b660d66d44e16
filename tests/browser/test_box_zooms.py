"""Feed-forward networks and Add & norm opened in the figure: their numbers equal PyTorch's under every change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from browser.test_attention_zoom import PREFIX
from browser.test_segments import Read
from browser.waiting import rest, settled, until
from browser.zooms import DESK, FRAMES, SENTENCE, notes, number, open_box, shown, strip, trace_of, value
from glassformer.watch.explorer.payload import recorded_payload, rounded
from tiers import in_tiers

NETWORK = "decoder.layers.1.feed_forward"
NETWORKS = [NETWORK, "encoder.layers.0.feed_forward"]
SUMS = ["encoder.layers.1.self_attention", "decoder.layers.0.cross_attention", NETWORK]
ROWS = ".gfz-rows tbody tr"
PRE = {"norm": "pre", "final_norm": True}


@pytest.fixture
def opened(make_translator, explore) -> Callable[..., Any]:
    """Return a function that opens a box of a page."""

    def show(box: str, *, row: int = 2, key: int | None = None, page: Any = None, **changes: Any) -> Any:
        page = page or explore(make_translator(), SENTENCE, start="figure", size=DESK)
        return open_box(page, {"zoom": {"box": box, "key": key}, "row": row, "sourceWord": row}, changes)

    return show


def column(page: Any, place: int) -> list[str]:
    texts: list[str] = page.locator(f"{ROWS} td:nth-child({place})").all_inner_texts()
    return [text.split("\n")[-1] for text in texts]


def receipt(page: Any) -> dict[str, float]:
    """Return the numbers of the receipt, by the names of its lines."""
    lines = page.locator(".gfz-receipt :is(tbody, tfoot) tr").all_inner_texts()
    rows = [line.split("\t") for line in lines]
    return {row[0]: number(row[-1]) for row in rows}


# Feed-forward


@pytest.mark.parametrize("network", in_tiers(NETWORKS, {NETWORK}))
def test_the_networks_numbers_are_pytorchs(make_translator, explore, opened, network):
    translator = make_translator()
    page = opened(network, page=explore(translator, SENTENCE, start="figure", size=DESK))
    trace = trace_of(page, translator)
    hidden, activated = (trace[f"{network}.{point}"][2] for point in ("hidden", "activated"))
    units = [int(text.split()[1]) for text in page.locator(f"{ROWS} th").all_inner_texts()]
    assert units == np.argsort(-activated, kind="stable")[: len(units)].tolist()
    np.testing.assert_allclose([number(text) for text in column(page, 4)], activated[units], atol=0.0051)
    sums = [number(text) for text in page.locator(f"{ROWS} [data-stop^='hidden']").all_inner_texts()]
    np.testing.assert_allclose(sums, hidden[units], atol=0.0051)
    np.testing.assert_allclose(strip(page, "read"), trace[f"{network}.input"][2], atol=0.00011)
    np.testing.assert_allclose(strip(page, "output"), trace[f"{network}.output"][2], atol=0.00011)
    count = page.locator(".gfz-units svg").count()
    grid = np.concatenate([strip(page, f"units {line}") for line in range(count)])
    np.testing.assert_allclose(grid, activated, atol=0.00011)
    above = (activated > 0).sum()
    assert f"{above} of {len(activated)} are above 0" in page.locator(".gfz-units").inner_text()
    words = page.locator(f"{ROWS}[aria-current] td bdi").inner_text().split(", ")
    said = page.locator(".gf-zoom h2").inner_text()
    assert said.startswith(f"{above} of {len(activated)} units answer to ")
    assert said.endswith(f"the strongest, unit {units[0]}, pushes toward “{words[0]}”, “{words[1]}”.")


@pytest.mark.parametrize("network", NETWORKS)
def test_units_speak_for_the_words_that_python_finds(make_translator, explore, opened, network):
    translator = make_translator()
    page, read = explore(translator, SENTENCE, start="figure", size=DESK), Read(translator, SENTENCE)
    opened(network, page=page)
    active = read.trace[f"{network}.activated"][0, 2]
    chosen = int(active.argmax())
    weights = read.model.state_dict()
    stack = network.partition(".")[0]
    side, table = {"decoder": ("target", "output.weight"), "encoder": ("source", "source.tokens.weight")}[stack]
    scores = weights[table] @ weights[f"{network}.contract.weight"][:, chosen]
    words = getattr(translator.bundle, f"{side}_tokenizer").tokens(scores.topk(5).indices.tolist())
    expected = ", ".join(map(shown, words))
    assert page.locator(f"{ROWS}[aria-current] td bdi").inner_text() == expected


def test_a_units_score_is_its_direct_part(make_translator, explore, opened):
    translator = make_translator()
    page = opened(NETWORK, page=explore(translator, SENTENCE, start="figure", size=DESK))
    model = rounded(translator.model).requires_grad_(False)
    trace = {name: torch.tensor(numbers) for name, numbers in trace_of(page, translator).items()}
    words = page.locator(".gfz-rows thead th").nth(5).inner_text().split(" − ")
    names = list(map(shown, translator.bundle.target_tokenizer.tokens(range(model.config.target_vocab_size))))
    ids = [names.index(word) for word in words]
    assert ids[0] == page.evaluate("glassformer.app.result.current.hypothesis.ids[2]")
    norm = model.decoder.layers[1].feed_forward_residual.norm
    stream = trace[f"{NETWORK}.added"][2]
    deviation = (stream.var(unbiased=False) + norm.eps).sqrt()
    direction = model.output.weight[ids[0]] - model.output.weight[ids[1]]
    direction = direction * norm.weight / deviation
    direction = direction - direction.mean()
    parts = trace[f"{NETWORK}.activated"][2] * (direction @ model.decoder.layers[1].feed_forward.contract.weight)
    units = [int(text.split()[1]) for text in page.locator(f"{ROWS} th").all_inner_texts()]
    found = [number(text.removeprefix("+")) for text in column(page, 6)]
    np.testing.assert_allclose(found, parts[units], atol=0.0051)
    together = page.locator(".gfz-units p").inner_text().rpartition(" ")[2].removeprefix("+")
    assert number(together) == pytest.approx(parts.sum().item(), abs=0.0051)


def test_a_unit_and_every_number_open_their_arithmetic(make_translator, explore, opened):
    translator = make_translator()
    page = opened(NETWORK, page=explore(translator, SENTENCE, start="figure", size=DESK))
    x, hidden, output = (value(page, f"{NETWORK}.{point}")[2] for point in ("input", "hidden", "output"))
    silent = int(np.argmin(hidden))
    page.locator(".gfz-units [data-stop='units 0']").focus()
    page.evaluate("(key) => glassformer.app.show({zoom: {...glassformer.app.state.zoom, key}})", silent)
    page.locator(".gf-zoom h2", has_text=f"Unit {silent} does not answer").wait_for()
    lines = receipt(page)
    weights = rounded(translator.model).state_dict()[f"{NETWORK}.expand.weight"].numpy()[silent]
    for i, product in enumerate(x * weights):
        if str(i) in lines:
            assert lines[str(i)] == pytest.approx(product, abs=0.0051)
    assert lines["sum"] == pytest.approx(hidden[silent], abs=0.0051)
    assert lines["ReLU"] == 0
    np.testing.assert_allclose(strip(page, "products"), x * weights, atol=0.00011)
    page.locator(f"{ROWS} th button").first.click()
    page.locator(".gf-zoom h2", has_text="answers to").wait_for()
    slider = page.locator("[data-stop='output']")
    slider.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    last = len(output) - 1
    page.locator(".gf-zoom h2", has_text=f"number {last} of the output").wait_for()
    assert page.evaluate("glassformer.app.state.selected") == {"name": f"{NETWORK}.output", "index": [2, last]}
    assert receipt(page)["Σ"] == pytest.approx(output[last], abs=0.0051)
    assert page.evaluate("document.activeElement.dataset.stop") == "output"
    page.get_by_role("button", name="All numbers").click()
    looks = page.evaluate("(({panel, selected}) => [panel, selected.name])(glassformer.app.state)")
    assert looks == ["numbers", f"{NETWORK}.output"]


def test_a_recorded_network_shows_its_units_and_says_what_it_lacks(make_translator, explore, opened):
    page = opened(NETWORK, page=explore(make_translator(), SENTENCE, start="figure", size=DESK, data=recorded_payload))
    activated = value(page, f"{NETWORK}.activated")[2]
    assert f"the strongest is unit {np.argmax(activated)}" in page.locator(".gf-zoom h2").inner_text()
    assert page.locator(f"{ROWS} svg, .gfz-fan path, {ROWS} bdi").count() == 0
    assert page.locator(".gfz-rows thead th").all_inner_texts()[-1] == ""
    page.locator("[data-stop='hidden 0']").click()
    page.locator(".gfz-note", has_text="needs the model").wait_for()


@pytest.mark.parametrize("activation", ["gelu", pytest.param("silu", marks=pytest.mark.long)])
def test_other_activations_are_named(make_translator, explore, opened, activation):
    page = opened(NETWORK, page=explore(make_translator(activation=activation), SENTENCE, start="figure", size=DESK))
    name = {"gelu": "GELU", "silu": "SiLU"}[activation]
    assert name in page.locator(".gfz-rows thead").inner_text()
    activated = value(page, f"{NETWORK}.activated")[2]
    assert receipt(page)[name] == pytest.approx(activated.max(), abs=0.0051)


# Add & norm


@pytest.mark.parametrize("part", in_tiers(SUMS, {SUMS[1]}))
def test_the_rows_are_pytorchs_and_add_up(make_translator, explore, opened, part):
    translator = make_translator()
    page = opened(f"{part}.add", page=explore(translator, SENTENCE, start="figure", size=DESK))
    trace = trace_of(page, translator)
    names = page.locator(".gfz-step").all_inner_texts()
    assert [name.split("\n")[-1] for name in names][2:] == ["sum", "− mean, ÷ √", "× gain γ", "+ bias β", "result"]
    rows = {kind: strip(page, kind) for kind in ("input", "output", "added", "scaled", "gain", "bias", "normed")}
    for kind in ("input", "output", "added", "normed"):
        np.testing.assert_allclose(rows[kind], trace[f"{part}.{kind}"][2], atol=0.00011)
    weights = rounded(translator.model).state_dict()
    for kind, name in (("gain", "weight"), ("bias", "bias")):
        np.testing.assert_allclose(rows[kind], weights[f"{part}_residual.norm.{name}"].numpy(), atol=0.00011)
    np.testing.assert_allclose(rows["input"] + rows["output"], rows["added"], atol=0.00021)
    np.testing.assert_allclose(rows["scaled"] * rows["gain"] + rows["bias"], rows["normed"], atol=0.0005)
    x, y, result = (trace[f"{part}.{kind}"][2] for kind in ("input", "output", "normed"))
    facts = page.locator(".gfz-facts").all_inner_texts()
    assert f"length {np.linalg.norm(x):.2f}" in facts[0]
    assert f"{np.linalg.norm(y) / (np.linalg.norm(x) + np.linalg.norm(y)):.3f} of both lengths" in facts[1]
    cosine = x @ result / np.linalg.norm(x) / np.linalg.norm(result)
    turn = round(np.degrees(np.arccos(cosine)))
    assert f"turned by {turn}° (cosine {cosine:.2f})".replace("-", "−") in facts[-1]
    assert f"by {turn}°" in page.locator(".gf-zoom h2").inner_text()


@pytest.mark.parametrize("settings", [{}, PRE])
def test_the_guesses_are_those_of_the_output_matrix(make_translator, explore, opened, settings):
    translator = make_translator(**settings)
    part = "decoder.layers.0.cross_attention"
    page = opened(f"{part}.add", page=explore(translator, SENTENCE, start="figure", size=DESK), prefix=PREFIX)
    model, trace = rounded(translator.model), trace_of(page, translator)
    last = "added" if settings else "normed"
    facts = page.locator(".gfz-facts").all_inner_texts()
    guesses: list[str] = []
    for said, point in ((facts[0], "input"), (facts[-1], last)):
        stream = torch.tensor(trace[f"{part}.{point}"][2])
        with torch.no_grad():
            chances = model.output(model.decoder.norm(stream) if settings else stream).softmax(-1).topk(3)
        words = translator.bundle.target_tokenizer.tokens(chances.indices.tolist())
        lines = [line.rpartition(" ") for line in said.splitlines() if line][-3:]
        assert [line[0] for line in lines] == [shown(word) for word in words]
        np.testing.assert_allclose([float(line[2]) for line in lines], chances.values, atol=0.00051)
        guesses.append(lines[0][0])
    sentence = page.locator(".gf-zoom h2").inner_text()
    assert sentence.endswith(
        f"the guess goes from “{guesses[0]}” to “{guesses[1]}”."
        if guesses[0] != guesses[1]
        else f"the guess stays “{guesses[0]}”."
    )


def test_one_number_opens_the_arithmetic_of_its_column(opened):
    page = opened(f"{NETWORK}.add")
    slider = page.locator("[data-stop='output']")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".gf-zoom h2", has_text="Number 1: ").wait_for()
    assert page.evaluate("glassformer.app.state.zoom") == {"box": f"{NETWORK}.add", "key": 1}
    assert page.evaluate("document.activeElement.dataset.stop") == "output"
    x, y, added, normed = (value(page, f"{NETWORK}.{kind}")[2] for kind in ("input", "output", "added", "normed"))
    lines = receipt(page)
    expected = {
        "x": x[1],
        "feed-forward": y[1],
        "sum": added[1],
        "mean": added.mean(),
        "variance": added.var(),
        "√(variance + ε)": np.sqrt(added.var() + 1e-5),
        "x̂": (added[1] - added.mean()) / np.sqrt(added.var() + 1e-5),
        "result": normed[1],
    }
    for name, amount in expected.items():
        assert lines[name] == pytest.approx(amount, rel=0.01, abs=0.0051), name
    assert lines["x̂ · γ"] + lines["β"] == pytest.approx(lines["result"], abs=0.011)
    page.get_by_role("button", name="All numbers").click()
    assert page.evaluate("glassformer.app.state.selected") == {"name": f"{NETWORK}.normed", "index": [2, 1]}


def test_with_the_norm_before_the_sub_layer_add_and_norm_are_two_boxes(make_translator, explore, opened):
    translator = make_translator(**PRE)
    page = explore(translator, SENTENCE, start="figure", size=DESK)
    trace = None
    for box, rows, labels in (
        (f"{NETWORK}.norm", ["input", "scaled", "gain", "bias", "normed"], ["from Add below", "to Feed forward above"]),
        (f"{NETWORK}.add", ["input", "output", "added"], ["from Add below", "to Norm above"]),
        ("decoder.norm", ["input", "scaled", "gain", "bias", "normed"], ["from Layer 1 below", "to Linear above"]),
        ("encoder.norm", ["input", "scaled", "gain", "bias", "normed"], ["from Layer 1 below", "to Memory above"]),
    ):
        opened(box, page=page, prefix=PREFIX)
        stops = page.locator(".gfz-room .gfz-strip").evaluate_all("(all) => all.map((one) => one.dataset.stop)")
        assert stops == rows
        assert page.locator(".gfz-outside text").all_text_contents() == labels
        trace = trace or trace_of(page, translator)
        part = box.rpartition(".")[0]
        names = {
            f"{NETWORK}.norm": {"input": "input", "normed": "normed"},
            f"{NETWORK}.add": {"input": "input", "output": "output", "added": "added"},
        }.get(box)
        points = (
            {kind: f"{part}.{name}" for kind, name in names.items()}
            if names
            else {"input": f"{part}.layers.1.feed_forward.added", "normed": f"{part}.output"}
        )
        for kind, name in points.items():
            np.testing.assert_allclose(strip(page, kind), trace[name][2], atol=0.00011)
        start = "This step turns" if box.endswith("add") else "The norm changes the length"
        assert page.locator(".gf-zoom h2").inner_text().startswith(start)


@pytest.mark.parametrize(
    "mistake", ["norm_order", "residual_normed", pytest.param("unbiased_norm", marks=pytest.mark.long)]
)
def test_the_rows_are_true_under_a_mistake(opened, mistake):
    page = opened(f"{NETWORK}.add", mistakes=[mistake], prefix=PREFIX)
    rows = {
        kind: strip(page, kind)
        for kind in page.locator(".gfz-room .gfz-strip").evaluate_all("(all) => all.map((one) => one.dataset.stop)")
    }
    np.testing.assert_allclose(rows["input"] + rows["output"], rows["added"], atol=0.00021)
    np.testing.assert_allclose(rows["added"], value(page, f"{NETWORK}.added")[2], atol=0.00011)
    assert ("normed" in rows) == (mistake != "norm_order")
    names = page.locator(".gfz-step").all_inner_texts()
    assert names[0].endswith("LayerNorm(x)") == (mistake == "residual_normed")
    if "normed" in rows:
        np.testing.assert_allclose(rows["scaled"] * rows["gain"] + rows["bias"], rows["normed"], atol=0.0005)
    assert any(note.startswith("Changed here") for note in notes(page))


def test_rows_from_another_sentence_are_said(opened):
    patch = {"point": f"{NETWORK}.output", "sentence": "a cat sleeps .", "positions": [[2, 1]]}
    for box in (NETWORK, f"{NETWORK}.add"):
        page = opened(box, patches=[patch])
        assert any(note.startswith("Patched in from “a cat sleeps .”") for note in notes(page))


def test_a_recorded_sum_shows_all_but_the_guesses(make_translator, explore, opened):
    page = opened(
        f"{NETWORK}.add", page=explore(make_translator(), SENTENCE, start="figure", size=DESK, data=recorded_payload)
    )
    assert page.locator(".gfz-room .gfz-strip").count() == 7
    assert "guess" not in page.locator(".gfz-room").inner_text()
    assert page.locator(".gf-zoom h2").inner_text().startswith("This step turns the vector of")


# The frame that all opened boxes share

LAID_OUT = """() => {
  const scroll = document.querySelector(".gfz-scroll");
  const named = [...document.querySelector(".gfz-whole").children].filter((one) => !one.matches("svg, p, .gfz-facts"));
  const places = named.map((one) => one.getBoundingClientRect());
  const inside = scroll.getBoundingClientRect();
  const wrong = [];
  places.forEach((place, at) => {
    const text = named[at].outerHTML.slice(0, 80);
    if (place.left < inside.left || place.right > inside.right + 1) wrong.push(`outside: ${text}`);
    for (const other of places.slice(at + 1)) {
      const across = Math.min(place.right, other.right) - Math.max(place.left, other.left);
      const down = Math.min(place.bottom, other.bottom) - Math.max(place.top, other.top);
      if (across > 1 && down > 1) wrong.push(`overlaps: ${text}`);
    }
  });
  for (const one of document.querySelectorAll(".gfz-whole .gfz-strip"))
    if (one.clientHeight < 11 || !one.querySelector("path").hasAttribute("d"))
      wrong.push(`not drawn: ${one.dataset.stop}`);
  if (scroll.scrollHeight > scroll.clientHeight || scroll.scrollWidth > scroll.clientWidth) wrong.push("it scrolls");
  return wrong;
}"""
"""A script that returns what is wrong with the layout of an opened box."""
LAPTOP = {"width": 1280, "height": 720}


@pytest.mark.parametrize(
    "box", [NETWORK, f"{NETWORK}.add", "decoder.layers.1.cross_attention", "encoder.embedding", "decoder.softmax"]
)
@pytest.mark.parametrize("size", [dict(zip(("width", "height"), DESK, strict=True)), LAPTOP], ids=["desk", "laptop"])
def test_the_parts_of_a_box_stand_apart_and_fit_the_window(opened, box, size):
    page = opened(box)
    page.set_viewport_size(size)
    page.evaluate(FRAMES)
    settled(page)
    assert page.evaluate(LAID_OUT) == []
    assert page.locator(".gfz-outside text").count() == 2


@pytest.mark.parametrize(
    "kind",
    [
        "feed_forward",
        *(pytest.param(f"{one}.add", marks=pytest.mark.long) for one in ("feed_forward", "self_attention")),
    ],
)
@pytest.mark.usefixtures("page")
def test_a_box_opens_by_two_clicks_and_closes_by_escape_back_and_the_map(make_translator, explore, kind):
    page = explore(make_translator(), SENTENCE, start="figure", size=DESK)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator(".gfs-knot").wait_for(state="attached")
    box = page.locator(f'.gfs-box[data-box="decoder.{kind}"]')
    name = f"decoder.layers.1.{kind}"
    box.click(position={"x": 5, "y": 5})
    page.get_by_role("button", name="Open this box").wait_for()
    rest(page)
    box.click(position={"x": 5, "y": 5})
    page.locator(".gf-zoom h2").wait_for()
    assert page.evaluate("glassformer.app.state.zoom.box") == name
    address = page.evaluate("location.href")
    rest(page)
    page.keyboard.press("Escape")
    until(page, "glassformer.app.state.zoom === null")
    page.go_back()
    until(page, f"glassformer.app.state.zoom?.box === '{name}'")
    page.reload()
    page.evaluate("() => glassformer.ready.then(() => null)")
    page.locator(".gf-zoom h2").wait_for()
    assert page.evaluate("[glassformer.app.state.zoom.box, location.href]") == [name, address]
    page.locator('.gfs-map [data-box^="encoder"][data-box$=".feed_forward"]').click()
    until(page, "document.querySelector('.gf-zoom').getAttribute('aria-label').startsWith('Encoder feed-forward')")
    page.locator('.gfs-map [data-box^="encoder"][data-box$=".feed_forward.add"]').click()
    page.locator(".gf-zoom h2", has_text="This step turns").wait_for()
    page.locator(".gf-zoom").get_by_role("button", name="← Figure").click()
    until(page, "glassformer.app.state.zoom === null")


@pytest.mark.parametrize(
    ("box", "first"), [(NETWORK, "activated 0"), pytest.param(f"{NETWORK}.add", "normed", marks=pytest.mark.long)]
)
def test_the_panel_is_one_stop_of_the_tab_key(opened, box, first):
    page = opened(box)
    assert page.locator(".gfz-room [tabindex='0']").count() == 1
    page.get_by_role("button", name="Copy as PyTorch").focus()
    page.keyboard.press("Tab")
    active = "document.activeElement.dataset.stop"
    assert page.evaluate(active) == first
    page.keyboard.press("ArrowDown")
    assert page.evaluate(active) == ("activated 1" if box == NETWORK else "bias")
    page.keyboard.press("ArrowUp")
    seen = [page.evaluate(active)]
    for _ in range(40):
        page.keyboard.press("ArrowUp")
        seen.append(page.evaluate(active))
    assert ("output" if box == NETWORK else "normed") in seen
    assert seen[-1].startswith("segment ")
    assert page.locator(".gfz-room [tabindex='0']").count() == 1
    page.get_by_role("button", name="The word after").click()
    until(page, "glassformer.app.state.row === 3")
    page.keyboard.press("Escape")
    until(page, "glassformer.app.state.zoom === null")
    page.evaluate("(box) => glassformer.app.show({box})", f"decoder.{box.partition('.1.')[2]}")
    page.locator(".gfs-figure-svg").press("Enter")
    until(page, f"glassformer.app.state.zoom?.box === '{box}'")


@pytest.mark.parametrize(
    "settings",
    [
        {"d_model": 48, "heads": 4, "d_ff": 7},
        pytest.param({"d_ff": 600}, marks=pytest.mark.long),
        pytest.param({"encoder_layers": 6}, marks=pytest.mark.long),
    ],
)
def test_other_shapes_are_drawn(make_translator, explore, opened, settings):
    page = explore(make_translator(**settings), SENTENCE, start="figure", size=DESK)
    for box in (NETWORK, f"{NETWORK}.add", "encoder.layers.0.feed_forward", "encoder.layers.1.feed_forward.add"):
        opened(box, page=page)
        until(page, f"document.querySelector('.gfz-room .gfz-strip') && glassformer.app.state.zoom.box === '{box}'")
        panel = page.locator(".gfz-scroll").bounding_box()
        for one in page.locator(".gfz-strip").all():
            place = one.bounding_box()
            assert panel["x"] <= place["x"]
            assert place["x"] + place["width"] <= panel["x"] + panel["width"]
