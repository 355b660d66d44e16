"""Pictures of one head's attention in Python; web/tests/picture_svg.test.ts tests those that the page saves."""

import re
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
    numbers = [float(one) for one in words if re.fullmatch(r"\d\.\d\d", one)]
    seen = np.tril(np.ones(weights.shape, bool)) if family == "decoder" else np.ones(weights.shape, bool)
    assert numbers == pytest.approx(weights.numpy()[seen].tolist(), abs=5.1e-3)
    side, ids = ("target", target) if family == "decoder" else ("source", source)
    tokens = getattr(translator.bundle, f"{side}_tokenizer").tokens(ids)
    assert set(tokens) <= set(words)
    assert f"{name}.weights, head 2" in words
    assert f"{SENTENCE} → {output.text}" in " ".join(words)


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
