"""Translations that contain the protected spans and the glossary terms of their texts."""

import math
from dataclasses import replace

import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.corpus.batching import Examples
from glassformer.errors import DataError
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.glossary import Glossary
from glassformer.text.terms import Terms, missing_terms
from glassformer.training import steps as training_steps
from glassformer.translator import Translator
from models import new_bundle

pytestmark = pytest.mark.slow
WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "big": "grand", "and": "et"}
SIZES = {"d_model": 32, "heads": 4, "d_ff": 48, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, "norm": "pre"}
TEXTS = [
    "the cat sees 12345 dogs and a big dog",
    "a dog and https://example.org/x?y=1",
    "{name} sees the cat and {name}",
    "the cat sees a dog",
    "12:30",
    "",
    "the dog sees (a.b@example.org), and 1000 and 2000.",
    "the cat sees https://§.org and a dog",
]
GLOSSARY = {"cat": "matou|félin", "big dog": "molosse", "sees": "sees"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run that translates word by word, and has never seen a number or an address."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    values = {"data": {"source": "a.tsv"}, "tokenizer": {"kind": "bpe", "vocab_size": 120}, "model": SIZES}
    configuration = from_dict({**values, "decoding": {"beam_size": 3, "length_penalty": 0.6}})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        drawn = [torch.randint(len(WORDS), (int(torch.randint(2, 9, ())),)).tolist() for _ in range(600)]
        sources = [" ".join([*WORDS][word] for word in words) for words in drawn]
        pairs = [(text, " ".join(WORDS[word] for word in text.split())) for text in sources]
        seen = "0123456789 abcdefghijklmnopqrstuvwxyz é :/.?=(),@{}_s matou félin molosse"
        bundle = new_bundle(folder, configuration, [*sources, seen], [target for _, target in pairs])
        torch.manual_seed(1 + word_by_word.SEED)
        network = gf.Transformer(bundle.model_config)
        sides = (bundle.source_tokenizer, bundle.target_tokenizer)
        examples, _ = Examples.encode(pairs, *sides, max_length=bundle.model_config.max_length)
        training = TrainingConfig(steps=300, batch_tokens=400, learning_rate=0.01, warmup=20)
        for _ in training_steps(network, examples, training):
            pass
    bundle.save(network)
    return folder


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


def lacking(texts, found, glossary=None):
    terms = Terms(glossary=Glossary.of(glossary) if glossary else None)
    return [text for text, one in zip(texts, found, strict=True) if missing_terms(terms.of(text), one.text)]


def test_protected_spans_stand_in_the_translations(translator):
    found = translator.translate(TEXTS)
    assert not lacking(TEXTS, found)
    kept = [one.kept for one in found]
    assert kept == ["placed", "placed", "placed", "", "placed", "", "placed", "placed"]
    assert found[4].text == TEXTS[4]  # apart from the span, there is nothing to translate
    assert lacking(TEXTS, translator.translate(TEXTS, protect=False))  # without protection, the model loses the spans


def test_without_terms_a_translation_is_the_same(translator):
    plain = ["the cat sees a dog", "a big dog and the cat"]
    assert translator.translate(plain, protect=True) == translator.translate(plain, protect=False)


def test_terms_of_a_glossary_stand_in_the_translations(translator):
    found = translator.translate(TEXTS, glossary=GLOSSARY)
    assert not lacking(TEXTS, found, GLOSSARY)
    assert found[3].text.startswith("le")
    assert found[3].kept == "placed"
    [free] = translator.translate(TEXTS[3:4])
    assert found[3].text == free.text.replace("chat", "matou").replace("voit", "sees")
    assert found == translator.translate(TEXTS, glossary=Glossary.of(GLOSSARY))


def test_what_the_model_writes_anyway_is_kept(translator):
    [found] = translator.translate(["the cat sees a dog"], glossary={"cat": "chat"})
    [free] = translator.translate(["the cat sees a dog"])
    assert found == replace(free, kept="output")


def test_a_translation_does_not_depend_on_its_batch(translator):
    together = translator.translate(TEXTS, glossary=GLOSSARY)
    alone = [translator.translate([text], glossary=GLOSSARY)[0] for text in TEXTS]
    streamed = list(translator.stream(TEXTS, glossary=GLOSSARY, window=3))
    for expected, *others in zip(together, alone, streamed, strict=True):
        for one in others:
            assert (one.text, one.tokens, one.kept, one.status) == (
                expected.text,
                expected.tokens,
                expected.kept,
                expected.status,
            )


def test_more_outputs_keep_the_best_one_and_all_contain_the_terms(translator):
    for one, several in zip(translator.translate(TEXTS), translator.translate(TEXTS, n_best=3), strict=True):
        assert one.text == several.text
    for text, several in zip(TEXTS, translator.translate(TEXTS, n_best=3), strict=True):
        assert not lacking([text] * len(several.alternatives), several.alternatives)


def test_spans_outside_the_vocabulary_are_placed_with_links_and_punctuation(translator):
    text = "the cat (https://§.org), sees a dog"
    [one] = translator.translate([text], links=True)
    [without] = translator.translate(["the cat, sees a dog"], links=True)
    assert one.kept == "placed"
    assert one.log_prob == pytest.approx(without.log_prob, abs=1e-4)
    assert one.tokens == without.tokens
    assert " ".join(one.text.replace("(https://§.org)", "").split()) == " ".join(without.text.split())
    words = {one.text[slice(*link.target)]: text[slice(*link.source)] for link in one.links}
    assert [other for word, other in words.items() if "§" in word] == ["(https://§.org),"]
    assert not translator.translate([text])[0].links


def test_a_sentence_of_nothing_but_spans_is_copied(translator):
    [one] = translator.translate(["https://§.org, {x}!"])
    assert (one.text, one.kept, one.tokens[-1]) == ("https://§.org, {x}!", "placed", "<eos>")
    assert math.isnan(one.log_prob)


def test_sampled_outputs_contain_the_spans_too(translator):
    found = translator.translate(TEXTS, sample=True)
    assert not lacking(TEXTS, found)
    assert found == translator.translate(TEXTS, sample=True)
    again = list(translator.stream(TEXTS, sample=True, window=3))  # draws depend only on the position of a text
    assert [one.text for one in again] == [one.text for one in found]


def test_a_prefix_and_the_terms_are_both_kept(translator):
    texts = ["the cat sees 12345 dogs", "the cat https://§.org", "12:30"]
    for prefix in ("un grand chien", "un gra", "12"):
        found = translator.translate(texts, prefix=prefix, glossary=GLOSSARY)
        assert not lacking(texts, found, GLOSSARY)
        assert all(one.text.startswith(prefix) and one.kept == "placed" for one in found)


def test_a_prefix_may_be_longer_than_what_is_left_of_its_text(translator):
    text, prefix = " ".join(f"{{x{number}}}" for number in range(40)), "un grand chien et " * 15
    [found] = translator.translate([f"the cat {text}"], prefix=prefix)
    assert found.text.startswith(prefix)
    assert not lacking([text], [found])


@pytest.mark.parametrize("prefix", ["", "un"])
def test_both_engines_place_alike(run, translator, prefix):
    pytest.importorskip("ctranslate2")
    fast = Translator.load(run, engine="ctranslate2")
    # greedy, because a beam may end at a different step
    how = {"glossary": GLOSSARY, "links": True, "prefix": prefix, "beam_size": 1}
    ours, theirs = (one.translate(TEXTS, **how) for one in (translator, fast))
    assert [(one.text, one.kept, one.links) for one in ours] == [(one.text, one.kept, one.links) for one in theirs]


def test_an_ensemble_places_too(run, translator):
    found = Translator.load(run, run).translate(TEXTS)
    assert [(one.text, one.kept) for one in found] == [(one.text, one.kept) for one in translator.translate(TEXTS)]


def test_a_wrong_glossary_is_refused(translator):
    with pytest.raises(DataError, match="glossary: expected a target term with a letter or a digit, got ''"):
        translator.translate(["a"], glossary={"cat": ""})


def test_a_setting_of_the_run_switches_protection_off(run):
    bundle = Bundle.load(run)
    decoding = replace(bundle.configuration.decoding, protect=False)
    bundle = replace(bundle, configuration=replace(bundle.configuration, decoding=decoding))
    assert lacking(TEXTS, Translator(bundle, bundle.model()).translate(TEXTS))
