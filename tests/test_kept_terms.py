"""Translations that contain the protected spans and the glossary terms of their texts."""

import math
from dataclasses import replace

import pytest
import torch

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
        import glassformer as gf

        network = gf.Transformer(bundle.model_config)
        sides = (bundle.source_tokenizer, bundle.target_tokenizer)
        examples, _ = Examples.encode(pairs, *sides, max_length=bundle.model_config.max_length)
        training = TrainingConfig(steps=150, batch_tokens=400, learning_rate=0.01, warmup=20)
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
    assert kept.pop(4) in ("search", "cut")  # without the span, there is nothing to translate
    assert kept == ["placed", "placed", "placed", "", "", "placed", "placed"]
    assert lacking(TEXTS, translator.translate(TEXTS, protect=False))  # the model alone loses them


def test_without_terms_a_translation_is_the_same(translator):
    plain = ["the cat sees a dog", "a big dog and the cat"]
    assert translator.translate(plain, protect=True) == translator.translate(plain, protect=False)


def test_terms_of_a_glossary_stand_in_the_translations(translator):
    found = translator.translate(TEXTS, glossary=GLOSSARY)
    assert not lacking(TEXTS, found, GLOSSARY)
    assert found[3].text.startswith("le")
    assert found[3].kept in ("search", "placed")
    assert "sees" in found[3].text.split()
    assert found == translator.translate(TEXTS, glossary=Glossary.of(GLOSSARY))


def test_what_the_model_writes_anyway_is_kept(translator):
    [found] = translator.translate(["the cat sees a dog"], glossary={"cat": "chat"})
    [free] = translator.translate(["the cat sees a dog"])
    assert found == replace(free, kept="output")


def test_the_log_probabilities_are_those_that_the_model_gives_the_tokens(translator):
    texts = ["the cat sees a dog", "a big cat and the cat"]
    names = translator.bundle.target_tokenizer.tokens(range(len(translator.bundle.target_tokenizer)))
    for text, one in zip(texts, translator.translate(texts, glossary={"cat": "matou"}), strict=True):
        assert one.kept == "search"
        source, target = translator.bundle.source_tokenizer.encode(text), map(names.index, one.tokens)
        [log_probs] = translator.engine.score([(((*source, 2),), tuple(target))])
        assert one.token_log_probs == pytest.approx(log_probs, abs=1e-4)  # float32, in other batches
        assert one.log_prob == pytest.approx(math.fsum(log_probs), abs=1e-3)


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


def test_a_sentence_of_nothing_but_spans_is_cut(translator):
    [one] = translator.translate(["https://§.org, {x}!"])
    assert (one.text, one.kept, one.tokens[-1]) == ("https://§.org, {x}!", "cut", "<eos>")
    assert math.isnan(one.log_prob)


def test_sampled_outputs_contain_the_spans_too(translator):
    found = translator.translate(TEXTS, sample=True)
    assert not lacking(TEXTS, found)
    assert found == translator.translate(TEXTS, sample=True)
    again = list(translator.stream(TEXTS, sample=True, window=3))  # the draws depend on a text's place only
    assert [one.text for one in again] == [one.text for one in found]


def test_a_prefix_and_the_terms_are_both_kept(translator):
    [found] = translator.translate(["the cat sees 12345 dogs"], prefix="un grand chien")
    assert found.text.startswith("un grand chien")
    assert "12345" in found.text
    [lost] = translator.translate(["the cat https://§.org"], prefix="un grand chien")
    assert (lost.kept, lost.text.startswith("un grand chien")) == ("lost", True)


def test_ctranslate2_places(run):
    pytest.importorskip("ctranslate2")
    found = Translator.load(run, engine="ctranslate2").translate(TEXTS, glossary=GLOSSARY)
    assert not lacking(TEXTS, found, GLOSSARY)
    assert {one.kept for one in found} <= {"", "output", "placed", "cut"}


def test_an_ensemble_searches_too(run):
    found = Translator.load(run, run).translate(TEXTS[:3])
    assert not lacking(TEXTS[:3], found)
    assert {one.kept for one in found} <= {"search", "placed"}


def test_auto_chooses_the_engine_that_searches_for_terms(run):
    assert Translator.load(run, engine="auto", needs=["glossary"]).engine.name == "torch"


def test_a_wrong_glossary_is_refused(translator):
    with pytest.raises(DataError, match="glossary: expected a target term with a letter or a digit, got ''"):
        translator.translate(["a"], glossary={"cat": ""})


def test_a_setting_of_the_run_switches_protection_off(run):
    bundle = Bundle.load(run)
    decoding = replace(bundle.configuration.decoding, protect=False)
    bundle = replace(bundle, configuration=replace(bundle.configuration, decoding=decoding))
    assert lacking(TEXTS, Translator(bundle, bundle.model()).translate(TEXTS))
