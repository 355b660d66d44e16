"""The heads that align words are found among heads that attend to other words."""

from dataclasses import replace

import pytest
import torch

import glassformer as gf
from glassformer.model.alignment import Alignment
from glassformer.training.alignment_heads import choose_alignment
from models import random_translator
from word_by_word import WORDS, pairs

SENTENCES = pairs(80, seed=5)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """Return the translator of a random model, which aligns nothing."""
    texts = {"source": " ".join(WORDS), "target": " ".join(WORDS.values())}
    return random_translator(tmp_path_factory.mktemp("runs"), **texts)


def looking(heads, shift):
    """Return an edit that makes these heads attend to the word of a token, at the step given by `shift`."""

    def edit(weights):
        edited, (steps, columns) = weights.clone(), weights.shape[-2:]
        place = (torch.arange(steps) - shift).clamp(0, columns - 1)
        edited[:, heads] = torch.eye(columns)[place]
        return edited

    return edit


@pytest.mark.parametrize(("layer", "heads", "shift"), [(0, [2], 0), (1, [3], 0), (0, [1], 1)])
def test_the_head_that_aligns_is_found(translator, layer, heads, shift):
    with gf.intervene(translator.model, {f"decoder.layers.{layer}.cross_attention.weights": looking(heads, shift)}):
        found = choose_alignment(translator.bundle, translator.model, SENTENCES)
    assert (found.layer, found.heads, found.shift, found.agreement) == (layer, tuple(heads), shift, 1.0)
    assert (found.of_prediction.shift, found.unshifted is None) == (0, shift == 0)
    assert found.pairs == len(SENTENCES)


def test_heads_that_complete_each_other_are_combined(translator):
    """Head 0 aligns words with even indices, and head 3 words with odd indices; elsewhere, they attend wrongly."""

    def edit(weights):
        edited, (steps, columns) = weights.clone(), weights.shape[-2:]
        for head, rest in ((0, 0), (3, 1)):
            edited[:, head] = 0.0
            for step in range(min(steps, columns)):
                edited[:, head, step, step if step % 2 == rest else (5 * step + 3) % columns] = 1.0
        edited[:, [1, 2]] = 0.0
        edited[:, [1, 2], :, 0] = 1.0  # the other heads attend to the first word only
        return edited

    with gf.intervene(translator.model, {"decoder.layers.1.cross_attention.weights": edit}):
        found = choose_alignment(translator.bundle, translator.model, SENTENCES)
    assert (found.layer, found.heads, found.agreement) == (1, (0, 3), 1.0)


def test_without_words_to_compare_there_is_no_choice(translator):
    assert choose_alignment(translator.bundle, translator.model, []) is None
    assert choose_alignment(translator.bundle, translator.model, [("", ""), ("the cat", "")]) is None


def test_the_engine_shows_the_chosen_heads(translator):
    """The engine uses the alignment in the bundle: with a different layer, the links differ."""
    text = " ".join(WORDS)
    explanation = translator.explain(text)
    assert explanation.alignment.heads == (0, 1, 2, 3)
    edits = {"decoder.layers.0.cross_attention.weights": looking([2], 1)}
    chosen = replace(translator.bundle, alignment=Alignment(layer=0, heads=(2,), shift=1, agreement=1.0, pairs=9))
    with gf.intervene(translator.model, edits):
        shown = gf.Translator(chosen, translator.model).explain(text)
    assert shown.attention_layer == "decoder.layers.0.cross_attention"
    most = [row.index(max(row)) for row in shown.attention]
    last = min(len(most) - 1, len(shown.source))
    assert most[: last - 1] == [min(place, len(shown.source) - 1) for place in range(last - 1)]
