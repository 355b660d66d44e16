"""Runs that learned to copy placeholder tokens: an output has a span where the model writes the span's token."""

import math
import random
from dataclasses import replace

import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.corpus.batching import Examples
from glassformer.corpus.placeholder_pairs import PlaceholderPairs
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.formats import FORMATS
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.links import word_spans
from glassformer.text.terms import Terms, missing_terms
from glassformer.text.vocabulary import PLACEHOLDERS
from glassformer.training import steps as training_steps
from glassformer.translator import Translator
from models import new_bundle

pytestmark = pytest.mark.slow
WORDS = {"the": "le", "cat": "chat", "dog": "chien", "sees": "voit", "a": "un", "big": "grand", "and": "et"}
SIZES = {"d_model": 48, "heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, "norm": "pre"}
STEPS = 700
TEXTS = [
    "the cat sees 12345 and a big dog",
    "a dog and https://example.org/x?y=1",
    "{name} sees the cat and {name}",
    "the cat sees a dog",
    "the dog sees a.b@example.org and 1000 cat 2000",
    "the ⟦7⟧ cat sees https://§.org dog",
]
EXPECTED = [
    "le chat voit 12345 et un grand chien",
    "un chien et https://example.org/x?y=1",
    "{name} voit le chat et {name}",
    "le chat voit un chien",
    "le chien voit a.b@example.org et 1000 chat 2000",
    "le ⟦7⟧ chat voit https://§.org chien",
]
ONLY_SPANS = "12:30"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run that translates word by word, and copies placeholder tokens."""
    folder = tmp_path_factory.mktemp("runs") / "small"
    tokenizer = {"kind": "words", "vocab_size": 100, "joint": False, "placeholders": 0.5}
    values = {"data": {"source": "a.tsv"}, "tokenizer": tokenizer, "model": SIZES}
    configuration = from_dict({**values, "decoding": {"beam_size": 3, "length_penalty": 0.6}})
    draw = random.Random(1)
    drawn = [draw.choices([*WORDS], k=draw.randint(2, 9)) for _ in range(1200)]
    pairs = [(" ".join(words), " ".join(map(WORDS.__getitem__, words))) for words in drawn]
    seen = "0123456789 abcdefghijklmnopqrstuvwxyz :/.?=(),@{}_"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1 + word_by_word.SEED)
        bundle = new_bundle(folder, configuration, *([*(pair[side] for pair in pairs), seen] for side in (0, 1)))
        network = gf.Transformer(bundle.model_config)
        sides = (bundle.source_tokenizer, bundle.target_tokenizer)
        taught = [PlaceholderPairs(*sides, 0.5, WORDS)(*pair) for pair in pairs]
        examples, _ = Examples.encode(taught, *sides, max_length=bundle.model_config.max_length)
        training = TrainingConfig(steps=STEPS, batch_tokens=600, learning_rate=0.01, warmup=20, schedule="cosine")
        for _ in training_steps(network, examples, training):
            pass
    bundle.save(network)
    return folder


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


def misreading(translator, token, other):
    """Return a translator whose model reads one token as another."""
    bundle, model = translator.bundle, translator.bundle.model()
    one, another = (bundle.source_tokenizer.encode(text)[-1] for text in (token, other))
    with torch.no_grad():
        model.source.tokens.weight[one] = model.source.tokens.weight[another]
    return Translator(bundle, model)


def lacking(texts, found):
    return [text for text, one in zip(texts, found, strict=True) if missing_terms(Terms().of(text), one.text)]


def test_the_model_writes_the_spans_where_they_belong(translator):
    found = translator.translate(TEXTS)
    assert [one.text for one in found] == EXPECTED
    assert [one.kept for one in found] == ["output", "output", "output", "", "output", "output"]
    free = translator.translate(TEXTS, protect=False)
    assert [one.text for one in free] == EXPECTED, "the model reads placeholders whether or not spans are protected"
    assert {one.kept for one in free} == {""}


def test_a_sentence_of_nothing_but_spans_is_copied(translator):
    [one] = translator.translate([ONLY_SPANS])
    assert one.text == ONLY_SPANS
    assert not set(PLACEHOLDERS) & {*one.tokens}


def test_more_spans_than_tokens_are_all_kept(translator):
    text = " and ".join(f"the cat {number}" for number in range(100, 113))
    [one] = translator.translate([text], extra_length=200)
    assert not lacking([text], [one])


def test_texts_that_differ_in_their_spans_are_one_job(translator):
    both = translator.translate(["the cat sees 1000", "the cat sees 2000"])
    assert [one.text for one in both] == ["le chat voit 1000", "le chat voit 2000"]
    assert both[0].tokens == both[1].tokens


def test_a_translation_does_not_depend_on_its_batch(translator):
    together = translator.translate(TEXTS, links=True, n_best=2)
    alone = [translator.translate([text], links=True, n_best=2)[0] for text in TEXTS]
    streamed = list(translator.stream(TEXTS, links=True, n_best=2, window=3))
    for one, *others in zip(together, alone, streamed, strict=True):
        assert {(other.text, other.links, other.kept, other.tokens) for other in others} == {
            (one.text, one.links, one.kept, one.tokens)
        }


def test_links_are_between_the_words_of_the_whole_texts(translator):
    for text, one in zip(TEXTS, translator.translate(TEXTS, links=True), strict=True):
        assert {link.source for link in one.links} <= {*word_spans(text)}
        assert {link.target for link in one.links} == {*word_spans(one.text)}
    text = "the cat sees 1 000 000 dog"
    [one] = translator.translate([text], links=True)
    assert one.text == "le chat voit 1 000 000 chien"
    assert {link.source for link in one.links} <= {*word_spans(text)}
    assert {link.target for link in one.links} == {*word_spans(one.text)}


def test_alternatives_contain_the_spans(translator):
    for text, one in zip(TEXTS, translator.translate(TEXTS, n_best=3), strict=True):
        assert not lacking([text] * len(one.alternatives), one.alternatives)
        assert not any(token in other.text for other in one.alternatives for token in PLACEHOLDERS if token not in text)


def test_a_prefix_may_contain_spans(translator):
    [one] = translator.translate(["the cat sees 1000 and 2000"], prefix="le chat voit 1000")
    assert one.text == "le chat voit 1000 et 2000"
    assert one.kept == "output"


def test_given_translations_are_scored_as_the_model_writes_them(translator):
    for text, one in zip(TEXTS, translator.translate(TEXTS), strict=True):
        [scored] = translator.score([(text, one.text)])
        assert scored.text == one.text
        assert scored.tokens == one.tokens
        assert scored.log_prob == pytest.approx(one.log_prob, abs=1e-4)


def test_explanations_show_what_the_model_reads(translator):
    shown = translator.explain(TEXTS[0])
    assert shown.translation.text == EXPECTED[0]
    assert "⟦0⟧" in shown.source
    assert "⟦0⟧" in shown.translation.tokens
    assert not shown.unknown
    assert not translator.unknown("the cat sees https://§.org")
    assert translator.unknown("the § sees a dog") == ("§",)


def test_texts_that_are_not_valid_unicode_have_no_translation(translator):
    assert translator.translate(["the cat 1000 \ud800"])[0].status == "undecodable"


def test_a_placeholder_that_the_model_leaves_out_is_placed(translator):
    careless = misreading(translator, "⟦0⟧", "cat")
    assert careless.translate(TEXTS[:1], protect=False)[0].text == "le chat voit chat et un grand chien"
    [found] = careless.translate(TEXTS[:1])
    assert (found.kept, found.text) == ("placed", EXPECTED[0])
    [drawn] = careless.translate(TEXTS[:1], sample=True)
    assert (drawn.kept, drawn.text.count("12345")) == ("placed", 1)


def test_a_placeholder_that_stands_for_no_span_is_not_delivered(translator):
    inventive = misreading(translator, "⟦0⟧", "⟦5⟧")
    [free] = inventive.translate(TEXTS[:1], protect=False)
    assert free.text == "le chat voit et un grand chien"
    assert "⟦5⟧" in free.tokens
    [found] = inventive.translate(TEXTS[:1])
    assert (found.kept, found.text) == ("placed", EXPECTED[0])


def test_a_placeholder_that_the_model_doubles_is_placed_once(translator):
    [found] = misreading(translator, "cat", "⟦0⟧").translate(TEXTS[:1])
    assert found.text.count("12345") == 1
    assert found.kept == "placed"


def test_the_other_doors(run, tmp_path):
    pytest.importorskip("ctranslate2")
    translator = Translator.load(run, engine="ctranslate2")
    assert [one.text for one in translator.translate(TEXTS, log_probs=False)] == EXPECTED
    exported = tmp_path / "exported"
    FORMATS["ctranslate2"].export(translator.bundle, exported, ExportOptions(verified=False))
    assert [one.text for one in Translator.load(exported, engine="ctranslate2").translate(TEXTS)] == EXPECTED
    assert [one.text for one in Translator.load(run, run).translate(TEXTS)] == EXPECTED


def test_a_second_search_reads_placeholders_too(translator):
    found = translator.translate(TEXTS, retry=True)
    assert not lacking(TEXTS, found)
    assert not any(math.isnan(one.log_prob) for one in found)


def test_a_vocabulary_without_the_tokens_reads_the_text_itself(translator):
    bundle = translator.bundle
    config = replace(bundle.configuration.tokenizer, placeholders=0.0)
    other = new_bundle(bundle.folder, replace(bundle.configuration, tokenizer=config, model=SIZES), TEXTS, EXPECTED)
    plain = Translator(other, gf.Transformer(other.model_config).eval())
    assert "⟦0⟧" not in plain.explain(TEXTS[0]).source
