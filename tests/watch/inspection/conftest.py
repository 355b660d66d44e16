"""Sentences for the models of `make_model`: source ids with `<eos>`, target ids with `<bos>`; and a translator."""

import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.corpus.batching import Examples
from glassformer.corpus.tasks import copy_pairs
from glassformer.recipes.configuration import TrainingConfig
from glassformer.recipes.toml import from_dict
from glassformer.text.tokenizer import train_tokenizers
from glassformer.training import steps

SOURCE_IDS = [4, 5, 6, 7, 8, 2]
TARGET_IDS = [1, 4, 5, 9]


@pytest.fixture
def source():
    return torch.tensor([SOURCE_IDS])


@pytest.fixture
def target():
    return torch.tensor([TARGET_IDS])


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """Return a translator that has partly learned the copy task."""
    configuration = from_dict({"data": {"task": "copy"}, "tokenizer": {"kind": "words", "joint": False}})
    words = [" ".join(map(str, range(1, 11)))]
    source, target = train_tokenizers(words, words, configuration.tokenizer)
    settings = {"d_model": 24, "heads": 3, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2, "norm": "pre"}
    bundle = Bundle(
        folder=tmp_path_factory.mktemp("run"),
        configuration=configuration,
        model_config=gf.ModelConfig(source_vocab_size=len(source), target_vocab_size=len(target), **settings),
        source_tokenizer=source,
        target_tokenizer=target,
    )
    pairs = [(one.source, one.target) for one in copy_pairs(300, shortest=1, longest=4)]
    examples, _ = Examples.encode(pairs, source, target, max_length=9)
    training = TrainingConfig(steps=90, batch_tokens=300, learning_rate=0.01, warmup=20)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20170612 + word_by_word.SEED)
        model = gf.Transformer(bundle.model_config)
        for _ in steps(model, examples, training):
            pass
    return gf.Translator(bundle, model.eval())
