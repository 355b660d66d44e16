"""Runs that write from right to left: everything except the order of ids is the same as in other runs."""

from dataclasses import replace

import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.errors import ConfigError
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.formats import FORMATS
from glassformer.jobs import train
from glassformer.jobs.preparation import prepare
from glassformer.recipes.toml import load
from glassformer.text.reversal import from_right_to_left
from glassformer.translator import Translator
from models import random_translator

SOURCES = ["the big dog sleeps .", "a cat", "black and black"]
TARGETS = ["le grand chien dort", "un chat", "noir et un chat noir"]
CONFIG = f"""
[data]
source = "train.tsv"
reverse_target = true
[cleaning]
duplicates = "keep"
max_ratio = 0
{word_by_word.MODEL}dropout = 0.0
[training]
steps = 150
precision = "fp32"
batch_tokens = 250
learning_rate = 1e-2
warmup = 20
"""


def right_to_left(translator: Translator) -> Translator:
    """Return a translator with the same weights that writes from right to left."""
    bundle = translator.bundle
    data = replace(bundle.configuration.data, reverse_target=True)
    configuration = replace(bundle.configuration, data=data)
    target = from_right_to_left(bundle.target_tokenizer)
    folder = bundle.folder.with_name("right-to-left")
    return Translator(
        replace(bundle, folder=folder, configuration=configuration, target_tokenizer=target), translator.model
    )


@pytest.fixture
def both(tmp_path):
    """Return a translator, and a translator with the same weights that writes from right to left."""
    translator = random_translator(tmp_path)
    translator.model.double()
    return translator, right_to_left(translator)


def mirrored(text):
    return " ".join(text.split()[::-1])


def test_a_target_has_the_score_that_its_mirror_image_has_from_left_to_right(both):
    forward, back = both
    ours = back.score(list(zip(SOURCES, TARGETS, strict=True)))
    theirs = forward.score([(source, mirrored(target)) for source, target in zip(SOURCES, TARGETS, strict=True)])
    for one, other, target in zip(ours, theirs, TARGETS, strict=True):
        assert one.text == target
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-12)


@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 4, "n_best": 3}, {"sample": True}])
def test_outputs_are_in_the_normal_order(both, settings):
    forward, back = both
    for one, other in zip(back.translate(SOURCES, **settings), forward.translate(SOURCES, **settings), strict=True):
        assert [each.text for each in (one, *one.alternatives)] == [
            mirrored(each.text) for each in (other, *other.alternatives)
        ]
        assert one.log_prob == other.log_prob
        assert one.tokens == other.tokens  # the tokens are in logical order


def test_links_are_those_of_the_mirror_image(both):
    forward, back = both
    ours = back.translate(SOURCES, links=True, beam_size=2)
    theirs = forward.translate(SOURCES, links=True, beam_size=2)
    for one, other in zip(ours, theirs, strict=True):
        words = one.text.split()
        linked = {one.text[slice(*link.target)] for link in one.links}
        assert linked == {other.text[slice(*link.target)] for link in other.links} <= set(words)


def test_a_term_of_a_glossary_arrives(both):
    _, back = both
    [one] = back.translate(["a cat"], glossary={"cat": "grand chien"})
    assert "grand chien" in one.text


def test_a_prefix_is_refused(both):
    with pytest.raises(ConfigError, match="right to left"):
        both[1].translate(SOURCES, prefix="le")


def test_an_ensemble_writes_in_one_order(both):
    forward, back = both
    with pytest.raises(ConfigError, match=r"data\.reverse_target.*rescore"):
        Translator(forward.bundle, forward.model, back)
    alone = back.translate(SOURCES)
    assert Translator(back.bundle, back.model, back).translate(SOURCES) == alone


def test_a_stored_run_writes_in_the_normal_order(both):
    _, back = both
    back.model.float()
    back.bundle.save(back.model)
    assert Translator.load(back.bundle.folder).translate(SOURCES) == back.translate(SOURCES)


def test_ctranslate2_writes_in_the_normal_order(both):
    pytest.importorskip("ctranslate2")
    _, back = both
    back.model.float()
    back.bundle.save(back.model)
    fast = Translator.load(back.bundle.folder, engine="ctranslate2")
    settings = {"beam_size": 1}
    assert [one.text for one in fast.translate(SOURCES, **settings)] == [
        one.text for one in back.translate(SOURCES, **settings)
    ]
    assert "right to left" in " ".join(FORMATS["ctranslate2"].remarks(back.bundle))


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "ctranslate2"])
def test_formats_of_programs_that_cannot_reorder_outputs_refuse_the_run(both, name, tmp_path):
    _, back = both
    back.model.float()
    back.bundle.save(back.model)
    with pytest.raises(ConfigError, match=r"data\.reverse_target"):
        FORMATS[name].export(Bundle.load(back.bundle.folder), tmp_path / "export", ExportOptions())


@pytest.mark.slow
def test_training_learns_the_order_and_keeps_the_texts(tmp_path):
    pairs = word_by_word.pairs(600, 7, longest=4)
    (tmp_path / "train.tsv").write_text(word_by_word.tsv(pairs))
    (tmp_path / "small.toml").write_text(CONFIG)
    configuration = load(tmp_path / "small.toml", [f"run.directory={tmp_path / 'run'}"], data=tmp_path)
    prepared = prepare(configuration)
    source, target = pairs_of(prepared)
    words = prepared.target_tokenizer.tokens(target)
    assert words == [word_by_word.WORDS[word] for word in prepared.source_tokenizer.tokens(source)[::-1]]
    train(configuration)
    run = Translator.load(tmp_path / "run")
    new = word_by_word.pairs(50, 8, longest=4)
    right = sum(one.text == target for one, (_, target) in zip(run.translate([s for s, _ in new]), new, strict=True))
    # a run that confused the orders would only be right for sentences that are mirror images of themselves
    assert right >= 25
    assert run.score([new[0]])[0].tokens[:-1] == tuple(new[0][1].split()[::-1])
    changes = ["data.reverse_target=false", f"training.start_from={tmp_path / 'run'}", f"run.directory={tmp_path}/b"]
    with pytest.raises(ConfigError, match=r"data\.reverse_target: expected true as in training\.start_from"):
        gf.train(str(tmp_path / "small.toml"), overrides=changes, data=tmp_path)
    other = load(tmp_path / "small.toml", [f"run.directory={tmp_path / 'run'}", "data.reverse_target=false"], tmp_path)
    with pytest.raises(ConfigError, match=r"data\.reverse_target"):
        prepare(other)


def pairs_of(prepared):
    """Return the ids of the first training pair, without `<eos>`."""
    source, target = (side[0] for side in (prepared.train.source, prepared.train.target))
    return [torch.as_tensor(side).tolist()[:-1] for side in (source, target)]
