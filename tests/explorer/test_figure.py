"""Figures of attention in Python; web/tests/picture_svg.test.js compares their bytes with the page's."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import glassformer as gf
from glassformer.errors import ConfigError

SENTENCE = "the black cat sleeps ."
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("encoder", "encoder.layers.1.self_attention"),
        ("cross", "decoder.layers.1.cross_attention"),
        ("decoder", "decoder.layers.1.self_attention"),
    ],
)
def test_a_figure_has_the_models_weights_and_words(make_translator, tmp_path, family, name):
    translator = make_translator()
    path = gf.explore(translator, SENTENCE, live=False).figure(family, head=2).save(tmp_path / "a.svg")
    words = [one.text or "" for one in ElementTree.parse(path).iter(TEXT)]
    [output] = translator.translate([SENTENCE])
    source = [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]
    target = [1, *translator.bundle.target_tokenizer.encode(output.text)]
    with torch.no_grad(), gf.record(translator.model, f"{name}.weights") as trace:
        translator.model(torch.tensor([source]), torch.tensor([target]))
    weights = trace[f"{name}.weights"][0, 2]
    numbers = [one for one in words if one[:1] == "." and one[1:].isdigit()]
    shown = [value for value in weights.flatten().tolist() if 0.005 <= value < 0.9995]
    assert [float(one) for one in numbers] == pytest.approx(shown, abs=5.1e-4)
    assert words.count("–∞") == (np.triu(np.ones(weights.shape), 1).sum() if family == "decoder" else 0)
    assert words[-3].startswith(f"{name}.weights, head 2: ")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("middle", 0, 0), "family: expected one of encoder, cross, decoder, got 'middle'"),
        (("cross", 9, 0), "layer: expected a number from -2 to 1, got 9"),
        (("cross", 0, -1), "head: expected a number from 0 to 3, got -1"),
    ],
)
def test_what_the_model_does_not_have_is_named(make_translator, asked, message):
    with pytest.raises(ConfigError, match=message):
        gf.explore(make_translator(), SENTENCE, live=False).figure(*asked)


def test_a_figure_is_saved_as_svg_only(make_translator, tmp_path):
    figure = gf.explore(make_translator(), SENTENCE, live=False).figure("cross")
    with pytest.raises(ConfigError, match=r"expected a name that ends with \.svg, got 'a.png'"):
        figure.save(tmp_path / "a.png")
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory; choose another path"):
        figure.save(tmp_path / "nowhere" / "a.svg")
