"""Pictures of one head's attention in Python; web/tests/picture_svg.test.ts tests the pictures that the page saves."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError
from glassformer.watch.explorer.figure import FIGURE_COLOURS

SENTENCE = "the black cat sleeps ."
TEXT, KNOT = "{http://www.w3.org/2000/svg}text", "{http://www.w3.org/2000/svg}circle"
STYLES = Path(__file__).parents[3] / "web/ui/figure/stage.css"


@pytest.mark.parametrize(
    ("family", "name", "title"),
    [
        ("encoder", "encoder.layers.1.self_attention", "Encoder self-attention, layer 1, head 2"),
        ("cross", "decoder.layers.1.cross_attention", "Cross-attention, layer 1, head 2"),
        ("decoder", "decoder.layers.1.self_attention", "Decoder self-attention, layer 1, head 2"),
    ],
)
def test_a_figure_has_the_models_weights_and_words(make_translator, tmp_path, family, name, title):
    translator = make_translator()
    path = gf.explore(translator, SENTENCE, live=False).figure(family, head=2).save(tmp_path / "a.svg")
    drawn = ElementTree.parse(path)
    [output] = translator.translate([SENTENCE])
    source = [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]
    target = [1, *translator.bundle.target_tokenizer.encode(output.text)]
    with torch.no_grad(), gf.record(translator.model, f"{name}.weights") as trace:
        translator.model(torch.tensor([source]), torch.tensor([target]))
    weights = trace[f"{name}.weights"][0, 2].tolist()
    told = [
        [weight for row, weight in enumerate(one) if family != "decoder" or row <= column]
        for column, one in enumerate(weights)
    ]
    knots = list(drawn.iter(KNOT))
    areas = [(float(knot.attrib["r"]) / 8) ** 2 for knot in knots]
    assert areas == pytest.approx([weight for one in told for weight in one], abs=2e-3)
    numbers = [float(knot[0].text.rpartition(": ")[2]) for knot in knots]
    assert numbers == pytest.approx([weight for one in told for weight in one], abs=5.1e-4)
    words = [one.text or "" for one in drawn.iter(TEXT)]
    side, ids = ("target", target) if family == "decoder" else ("source", source)
    tokens = getattr(translator.bundle, f"{side}_tokenizer").tokens(ids)
    assert {{"<bos>": "start", "<eos>": "end"}.get(one, one) for one in tokens} <= set(words)
    assert title in words
    assert f"{SENTENCE} → {output.text}" in " ".join(words)


def test_a_figure_has_the_colours_of_the_stage():
    themes = STYLES.read_text(encoding="utf-8").split('[data-theme="dark"]')[:2]
    for name, colours in FIGURE_COLOURS.items():
        assert tuple(re.search(rf"--{name}: (\S+);", theme)[1] for theme in themes) == colours, name


def test_two_figures_on_a_page_share_no_names(make_translator):
    shown = gf.explore(make_translator(), SENTENCE, live=False)
    first, second = (set(re.findall(r'id="([^"]+)"', shown.figure("decoder", head=head).svg)) for head in (0, 1))
    assert len(first) == len(second) == 2
    assert not first & second


def test_a_long_caption_and_hostile_words_stay_inside(make_translator):
    picture = gf.explore(make_translator(), "<b> & the cat sees a big dog and a small cat " * 2, live=False).figure(
        "cross"
    )
    drawn = ElementTree.fromstring(picture.svg)
    *_, width, height = map(float, drawn.attrib["viewBox"].split())
    for text in drawn.iter(TEXT):
        assert float(text.attrib["y"]) < height - 10
        if text.attrib["text-anchor"] == "start":
            assert float(text.attrib["x"]) + 6.8 * len(text.text) < width
    assert "<b> &" in picture.alt


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("middle", 0, 0), "family: expected one of encoder, cross, decoder, got 'middle'"),
        (("cross", 9, 0), "layer: expected a number from -2 to 1, got 9"),
        (("cross", 0, -1), "head: expected a number from 0 to 3, got -1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_the_model_does_not_have_is_named(make_translator, asked, message):
    with pytest.raises(ConfigError, match=message):
        gf.explore(make_translator(), SENTENCE, live=False).figure(*asked)
